//! `reveille policies`.

use std::process::ExitCode;

use reveille_policy::{BASELINES, Baseline, FEATURES, Feature};
use reveille_report::object;
use serde::Serialize;

use super::layout::{ListArgs, columns, entry};
use crate::errors::{CliError, Result};
use crate::output::{print, print_json};

/// Lists baselines and features, or shows one.
pub fn policies(args: &ListArgs) -> Result<ExitCode> {
    match &args.name {
        Some(name) => show(name, args.json)?,
        None if args.json => {
            let names = |b| on(b).map(|f| f.name).collect::<Vec<_>>();
            let line =
                |b: &'static Baseline| object! { name: b.name, about: b.about, features: names(b) };
            print_json(&object! {
                baselines: BASELINES.iter().map(line).collect::<Vec<_>>(),
                features: FEATURES.iter().map(feature_json).collect::<Vec<_>>(),
            })?
        }
        None => print(&list())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list() -> String {
    let rows = |lines: Vec<(&str, &str)>| {
        columns(&lines.iter().map(|(n, a)| [format!("  {n}"), a.to_string()]).collect::<Vec<_>>())
    };
    let baselines = rows(BASELINES.iter().map(|b| (b.name, b.about)).collect());
    let features = rows(FEATURES.iter().map(|f| (f.name, f.about)).collect());
    format!(
        "baselines, for --base\n{baselines}\nfeatures, for --with +NAME or --with -NAME\n{features}"
    )
}

/// Shows one entry; a feature may carry the sign of an edit (`+SIS_SHORT`).
fn show(name: &str, json: bool) -> Result<()> {
    let bare = name.trim_start_matches(['+', '-']);
    if let Some(baseline) = BASELINES.iter().find(|b| b.name == name) {
        if json {
            let features: Vec<_> = on(baseline).map(feature_json).collect();
            let (name, about) = (baseline.name, baseline.about);
            let full = object! { name, about, features };
            return print_json(&object! { baseline: full });
        }
        return print(&baseline_text(baseline));
    }
    if let Some(feature) = FEATURES.iter().find(|f| f.name == bare) {
        if json {
            return print_json(&object! { feature: feature_json(feature) });
        }
        return print(&feature_text(feature));
    }
    let known = BASELINES.iter().map(|b| b.name).chain(FEATURES.iter().map(|f| f.name));
    Err(CliError::unknown(Baseline::unknown("baseline or feature", bare, known)))
}

fn on(baseline: &Baseline) -> impl Iterator<Item = &'static Feature> + use<> {
    let features = baseline.features;
    FEATURES.iter().filter(move |f| features & f.bit != 0)
}

fn baseline_text(baseline: &Baseline) -> String {
    let mut text = entry(0, "baseline", baseline.name) + &entry(0, "about", baseline.about);
    text += "\nfeatures\n";
    let row = |f: &Feature| [format!("  {}", f.name), f.about.to_owned()];
    text + &columns(&on(baseline).map(row).collect::<Vec<_>>())
}

fn feature_text(feature: &Feature) -> String {
    let with: Vec<&str> =
        BASELINES.iter().filter(|b| b.features & feature.bit != 0).map(|b| b.name).collect();
    let with = if with.is_empty() { "no baseline".to_owned() } else { with.join(", ") };
    entry(0, "feature", feature.name)
        + &entry(0, "about", feature.about)
        + &entry(0, "source", feature.source)
        + &entry(0, "on in", &with)
}

fn feature_json(f: &Feature) -> impl Serialize + use<> {
    object! { name: f.name, about: f.about, source: f.source }
}

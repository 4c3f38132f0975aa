//! `reveille studies`.

use std::fmt::Write;
use std::process::ExitCode;

use reveille_measure::duration_text;
use reveille_report::object;
use reveille_study::{Case, Point, Published, PublishedFigure, Side, Study};

use super::interference;
use super::layout::{ListArgs, columns, entry};
use super::study_json::{base_name, full_json, line, machine_name, published};
use crate::errors::{Result, say};
use crate::output::{print, print_json, print_result};

pub fn studies(args: &ListArgs) -> Result<ExitCode> {
    if let Some(spec) = &args.name {
        let study = reveille_study::load(spec)?;
        let json = object! { study: full_json(&study) };
        print_result(args.json, &json, || full_text(&study))?;
        return Ok(ExitCode::SUCCESS);
    }
    // A study on this host can fail to load where the host is unreadable; list the others then.
    let readable = |name: &&str| match reveille_study::load(name) {
        Ok(study) => Some(study),
        Err(error) => {
            say(format_args!("reveille: the study {name} cannot be read here: {error}"));
            None
        }
    };
    let studies: Vec<_> = reveille_study::names().iter().filter_map(readable).collect();
    if args.json {
        print_json(&object! { studies: studies.iter().map(line).collect::<Vec<_>>() })?;
    } else {
        let row = |s: Study| [s.name.clone(), machine_name(&s).to_owned(), s.about];
        let rows = studies.into_iter().map(row);
        print(&columns(&rows.collect::<Vec<_>>()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn full_text(s: &Study) -> String {
    let mut text = String::new();
    text += &entry(0, "study", &s.name);
    text += &entry(0, "about", &s.about);
    if let Some(mechanism) = &s.mechanism {
        text += &entry(0, "mechanism", mechanism);
    }
    text += &entry(0, "machine", machine_name(s));
    text += &entry(0, "base", base_name(s));
    if s.on.measures() {
        text += &entry(0, "on", &s.on.to_string());
    }
    text += &entry(0, "variants", &s.variants().join(", "));
    text += &entry(0, "seed", &s.seed.to_string());
    for case in &s.cases {
        text += "\n";
        text += &case_text(s, case);
    }
    for case in &s.interference {
        text += "\n";
        text += &interference::text(case);
    }
    for statement in &s.statements {
        text += "\n";
        text += &entry(0, "claim", &statement.words(s));
        text += &entry(2, "published", &format!("{}; {}", statement.expected(), statement.source));
    }
    for u in &s.unpredicted {
        text += "\n";
        text += &entry(0, "unpredicted", &format!("{}: {}", u.what, u.figures));
        text += &entry(2, "reason", &u.reason);
        text += &entry(2, "published", &u.source);
    }
    text
}

fn case_text(s: &Study, c: &Case) -> String {
    let loads: Vec<String> = c.points.iter().map(|p| p.load.to_string()).collect();
    let metrics: Vec<String> = c.metrics.iter().map(|m| m.metric.to_string()).collect();
    let length = format!("{} after a warm-up of {}", time(c.duration_ns), time(c.warmup_ns));
    let mut text = String::new();
    text += &entry(0, "case", &c.name);
    text += &entry(2, "workload", &c.workload);
    if c.machine != 0 {
        text += &entry(2, "machine", &s.machines[c.machine].name);
    }
    if Some(&c.base) != s.base.as_ref() {
        text += &entry(2, "base", &c.base.base);
    }
    for group in &c.groups.groups {
        let quota = group.limits.quota_ns.map_or("no limit".to_owned(), time);
        let (period, burst) = (time(group.limits.period_ns), time(group.limits.burst_ns));
        let settings = format!("{}: quota {quota}, period {period}, burst {burst}", group.name);
        text += &entry(2, "group", &settings);
    }
    text += &entry(2, "metric", &metrics.join(", "));
    text += &entry(2, "loads", &loads.join(", "));
    text += &entry(2, "runs", &format!("{} of {length} each", c.repeats));
    let mut last_source = None;
    for (point, published) in published(c) {
        if last_source != Some(&published.source) {
            text += &entry(2, "published", &published.source);
            last_source = Some(&published.source);
        }
        let _ = writeln!(text, "    {}", figure_text(c, point, published));
    }
    text
}

fn time(ns: u64) -> String {
    duration_text(ns as f64)
}

/// Such as `load 224, +SIS_SHORT: +665.38% (std 2.52% and 3.38%)`.
fn figure_text(c: &Case, point: &Point, p: &Published) -> String {
    let variant = c.variants.get(p.variant).map_or("alone", |v| &v.name);
    let mut text = format!("load {}, {variant}: {}", point.load, printed(c, p));
    let std = |std: Option<f64>| std.map_or("not stated".to_owned(), |s| format!("{s:.2}%"));
    if p.std_base_pct.is_some() || p.std_variant_pct.is_some() {
        let _ = write!(text, " (std {} and {})", std(p.std_base_pct), std(p.std_variant_pct));
    }
    if c.metrics.len() > 1 {
        let _ = write!(text, ", {}", c.metrics[p.metric].metric);
    }
    if let Some(noise) = &p.noise {
        let _ = write!(text, ", noise: {noise}");
    }
    text
}

/// The figure as the source prints it.
fn printed(c: &Case, p: &Published) -> String {
    let name = |side: &Side| if *side == Side::Base { "baseline" } else { "variant" };
    let unit = |unit: &Option<String>| unit.as_ref().map_or(String::new(), |u| format!(" {u}"));
    match &p.figure {
        PublishedFigure::Change { change_pct } => format!("{change_pct:+.2}%"),
        PublishedFigure::Pair { base, variant, unit: u } => {
            format!("from {base} to {variant}{}", unit(u))
        }
        PublishedFigure::Side { side, value, unit: Some(unit), .. } => {
            format!("{} {value} {unit}", name(side))
        }
        PublishedFigure::Side { side, value, unit: None, .. } => {
            format!("{} {value} {}", name(side), c.metrics[p.metric].metric.unit)
        }
        PublishedFigure::Std { base, variant, unit: u } => {
            format!("standard deviation from {base} to {variant}{}", unit(u))
        }
        PublishedFigure::RunsAbove { side, above_text, runs, of, .. } => {
            format!("{} above {above_text} in {runs} of {of} runs", name(side))
        }
    }
}

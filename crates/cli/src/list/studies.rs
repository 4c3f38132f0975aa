//! `reveille studies`.

use std::fmt::Write;
use std::process::ExitCode;

use reveille_study::{Case, Peak, Point, Published, Study};
use serde::Serialize;

use super::layout::{columns, entry};
use crate::args::ListArgs;
use crate::errors::CliError;
use crate::output::{print, print_json};

/// JSON of the list.
#[derive(Serialize)]
struct StudiesJson {
    studies: Vec<StudyLine>,
}

/// A study in the list.
#[derive(Serialize)]
struct StudyLine {
    name: String,
    about: String,
    machine: String,
}

/// JSON of one study.
#[derive(Serialize)]
struct StudyJson {
    study: FullStudy,
}

#[derive(Serialize)]
struct FullStudy {
    name: String,
    about: String,
    machine: String,
    base: String,
    variants: Vec<String>,
    seed: u64,
    cases: Vec<CaseJson>,
    peaks: Vec<PeakJson>,
}

#[derive(Serialize)]
struct CaseJson {
    name: String,
    workload: String,
    metric: String,
    loads: Vec<u64>,
    repeats: u32,
    warmup_ns: u64,
    duration_ns: u64,
    published: Vec<PublishedJson>,
}

/// A published figure; positive is better. Standard deviations are relative, in
/// percent, and null where none was published.
#[derive(Serialize)]
struct PublishedJson {
    load: u64,
    variant: String,
    change_pct: f64,
    std_base_pct: Option<f64>,
    std_variant_pct: Option<f64>,
    /// Null unless the source itself calls the figure noise.
    noise: Option<String>,
    source: String,
}

/// A published statement: the baseline of this case is best at this load.
#[derive(Serialize)]
struct PeakJson {
    case: String,
    load: u64,
    source: String,
}

/// Lists studies, or shows one.
pub fn studies(args: &ListArgs) -> Result<ExitCode, CliError> {
    if let Some(spec) = &args.name {
        let study = reveille_study::load(spec)?;
        if args.json {
            print_json(&StudyJson { study: full_json(&study) })?;
        } else {
            print(&full_text(&study))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let studies = reveille_study::names()
        .into_iter()
        .map(|name| reveille_study::load(name).map(line))
        .collect::<Result<Vec<_>, _>>()?;
    if args.json {
        print_json(&StudiesJson { studies })?;
    } else {
        let row = |s: StudyLine| [s.name, s.machine, s.about];
        print(&columns(&studies.into_iter().map(row).collect::<Vec<_>>()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn line(study: Study) -> StudyLine {
    StudyLine { name: study.name, about: study.about, machine: study.machine.name }
}

fn full_text(s: &Study) -> String {
    let variants: Vec<&str> = s.variants.iter().map(|v| v.edits.as_str()).collect();
    let mut text = String::new();
    text += &entry(0, "study", &s.name);
    text += &entry(0, "about", &s.about);
    text += &entry(0, "machine", &s.machine.name);
    text += &entry(0, "base", &s.base.base);
    text += &entry(0, "variants", &variants.join(", "));
    text += &entry(0, "seed", &s.seed.to_string());
    for case in &s.cases {
        text += "\n";
        text += &case_text(s, case);
    }
    for peak in &s.peaks {
        let claim = format!("{} is best at load {}", s.cases[peak.case].name, peak.load);
        text += "\n";
        text += &entry(0, "claim", &claim);
        text += &entry(2, "published", &peak.source);
    }
    text
}

fn case_text(s: &Study, c: &Case) -> String {
    let loads: Vec<String> = c.points.iter().map(|p| p.load.to_string()).collect();
    let ms = |ns: u64| format!("{}ms", ns as f64 / 1e6);
    let time = format!("{} after a warm-up of {}", ms(c.duration_ns), ms(c.warmup_ns));
    let mut text = String::new();
    text += &entry(0, "case", &c.name);
    text += &entry(2, "workload", &c.workload);
    text += &entry(2, "metric", &c.metric.name);
    text += &entry(2, "loads", &loads.join(", "));
    text += &entry(2, "runs", &format!("{} of {time} each", c.repeats));
    let mut last_source = None;
    for (point, published) in published(c) {
        if last_source != Some(&published.source) {
            text += &entry(2, "published", &published.source);
            last_source = Some(&published.source);
        }
        let _ = writeln!(text, "    {}", figure_text(s, point, published));
    }
    text
}

/// Such as `load 224, +SIS_SHORT: +665.38% (std 2.52% and 3.38%)`.
fn figure_text(s: &Study, point: &Point, p: &Published) -> String {
    let variant = &s.variants[p.variant].edits;
    let mut text = format!("load {}, {variant}: {:+.2}%", point.load, p.change_pct);
    let std = |std: Option<f64>| std.map_or("not stated".to_owned(), |s| format!("{s:.2}%"));
    if p.std_base_pct.is_some() || p.std_variant_pct.is_some() {
        let _ = write!(text, " (std {} and {})", std(p.std_base_pct), std(p.std_variant_pct));
    }
    if let Some(noise) = &p.noise {
        let _ = write!(text, ", noise: {noise}");
    }
    text
}

fn published(c: &Case) -> impl Iterator<Item = (&Point, &Published)> {
    c.points.iter().flat_map(|point| point.published.iter().map(move |p| (point, p)))
}

fn full_json(s: &Study) -> FullStudy {
    FullStudy {
        name: s.name.clone(),
        about: s.about.clone(),
        machine: s.machine.name.clone(),
        base: s.base.base.clone(),
        variants: s.variants.iter().map(|v| v.edits.clone()).collect(),
        seed: s.seed,
        cases: s.cases.iter().map(|c| case_json(s, c)).collect(),
        peaks: s.peaks.iter().map(|p| peak_json(s, p)).collect(),
    }
}

fn case_json(s: &Study, c: &Case) -> CaseJson {
    CaseJson {
        name: c.name.clone(),
        workload: c.workload.clone(),
        metric: c.metric.name.clone(),
        loads: c.points.iter().map(|p| p.load).collect(),
        repeats: c.repeats,
        warmup_ns: c.warmup_ns,
        duration_ns: c.duration_ns,
        published: published(c).map(|(point, p)| published_json(s, point, p)).collect(),
    }
}

fn published_json(s: &Study, point: &Point, p: &Published) -> PublishedJson {
    PublishedJson {
        load: point.load,
        variant: s.variants[p.variant].edits.clone(),
        change_pct: p.change_pct,
        std_base_pct: p.std_base_pct,
        std_variant_pct: p.std_variant_pct,
        noise: p.noise.clone(),
        source: p.source.clone(),
    }
}

fn peak_json(s: &Study, p: &Peak) -> PeakJson {
    PeakJson { case: s.cases[p.case].name.clone(), load: p.load, source: p.source.clone() }
}

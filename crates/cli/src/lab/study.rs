//! `reveille study` and `reveille compare`: both build a study, then run and print it alike.
//! `host_study` has the measured ones.

use std::iter;
use std::path::Path;
use std::process::ExitCode;

use reveille_measure::duration_text;
use reveille_study::{Comparison, On, Parts, Study, Summary};

use super::host_study::{self, Costs};
use super::policy::{self, Files};
use super::study_args::{CompareArgs, RunArgs, StudyArgs};
use crate::errors::{Result, say, warn_of};
use crate::output::{print, print_as, width};
use crate::output_file::OutputFile;
use crate::page::{PageFile, written};
use crate::watched::{exit_code, watched};

/// Default path of the fidelity record that `--all` writes.
const FIDELITY: &str = "docs/fidelity.md";
/// Beside it, the file that says which of its rows are fragile.
const FRAGILE_NAME: &str = "sensitivity.json";

/// Runs a study by name or file, or the whole catalogue.
pub fn study(args: &StudyArgs) -> Result<ExitCode> {
    if let Some(path) = &args.baselines {
        return baselines(path, args);
    }
    let Some(spec) = &args.study else { return all(args) };
    let study = host_study::placed(edited(reveille_study::load(spec)?, args)?, args)?;
    run(study, Costs::Calibrate, &args.run)
}

fn baselines(path: &Path, args: &StudyArgs) -> Result<ExitCode> {
    let page = OutputFile::prepare("--baselines", path)?;
    let study = edited(reveille_study::load(reveille_study::BASELINES)?, args)?;
    let comparison =
        watched(args.run.jobs, |jobs, stop, tell| reveille_study::run(&study, jobs, stop, tell))?;
    let shown = show(&comparison, &args.run);
    // An incomplete page could be mistaken for a complete one.
    if !comparison.partial {
        page.write(&reveille_report::baselines(&study, &comparison))?;
        say(format_args!("reveille: wrote {}", page.path().display()));
    }
    shown?;
    Ok(exit_code(comparison.partial, !comparison.rows.is_empty(), &[page.path()]))
}

/// A study with the command line's overrides.
fn edited(mut study: Study, args: &StudyArgs) -> Result<Study> {
    if let Some(repeats) = args.repeats {
        study = study.with_repeats(repeats)?;
    }
    if let Some(seed) = args.seed {
        study.seed = seed;
    }
    Ok(study)
}

fn all(args: &StudyArgs) -> Result<ExitCode> {
    let path = args.fidelity.as_deref().unwrap_or(Path::new(FIDELITY));
    let record = OutputFile::prepare("--fidelity", path)?;
    let html = PageFile::prepare(args.run.html.as_deref())?;
    let fragile = super::sensitivity::recorded(&path.with_file_name(FRAGILE_NAME))?;
    let studies = reveille_study::predicted_names()
        .into_iter()
        .map(|name| edited(reveille_study::load(name)?, args))
        .collect::<Result<Vec<Study>>>()?;
    let comparisons = watched(args.run.jobs, |jobs, stop, tell| {
        reveille_study::run_all(&studies, jobs, stop, tell)
    })?;
    let partial = comparisons.iter().any(|c| c.partial);
    let summary = reveille_study::summary(&comparisons);
    let shown = show_all(&comparisons, &summary, &args.run);
    // An incomplete record could be mistaken for a complete one.
    if !partial {
        record.write(&reveille_report::fidelity(&comparisons, &summary, fragile.as_ref()))?;
        say(format_args!("reveille: wrote {}", record.path().display()));
        if let Some(html) = &html {
            html.write(|made| reveille_report::html(&comparisons, made))?;
        }
    }
    shown?;
    let has_rows = comparisons.iter().any(|c| !c.rows.is_empty());
    let files: Vec<&Path> =
        iter::once(record.path()).chain(html.iter().map(PageFile::path)).collect();
    Ok(exit_code(partial, has_rows, &files))
}

fn show_all(cs: &[Comparison], summary: &Summary, args: &RunArgs) -> Result<()> {
    if args.json {
        return print(&reveille_report::json_all(cs, summary));
    }
    if args.csv {
        return print(&reveille_report::csv(cs).map_err(std::io::Error::other)?);
    }
    let mut text = String::new();
    for c in cs {
        text += &reveille_report::table(c, width(), !args.no_explain);
        text += "\n\n";
    }
    print(&(text + &reveille_report::score_table(summary, width())))
}

pub fn compare(args: &CompareArgs) -> Result<ExitCode> {
    let on = args.on.unwrap_or_default();
    let files = match policy::files(&args.policy, on)? {
        Files::Loaded(files) => files,
        Files::Ran(code) => return Ok(code),
    };
    let machine = host_study::machine(on, args.machine.as_deref())?;
    let study = reveille_study::compare(&Parts {
        machine,
        workload: &args.workload,
        load: &args.load,
        base: args.base.as_deref().unwrap_or("host"),
        with: &args.with,
        files: &files,
        param: &args.param,
        metric: &args.metric,
        group: &args.group,
        slice: args.slice.as_deref(),
        on,
        repeats: args.repeats,
        seed: args.seed,
        warmup: args.warmup.as_deref(),
        duration: args.duration.as_deref(),
    })?;
    run(study, Costs::Default, &args.run)
}

fn run(study: Study, costs: Costs, args: &RunArgs) -> Result<ExitCode> {
    let html = PageFile::prepare(args.html.as_deref())?;
    warn(&study);
    let comparison = match study.on {
        On::Sim => {
            watched(args.jobs, |jobs, stop, tell| reveille_study::run(&study, jobs, stop, tell))?
        }
        On::Host => host_study::measured(&study)?,
        On::Both => return host_study::agreed(study, costs, args, html),
    };
    // Print the result first: a failure to write the page must not lose it.
    let shown = show(&comparison, args);
    let has_rows = !comparison.rows.is_empty();
    let made = |made: &_| reveille_report::html(std::slice::from_ref(&comparison), made);
    let unwritten = written(html.as_ref(), has_rows, made)?;
    shown?;
    Ok(exit_code(comparison.partial, has_rows, &unwritten))
}

/// Warns of what the study does not cover.
fn warn(study: &Study) {
    study.machines.iter().for_each(warn_of);
    if let (Some(what), On::Sim | On::Host) = (study.not_judged(), study.on) {
        say(format_args!("warning: {}: {what}", study.machines[0].name));
    }
    for case in study.cases.iter().filter(|case| case.duration_ns < case.pass_ns) {
        say(format_args!(
            "warning: {}: {} is measured, and one pass of the workload takes {}: the rest of it is \
             not seen; leave the duration out, or make it longer",
            case.name,
            duration_text(case.duration_ns as f64),
            duration_text(case.pass_ns as f64)
        ));
    }
}

fn show(comparison: &Comparison, args: &RunArgs) -> Result<()> {
    let csv = || reveille_report::csv(std::slice::from_ref(comparison));
    let table = || reveille_report::table(comparison, width(), !args.no_explain);
    print_as((args.json, args.csv), comparison, csv, table)
}

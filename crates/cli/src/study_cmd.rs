//! `reveille study` and `reveille compare`: two ways to a study, one way to run
//! and show it.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use reveille_study::{Comparison, Parts, Study};

use crate::args::{CompareArgs, RunArgs, StudyArgs};
use crate::errors::{CliError, INTERRUPTED, say};
use crate::html::HtmlFile;
use crate::output::{print, width};
use crate::progress::Progress;

/// Runs a study by name or from a file.
pub fn study(args: &StudyArgs) -> Result<ExitCode, CliError> {
    let mut study = reveille_study::load(&args.study)?;
    if let Some(repeats) = args.repeats {
        study = study.with_repeats(repeats)?;
    }
    if let Some(seed) = args.seed {
        study.seed = seed;
    }
    run(&study, &args.run)
}

/// Runs a comparison given on the command line.
pub fn compare(args: &CompareArgs) -> Result<ExitCode, CliError> {
    let study = reveille_study::compare(&Parts {
        machine: &args.machine,
        workload: &args.workload,
        load: &args.load,
        base: &args.base,
        with: &args.with,
        param: &args.param,
        metric: args.metric.as_deref(),
        repeats: args.repeats,
        seed: args.seed,
        warmup: &args.warmup,
        duration: &args.duration,
    })?;
    run(&study, &args.run)
}

fn run(study: &Study, args: &RunArgs) -> Result<ExitCode, CliError> {
    let html = args.html.as_deref().map(HtmlFile::prepare).transpose()?;
    let jobs = args.jobs.map_or_else(all_cpus, usize::from);
    let stop = watch_signals()?;
    let progress = Progress::new();
    let tell = |done, total| progress.tell(done, total);
    let outcome = reveille_study::run(study, jobs, &stop, &tell);
    progress.finish();
    let comparison = outcome?;
    // A partial page does not replace a whole one unless there is something on it.
    if let Some(html) = html.filter(|_| !comparison.rows.is_empty()) {
        html.write(&reveille_report::html(std::slice::from_ref(&comparison)))?;
    }
    show(&comparison, args)?;
    if comparison.partial {
        say(format_args!("reveille: interrupted; only the finished rows are shown"));
        return Ok(ExitCode::from(INTERRUPTED));
    }
    Ok(ExitCode::SUCCESS)
}

fn show(comparison: &Comparison, args: &RunArgs) -> Result<(), CliError> {
    if args.json {
        print(&reveille_report::json(comparison))
    } else if args.csv {
        print(&reveille_report::csv(comparison).map_err(std::io::Error::other)?)
    } else {
        print(&reveille_report::table(comparison, width(), !args.no_explain))
    }
}

fn all_cpus() -> usize {
    thread::available_parallelism().map_or(1, |n| n.get())
}

/// A flag that the first SIGINT, SIGTERM or SIGHUP sets; a second one ends the
/// command at once.
fn watch_signals() -> Result<Arc<AtomicBool>, CliError> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(INTERRUPTED));
        }
    })?;
    Ok(stop)
}

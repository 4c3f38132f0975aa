//! Simulations on several threads, with a progress bar, until they end or a signal stops them.

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::thread;

use clap::Args;
use reveille_study::StudyError;

use crate::errors::{INTERRUPTED, Result, say};
use crate::progress::Progress;
use crate::signals::watch_signals;

/// `--jobs` of every command that runs in parallel.
#[derive(Args, Clone, Copy)]
pub struct JobsArg {
    /// Simulations in parallel; the result does not depend on it [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
}

impl JobsArg {
    pub fn is_given(self) -> bool {
        self.jobs.is_some()
    }

    pub fn threads(self) -> usize {
        self.jobs.map_or_else(all_cpus, usize::from)
    }
}

/// Runs `work` on `jobs` threads with a progress bar, until it ends or a signal stops it.
pub fn watched<T>(
    jobs: JobsArg,
    work: impl FnOnce(usize, &AtomicBool, &(dyn Fn(usize, usize) + Sync)) -> Result<T, StudyError>,
) -> Result<T> {
    let jobs = jobs.threads();
    let stop = watch_signals()?;
    let progress = Progress::new();
    let tell = |done, total| progress.tell(done, total);
    let outcome = work(jobs, &stop, &tell);
    progress.finish();
    Ok(outcome?)
}

/// The exit code of a run with rows or none; `unwritten` are the files that it was to write.
pub fn exit_code(partial: bool, has_rows: bool, unwritten: &[&Path]) -> ExitCode {
    let mut result = match has_rows {
        true => "only the finished rows are shown".to_owned(),
        false => "no row was finished".to_owned(),
    };
    for path in unwritten {
        result += &format!("; {} was not written", path.display());
    }
    ended(partial, &result)
}

/// The exit code; of an interrupted run it says what became of the result.
pub fn ended(partial: bool, result: &str) -> ExitCode {
    if partial {
        say(format_args!("reveille: interrupted; {result}"));
        return ExitCode::from(INTERRUPTED);
    }
    ExitCode::SUCCESS
}

fn all_cpus() -> usize {
    thread::available_parallelism().map_or(1, |n| n.get())
}

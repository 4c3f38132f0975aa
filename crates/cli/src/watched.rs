//! Simulations on several threads, with a progress bar, until they end or a signal stops them.

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::thread;

use reveille_study::StudyError;

use crate::errors::{CliError, INTERRUPTED, say};
use crate::progress::Progress;
use crate::signals::watch_signals;

/// Runs `work` on `jobs` threads with a progress bar, until it ends or a signal stops it.
pub fn watched<T>(
    jobs: Option<u16>,
    work: impl FnOnce(usize, &AtomicBool, &(dyn Fn(usize, usize) + Sync)) -> Result<T, StudyError>,
) -> Result<T, CliError> {
    let jobs = threads(jobs);
    let stop = watch_signals()?;
    let progress = Progress::new();
    let tell = |done, total| progress.tell(done, total);
    let outcome = work(jobs, &stop, &tell);
    progress.finish();
    Ok(outcome?)
}

/// Number of simulations in parallel.
pub fn threads(jobs: Option<u16>) -> usize {
    jobs.map_or_else(all_cpus, usize::from)
}

pub fn exit_code(partial: bool) -> ExitCode {
    if partial {
        say(format_args!("reveille: interrupted; only the finished rows are shown"));
        return ExitCode::from(INTERRUPTED);
    }
    ExitCode::SUCCESS
}

fn all_cpus() -> usize {
    thread::available_parallelism().map_or(1, |n| n.get())
}

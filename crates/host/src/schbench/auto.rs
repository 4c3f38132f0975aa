//! `-a` of the older eras: repeats the run with more load until latency degrades.

use std::io::Write;

use super::options::{Era, Schbench, Stream, Think};
use super::run::say;
use super::{Outcome, text};
use crate::error::Result;
use crate::supervise::{Job, Runner};

/// p99 in µs at which latency counts as degraded, without `-R`.
const P99_LIMIT_US: u32 = 2_000;
/// The same limit with `-R`, as a multiple of the think time.
const P99_LIMIT: f64 = 5.0;

inventory::submit!(Runner::of::<Schbench>());

impl Job for Schbench {
    const NAME: &'static str = "schbench";
    type Output = Outcome;

    /// With `-a`, the last run's outcome counts.
    fn run(self) -> Result<Outcome> {
        match (self.auto, self.rps, &self.think) {
            (Some(stream), Some(_), &Think::Spin { cpu_us: cpu_us @ 1.. }) => {
                more_requests(self, stream, cpu_us)
            }
            (Some(stream), None, &Think::Spin { cpu_us }) => more_workers(self, stream, cpu_us),
            _ => self.run_once(),
        }
    }
}

fn print(stream: Stream, line: &str) {
    match stream {
        Stream::Error => say(line),
        Stream::Output => {
            // A write error is reported with the final result.
            let _ = std::io::stdout().lock().write_all(line.as_bytes());
        }
    }
}

/// Adds a worker per message thread until p99 reaches 2 ms.
fn more_workers(mut job: Schbench, stream: Stream, cpu_us: u64) -> Result<Outcome> {
    // The first program has its lines on standard error.
    let stream = if job.era == Era::First { Stream::Error } else { stream };
    loop {
        let outcome = job.clone().run_once()?;
        let (workers, p99) = (outcome.worker_threads, outcome.wakeup.at(99.0));
        print(stream, &format!("cputime {cpu_us} threads {workers} p99 {p99}\n"));
        if p99 >= P99_LIMIT_US {
            return Ok(outcome);
        }
        job.worker_threads = Some(workers + 1);
    }
}

/// Increases the request rate until p99 reaches five think times. `-R 1` starts from three quarters
/// of the workers' capacity.
fn more_requests(mut job: Schbench, stream: Stream, cpu_us: u64) -> Result<Outcome> {
    if job.rps == Some(1) {
        let workers = u64::from(job.message_threads) * u64::from(job.worker_threads.unwrap_or(1));
        let rps = (1_000_000 / (cpu_us + cpu_us / 4)).saturating_mul(workers) * 75 / 100;
        job.rps = Some(u32::try_from(rps.max(1)).unwrap_or(u32::MAX));
        say(&format!("autobench rps {}\n", rps.max(1)));
    }
    loop {
        let outcome = job.clone().run_once()?;
        let ratio = f64::from(outcome.wakeup.at(99.0)) / cpu_us as f64;
        if ratio >= P99_LIMIT {
            return Ok(outcome);
        }
        print(stream, &text::rps_line(&job, &outcome));
        let rps = job.rps.unwrap_or(1);
        job.rps = Some(rps.saturating_add(step(rps, ratio)));
    }
}

/// How many requests per second to add: in smaller steps the nearer p99 comes to half a
/// think time, in fives, and never none.
fn step(rps: u32, ratio: f64) -> u32 {
    let part = match ratio {
        r if r > 0.50 => 70,
        r if r > 0.45 => 60,
        r if r > 0.40 => 50,
        r if r > 0.30 => 40,
        _ => 30,
    };
    (rps / part).div_ceil(5).max(1) * 5
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_shrink_and_are_fives() {
        assert_eq!([0.0, 0.31, 0.41, 0.46, 0.51].map(|r| step(2100, r)), [70, 55, 45, 35, 30]);
        assert_eq!(step(3, 0.6), 5, "the original stays where it is for ever");
    }
}

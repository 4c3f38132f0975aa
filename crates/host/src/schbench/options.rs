//! What can be asked of schbench, and what cannot be had.

use std::fs;

use reveille_machine::CpuId;
use serde::{Deserialize, Serialize};

use super::matrix::{Matrices, edge_of};
use crate::error::{HostError, Result};
use crate::kernel::proc;

/// Largest transfer of a pipe, in bytes.
const PIPE_BYTES: u32 = 1 << 20;
/// Memory of a worker's histograms and of its stack as far as it is touched, about.
const WORKER_BYTES: u64 = 160 << 10;
/// Threads that Linux can number (`PID_MAX_LIMIT`), where it does not say how many it allows.
const MOST_THREADS: u64 = 4 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Era {
    /// Since version 1.0 (2023; commit 24e32b8 of 2025): matrices, request latency, RPS.
    Current,
    /// From May 2016 (commit 3d16b23) to 2021: wall-clock think time, pipes, `-R`.
    Classic,
    /// The first one (April 2016, commit 36d859a, with the defaults of 9458e8c).
    First,
}

impl Era {
    pub fn name(self) -> &'static str {
        match self {
            Era::Current => "current",
            Era::Classic => "classic",
            Era::First => "2016",
        }
    }

    /// Percentiles that its tables are made of.
    pub(super) fn percents(self) -> &'static [f64] {
        match self {
            Era::Current => &[20.0, 50.0, 90.0, 99.0, 99.9],
            Era::Classic | Era::First => &[50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9],
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cpus {
    #[default]
    Any,
    /// These: a message thread gets one of them, workers get all.
    List(Vec<CpuId>),
    /// One for each message thread, the rest for the workers.
    Auto,
}

/// Where lines are printed during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stream {
    Output,
    Error,
}

/// What a worker does between two messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Think {
    /// Sleeps, and then multiplies matrices with the lock of its CPU held.
    Matrices {
        /// Memory of the matrices, in KiB.
        footprint_kb: u64,
        /// Products for each request.
        operations: u64,
        /// Share of memory and products that is each worker's own; the rest is common.
        split_percent: Option<u32>,
        /// Sleep before the products, in µs.
        sleep_us: u64,
        /// Take the lock of the CPU?
        locking: bool,
        /// Leave the sleep out of the request's latency, and take no lock?
        calibrate: bool,
    },
    Spin {
        cpu_us: u64,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schbench {
    pub era: Era,
    pub message_threads: u32,
    /// `-t`, of each message thread; enough for one on every CPU if not given.
    pub worker_threads: Option<u32>,
    /// `-r`, in s; 0: for ever.
    pub runtime_s: u32,
    /// `-w`: time in s after which what was measured is forgotten.
    pub warmup_s: u32,
    /// `-i`: time in s between reports.
    pub interval_s: Option<u32>,
    /// `-z`: time in s after which what was measured is forgotten, again and again.
    pub zero_s: Option<u32>,
    /// `-p`: bytes of a transfer; no think time then.
    pub pipe_bytes: Option<u32>,
    /// `-R`: requests per second of all message threads together.
    pub rps: Option<u32>,
    /// `-A`: share of busy CPU time, in percent, that requests are to cause.
    pub auto_rps_percent: Option<u32>,
    /// `-a`: run again with more load until latencies suffer, with a line about each run
    /// there.
    pub auto: Option<Stream>,
    /// Between messages.
    pub think: Think,
    /// `-s` of the classic and the first era: how long a message thread sleeps before it
    /// answers, in µs; up to a quarter is added.
    pub message_sleep_us: u64,
    pub message_cpus: Cpus,
    pub worker_cpus: Cpus,
    /// Seed of what is added to `message_sleep_us`.
    pub seed: u64,
}

impl Schbench {
    pub fn new(era: Era) -> Schbench {
        let current = era == Era::Current;
        Schbench {
            era,
            message_threads: if current { 1 } else { 2 },
            worker_threads: if current { None } else { Some(16) },
            runtime_s: 30,
            warmup_s: 0,
            interval_s: if current { Some(10) } else { None },
            zero_s: None,
            pipe_bytes: None,
            rps: None,
            auto_rps_percent: None,
            auto: None,
            think: if current {
                Think::Matrices {
                    footprint_kb: 256,
                    operations: 5,
                    split_percent: None,
                    sleep_us: 100,
                    locking: true,
                    calibrate: false,
                }
            } else {
                Think::Spin { cpu_us: 30_000 }
            },
            message_sleep_us: if current { 0 } else { 30_000 },
            message_cpus: Cpus::Any,
            worker_cpus: Cpus::Any,
            seed: 1,
        }
    }

    /// Requests per second asked for at the start; `None`: as fast as they are answered.
    pub(super) fn rps_at_start(&self) -> Option<u32> {
        // `-A` alone begins with 10, as in the original.
        self.rps.or(self.auto_rps_percent.map(|_| 10))
    }

    /// Refuses what makes no sense together or cannot be had here, with `workers` for each
    /// message thread.
    pub(super) fn check(&self, workers: u32) -> Result<()> {
        let refuse = |problem: String, help: &str| Err(HostError::input(problem, help));
        if self.message_threads == 0 || workers == 0 {
            return refuse(
                "`-m` or `-t` is 0: nothing to measure".into(),
                "use at least 1 of each",
            );
        }
        if self.runtime_s > 0 && self.warmup_s >= self.runtime_s {
            let problem = format!(
                "`-w {}`: the warm-up lasts as long as the run (`-r {}`), nothing is measured",
                self.warmup_s, self.runtime_s
            );
            return refuse(problem, "use a shorter warm-up or a longer run");
        }
        if self.pipe_bytes.is_some_and(|bytes| bytes == 0 || bytes > PIPE_BYTES) {
            return refuse(
                format!(
                    "`-p {}`: a transfer has 1 to {PIPE_BYTES} bytes",
                    self.pipe_bytes.unwrap_or(0)
                ),
                "use a size in this range",
            );
        }
        if self.pipe_bytes.is_some() && self.rps_at_start().is_some() {
            return refuse(
                "`-p` with `-R` or `-A`: a pipe has no requests".into(),
                "leave one of them out",
            );
        }
        if let (Some(_), Some(_), Think::Spin { cpu_us: 0 }) = (self.auto, self.rps, &self.think) {
            return refuse(
                "`-a` with `-R` grows the load until p99 is five times the think time, which is 0"
                    .into(),
                "give a think time: -c 30000",
            );
        }
        self.check_threads(workers)?;
        self.check_memory(workers)
    }

    fn check_threads(&self, workers: u32) -> Result<()> {
        let threads = u64::from(self.message_threads) * (u64::from(workers) + 1);
        let allowed = fs::read_to_string("/proc/sys/kernel/threads-max").ok();
        let allowed = allowed.and_then(|t| t.trim().parse().ok()).unwrap_or(MOST_THREADS);
        if threads <= allowed {
            return Ok(());
        }
        Err(HostError::input(
            format!(
                "`-m {} -t {workers}` are {threads} threads; this kernel allows {allowed}",
                self.message_threads
            ),
            "use fewer message threads (-m) or workers (-t)",
        ))
    }

    fn check_memory(&self, workers: u32) -> Result<()> {
        let (own, common) = self.edges();
        let workers = u64::from(self.message_threads) * u64::from(workers);
        let each = Matrices::bytes(own) + WORKER_BYTES + u64::from(self.pipe_bytes.unwrap_or(0));
        let needed = workers.saturating_mul(each).saturating_add(Matrices::bytes(common));
        let Some(free) = available_memory() else { return Ok(()) };
        if needed <= free {
            return Ok(());
        }
        let (needed, free) = (needed >> 20, free >> 20);
        Err(HostError::input(
            format!("{workers} workers need {needed} MiB of memory; {free} MiB are free"),
            "use fewer workers (-m, -t), less cache footprint (-F) or smaller transfers (-p)",
        ))
    }

    /// Edges of each worker's own matrices and of the common ones.
    pub(super) fn edges(&self) -> (usize, usize) {
        match (&self.think, self.pipe_bytes) {
            (Think::Matrices { footprint_kb, split_percent, .. }, None) => match split_percent {
                None => (edge_of(*footprint_kb), 0),
                Some(percent) => {
                    let part = |percent: u32| {
                        edge_of(footprint_kb.saturating_mul(u64::from(percent)) / 100)
                    };
                    (part(*percent), part(100u32.saturating_sub(*percent)))
                }
            },
            _ => (0, 0),
        }
    }
}

/// Memory that programs can still get, in bytes.
fn available_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    Some(proc::number(&text, "MemAvailable")? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(change: impl FnOnce(&mut Schbench), workers: u32) -> String {
        let mut job = Schbench::new(Era::Current);
        change(&mut job);
        match job.check(workers) {
            Err(HostError::Input(mistake)) => mistake.problem,
            other => panic!("not refused: {other:?}"),
        }
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        assert!(Schbench::new(Era::Current).check(4).is_ok());
        assert!(problem(|_| {}, 0).contains("nothing"));
        assert!(problem(|j| (j.runtime_s, j.warmup_s) = (5, 5), 1).contains("nothing is measured"));
        assert!(problem(|j| j.pipe_bytes = Some(PIPE_BYTES + 1), 1).contains("1048576"));
        assert!(problem(|j| (j.pipe_bytes, j.rps) = (Some(1), Some(1)), 1).contains("pipe"));
        assert!(problem(|j| j.message_threads = u32::MAX, u32::MAX).contains("threads"));
        let huge = |j: &mut Schbench| {
            let Think::Matrices { footprint_kb, .. } = &mut j.think else { unreachable!() };
            *footprint_kb = u64::MAX;
        };
        assert!(problem(huge, 1).contains("MiB"));
    }

    #[test]
    fn a_warmup_is_allowed_in_a_short_run_and_in_an_endless_one() {
        let mut job = Schbench::new(Era::Current);
        (job.runtime_s, job.warmup_s) = (3, 2);
        assert_eq!(job.check(1), Ok(()));
        (job.runtime_s, job.warmup_s) = (0, 100);
        assert_eq!(job.check(1), Ok(()));
    }

    #[test]
    fn a_split_shares_the_footprint_out() {
        let mut job = Schbench::new(Era::Current);
        let Think::Matrices { split_percent, .. } = &mut job.think else { unreachable!() };
        *split_percent = Some(30);
        // 76 KB and 179 KB, as the original prints for `--split 30`.
        assert_eq!(job.edges(), (56, 87));
    }
}

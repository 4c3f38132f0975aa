//! schbench on this host: message threads wake workers that think and reply, and the wakees' wait
//! for a CPU is measured. Implements all three programs of this name; docs/schbench.md says what
//! each measures and prints.

mod auto;
mod closed;
mod histogram;
mod json;
mod matrix;
mod monitor;
mod open;
mod options;
mod run;
mod text;
mod think;
mod threads;

use reveille_measure::Ns;
use serde::{Deserialize, Serialize};

pub use histogram::{Percentile, Summary};
pub use json::{Header, document};
pub use options::{Cpus, Era, Schbench, Stream, Think};
pub use text::{closing, rps_line, transfer_line};

use crate::kernel::TaskUse;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Workers of each message thread.
    pub worker_threads: u32,
    /// Time of what follows: from the start, the end of the warm-up or the last zeroing to
    /// the end.
    pub measured_ns: Ns,
    /// From the wakeup to the woken worker's first instruction, in µs. With `-R` in the
    /// classic era: from the request to its end, less the think time.
    pub wakeup: Summary,
    /// From a worker's start on a request to its end, in µs.
    pub request: Option<Summary>,
    /// Requests per second, one sample each second.
    pub rps: Option<Summary>,
    /// With `-R`: from the time when a request should have been sent to its end, in µs.
    pub open_loop: Option<Summary>,
    /// Latencies above 50 ms (`Over=` of 2016).
    pub over: u64,
    /// Requests, or round trips of a pipe.
    pub loops: u64,
    /// With `-R`: requests that were not sent, since their worker was too far behind.
    pub skipped: u64,
    /// With `-R` or `-A`: requests per second asked for at the end.
    pub rps_goal: u32,
    /// Mean over message threads of the time that they waited for a CPU each time.
    pub message_delay_ns: Ns,
    /// Mean over workers of the time that they waited for a CPU each time.
    pub worker_delay_ns: Ns,
    /// What all threads used from their start to the end, warm-up included.
    pub tasks: TaskUse,
}

impl Outcome {
    /// Requests per second over the whole time measured.
    pub fn average_rps(&self) -> f64 {
        self.loops as f64 * 1e9 / self.measured_ns.max(1) as f64
    }

    /// Round trips per second of one worker, on average.
    pub fn worker_rate(&self, message_threads: u32) -> f64 {
        self.average_rps() / f64::from(self.worker_threads) / f64::from(message_threads)
    }
}

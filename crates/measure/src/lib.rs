//! What one run is measured by: a wakeup-latency histogram, counters of what
//! the scheduler did, and how each CPU spent its time. Every runner, simulated
//! or real, returns this same value.

mod counters;
mod duration;
mod explain;
mod group;
mod host;
mod latency;
mod metric;
mod observed;
mod random;
mod shard;
mod spec;
pub mod statistics;

use serde::{Deserialize, Serialize};

pub use counters::{Counters, CpuTime};
pub use duration::{
    DurationError, at_least_text, duration_ns, duration_text, seconds_text, span_ns, unit_ns,
};
pub use explain::{Explain, ExplainFigure};
pub use group::GroupStats;
pub use host::{HostContext, LoadedScheduler};
pub use latency::{BEYOND_QUANTILE, Latency, enough_for, needed_for};
pub use metric::{Direction, Metric, three_digits};
pub use observed::Observed;
pub use random::Random;
pub use shard::{NoShard, Shard};
pub use spec::RunSpec;

pub type Ns = u64;

/// Stands for work that was not done in the measured time.
pub const UNANSWERED: Ns = Ns::MAX;

/// The result of one run of one workload under one policy with one seed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunResult {
    /// Measured time after warm-up.
    pub elapsed_ns: Ns,
    /// Operations that the workload counted in that time.
    pub operations: u64,
    /// From the wake-up of a task to its first instruction, for every wake-up; empty if that
    /// was not observed.
    pub wakeup_latency: Latency,
    /// The latencies that the workload itself records (schbench does), in the order of
    /// its `records`; empty if it records none.
    pub recorded_latency: Vec<Latency>,
    /// Work that arrived from outside: how long each piece of it took from its arrival to
    /// its end, or [`UNANSWERED`]; task by task, in the order of arrival. Empty if none did
    /// or no task answers.
    pub answers: Vec<Ns>,
    /// What of the scheduler's doings was observed; the rest of `counters` means nothing.
    pub observed: Observed,
    pub counters: Counters,
    /// How each CPU spent the measured time, by CPU number.
    pub cpus: Vec<CpuTime>,
    /// What bandwidth control did to each task group, in the order given.
    pub groups: Vec<GroupStats>,
}

impl RunResult {
    pub fn throughput(&self) -> f64 {
        if self.elapsed_ns == 0 {
            return 0.0;
        }
        self.operations as f64 * 1e9 / self.elapsed_ns as f64
    }

    /// The numbers that explain this run, as a comparison prints them.
    pub fn explain(&self) -> Explain {
        Explain::of(self)
    }
}

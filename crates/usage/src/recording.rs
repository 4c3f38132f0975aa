//! A recording as plain data. Times are nanoseconds since its start.

use reveille_policy::BandwidthLimits;
use serde::{Deserialize, Serialize};

pub type Ns = u64;

/// One request: when it could start, and its CPU time.
///
/// A thread serves its demands in order. A demand that arrives while an earlier one of its thread
/// is pending waits, and later arrivals do not shift (an open load). Its latency is the time from
/// arrival to completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Demand {
    /// Arrival, before [`Usage::span_ns`].
    pub at_ns: Ns,
    /// Required CPU time; 0 for a wakeup without work.
    pub cpu_ns: Ns,
    /// The thread that serves it, below [`Usage::threads`].
    pub thread: u32,
    /// Completion, if it was observed; the recording may have ended before.
    pub done_ns: Option<Ns>,
}

/// A group's counters at one moment.
///
/// The three bandwidth counters start at 0 with the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Sample {
    pub at_ns: Ns,
    /// CPU time used since the previous sample, or since the start.
    pub runtime_ns: Ns,
    /// Threads running or waiting for a CPU, if observed.
    pub runnable: Option<u32>,
    /// Periods with runnable tasks.
    pub nr_periods: u64,
    /// Periods in which the group ran out of quota.
    pub nr_throttled: u64,
    pub throttled_ns: Ns,
}

/// How a recording was made, which decides what it can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Origin {
    /// Traced: every wakeup and sleep of every thread.
    Traced,
    /// From counters read periodically.
    Sampled {
        /// Typical time between two samples.
        resolution_ns: Ns,
    },
    /// From a list of requests with arrival and CPU time.
    Requests,
    /// Averages over long steps from a monitoring system. They show nothing shorter than a step,
    /// and no latency.
    Averaged { step_ns: Ns },
}

impl Origin {
    /// What the number of threads does not mean, to follow it.
    pub fn about_threads(self) -> &'static str {
        match self {
            Origin::Sampled { .. } => " (samples do not tell threads apart)",
            _ => "",
        }
    }
}

/// What else the recorded host's CPUs did.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostLoad {
    /// Share of the CPU time of all CPUs that other programs used, the recorder not among them.
    pub others: f64,
    /// Share of the recording's time during which hardly any CPU time was idle.
    pub full: f64,
    /// Time that the group's threads were ready to run and did not, summed; if it was traced.
    pub waited_ns: Option<Ns>,
}

/// What kept CPU time from a recorded group for so much of the recording that its use tells no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeldBack {
    /// Other programs on its host.
    Programs,
    /// The limit of a group around it.
    LimitAround,
}

/// How used CPU time gets into the counter that is sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charging {
    /// A running thread is charged at least this often: usually a tick. 0 for an exact counter.
    pub step_ns: Ns,
    /// Threads that can run at once: the host's CPUs, if known.
    pub cpus: Option<u32>,
}

/// A recording of one group's demand for CPU time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Display name: the group's or the file's.
    pub name: String,
    /// How it came about.
    pub origin: Origin,
    /// Length; a replay starts over after it.
    pub span_ns: Ns,
    /// Number of threads that serve the demands.
    pub threads: u32,
    /// All demands, sorted by arrival.
    #[serde(skip)]
    pub demands: Vec<Demand>,
    /// Samples sorted by time; may be empty.
    #[serde(skip)]
    pub samples: Vec<Sample>,
    /// Limits in force during the recording, if known.
    pub limits: Option<BandwidthLimits>,
    /// CPUs of the recorded host, if known.
    pub host_cpus: Option<u32>,
    /// Start, in nanoseconds of Unix time, if known.
    pub began_unix_ns: Option<u64>,
    /// Time from its last sample to the end of the range that a server was asked for.
    pub unseen_ns: Option<Ns>,
    /// CPUs used by the recorder, if measured.
    pub overhead: Option<f64>,
    /// Load of the recorded host, if measured.
    pub host_load: Option<HostLoad>,
    /// Share of its periods in which a group around this one was throttled, the largest; if counted.
    pub throttled_around: Option<f64>,
    /// Caveats on the recording, as whole sentences.
    pub warnings: Vec<String>,
}

impl Usage {
    /// One second without any demand.
    pub fn idle(name: impl Into<String>) -> Usage {
        Usage {
            name: name.into(),
            origin: Origin::Requests,
            span_ns: 1_000_000_000,
            threads: 0,
            demands: Vec::new(),
            samples: Vec::new(),
            limits: None,
            host_cpus: None,
            began_unix_ns: None,
            unseen_ns: None,
            overhead: None,
            host_load: None,
            throttled_around: None,
            warnings: Vec::new(),
        }
    }
}

//! A recording as plain data. Times count from its start, in nanoseconds.

use reveille_policy::BandwidthLimits;
use serde::{Deserialize, Serialize};

/// Nanoseconds.
pub type Ns = u64;

/// One piece of work: when it could start, and what CPU time it takes.
///
/// The work of one thread is done in order. A demand that arrives while an earlier one of
/// its thread is not done waits, and no arrival shifts for it (an open load). The latency
/// of a demand is the time from its arrival until it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Demand {
    /// When it arrives: before [`Usage::span_ns`].
    pub at_ns: Ns,
    /// CPU time that it takes; 0 for a wakeup that does nothing.
    pub cpu_ns: Ns,
    /// Which thread does it: below [`Usage::threads`].
    pub thread: u32,
    /// When it was seen to be done, if that was seen; the recording may have ended before.
    pub done_ns: Option<Ns>,
}

/// What a group was seen to have used up to a moment.
///
/// The three counters of bandwidth control count from the recording's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Sample {
    /// When it was taken.
    pub at_ns: Ns,
    /// CPU time used since the sample before, or since the start.
    pub runtime_ns: Ns,
    /// Threads that ran or waited for a CPU, where that was seen.
    pub runnable: Option<u32>,
    /// Periods in which the group had something to do.
    pub nr_periods: u64,
    /// Those of them in which it ran out of quota.
    pub nr_throttled: u64,
    /// Time for which it was throttled, summed over CPUs.
    pub throttled_ns: Ns,
}

/// How a recording came about, which decides what it can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Origin {
    /// Every wakeup and sleep of every thread was seen.
    Traced,
    /// Counters were read again and again.
    Sampled {
        /// Typical time between two readings.
        resolution_ns: Ns,
    },
    /// A list of requests with their arrival and CPU time.
    Requests,
    /// Averages over long steps, as a monitoring system keeps them: nothing shorter than a
    /// step can be seen, and no latency.
    Averaged {
        /// Length of a step.
        step_ns: Ns,
    },
}

/// A recording of one group's demand for CPU time.
#[derive(Clone, Debug, PartialEq)]
pub struct Usage {
    /// What it is called on screens: a group's or a file's name.
    pub name: String,
    /// How it came about.
    pub origin: Origin,
    /// Its length; a replay starts over after it.
    pub span_ns: Ns,
    /// Number of threads that the demands are spread over.
    pub threads: u32,
    /// All work, in the order of its arrival.
    pub demands: Vec<Demand>,
    /// What was seen in the meantime, in the order of time; may be empty.
    pub samples: Vec<Sample>,
    /// The limits in force while it was recorded, if they are known.
    pub limits: Option<BandwidthLimits>,
    /// CPUs of the host on which it was recorded, if known.
    pub host_cpus: Option<u32>,
    /// When it began, in nanoseconds of Unix time, if known.
    pub began_unix_ns: Option<u64>,
    /// CPUs that the recording itself used, if that was measured.
    pub overhead: Option<f64>,
    /// What whoever uses it has to know, as whole sentences.
    pub warnings: Vec<String>,
}

impl Usage {
    /// One second in which nothing is asked for.
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
            overhead: None,
            warnings: Vec::new(),
        }
    }
}

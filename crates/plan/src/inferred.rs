//! How a throttled group's demand was inferred, for reports.

use serde::Serialize;

use crate::Ns;
use crate::counters::{REPLAYED_NS, TOO_LOW};
use crate::figures::Range;
use crate::goal::Goal;

/// How to answer what counters cannot.
pub const HOW_TO_KNOW: &str = "raise the limit and record requests for 60 s, `reveille record --cgroup \
    NAME -o FILE.parquet`, or `reveille import` a table of them";

/// How a throttled group's demand was inferred and checked.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Inferred {
    pub from: InferredFrom,
    /// Number of equally likely recordings; each counts in whether goals hold.
    pub recordings: usize,
    /// Recorded share of throttled periods.
    pub throttled_share: f64,
    /// Share of throttled periods in replays under the recorded limits, over phases and inferred
    /// recordings.
    pub replayed_share: Range,
}

/// What the demand was inferred from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum InferredFrom {
    /// Pieces of work that throttling did not affect.
    Pieces {
        /// Pieces of work in the recording.
        pieces: usize,
        /// Pieces that throttling affected.
        held: usize,
        /// Requests that the affected pieces were split into.
        parts: usize,
        /// Share of CPU time in affected pieces.
        held_share: f64,
    },
    /// Bandwidth counters over steps of averages.
    Counters {
        /// Length of the recording; only some of its steps are replayed.
        span_ns: Ns,
        step_ns: Ns,
    },
}

impl Inferred {
    /// Is this a goal for latency, answered from counters, which hold no request? The answer is an
    /// estimate then.
    pub(crate) fn estimates(&self, goal: &Goal) -> bool {
        self.of_counters() && goal.is_latency()
    }

    pub(crate) fn of_counters(&self) -> bool {
        matches!(self.from, InferredFrom::Counters { .. })
    }

    /// Length of the counters that the demand was inferred from.
    pub(crate) fn recorded_ns(&self) -> Option<Ns> {
        match self.from {
            InferredFrom::Pieces { .. } => None,
            InferredFrom::Counters { span_ns, .. } => Some(span_ns),
        }
    }

    /// Length of counters that are too short to lower a limit by.
    pub(crate) fn too_short(&self) -> Option<Ns> {
        self.recorded_ns().filter(|&ns| ns < REPLAYED_NS)
    }
}

impl InferredFrom {
    /// What an inferred latency stands for, as a multiple: those from counters are too low.
    pub(crate) fn latency_times(&self) -> f64 {
        match self {
            InferredFrom::Pieces { .. } => 1.0,
            InferredFrom::Counters { .. } => TOO_LOW,
        }
    }
}

impl std::fmt::Display for Inferred {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Inferred { from, recordings, throttled_share, replayed_share } = self;
        write!(
            f,
            "The group was throttled in {:.1}% of its periods while it was recorded. ",
            100.0 * throttled_share
        )?;
        match from {
            InferredFrom::Pieces { pieces, held, parts, .. } => write!(
                f,
                "Requests that queued meanwhile are inferred: {held} of {pieces} pieces of work are \
                 taken for {parts} requests. "
            )?,
            InferredFrom::Counters { .. } => write!(
                f,
                "Its requests are inferred from its counters: {recordings} loads fit them. In up to \
                 half of these, work that begins together is one request; in some, requests come by \
                 the clock. Latencies are {TOO_LOW} times those of these loads, since trials found \
                 those too low; even so one true p99 in ten was over 1.8 times the median, and one \
                 in forty above its range. "
            )?,
        }
        write!(
            f,
            "A replay under the recorded limits is throttled in {:.1}% ({:.1}…{:.1}). A recording \
             without the limit is more certain.",
            100.0 * replayed_share.median,
            100.0 * replayed_share.min,
            100.0 * replayed_share.max,
        )
    }
}

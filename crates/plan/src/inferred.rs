//! How a throttled group's demand was inferred, for reports.

use serde::Serialize;

use crate::counters::TOO_LOW;
use crate::figures::Range;

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
    Counters,
}

impl InferredFrom {
    /// What an inferred latency stands for, as a multiple: those from counters are too low.
    pub(crate) fn latency_times(&self) -> f64 {
        match self {
            InferredFrom::Pieces { .. } => 1.0,
            InferredFrom::Counters => TOO_LOW,
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
            InferredFrom::Counters => write!(
                f,
                "Its requests are inferred from its counters: {recordings} laws of arrival that \
                 give the same counters stand for it, and latencies are {TOO_LOW} times those of their \
                 requests, for trials found those too low. Even so one true p99 in eight lay outside \
                 its range of 90%. "
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

//! How long to run, and with which randomness.

use crate::Ns;

/// How long a run lasts, and its random seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunSpec {
    /// Seed of every random choice.
    pub seed: u64,
    /// Time, virtual or real, before measuring starts.
    pub warmup_ns: Ns,
    /// Time, virtual or real, measured.
    pub duration_ns: Ns,
}

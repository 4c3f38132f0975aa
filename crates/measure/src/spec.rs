//! How long to run, and with which randomness.

use serde::{Deserialize, Serialize};

use crate::Ns;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSpec {
    pub seed: u64,
    /// Time, virtual or real, before measuring starts.
    pub warmup_ns: Ns,
    /// Time, virtual or real, measured.
    pub duration_ns: Ns,
}

//! What bandwidth control did to a task group: the figures of `cpu.stat`.

use serde::{Deserialize, Serialize};

use crate::Ns;

/// Counters of one task group over the measured time, named as `cpu.stat` names them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupStats {
    /// The group's name.
    pub name: String,
    /// CPU time that its tasks used.
    pub usage_ns: Ns,
    /// Periods that have passed while it was active.
    pub nr_periods: u64,
    /// Periods at whose end some of its queues were throttled.
    pub nr_throttled: u64,
    /// Time that its queues were throttled, over all CPUs.
    pub throttled_ns: Ns,
    /// Periods in which it used more than its quota.
    pub nr_bursts: u64,
    /// CPU time beyond the quota.
    pub burst_ns: Ns,
}

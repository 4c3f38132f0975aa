//! What bandwidth control did to a task group: the figures of `cpu.stat`.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::Ns;

/// Counters of one task group over the measured time, named as `cpu.stat` names them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupStats {
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

impl AddAssign<&GroupStats> for GroupStats {
    fn add_assign(&mut self, other: &GroupStats) {
        self.usage_ns += other.usage_ns;
        self.nr_periods += other.nr_periods;
        self.nr_throttled += other.nr_throttled;
        self.throttled_ns += other.throttled_ns;
        self.nr_bursts += other.nr_bursts;
        self.burst_ns += other.burst_ns;
    }
}

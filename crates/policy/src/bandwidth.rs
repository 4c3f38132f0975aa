//! CPU bandwidth control of a task group: the Rust face of `policy/bandwidth.h`.

use crate::Ns;

/// Quota, period and burst of a task group, as `cpu.max` and `cpu.max.burst` set them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BandwidthLimits {
    /// CPU time that the group may use in a period; `None` for no limit.
    pub quota_ns: Option<Ns>,
    /// After this time the quota is refilled; 100 ms by default.
    pub period_ns: Ns,
    /// Unused quota that may be kept for later periods.
    pub burst_ns: Ns,
}

impl Default for BandwidthLimits {
    fn default() -> BandwidthLimits {
        BandwidthLimits { quota_ns: None, period_ns: 100_000_000, burst_ns: 0 }
    }
}

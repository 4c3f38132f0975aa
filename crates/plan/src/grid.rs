//! What the search varies: period and burst by a grid, and draws of phase and recording, which
//! decide whether goals hold.

use reveille_policy::BandwidthLimits;

use crate::Ns;
use crate::limits::limits_of;

const MS: Ns = 1_000_000;
/// Periods of the grid.
pub(crate) const PERIODS_NS: [Ns; 8] =
    [5 * MS, 10 * MS, 20 * MS, 50 * MS, 100 * MS, 200 * MS, 500 * MS, 1000 * MS];
/// Bursts of the grid, in percent of the quota.
pub(crate) const BURSTS: [u64; 5] = [0, 25, 50, 75, 100];
/// Draws of phase and recording that decide on a setting.
pub(crate) const DRAWS: u32 = 40;
/// Largest share of a quota that mean demand, with head-room, may use. On shared hosts the same work
/// takes up to some percent more CPU time (docs/plan.md), and a quota without room for that throttles
/// every period and never catches up.
pub(crate) const MOST_USED: f64 = 0.9;

/// Numbers of draws of the recording as it is, and of the resampled one. Goals have to hold in each
/// half: the recording fails in few phases where another one of the same load fails in most.
pub(crate) type Halves = [usize; 2];

/// Which of the [`Halves`] is this draw in?
pub(crate) fn half_of(draw: u32) -> usize {
    usize::from(!draw.is_multiple_of(2))
}

/// A period and a burst in percent of the quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) period_ns: Ns,
    pub(crate) burst: u64,
}

impl Row {
    /// Before any other is known: the kernel's default.
    pub(crate) const USUAL: Row = Row { period_ns: 100 * MS, burst: 0 };

    /// The row of these limits.
    pub(crate) fn of(limits: &BandwidthLimits) -> Row {
        let burst = limits.quota_ns.map_or(0, |quota| {
            ((200 * u128::from(limits.burst_ns) + u128::from(quota)) / (2 * u128::from(quota)))
                as u64
        });
        Row { period_ns: limits.period_ns, burst: burst.min(100) }
    }

    /// With this quota, in thousandths of a CPU; `None` if no kernel accepts it.
    pub(crate) fn at(&self, millicpus: u64) -> Option<BandwidthLimits> {
        limits_of(millicpus, self.period_ns, self.burst)
    }
}

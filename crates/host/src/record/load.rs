//! What else the host's CPUs do while a group is recorded.

use reveille_measure::Ns;
use reveille_usage::HostLoad;

use crate::kernel::Watch;
use crate::kernel::proc::CpuTicks;

/// The host is full while less than this share of its CPU time is idle.
const FULL_IDLE: f64 = 0.05;

pub(super) struct Load {
    watch: Watch,
    last: CpuTicks,
    /// Ticks in stretches without idle time, and in all.
    full: u64,
    total: u64,
}

impl Load {
    pub fn begin() -> Load {
        Load { watch: Watch::begin(), last: CpuTicks::now(), full: 0, total: 0 }
    }

    /// Was the host full since the last look?
    pub fn look(&mut self) {
        let now = CpuTicks::now();
        self.add(now.since(self.last));
        self.last = now;
    }

    fn add(&mut self, ticks: CpuTicks) {
        let used = (ticks.busy + ticks.stolen) as f64;
        let full = used > (1.0 - FULL_IDLE) * ticks.total as f64;
        self.full += if full { ticks.total } else { 0 };
        self.total += ticks.total;
    }

    /// The load beside a group that used `group_ns`.
    pub fn end(&mut self, group_ns: Ns, waited_ns: Option<Ns>) -> HostLoad {
        self.look();
        let full = self.full as f64 / self.total.max(1) as f64;
        HostLoad { others: self.watch.others_share(group_ns), full, waited_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_full_while_nothing_is_idle() {
        let mut load = Load::begin();
        for (busy, stolen) in [(98, 0), (90, 8), (90, 0), (20, 0)] {
            load.add(CpuTicks { total: 100, idle: 100 - busy - stolen, busy, stolen });
        }
        assert_eq!((load.full, load.total), (200, 400));
    }
}

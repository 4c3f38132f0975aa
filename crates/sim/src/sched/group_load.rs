//! `tg->load_avg`: one line that every enqueue of a session and most dequeues read, and write when the
//! queue's share has changed.

use reveille_measure::Ns;
use reveille_policy::{CpuId, bits};

use crate::rq::pelt::window_passed;
use crate::sim::Sim;

/// LOAD_AVG_RATELIMIT: minimum interval between a queue's reports (v6.7, commit 1528c661c24b).
const REPORT_INTERVAL_NS: Ns = 1_000_000;

impl Sim<'_> {
    /// An enqueue or dequeue reads `tg->load_avg` (update_cfs_group()), and writes it before that
    /// when the queue's share has changed by more than 1/64 (update_tg_load_avg()). With
    /// EMPTY_KEEPS_WEIGHT an empty queue is given no new weight, and does not read. Returns the
    /// duration.
    #[inline(always)]
    pub(crate) fn group_load_moved(&mut self, by: CpuId, of: CpuId, when: Ns) -> Ns {
        let reads = self.cpus[of].rq.weight != 0 || !self.rules.has(bits::EMPTY_KEEPS_WEIGHT);
        if self.reports_load(of, self.now) {
            return self.report_load(by, when, reads);
        }
        if !reads {
            return 0;
        }
        let Some(line) = &mut self.hw.group_line else { return 0 };
        let wait = line.read(by, self.now, when, self.hw.near.lines());
        self.measured.counters.hot_line_wait_ns += wait;
        wait
    }

    /// update_blocked_averages() only writes, if a window has ended since the last report.
    pub(crate) fn group_load_decayed(&mut self, cpu: CpuId, when: Ns) -> Ns {
        if self.reports_load(cpu, when) { self.report_load(cpu, when, false) } else { 0 }
    }

    /// Has a CPU's load changed enough to be reported? If so, marks it as reported.
    fn reports_load(&mut self, cpu: CpuId, when: Ns) -> bool {
        let c = &mut self.cpus[cpu];
        let windows = [c.reported_at, when].map(|at| at + c.window_phase);
        if !std::mem::take(&mut c.removed) && !window_passed(windows) {
            return false;
        }
        c.reported_at = when;
        if self.rules.rate_limited && when < c.report_again_at {
            return false;
        }
        let load = c.averages.load as i64;
        let moved = (load - c.group_contrib).abs() > c.group_contrib / 64;
        if moved {
            c.group_contrib = load;
            c.report_again_at = when + REPORT_INTERVAL_NS;
        }
        moved
    }

    #[inline(never)]
    fn report_load(&mut self, by: CpuId, when: Ns, then_reads: bool) -> Ns {
        let Some(line) = &mut self.hw.group_line else { return 0 };
        let wait = match then_reads {
            true => line.write_and_read(by, self.now, when, self.hw.near.lines()),
            false => line.write(by, self.now, when, self.hw.near.lines()),
        };
        self.measured.counters.hot_line_wait_ns += wait;
        wait
    }
}

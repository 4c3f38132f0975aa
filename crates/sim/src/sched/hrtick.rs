//! HRTICK: a timer that ends a slice on time. There is one where a task waits, and it goes off when the running
//! task has reached its deadline (hrtick_start_fair()).

use reveille_measure::Ns;
use reveille_policy::CpuId;

use crate::hw::clock::NEVER;
use crate::hw::cpu::Toll;
use crate::sim::Sim;

/// hrtick_start() sets no shorter timer.
const SHORTEST_NS: Ns = 10_000;

impl Sim<'_> {
    /// When the timer of this CPU goes off.
    pub(crate) fn hrtick_at(&self, cpu: CpuId) -> Ns {
        let c = &self.cpus[cpu];
        let (Some(curr), Some(left)) = (self.world.curr(cpu).some(), c.rq.slice_left()) else {
            return NEVER;
        };
        let at = self.tasks[curr].exec_start + (left / self.rules.pace).max(SHORTEST_NS);
        at.max(self.now)
    }

    /// The first task that comes to wait on `dst` starts the timer there, which takes an interrupt where
    /// another CPU has woken it.
    pub(crate) fn start_hrtick(&mut self, cpu: CpuId, dst: CpuId) -> Toll {
        if self.cpus[dst].rq.waiting().take(2).count() != 1 {
            return Toll::default();
        }
        if cpu != dst {
            return self.send_ipi(cpu, dst);
        }
        self.replan(dst);
        Toll::default()
    }

    /// The timer of `cpu` goes off.
    pub(crate) fn hrtick(&mut self, cpu: CpuId) {
        self.update_curr(cpu);
        let cost = Ns::from(self.hw.cost.irq_ns);
        self.cpus[cpu].interrupt(self.now, 0, cost);
        self.resched_if_needed(cpu);
    }
}

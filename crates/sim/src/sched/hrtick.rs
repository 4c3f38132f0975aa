//! HRTICK: a timer that ends a slice on time. It is set for the running task's deadline where another task is
//! queued: at a switch, and at an enqueue if it is not set yet. Only idling cancels it.

use reveille_measure::Ns;
use reveille_policy::{CpuId, TaskId};

use crate::hw::clock::NEVER;
use crate::hw::cpu::Toll;
use crate::sim::Sim;

/// hrtick_start() sets no shorter timer.
const SHORTEST_NS: Ns = 10_000;

impl Sim<'_> {
    /// hrtick_start_fair() for the current task of `cpu`.
    pub(crate) fn arm_hrtick(&mut self, cpu: CpuId, curr: TaskId) {
        let Some(left) = self.cpus[cpu].rq.slice_left() else { return };
        let from = self.tasks[curr].exec_start.max(self.now);
        self.cpus[cpu].hrtick_at = from + (left / self.rules.pace).max(SHORTEST_NS);
    }

    /// hrtick_update(): a task has joined the queue of `dst`, where `curr` runs. Another CPU that sets the timer
    /// there sends an interrupt.
    pub(crate) fn start_hrtick(&mut self, cpu: CpuId, dst: CpuId, curr: TaskId) -> Toll {
        if self.cpus[dst].hrtick_at != NEVER {
            return Toll::default();
        }
        self.arm_hrtick(dst, curr);
        self.replan(dst);
        if cpu == dst { Toll::default() } else { self.send_ipi(cpu, dst) }
    }

    /// The timer of `cpu` goes off: whether the slice is over or not, the next pick decides.
    pub(crate) fn hrtick(&mut self, cpu: CpuId) {
        self.cpus[cpu].hrtick_at = NEVER;
        self.update_curr(cpu);
        self.cpus[cpu].need_resched |= self.world.curr(cpu) != TaskId::NONE;
        let cost = Ns::from(self.hw.cost.irq_ns);
        self.cpus[cpu].interrupt(self.now, 0, cost);
        self.resched_if_needed(cpu);
    }
}

//! When other CPUs see that a CPU has become busy, or idle. idle_cpu() reads `nr_running`, which an
//! enqueue raises at its end (add_nr_running() in enqueue_task_fair()), and `curr`, which is the idle
//! task once the dequeue is over. Until then searches find what was there before.

use reveille_measure::Ns;
use reveille_policy::CpuId;

use crate::hw::cpu::Step;
use crate::sim::Sim;

impl Sim<'_> {
    /// A CPU has become busy or idle, and looks so from `at` on.
    #[inline]
    pub(crate) fn seen_from(&mut self, cpu: CpuId, at: Ns) {
        self.unseen.push((at, cpu));
    }

    /// Before a search: what has become visible by now.
    #[inline]
    pub(crate) fn see(&mut self) {
        let mut i = 0;
        while let Some(&(at, cpu)) = self.unseen.get(i) {
            if at > self.now {
                i += 1;
                continue;
            }
            self.unseen.swap_remove(i);
            self.set_available_idle(cpu, self.is_free(cpu));
        }
    }

    /// At a tick, as balancing looks, too: what no wakeup has looked at for a tick or longer.
    pub(crate) fn see_overdue(&mut self) {
        let old = self.now.saturating_sub(self.rules.tick_ns);
        if self.unseen.iter().any(|&(at, _)| at <= old) {
            self.see();
        }
    }

    /// idle_cpu(): is the idle task current, with nothing queued and no wakeup pending?
    #[inline]
    pub(crate) fn is_free(&self, cpu: CpuId) -> bool {
        let c = &self.cpus[cpu];
        (c.is_idle() || c.leaves_idle())
            && (c.wake_list.is_empty() || c.step == Step::Drain)
            && self.world.nr_running(cpu) == 0
    }
}

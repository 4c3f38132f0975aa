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
        self.cpus[cpu].looks_so_from = at;
        if self.unseen.back().is_none_or(|&(last, _)| last <= at) {
            self.unseen.push_back((at, cpu));
        } else {
            let place = self.unseen.partition_point(|&(other, _)| other <= at);
            self.unseen.insert(place, (at, cpu));
        }
    }

    /// Before a search: what has become visible by now, the earliest first. Of two threads of a core the
    /// later one decides whether the core looks idle.
    #[inline]
    pub(crate) fn see(&mut self) {
        while let Some(&(at, cpu)) = self.unseen.front()
            && at <= self.now
        {
            self.unseen.pop_front();
            self.becomes_visible(cpu, self.is_free(cpu));
        }
    }

    /// From now on other CPUs see whether this one is idle. If its whole core now looks idle, its cache
    /// has an idle core (update_idle_core(), just before the idle task becomes current).
    pub(crate) fn becomes_visible(&mut self, cpu: CpuId, idle: bool) {
        self.set_available_idle(cpu, idle);
        if idle
            && self.notes_idle_cores(cpu)
            && self.siblings_are(cpu, |sim, sibling| sim.world.available_idle(sibling))
        {
            self.world.set_has_idle_cores(self.hw.near.llc(cpu), true);
        }
    }

    /// Is it remembered whether this CPU's cache has idle cores?
    pub(crate) fn notes_idle_cores(&self, cpu: CpuId) -> bool {
        self.world.smt_cpus(cpu).len() > 1 && self.rules.tunables.notes_idle_cores()
    }

    /// Does this hold for all other CPUs of its core?
    pub(crate) fn siblings_are(&self, cpu: CpuId, holds: impl Fn(&Self, CpuId) -> bool) -> bool {
        let mut siblings = self.world.smt_cpus(cpu).iter().map(|&s| CpuId::from(s));
        siblings.all(|s| s == cpu || holds(self, s))
    }

    /// At a tick, as balancing looks, too: what no wakeup has looked at for a tick or longer.
    pub(crate) fn see_overdue(&mut self) {
        let old = self.now.saturating_sub(self.rules.tick_ns);
        if self.unseen.front().is_some_and(|&(at, _)| at <= old) {
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

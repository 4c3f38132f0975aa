//! Speed changes when a CPU becomes busy or idle, or its clock changes.

use reveille_policy::CpuId;

use crate::hw::cpu::Step;
use crate::sim::Sim;

impl Sim<'_> {
    /// `cpu` becomes idle or busy: updates the speed of its siblings.
    #[inline]
    pub(crate) fn share_core(&mut self, cpu: CpuId, busy: bool) {
        if self.cpus[cpu].busy_siblings == 0 {
            self.hw.clocks.core_turns(self.hw.near.socket(cpu), busy);
        }
        let width = self.world.smt_cpus(cpu).len();
        for k in 0..width {
            let sibling = CpuId::from(self.world.smt_cpus(cpu)[k]);
            if sibling == cpu {
                continue;
            }
            let c = &mut self.cpus[sibling];
            if busy {
                c.busy_siblings += 1;
            } else {
                c.busy_siblings -= 1;
            }
            self.set_speed(sibling);
        }
    }

    /// Sets the speed of `cpu` from its busy siblings and its socket's clock.
    #[inline]
    pub(crate) fn set_speed(&mut self, cpu: CpuId) {
        let c = &mut self.cpus[cpu];
        let speeds = self.hw.clocks.speeds(self.hw.near.socket(cpu), c.busy_siblings);
        if c.speeds == *speeds {
            return;
        }
        let active = c.step != Step::Idle;
        if active {
            c.settle(self.now);
        }
        c.speeds = *speeds;
        if active {
            c.plan_end();
            self.replan(cpu);
        }
    }
}

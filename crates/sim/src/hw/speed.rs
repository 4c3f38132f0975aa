//! A CPU turns busy or idle, or its clock moves: how fast it and its siblings go on.

use reveille_policy::CpuId;

use crate::hw::cpu::Step;
use crate::sim::Sim;

impl Sim<'_> {
    /// `cpu` turns idle or busy: the speed of its siblings follows.
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

    /// The speed of `cpu` by its busy siblings and the clock of its socket.
    #[inline]
    pub(crate) fn set_speed(&mut self, cpu: CpuId) {
        let c = &mut self.cpus[cpu];
        let (speed, user_speed) = self.hw.speeds(cpu, c.busy_siblings);
        if (c.speed, c.user_speed) == (speed, user_speed) {
            return;
        }
        let active = c.step != Step::Idle;
        if active {
            c.settle(self.now);
        }
        (c.speed, c.user_speed) = (speed, user_speed);
        if active {
            c.plan_end();
            self.replan(cpu);
        }
    }
}

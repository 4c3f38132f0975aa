//! Speed changes when a CPU becomes busy or idle, or its clock changes.

use reveille_policy::CpuId;

use crate::sim::Sim;

impl Sim<'_> {
    /// `cpu` becomes idle or busy: updates the speed of its siblings.
    #[inline]
    pub(crate) fn share_core(&mut self, cpu: CpuId, busy: bool) {
        let socket = self.hw.near.socket(cpu);
        if self.cpus[cpu].busy_siblings == 0 {
            self.hw.clocks.core_turns(socket, busy);
        }
        for &sibling in self.world.smt_cpus(cpu) {
            let sibling = CpuId::from(sibling);
            if sibling == cpu {
                continue;
            }
            let c = &mut self.cpus[sibling];
            if busy {
                c.busy_siblings += 1;
            } else {
                c.busy_siblings -= 1;
            }
            if c.set_speeds(self.hw.clocks.speeds(socket, c.busy_siblings), self.now) {
                self.agenda.set_cpu(sibling, c.deadline());
            }
        }
    }

    /// Sets the speeds of `cpu` from its busy siblings and its socket's clock.
    pub(crate) fn set_speed(&mut self, cpu: CpuId) {
        let c = &mut self.cpus[cpu];
        let socket = self.hw.near.socket(cpu);
        c.counted_clock = self.hw.clocks.counted(socket);
        let speeds = self.hw.clocks.speeds(socket, c.busy_siblings);
        if c.set_speeds(speeds, self.now) {
            self.agenda.set_cpu(cpu, c.deadline());
        }
    }
}

//! DELAY_DEQUEUE: a task that sleeps with negative lag stays queued until the lag is repaid. If it
//! is woken before, it continues in place without placement; otherwise the pick that reaches it
//! dequeues it.

use reveille_measure::Ns;
use reveille_policy::{CpuId, TaskId};

use crate::hw::cpu::Toll;
use crate::sim::Sim;
use crate::tasks::task::Place;

impl Sim<'_> {
    /// A pick for CPU `on`, by `cpu`, has reached a delayed task that still sleeps: dequeues it.
    #[inline(never)]
    pub(crate) fn dequeue_delayed(
        &mut self,
        cpu: CpuId,
        on: CpuId,
        task: TaskId,
        vlag: i64,
        when: Ns,
    ) -> Toll {
        self.advance_cpu(on);
        let t = &mut self.tasks[task];
        debug_assert_eq!(t.place, Place::Delayed(on));
        t.averages.advance(&self.rules.decay, self.now, false, u64::from(t.se.weight), 0);
        t.place = Place::Blocked;
        self.cpus[on].rq.delayed_left(&mut t.se, vlag, &self.rules.fair);
        if !self.rules.fair.hides_delayed() {
            let nr = self.world.nr_running(on) - 1;
            self.set_nr_running(on, nr);
        }
        self.dequeue_groups(task, on);
        let line = self.group_load_moved(cpu, on, when);
        self.publish_load(on);
        Toll { stall: line, cost: Ns::from(self.hw.cost.dequeue_ns) + self.hw.group_level_ns() }
    }

    /// ttwu_runnable(): the wakee is still queued on `dst` and becomes runnable there. No CPU is
    /// selected, and its waker does not record it. Takes that queue's lock from here, even where a
    /// wake list would be used.
    pub(crate) fn wake_delayed(&mut self, cpu: CpuId, wakee: TaskId, dst: CpuId) -> Toll {
        self.measured.counters.activations += 1;
        self.count_wakeup(cpu, dst);
        let wait = self.cpus[dst].lock.acquire(cpu, self.now, self.now, self.hw.near.lines());
        self.measured.counters.lock_wait_ns += wait;
        let told = self.charge_for(cpu, dst);
        self.advance_cpu(dst);
        let t = &mut self.tasks[wakee];
        t.wake_at = self.now;
        t.waker_cpu = cpu;
        t.averages.advance(&self.rules.decay, self.now, false, u64::from(t.se.weight), 0);
        t.place = Place::Queued(dst);
        let c = &mut self.cpus[dst];
        c.rq.wake_delayed(wakee, &self.rules.fair);
        c.util_est += t.util_est();
        if self.rules.fair.hides_delayed() {
            let nr = self.world.nr_running(dst) + 1;
            self.set_nr_running(dst, nr);
            self.balancer.overload |= nr >= 2;
        }
        self.publish_load(dst);
        let work = Ns::from(self.hw.cost.enqueue_ns);
        let hold = self.cpus[cpu].stretch(work);
        self.cpus[dst].lock.hold(self.now, hold);
        let mut toll = Toll { stall: wait, cost: Ns::from(self.hw.cost.ttwu_ns) + work + told };
        if dst != cpu {
            toll.stall += self.hw.near.remote_enqueue(dst, cpu);
        }
        toll += self.check_preempt(cpu, dst, wakee);
        toll
    }
}

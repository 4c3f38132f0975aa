//! DELAY_DEQUEUE: a task that sleeps while it owes time stays on its queue until the
//! others have caught up. Woken before that, it goes on where it is, without any
//! placement; else the pick that would run it dequeues it.

use reveille_measure::Ns;
use reveille_policy::{CpuId, TaskId};

use crate::cpu::at;
use crate::engine::{Sim, Toll};
use crate::task::Place;

impl Sim<'_> {
    /// A delayed task's turn has come, and it still sleeps: it leaves the queue now.
    pub(crate) fn dequeue_delayed(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        vlag: i64,
        when: Ns,
    ) -> Toll {
        self.advance_cpu(cpu);
        let t = &mut self.tasks[at(task)];
        debug_assert_eq!(t.place, Place::Delayed(cpu));
        t.averages.advance(&self.decay, self.now, false, u64::from(t.weight), 0);
        t.place = Place::Blocked;
        self.cpus[at(cpu)].rq.delayed_left(t, vlag, &self.fair);
        self.world.task_mut(task).load_avg = t.averages.load as u32;
        if !self.fair.hides_delayed() {
            let nr = self.world.nr_running(cpu) - 1;
            self.world.set_nr_running(cpu, nr);
        }
        let line = self.group_load_moved(cpu, cpu, when);
        self.publish_load(cpu);
        Toll { stall: line, cost: Ns::from(self.cost.dequeue_ns) + self.group_level_ns() }
    }

    /// ttwu_runnable(): the wakee is still queued on `dst`, and is runnable there again.
    /// No CPU is selected, and its waker does not remember it. The lock of that queue is
    /// taken from here, whatever the wake list would allow.
    pub(crate) fn wake_delayed(&mut self, cpu: CpuId, wakee: TaskId, dst: CpuId) -> Toll {
        self.counters.activations += 1;
        self.count_wakeup(cpu, dst);
        let near = &self.near;
        let wait = self.cpus[at(dst)].lock.acquire(cpu, self.now, |a, b| near.line(a, b));
        self.counters.lock_wait_ns += wait;
        let told = self.charge_for(cpu, dst);
        self.advance_cpu(dst);
        let t = &mut self.tasks[at(wakee)];
        t.wake_at = self.now;
        t.waker_cpu = cpu;
        t.averages.advance(&self.decay, self.now, false, u64::from(t.weight), 0);
        t.place = Place::Queued(dst);
        let c = &mut self.cpus[at(dst)];
        c.rq.wake_delayed(wakee, &self.fair);
        c.util_est += t.util_est();
        self.world.task_mut(wakee).load_avg = t.averages.load as u32;
        if self.fair.hides_delayed() {
            let nr = self.world.nr_running(dst) + 1;
            self.world.set_nr_running(dst, nr);
            self.balancer.overload |= nr >= 2;
        }
        self.publish_load(dst);
        let work = Ns::from(self.cost.enqueue_ns);
        let hold = self.cpus[at(cpu)].stretch(work);
        self.cpus[at(dst)].lock.release(self.now + wait + hold);
        let mut toll = Toll { stall: wait, cost: Ns::from(self.cost.ttwu_ns) + work + told };
        if dst != cpu {
            toll.stall += self.near.remote_enqueue(dst, cpu);
        }
        if !self.fair.hides_delayed() {
            // From v7.2 on such a wake-up never preempts.
            toll += self.check_preempt(cpu, dst, wakee);
        }
        toll
    }

    /// update_curr() by the hand of `cpu`. If that ends the slice of the task on `dst`, or
    /// its group is out of runtime there, its CPU is told; returns the work of that.
    #[inline(always)]
    pub(crate) fn charge_for(&mut self, cpu: CpuId, dst: CpuId) -> Ns {
        let known = self.cpus[at(dst)].need_resched;
        self.update_curr(dst);
        if self.cpus[at(dst)].need_resched == known || cpu == dst {
            return 0;
        }
        self.send_ipi(cpu, dst).cost
    }

    /// Balancing places by the average of both queues, which the tasks that run there
    /// have moved. A slice that this ends is over at their next tick.
    pub(crate) fn charge_both(&mut self, src: CpuId, dst: CpuId) {
        if self.fair.eevdf.is_some() {
            self.update_curr(src);
            self.update_curr(dst);
        }
    }
}

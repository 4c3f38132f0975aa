//! Enqueue and dequeue: the timeline, the averages, and what balancing and placement read of them.

use reveille_policy::{CpuId, TaskId, bits};

use crate::rq::runqueue::Arrival;
use crate::sched::balancer::Published;
use crate::sim::Sim;
use crate::tasks::task::Place;

impl Sim<'_> {
    /// Enqueues a task on `dst`'s timeline, unless its group is throttled there.
    #[inline]
    pub(crate) fn enqueue(&mut self, task: TaskId, dst: CpuId, arrival: Arrival) {
        if self.bandwidth.is_none() || self.enqueue_groups(task, dst) {
            self.put_on_timeline(task, dst, arrival);
        }
    }

    /// The task joins the timeline of `dst`.
    #[inline(always)]
    pub(crate) fn put_on_timeline(&mut self, task: TaskId, dst: CpuId, arrival: Arrival) {
        self.advance_cpu(dst);
        let t = &mut self.tasks[task];
        let c = &mut self.cpus[dst];
        t.averages.advance(&self.rules.decay, self.now, false, 0, 0);
        if t.attaching {
            t.attaching = false;
            t.exec_start = 0; // no longer cache-hot (ENQUEUE_MIGRATED)
            t.se.vruntime += c.rq.origin();
            c.averages.attach(&t.averages);
            c.removed = true;
        }
        t.place = Place::Queued(dst);
        t.listed_at = self.now;
        c.rq.arrive(task, &mut t.se, arrival, &self.rules.fair);
        if self.rules.has(bits::UTIL_EST) {
            c.util_est += t.util_est();
        }
        let nr = self.world.nr_running(dst) + 1;
        self.set_nr_running(dst, nr);
        self.world.set_available_idle(dst, false);
        if nr == 1 {
            self.cpus[dst].looks_so_from = self.now;
        }
        if nr >= 2 {
            self.balancer.overload = true;
        }
        self.publish_load(dst);
    }

    /// init_entity_runnable_average() and post_init_entity_util_avg().
    pub(crate) fn new_task_averages(&mut self, task: TaskId, cpu: CpuId) {
        let queue = &mut self.cpus[cpu].averages;
        let weight = f64::from(self.tasks[task].se.weight);
        let room = (1024.0 - queue.util).max(0.0) / 2.0;
        let util = if queue.util == 0.0 {
            room
        } else {
            (queue.util * weight / (queue.load + 1.0)).min(room)
        };
        let t = &mut self.tasks[task];
        t.averages.util = util;
        t.averages.load = weight;
        t.averages.runnable = util;
        t.util_est = util;
        queue.attach(&t.averages);
        self.cpus[cpu].rq.place_new(&mut t.se, &self.rules.fair);
        self.group_load_attached(cpu);
        self.publish_load(cpu);
    }

    /// Removes a sleeping task's averages from the queue that it slept on.
    pub(crate) fn detach(&mut self, task: TaskId, from: CpuId) {
        self.advance_cpu(from);
        let t = &mut self.tasks[task];
        t.averages.advance(&self.rules.decay, self.now, false, 0, 0);
        let c = &mut self.cpus[from];
        c.averages.detach(&t.averages);
        c.removed = true;
        self.publish_load(from);
    }

    /// Updates the averages of a CPU's queue to now.
    #[inline(always)]
    pub(crate) fn advance_cpu(&mut self, cpu: CpuId) {
        let running = self.world.curr(cpu) != TaskId::NONE;
        let nr = self.h_nr_runnable(cpu);
        let c = &mut self.cpus[cpu];
        c.advance(&self.rules.decay, self.now, running, c.rq.weight, nr);
    }

    /// Tasks of a CPU's queue but for delayed ones.
    #[inline(always)]
    pub(crate) fn h_nr_runnable(&self, cpu: CpuId) -> u32 {
        self.world.nr_running(cpu) - self.cpus[cpu].rq.delayed_running
    }

    /// Sets a CPU's number of runnable tasks, and marks its load for publication.
    #[inline]
    pub(crate) fn set_nr_running(&mut self, cpu: CpuId, nr: u32) {
        self.world.set_nr_running(cpu, nr);
        let crowded = &mut self.balancer.sums.crowded;
        if nr > 1 { crowded.insert(cpu) } else { crowded.remove(cpu) }
    }

    /// Sets whether a CPU looks idle: no task queued, and no wakeup pending.
    #[inline]
    pub(crate) fn set_available_idle(&mut self, cpu: CpuId, idle: bool) {
        self.world.set_available_idle(cpu, idle);
        self.balancer.sums.note(cpu);
    }

    #[inline]
    pub(crate) fn publish_load(&mut self, cpu: CpuId) {
        let load = self.cpu_load(cpu);
        let c = &self.cpus[cpu];
        self.world.set_cfs_load(cpu, load);
        self.balancer.sums.note(cpu);
        self.balancer.published[cpu] =
            Published { load, runnable: c.averages.runnable as f32, util: c.util() as u32 };
    }
}

//! Throttling of a CPU's tasks (6.1): a queue is throttled when its task is put back or one is
//! first enqueued on it, and unthrottled when its debt is paid. Up to v6.17 the tasks of a throttled
//! queue leave the timeline at once; from v6.18 on (THROTTLE_EXIT) each does so when it would return
//! to user mode. They stay runnable.

use reveille_policy::{CpuId, TaskId};

use crate::hw::cpu::{Step, Toll};
use crate::rq::groups::Bandwidth;
use crate::rq::runqueue::Arrival;
use crate::sim::Sim;
use crate::tasks::task::Place;

impl Sim<'_> {
    /// enqueue_task_fair() through the task's groups. Returns false if a level is throttled and the
    /// task is held there instead of joining the timeline.
    pub(crate) fn enqueue_groups(&mut self, task: TaskId, cpu: CpuId) -> bool {
        let group = self.group_of(task);
        self.join_queues(group, cpu);
        let Some(bandwidth) = &mut self.bandwidth else { return true };
        if self.rules.throttles_at_exit || !bandwidth.held_back(group, cpu) {
            return true;
        }
        bandwidth.held[cpu].push(task);
        self.tasks[task].place = Place::Held(cpu);
        // A CPU woken for nothing begins a new idle interval.
        let c = &mut self.cpus[cpu];
        if matches!(c.step, Step::Idle | Step::IdleExit) {
            c.idle_stamp = self.now.max(1);
        }
        false
    }

    /// Enqueues an entity on `group`'s queue; a newly non-empty queue is enqueued in its parent,
    /// and so on up to the first throttled one.
    fn join_queues(&mut self, mut group: Option<usize>, cpu: CpuId) {
        while let Some(g) = group {
            let current = self.runs_in(cpu, g);
            let Some(bandwidth) = &mut self.bandwidth else { return };
            let queue = &mut bandwidth.groups[g].queues[cpu];
            queue.entities += 1;
            if queue.entities == 1 && !current && queue.runtime.enabled() {
                // check_enqueue_throttle()
                let slice = bandwidth.slice_ns;
                let around = &mut bandwidth.groups[g];
                around.pool.account(&mut around.queues[cpu].runtime, 0, slice, self.now);
                self.throttle_if_out(g, cpu);
            }
            let Some(bandwidth) = &mut self.bandwidth else { return };
            let queue = &mut bandwidth.groups[g].queues[cpu];
            let stays_off = queue.runtime.throttled() && !self.rules.throttles_at_exit;
            if stays_off || queue.on_parent {
                break;
            }
            queue.on_parent = true;
            group = bandwidth.around(group);
        }
        self.replan_bandwidth();
    }

    /// dequeue_task_fair() through the groups: a queue that becomes empty returns its runtime and
    /// leaves its parent's queue.
    pub(crate) fn dequeue_groups(&mut self, task: TaskId, cpu: CpuId) {
        let group = self.group_of(task);
        let Some(bandwidth) = &mut self.bandwidth else { return };
        bandwidth.leave_queues(group, cpu, self.now);
        self.replan_bandwidth();
    }

    /// put_prev_task_fair(): throttles the queues of the task that just stopped running on `cpu`,
    /// if they are out of runtime.
    pub(crate) fn put_prev_groups(&mut self, task: TaskId, cpu: CpuId) {
        let mut group = self.group_of(task);
        while let Some(g) = group {
            self.throttle_if_out(g, cpu);
            group = self.bandwidth.as_ref().and_then(|b| b.around(group));
        }
        self.replan_bandwidth();
    }

    /// throttle_cfs_rq(): unless the pool has runtime after all, the queue's tasks leave the
    /// timeline, and the group leaves its parent's queue.
    fn throttle_if_out(&mut self, g: usize, cpu: CpuId) {
        let Some(bandwidth) = &mut self.bandwidth else { return };
        let group = &mut bandwidth.groups[g];
        let throttled = group.pool.throttle(&mut group.queues[cpu].runtime, self.now);
        bandwidth.timer_moved(g, cpu);
        if !throttled {
            return;
        }
        let group = &mut bandwidth.groups[g];
        group.throttled.push_back(cpu);
        bandwidth.note(g, self.now);
        if self.rules.throttles_at_exit {
            return;
        }
        let group = &mut bandwidth.groups[g];
        if std::mem::take(&mut group.queues[cpu].on_parent) {
            let parent = group.parent;
            bandwidth.leave_queues(parent, cpu, self.now);
        }
        // The kernel keeps delayed tasks on the throttled queue, where they go on sleeping.
        loop {
            let Some(bandwidth) = &self.bandwidth else { return };
            let of =
                |task: TaskId| bandwidth.lies_in(bandwidth.of_role(self.tasks[task].spec.role), g);
            let Some((task, vlag)) = self.cpus[cpu].rq.dequeue_a_delayed(of) else { break };
            self.dequeue_delayed(cpu, cpu, task, vlag, self.now);
        }
        let waiting: Vec<TaskId> = self.cpus[cpu].rq.waiting().collect();
        for task in waiting.into_iter().rev() {
            if self.bandwidth.as_ref().is_some_and(|b| b.lies_in(self.group_of(task), g)) {
                self.hold(task, cpu);
            }
        }
    }

    /// Would this task, which runs next on `cpu` or has finished an operation there, return to user
    /// mode in a throttled group (throttle_cfs_rq_work())?
    #[inline(always)]
    pub(crate) fn exits_throttled(&self, task: TaskId, cpu: CpuId) -> bool {
        self.bandwidth.as_ref().is_some_and(|groups| self.exits_held_back(groups, task, cpu))
    }

    fn exits_held_back(&self, bandwidth: &Bandwidth, task: TaskId, cpu: CpuId) -> bool {
        if !self.rules.throttles_at_exit {
            return false;
        }
        let t = &self.tasks[task];
        let in_kernel = t.saved.some && !t.saved.user && t.spin_until == 0;
        !in_kernel && t.to_wake == TaskId::NONE && bandwidth.held_back(self.group_of(task), cpu)
    }

    /// The task that was picked on `cpu` leaves its queues and the timeline. Returns what that takes.
    #[cold]
    pub(crate) fn throttle_at_exit(&mut self, task: TaskId, cpu: CpuId) -> Toll {
        let t = &mut self.tasks[task];
        t.place = Place::Queued(cpu);
        self.cpus[cpu].rq.put_back(task, &t.se);
        self.hold(task, cpu);
        self.dequeue_groups(task, cpu);
        Toll::cost(self.hw.cost.dequeue_ns)
    }

    /// Takes a waiting task off the timeline, where it counts as asleep.
    fn hold(&mut self, task: TaskId, cpu: CpuId) {
        self.advance_cpu(cpu);
        let t = &mut self.tasks[task];
        t.averages.advance(&self.rules.decay, self.now, false, u64::from(t.se.weight), 1);
        t.place = Place::Held(cpu);
        let c = &mut self.cpus[cpu];
        c.rq.remove(task, &mut t.se);
        t.se.vruntime += c.rq.origin(); // it stays on this queue
        c.util_est = (c.util_est - t.util_est()).max(0.0);
        let nr = self.world.nr_running(cpu) - 1;
        self.set_nr_running(cpu, nr);
        self.publish_load(cpu);
        if let Some(bandwidth) = &mut self.bandwidth {
            bandwidth.held[cpu].push(task);
        }
    }

    /// distribute_cfs_runtime(), executed by `by`: in FIFO order until the pool is empty. Returns
    /// its duration.
    pub(crate) fn distribute(&mut self, g: usize, by: CpuId) -> Toll {
        let mut toll = Toll::default();
        while let Some(bandwidth) = &mut self.bandwidth {
            let group = &mut bandwidth.groups[g];
            let Some(&cpu) = group.throttled.front() else { break };
            if group.pool.runtime_ns() == 0 || !group.pool.grant(&mut group.queues[cpu].runtime) {
                break;
            }
            toll += self.unthrottle(g, cpu, by, toll);
        }
        toll
    }

    /// unthrottle_cfs_rq(): the queue at the head of the list runs again, unless an ancestor is
    /// throttled. An idle CPU is kicked `after` this delay.
    fn unthrottle(&mut self, g: usize, cpu: CpuId, by: CpuId, after: Toll) -> Toll {
        let Some(bandwidth) = &mut self.bandwidth else { return Toll::default() };
        let group = &mut bandwidth.groups[g];
        group.throttled.pop_front();
        let queue = &mut group.queues[cpu];
        group.pool.unthrottle(&mut queue.runtime, self.now);
        bandwidth.note(g, self.now);
        let queue = &mut bandwidth.groups[g].queues[cpu];
        if queue.entities > 0 && !queue.on_parent {
            queue.on_parent = true;
            let parent = bandwidth.groups[g].parent;
            self.join_queues(parent, cpu);
        }
        let mut toll = Toll::cost(self.hw.cost.enqueue_ns);
        self.release(cpu);
        if self.cpus[cpu].is_idle() && !self.cpus[cpu].rq.is_empty() {
            let done = after.stall + self.cpus[by].stretch(after.cost + toll.cost);
            toll += self.kick_idle(by, cpu, done);
        }
        toll
    }

    /// Held tasks without a throttled ancestor join the timeline as if woken.
    fn release(&mut self, cpu: CpuId) {
        let Some(bandwidth) = &mut self.bandwidth else { return };
        if bandwidth.held[cpu].is_empty() {
            return;
        }
        for task in std::mem::take(&mut bandwidth.held[cpu]) {
            let group = self.group_of(task);
            let Some(bandwidth) = &mut self.bandwidth else { return };
            if bandwidth.held_back(group, cpu) {
                bandwidth.held[cpu].push(task);
            } else {
                if self.rules.throttles_at_exit {
                    self.join_queues(group, cpu);
                }
                self.put_on_timeline(task, cpu, Arrival::Woken);
            }
        }
    }

    /// throttled_lb_pair(): balancing moves no task from or to a throttled queue.
    #[inline]
    pub(crate) fn throttled_pair(&self, task: TaskId, src: CpuId, dst: CpuId) -> bool {
        let Some(bandwidth) = &self.bandwidth else { return false };
        let group = self.group_of(task);
        bandwidth.held_back(group, src) || bandwidth.held_back(group, dst)
    }
}

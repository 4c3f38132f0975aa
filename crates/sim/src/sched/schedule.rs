//! __schedule() and its callers: a task blocks or is preempted, and the next one is picked and
//! switched to, or the CPU goes idle.

use reveille_measure::Ns;
use reveille_policy::{CpuId, TaskId, bits};

use crate::hw::clock::NEVER;
use crate::hw::cpu::{Step, Toll};
use crate::rq::eevdf::Next;
use crate::sched::swqueue::Pull;
use crate::sim::Sim;
use crate::tasks::task::{Place, Saved};

impl Sim<'_> {
    /// update_curr(): charges the current task for its time on the CPU. Is its group out of runtime?
    #[inline(always)]
    pub(crate) fn update_curr(&mut self, cpu: CpuId) -> bool {
        let Some(task) = self.world.curr(cpu).some() else { return false };
        let t = &mut self.tasks[task];
        if t.exec_start >= self.now {
            return false;
        }
        let delta = self.now - t.exec_start;
        t.exec_start = self.now;
        self.world.task_mut(task).sum_exec_ns += delta;
        let c = &mut self.cpus[cpu];
        c.need_resched |= c.rq.charge(&mut t.se, delta * self.rules.pace);
        if self.gathering.is_some() {
            self.account_gathering(cpu, task, delta);
        }
        self.bandwidth.is_some() && self.charge_groups(cpu, task, delta)
    }

    /// update_curr() of `dst`, executed by `cpu`. If that ends the slice on `dst`, or its group is
    /// out of runtime there, asks `dst` to reschedule. Returns the work of that.
    #[inline(always)]
    pub(crate) fn charge_for(&mut self, cpu: CpuId, dst: CpuId) -> Ns {
        let known = self.cpus[dst].need_resched;
        let spent = self.update_curr(dst);
        // The end of a slice asks lazily, a group without runtime does not.
        let tells = match self.rules.has(bits::PREEMPT_LAZY) {
            true => spent,
            false => self.cpus[dst].need_resched != known,
        };
        if !tells || cpu == dst {
            return 0;
        }
        self.send_ipi(cpu, dst).cost
    }

    /// Balancing dequeues and enqueues, so the running tasks of both queues are charged first. A slice
    /// that this ends is over at their next tick.
    pub(crate) fn charge_both(&mut self, src: CpuId, dst: CpuId) {
        self.update_curr(src);
        self.update_curr(dst);
    }

    /// Takes the CPU's own runqueue lock. What another CPU has touched meanwhile comes back from
    /// there: as many lines as its enqueue had moved.
    fn take_own_queue(&mut self, cpu: CpuId) -> Ns {
        let lock = &mut self.cpus[cpu].lock;
        let owner = lock.owner();
        let wait = lock.acquire(cpu, self.now, self.now, self.hw.near.lines());
        self.measured.counters.lock_wait_ns += wait;
        if owner == cpu { wait } else { wait + self.hw.near.remote_enqueue(owner, cpu) }
    }

    /// The current task blocks: dequeue, then the next task or idle.
    pub(crate) fn block(&mut self, cpu: CpuId) {
        let task = self.world.curr(cpu);
        let wait = self.take_own_queue(cpu);
        self.update_curr(cpu);
        self.advance_cpu(cpu);
        let t = &mut self.tasks[task];
        let clock = self.cpus[cpu].counted_clock;
        t.averages.advance_running(&self.rules.decay, self.now, clock, u64::from(t.se.weight), 1);
        let c = &mut self.cpus[cpu];
        c.util_est = (c.util_est - t.util_est()).max(0.0);
        t.estimate_util(self.now, self.rules.waits_keep_util_est);
        let left = c.rq.block(task, &mut t.se, &self.rules.fair);
        t.place = if left { Place::Blocked } else { Place::Delayed(cpu) };
        self.world.task_mut(task).slept();
        let gone = left || self.rules.fair.hides_delayed();
        let nr = self.world.nr_running(cpu) - u32::from(gone);
        self.set_nr_running(cpu, nr);
        if self.rules.has(bits::SIS_CACHE) {
            self.world.fell_asleep(task, cpu, self.now);
        }
        self.world.set_curr(cpu, TaskId::NONE);
        // A delayed task stays in its groups' queues.
        let (line, group) = match left {
            true => (self.group_load_moved(cpu, cpu, self.now + wait), self.hw.group_level_ns()),
            false => (0, 0),
        };
        if self.bandwidth.is_some() {
            if left {
                self.dequeue_groups(task, cpu);
            }
            self.put_prev_groups(task, cpu);
        }
        self.publish_load(cpu);
        let work = Ns::from(self.hw.cost.dequeue_ns) + group;
        let c = &mut self.cpus[cpu];
        let hold = c.stretch(work) + line;
        c.lock.hold(self.now, hold);
        c.need_resched = false;
        let toll = Toll { stall: wait + line, cost: work };
        self.run_next(cpu, Some(task), toll);
        // It is off the CPU once the switch away from it completes: finish_task().
        let c = &self.cpus[cpu];
        self.tasks[task].on_cpu_until = match c.step {
            Step::Idle | Step::IdleExit => c.idle_from,
            Step::NewIdle | Step::Pull { .. } => {
                c.busy_from() + c.stretch(self.hw.cost.switch_idle_ns.into())
            }
            _ => c.switched_at,
        };
    }

    /// Preempts the current task in the middle of its operation.
    pub(crate) fn preempt(&mut self, cpu: CpuId) {
        debug_assert_eq!(self.cpus[cpu].step, Step::Op);
        let task = self.world.curr(cpu);
        let c = &mut self.cpus[cpu];
        c.settle(self.now);
        let left = c.activity;
        self.tasks[task].saved =
            Saved { busy_ns: left.busy, overhead_ns: 0, user: left.user, some: true };
        self.yield_to_next(cpu, Toll { stall: left.stall, cost: left.cost });
    }

    /// The current task stays runnable, and the pick decides.
    pub(crate) fn yield_to_next(&mut self, cpu: CpuId, toll: Toll) {
        self.measured.counters.preemptions += 1;
        let task = self.put_back(cpu);
        self.run_next(cpu, Some(task), toll);
    }

    /// put_prev_task(), on the way to the next pick: puts the current task back on its queue and returns it.
    pub(crate) fn put_back(&mut self, cpu: CpuId) -> TaskId {
        let task = self.world.curr(cpu);
        self.update_curr(cpu);
        self.cpus[cpu].need_resched = false;
        self.advance_cpu(cpu);
        let t = &mut self.tasks[task];
        let clock = self.cpus[cpu].counted_clock;
        t.averages.advance_running(&self.rules.decay, self.now, clock, u64::from(t.se.weight), 1);
        t.place = Place::Queued(cpu);
        self.cpus[cpu].rq.put_back(task, &t.se);
        self.world.set_curr(cpu, TaskId::NONE);
        if self.bandwidth.is_some() {
            self.put_prev_groups(task, cpu);
        }
        task
    }

    /// Picks the next task and switches to it; without one, balances or goes idle. `prev` is the
    /// task that ran until now; `None` if the CPU was idle.
    pub(crate) fn run_next(&mut self, cpu: CpuId, prev: Option<TaskId>, mut toll: Toll) {
        let Some(task) = self.pick_next(cpu, prev, &mut toll) else {
            return self.run_none(cpu, prev, toll);
        };
        self.measured.counters.context_switches += u64::from(prev != Some(task));
        if self.rules.idle_ends_at_switch {
            match self.cpus[cpu].idle_task_from {
                NEVER => self.cpus[cpu].idle_stamp = 0,
                _ => self.end_idle(cpu),
            }
        }
        if self.cpus[cpu].lock.owner() != cpu {
            toll.stall += self.take_own_queue(cpu);
        }
        // After idle, the runqueue clock is updated again after the enqueue, so its waits are not
        // charged to any task; between two tasks they are charged to the next one.
        let c = &mut self.cpus[cpu];
        let from = match prev {
            Some(_) => self.now,
            None => self.now + toll.stall + c.stretch(toll.cost),
        };
        let relisted = match self.shared_queues {
            Some(_) => self.relist(cpu, prev, task, toll),
            None => Toll::default(),
        };
        let nr = self.h_nr_runnable(cpu);
        let c = &mut self.cpus[cpu];
        c.advance(&self.rules.decay, from, prev.is_some(), c.rq.weight, nr);
        if prev != Some(task) {
            c.picked_at = from; // set_next_entity()
        }
        let idle_from = std::mem::replace(&mut c.idle_task_from, NEVER);
        self.measured.counters.idle_task_ns += from.saturating_sub(idle_from);
        toll += relisted;
        toll.cost += match prev {
            None if c.step == Step::Pick => self.hw.half_switch_idle_ns(),
            None => Ns::from(self.hw.cost.switch_idle_ns),
            Some(prev) if prev == task => 0,
            Some(prev) => {
                let same = self.tasks[prev].spec.process == self.tasks[task].spec.process;
                let mm = if same { 0 } else { self.hw.cost.switch_mm_ns };
                Ns::from(self.hw.cost.switch_ns) + Ns::from(mm)
            }
        };
        // finish_task_switch() drops it.
        c.switched_at = self.now + toll.stall + c.stretch(toll.cost);
        c.lock.release(c.switched_at);
        self.world.set_curr(cpu, task);
        self.world.task_mut(task).prev_cpu = cpu;
        let t = &mut self.tasks[task];
        t.averages.advance(&self.rules.decay, from, false, u64::from(t.se.weight), 1);
        t.place = Place::Running(cpu);
        t.exec_start = from;
        t.listed_at = from;
        c.switches = c.switches.wrapping_add(1);
        toll.stall += match t.warm_cpu == cpu {
            true => self.hw.near.cold_shared(c.switches.wrapping_sub(t.switched_in)),
            false => self.hw.near.cold(t.warm_cpu, cpu),
        };
        (t.warm_cpu, t.switched_in) = (cpu, c.switches);
        let woken_at = std::mem::take(&mut t.wake_at);
        if woken_at != 0 {
            toll.stall += self.hw.near.handoff(t.waker_cpu, cpu);
        }
        if self.rules.hrtick && prev != Some(task) {
            self.arm_hrtick(cpu, task);
        }
        self.resume(cpu, task, toll);
        if woken_at != 0 {
            let running_at = self.cpus[cpu].busy_from();
            self.measured.wakeup_latency.record(running_at - woken_at);
        }
    }

    /// The timeline is empty. Out of line, as run_next() is quicker without all of this.
    #[inline(never)]
    fn run_none(&mut self, cpu: CpuId, prev: Option<TaskId>, mut toll: Toll) {
        let mut pull = Pull::Nothing;
        if self.shared_queues.is_some() {
            match (self.cpus[cpu].step, prev) {
                (Step::Pick | Step::Pull { .. }, _) => pull = self.pull_shared(cpu, &mut toll),
                (_, Some(prev)) => return self.begin(cpu, Step::Pull { prev }, toll, 0, None),
                (_, None) => {}
            }
        }
        if pull == Pull::Taken {
            return self.run_next(cpu, prev, toll);
        }
        if prev.is_some() && self.cpus[cpu].wake_list.is_empty() {
            let stamp = self.now.max(1);
            self.cpus[cpu].idle_stamp = stamp;
            if let Some(balancing) = self.new_idle_balance(cpu, toll) {
                toll += balancing;
                self.begin(cpu, Step::NewIdle, toll, 0, None);
                return;
            }
        }
        if pull == Pull::Lost {
            // The idle task is not current during that.
            self.begin(cpu, Step::NewIdle, toll, 0, None);
            return;
        }
        self.enter_idle(cpu, toll);
    }

    /// Picks the next task; dequeues delayed ones ahead of it, and those that would return to user
    /// mode in a throttled group.
    #[inline]
    fn pick_next(&mut self, cpu: CpuId, prev: Option<TaskId>, toll: &mut Toll) -> Option<TaskId> {
        loop {
            match self.cpus[cpu].rq.pick(&self.rules.fair)? {
                Next::Run(task) if self.exits_throttled(task, cpu) => {
                    *toll += self.throttle_at_exit(task, cpu);
                    if prev != Some(task) {
                        toll.cost += Ns::from(self.hw.cost.switch_ns);
                    }
                }
                Next::Run(task) => return Some(task),
                Next::Asleep(task, vlag) => {
                    let when = self.now + toll.stall;
                    *toll += self.dequeue_delayed(cpu, cpu, task, vlag, when);
                }
            }
        }
    }

    /// Resumes the task where it was preempted, or at its next operation.
    fn resume(&mut self, cpu: CpuId, task: TaskId, toll: Toll) {
        let t = &mut self.tasks[task];
        if t.saved.some {
            let saved = std::mem::take(&mut t.saved);
            let toll = Toll { stall: toll.stall + saved.overhead_ns, ..toll };
            let until = (t.spin_until != 0).then_some(t.spin_until);
            self.begin(cpu, Step::Op, toll, saved.busy_ns, until);
            self.compute(cpu, saved.user);
        } else {
            self.proceed(cpu, toll);
        }
    }

    /// check_preempt_wakeup(): does the wakee preempt what `dst` runs?
    #[inline(always)]
    pub(crate) fn check_preempt(&mut self, cpu: CpuId, dst: CpuId, woken: TaskId) -> Toll {
        self.preempted_by(cpu, dst, woken, false)
    }

    /// [`Sim::check_preempt`] of a task that has been woken or forked, or that balancing has `moved`.
    #[inline(always)]
    pub(crate) fn preempted_by(
        &mut self,
        cpu: CpuId,
        dst: CpuId,
        woken: TaskId,
        moved: bool,
    ) -> Toll {
        let Some(curr) = self.world.curr(dst).some() else { return Toll::default() };
        if self.bandwidth.is_some() && matches!(self.tasks[woken].place, Place::Held(_)) {
            return Toll::default();
        }
        let mut toll = match self.rules.hrtick {
            true => self.start_hrtick(cpu, dst, curr),
            false => Toll::default(),
        };
        if self.cpus[dst].need_resched || !self.rules.fair.wakeup_preemption {
            return toll;
        }
        loop {
            let new = || !moved && self.world.task(woken).sum_exec_ns == 0;
            let (running, waking) = (&self.tasks[curr].se, &self.tasks[woken].se);
            let rq = &mut self.cpus[dst].rq;
            match rq.preempts((curr, running), (woken, waking), new, &self.rules.fair) {
                None => return toll,
                Some(Next::Run(_)) => break,
                Some(Next::Asleep(task, vlag)) => {
                    let when = self.now + toll.stall;
                    toll += self.dequeue_delayed(cpu, dst, task, vlag, when);
                }
            }
        }
        self.cpus[dst].need_resched = true;
        if cpu != dst && !self.rules.has(bits::PREEMPT_LAZY) {
            toll += self.send_ipi(cpu, dst);
        }
        toll
    }
}

//! Interrupts: wakeups from other CPUs, timers, the scheduler tick.

use reveille_measure::Ns;
use reveille_policy::{CpuId, TaskId, bits};
use reveille_workload::Op;

use crate::hw::clock::NEVER;
use crate::hw::cpu::{Step, Toll};
use crate::sim::Sim;

impl Sim<'_> {
    /// Sends an IPI to a busy CPU.
    pub(crate) fn send_ipi(&mut self, cpu: CpuId, dst: CpuId) -> Toll {
        let arrival = self.now + self.hw.ipi_flight(cpu, dst);
        let c = &mut self.cpus[dst];
        if c.ipi_at == NEVER {
            c.ipi_at = arrival;
            self.replan(dst);
        }
        self.measured.counters.ipis += 1;
        Toll::cost(self.hw.cost.ipi_send_ns)
    }

    /// Makes an idle CPU exit idle, `after` this delay: through its need-resched word if it
    /// monitors that (MWAIT, polling), otherwise by IPI.
    pub(crate) fn kick_idle(&mut self, cpu: CpuId, dst: CpuId, after: Ns) -> Toll {
        debug_assert_eq!(self.cpus[dst].step, Step::Idle);
        let state = &self.hw.idle_states[usize::from(self.cpus[dst].idle_state)];
        if cpu == dst {
            self.leave_idle(dst, self.now + after);
            Toll::default()
        } else if state.polling {
            let arrival = self.now + after + self.hw.near.line(cpu, dst);
            self.leave_idle(dst, arrival);
            Toll::default()
        } else {
            let arrival = self.now + after + self.hw.ipi_flight(cpu, dst);
            self.leave_idle(dst, arrival);
            self.measured.counters.ipis += 1;
            Toll::cost(self.hw.cost.ipi_send_ns)
        }
    }

    /// Processes timers that have fired here.
    pub(crate) fn serve_interrupts(&mut self, cpu: CpuId) -> Toll {
        let mut toll = Toll::default();
        if !self.cpus[cpu].fired.is_empty() {
            toll += Toll::cost(self.hw.cost.irq_ns);
            let mut fired = std::mem::take(&mut self.cpus[cpu].fired);
            for task in fired.drain(..) {
                toll += self.wake_from_timer(cpu, task);
            }
            self.cpus[cpu].fired = fired;
        }
        toll
    }

    /// sched_ttwu_pending(): enqueues the tasks on the wake list in FIFO order.
    pub(crate) fn drain_wake_list(&mut self, cpu: CpuId) -> Toll {
        let mut toll = Toll::default();
        if self.cpus[cpu].wake_list.is_empty() {
            return toll;
        }
        let mut list = std::mem::take(&mut self.cpus[cpu].wake_list);
        for &task in &list {
            toll += self.enqueue_woken(cpu, task, cpu, self.now + toll.stall);
            if self.cpus[cpu].runs_task() {
                toll += self.check_preempt(cpu, cpu, task);
            }
        }
        list.clear();
        self.cpus[cpu].wake_list = list;
        toll
    }

    /// Does this CPU look idle while it takes its lock for the wake list? Before v6.2 the pending
    /// bit (before v5.8: the list's head) is cleared first, and nothing else marks the CPU as taken
    /// until the first task is enqueued.
    pub(crate) fn drains_unseen(&self, cpu: CpuId) -> bool {
        !self.rules.has(bits::TTWU_PENDING_HELD)
            && self.world.nr_running(cpu) == 0
            && !self.cpus[cpu].wake_list.is_empty()
    }

    /// Opens that window: the wait for the lock and the first enqueue, after the `toll` of
    /// interrupts. Tasks added to the list meanwhile are enqueued at its end; the kernel sends
    /// another IPI for them. The wait for load_avg's line is charged at the end.
    pub(crate) fn drain_begins(&mut self, cpu: CpuId, toll: Toll) {
        self.set_available_idle(cpu, true);
        let work = self.hw.enqueue_work();
        let c = &mut self.cpus[cpu];
        let from = self.now + toll.stall + c.stretch(toll.cost);
        let wait = c.lock.acquire(cpu, self.now, from, self.hw.near.lines());
        c.lock.hold(self.now, c.stretch(work));
        self.measured.counters.lock_wait_ns += wait;
        let toll = Toll { stall: toll.stall + wait, cost: toll.cost + work };
        self.begin(cpu, Step::Drain, toll, 0, None);
    }

    /// Closes the window: the first task of the list is enqueued, then the others.
    pub(crate) fn drain_ends(&mut self, cpu: CpuId) {
        let mut list = std::mem::take(&mut self.cpus[cpu].wake_list);
        let mut toll = self.activate(cpu, list[0], cpu, self.now);
        self.cpus[cpu].lock.hold(self.now, toll.stall);
        // nr_running follows the wait for load_avg's line.
        if toll.stall != 0 {
            self.set_available_idle(cpu, true);
            self.seen_from(cpu, self.now + toll.stall);
        }
        for &task in &list[1..] {
            toll += self.enqueue_woken(cpu, task, cpu, self.now + toll.stall);
        }
        list.clear();
        self.cpus[cpu].wake_list = list;
        toll += self.serve_interrupts(cpu);
        self.schedule_idle(cpu, toll);
    }

    /// An IPI from another CPU: processes the wake list and a requested preemption.
    pub(crate) fn ipi(&mut self, cpu: CpuId) {
        if matches!(self.cpus[cpu].step, Step::Idle) {
            self.leave_idle(cpu, self.now);
            return;
        }
        if self.cpus[cpu].leaves_idle() {
            return; // whatever it is, leaving idle serves it
        }
        let mut toll = Toll::cost(self.hw.cost.irq_ns);
        toll += self.drain_wake_list(cpu);
        toll += self.serve_interrupts(cpu);
        self.cpus[cpu].interrupt(self.now, toll.stall, toll.cost);
        self.resched_if_needed(cpu);
    }

    /// Preempts at once if the current task is in its operation. A call that hands something over does
    /// that first, and its wakeups: without CONFIG_PREEMPT a task gives way where it may sleep, and none
    /// does so in between.
    pub(crate) fn resched_if_needed(&mut self, cpu: CpuId) {
        let c = &self.cpus[cpu];
        if !c.need_resched || c.step != Step::Op {
            return;
        }
        let task = self.world.curr(cpu);
        let hands_over =
            matches!(self.op(task), Op::Send { .. } | Op::Post { .. } | Op::WakeList { .. });
        if !hands_over && self.tasks[task].to_wake == TaskId::NONE {
            self.preempt(cpu);
        }
    }

    /// Wakes sleeping tasks whose timers have expired.
    pub(crate) fn fire_timers(&mut self) {
        while let Some(timer) = self.agenda.due_timer(self.now) {
            if self.tasks[timer.task].timer != timer.number {
                continue; // woken before its time
            }
            // The wait has timed out: a post no longer wakes the task.
            self.tasks[timer.task].timer = 0;
            self.tasks[timer.task].waits_futex = false;
            let cpu = match self.tasks[timer.task].unborn {
                true => self.place_forked(timer.task, timer.cpu),
                false => timer.cpu,
            };
            match self.cpus[cpu].step {
                Step::Idle => {
                    self.cpus[cpu].fired.push(timer.task);
                    self.leave_idle(cpu, self.now);
                }
                Step::IdleExit | Step::Drain => self.cpus[cpu].fired.push(timer.task),
                _ => {
                    let mut toll = Toll::cost(self.hw.cost.irq_ns);
                    toll += self.wake_from_timer(cpu, timer.task);
                    self.cpus[cpu].interrupt(self.now, toll.stall, toll.cost);
                    self.resched_if_needed(cpu);
                    self.replan(cpu);
                }
            }
        }
        self.agenda.replan_timers();
    }

    /// Sets the task's timer on `cpu`; voids an earlier one.
    pub(crate) fn set_timer(&mut self, cpu: CpuId, task: TaskId, at_ns: Ns) {
        self.tasks[task].timer = self.agenda.arm(cpu, task, at_ns);
    }

    /// The scheduler tick: accounting, slice check, and balancing.
    pub(crate) fn tick(&mut self, cpu: CpuId) {
        let pace = if self.cpus[cpu].step == Step::Idle { 1 } else { self.rules.pace };
        self.cpus[cpu].tick_at += self.rules.tick_ns / pace;
        self.hw.clocks.tick(self.hw.near.socket(cpu), self.now);
        self.set_speed(cpu);
        self.see_overdue();
        if self.cpus[cpu].step == Step::Idle {
            self.idle_tick(cpu);
            return;
        }
        if !self.cpus[cpu].leaves_idle() {
            self.update_curr(cpu);
            self.advance_cpu(cpu);
            self.end_slice(cpu);
        }
        if self.background.at_tick(pace) {
            self.wake_in_background(cpu);
        }
        let line = self.group_load_moved(cpu, cpu, self.now);
        self.publish_load(cpu);
        let gathering = self.tick_gathering(cpu);
        // In a softirq, once the tick is over.
        let balancing = self.periodic_balance(cpu);
        let kick = self.kick_nohz_balance(cpu);
        let cost = Ns::from(self.hw.cost.tick_ns) + gathering + balancing + kick;
        self.cpus[cpu].interrupt(self.now, line, cost);
        self.resched_if_needed(cpu);
    }

    /// A tick on an idle CPU: the tick is stopped if idling continues.
    fn idle_tick(&mut self, cpu: CpuId) {
        self.advance_cpu(cpu);
        self.publish_load(cpu);
        let balancing = self.periodic_balance(cpu);
        let c = &mut self.cpus[cpu];
        if self.now >= c.idle_from {
            let exit = self.hw.idle_states[usize::from(c.idle_state)].exit_ns;
            let cost = Ns::from(exit + self.hw.cost.tick_ns) + balancing;
            // An idle interval that a tick ends counts as long (menu), so the next one stops the
            // tick.
            c.tick_stopped = true;
            c.tick_at = NEVER;
            self.balancer.sleepers.insert(cpu);
            c.account_idle(self.now);
            c.time.cost_ns += cost;
            c.idle_accounted = self.now + cost;
            c.idle_from = self.now + cost;
        }
        if !c.rq.is_empty() {
            self.leave_idle(cpu, self.now);
        }
    }

    /// The tick wakes a kernel thread, and the current task counts as its waker.
    fn wake_in_background(&mut self, cpu: CpuId) {
        if let Some(curr) = self.world.curr(cpu).some() {
            let (now_j, hz) = (self.jiffies(), self.rules.tunables.hz);
            self.world.task_mut(curr).record_wakee(TaskId::NONE, now_j, hz);
        }
    }

    /// Has the current task used its slice?
    fn end_slice(&mut self, cpu: CpuId) {
        let Some(curr) = self.world.curr(cpu).some() else { return };
        let c = &mut self.cpus[cpu];
        let ran = self.now.saturating_sub(c.picked_at) * self.rules.pace;
        c.need_resched |= c.rq.slice_ends((curr, &self.tasks[curr].se), ran, &self.rules.fair);
    }
}

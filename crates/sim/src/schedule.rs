//! __schedule() and what leads to it: a task blocks, is preempted, or an idle CPU
//! finds work; the next task is picked and switched to, or the CPU goes idle.

use reveille_measure::Ns;
use reveille_policy::{CpuId, NONE, TaskId};

use crate::clock::NEVER;
use crate::cpu::{Step, at, some_task};
use crate::engine::{Sim, Toll};
use crate::idle::choose_state;
use crate::task::{Place, Saved};

impl Sim<'_> {
    /// update_curr(): the current task is charged for its time on the CPU.
    #[inline]
    pub(crate) fn update_curr(&mut self, cpu: CpuId) {
        let Some(task) = some_task(self.world.curr(cpu)) else { return };
        let t = &mut self.tasks[at(task)];
        let delta = self.now - t.exec_start.min(self.now);
        if delta == 0 {
            return;
        }
        t.exec_start = self.now;
        t.vruntime += crate::runqueue::FairTunables::virtual_ns(delta, t.weight);
        self.world.task_mut(task).sum_exec_ns += delta;
        self.cpus[at(cpu)].rq.update_min_vruntime(Some(t.vruntime));
    }

    /// The current task blocks: dequeue, then the next one or idle.
    pub(crate) fn block(&mut self, cpu: CpuId) {
        let task = self.world.curr(cpu);
        let near = &self.near;
        let wait = self.cpus[at(cpu)].lock.acquire(cpu, self.now, |a, b| near.line(a, b));
        self.counters.lock_wait_ns += wait;
        self.update_curr(cpu);
        self.advance_cpu(cpu);
        let t = &mut self.tasks[at(task)];
        t.averages.advance(&self.decay, self.now, true, u64::from(t.weight), 1);
        let c = &mut self.cpus[at(cpu)];
        c.util_est = (c.util_est - t.util_est()).max(0.0);
        // util_est rises at once and falls by a quarter of the difference.
        t.util_est = t.averages.util;
        t.util_est_ewma = if t.util_est >= t.util_est_ewma {
            t.util_est
        } else {
            t.util_est_ewma + (t.util_est - t.util_est_ewma) / 4.0
        };
        c.rq.weight -= u64::from(t.weight);
        t.place = Place::Blocked;
        let load = t.averages.load;
        let memory = self.world.task_mut(task);
        memory.load_avg = load as u32;
        memory.slept();
        let nr = self.world.nr_running(cpu) - 1;
        self.world.set_nr_running(cpu, nr);
        self.world.set_curr(cpu, NONE);
        self.cpus[at(cpu)].rq.update_min_vruntime(None);
        let line = self.group_load_moved(cpu, cpu, self.now + wait);
        self.publish_load(cpu);
        let work = Ns::from(self.cost.dequeue_ns) + self.group_level_ns();
        let c = &mut self.cpus[at(cpu)];
        let hold = c.stretch(work) + line;
        c.lock.release(self.now + wait + hold);
        c.need_resched = false;
        let toll = Toll { stall: wait + line, cost: work };
        self.run_next(cpu, Some(task), toll);
        // It is off the CPU once the switch away from it is over.
        let c = &self.cpus[at(cpu)];
        self.tasks[at(task)].on_cpu_until =
            if c.step == Step::Idle { c.idle_from } else { c.busy_from() };
    }

    /// Preempts the current task in the middle of its operation.
    pub(crate) fn preempt(&mut self, cpu: CpuId) {
        debug_assert_eq!(self.cpus[at(cpu)].step, Step::Op);
        let task = self.world.curr(cpu);
        let c = &mut self.cpus[at(cpu)];
        c.settle(self.now);
        let left = c.activity;
        self.tasks[at(task)].saved = Saved { busy_ns: left.busy, user: left.user, some: true };
        self.yield_to_next(cpu, Toll { stall: left.stall, cost: left.cost });
    }

    /// The current task stays runnable, and the best one runs.
    pub(crate) fn yield_to_next(&mut self, cpu: CpuId, toll: Toll) {
        let task = self.world.curr(cpu);
        self.counters.preemptions += 1;
        self.update_curr(cpu);
        self.advance_cpu(cpu);
        let t = &mut self.tasks[at(task)];
        t.averages.advance(&self.decay, self.now, true, u64::from(t.weight), 1);
        t.place = Place::Queued(cpu);
        let c = &mut self.cpus[at(cpu)];
        c.rq.insert(task, t.vruntime);
        c.need_resched = false;
        self.world.set_curr(cpu, NONE);
        self.run_next(cpu, Some(task), toll);
    }

    /// Picks the next task and switches to it; without one, balances or goes idle.
    /// `prev` is the task that ran until now, nothing if the CPU was idle.
    pub(crate) fn run_next(&mut self, cpu: CpuId, prev: Option<TaskId>, mut toll: Toll) {
        let Some(picked) = self.cpus[at(cpu)].rq.pick(&self.fair) else {
            if prev.is_some() && self.cpus[at(cpu)].wake_list.is_empty() {
                let stamp = self.now.max(1);
                self.cpus[at(cpu)].idle_stamp = stamp;
                if let Some(balancing) = self.new_idle_balance(cpu, toll) {
                    toll += balancing;
                    self.begin(cpu, Step::NewIdle, toll, 0, None);
                    return;
                }
            }
            self.enter_idle(cpu, toll);
            return;
        };
        let task = picked.task;
        self.counters.context_switches += u64::from(prev != Some(task));
        // Out of idle the runqueue's clock is read again after the enqueue, so that its
        // waits are nobody's running time; between two tasks they are the next one's.
        let c = &mut self.cpus[at(cpu)];
        let from = match prev {
            Some(_) => self.now,
            None => self.now + toll.stall + c.stretch(toll.cost),
        };
        let (weight, nr) = (c.rq.weight, self.world.nr_running(cpu));
        c.averages.advance(&self.decay, from, prev.is_some(), weight, nr);
        if c.step == Step::IdleExit {
            self.counters.idle_task_ns += from - c.idle_task_from.min(from);
        }
        self.world.set_curr(cpu, task);
        self.world.task_mut(task).prev_cpu = cpu;
        let t = &mut self.tasks[at(task)];
        t.averages.advance(&self.decay, from, false, u64::from(t.weight), 1);
        t.place = Place::Running(cpu);
        t.exec_start = from;
        t.picked_at = from;
        toll.stall += self.near.cold(t.warm_cpu, cpu);
        t.warm_cpu = cpu;
        let woken_at = std::mem::take(&mut t.wake_at);
        if woken_at != 0 {
            toll.stall += self.near.handoff(t.waker_cpu, cpu);
        }
        toll.cost += match prev {
            None => Ns::from(self.cost.switch_idle_ns),
            Some(prev) if prev == task => 0,
            Some(prev) => {
                let same = self.tasks[at(prev)].spec.process == self.tasks[at(task)].spec.process;
                let mm = if same { 0 } else { self.cost.switch_mm_ns };
                Ns::from(self.cost.switch_ns) + Ns::from(mm)
            }
        };
        self.resume(cpu, task, toll);
        if woken_at != 0 {
            let running_at = self.cpus[at(cpu)].busy_from();
            self.wakeup_latency.record(running_at - woken_at);
        }
    }

    /// Goes on where the task was preempted, or at its next operation.
    fn resume(&mut self, cpu: CpuId, task: TaskId, toll: Toll) {
        let t = &mut self.tasks[at(task)];
        let saved = std::mem::take(&mut t.saved);
        if saved.some {
            let until = (t.spin_until != 0).then_some(t.spin_until);
            self.begin(cpu, Step::Op, toll, saved.busy_ns, until);
            self.compute(cpu, saved.user);
        } else {
            self.proceed(cpu, toll);
        }
    }

    /// Switches to the idle task, and chooses an idle state.
    fn enter_idle(&mut self, cpu: CpuId, toll: Toll) {
        self.world.set_available_idle(cpu, true);
        let hot = self.note_idle_core(cpu);
        let to_timer = self.next_timer().saturating_sub(self.now);
        let c = &mut self.cpus[at(cpu)];
        let predicted = c.governor.predict(to_timer);
        c.idle_state = choose_state(&self.machine.idle, predicted) as u8;
        c.tick_stopped = predicted > self.tick_ns;
        if c.tick_stopped {
            c.tick_at = NEVER;
        }
        let work = toll.cost + Ns::from(self.cost.switch_idle_ns);
        let entering = toll.stall + hot + c.stretch(work);
        let was_busy = c.step != Step::Idle;
        c.step = Step::Idle;
        c.end = NEVER;
        c.idle_from = self.now + entering;
        c.idle_accounted = c.idle_from;
        c.idle_task_from = c.idle_from;
        c.time.cost_ns += entering;
        self.counters.context_switches += 1;
        if was_busy {
            self.share_core(cpu, false);
        }
        // A wake-up may have been listed, or a timer fired, while balancing.
        if !self.cpus[at(cpu)].wake_list.is_empty() {
            self.world.set_available_idle(cpu, false);
            self.leave_idle(cpu, self.now);
        }
    }

    /// A CPU that goes idle last on its core says that there is an idle core.
    fn note_idle_core(&mut self, cpu: CpuId) -> Ns {
        if self.world.smt_cpus(cpu).len() < 2 {
            return 0;
        }
        let llc = self.near.llc(cpu);
        let near = &self.near;
        let line = &mut self.llc_lines[llc];
        let mut wait = line.read(cpu, self.now, |a, b| near.line(a, b));
        if !self.world.has_idle_cores(llc) {
            let whole =
                self.world.smt_cpus(cpu).iter().all(|&s| self.world.available_idle(CpuId::from(s)));
            if whole {
                wait += line.write(cpu, self.now + wait, |a, b| near.line(a, b));
                self.world.set_has_idle_cores(llc, true);
            }
        }
        self.counters.hot_line_wait_ns += wait;
        wait
    }

    /// The next timer that the idle governor counts with: that of the first sleeping
    /// task, wherever it was armed. About the tick the governor itself decides.
    fn next_timer(&self) -> Ns {
        self.timers.peek().map_or(NEVER, |t| t.0.at)
    }

    /// An idle CPU is asked at `arrival` to leave its idle state.
    pub(crate) fn leave_idle(&mut self, cpu: CpuId, arrival: Ns) {
        let c = &mut self.cpus[at(cpu)];
        if c.step != Step::Idle {
            return;
        }
        let now = self.now;
        let entered = c.idle_from;
        let exit = if arrival <= entered {
            0 // need-resched is seen before the state is entered
        } else {
            Ns::from(self.machine.idle[usize::from(c.idle_state)].exit_ns)
        };
        let from = now.max(entered);
        c.account_idle(from);
        c.governor.record(arrival.saturating_sub(entered));
        c.step = Step::IdleExit;
        c.activity = crate::cpu::Activity {
            start: from,
            stall: arrival.saturating_sub(from) + exit,
            cost: 0,
            busy: 0,
            until: None,
            user: false,
        };
        c.end = c.activity_end();
        if c.tick_at == NEVER {
            c.tick_at = (now / self.tick_ns + 1) * self.tick_ns;
        }
        c.tick_stopped = false;
        self.share_core(cpu, true);
        self.replan(cpu);
    }

    /// Out of idle: interrupts first, then the wake list, then the runqueue.
    pub(crate) fn idle_exit(&mut self, cpu: CpuId) {
        let mut toll = self.serve_interrupts(cpu);
        toll += self.drain_wake_list(cpu);
        self.cpus[at(cpu)].need_resched = false;
        self.run_next(cpu, None, toll);
    }

    /// Timers that have fired here, and a NOHZ balance request.
    fn serve_interrupts(&mut self, cpu: CpuId) -> Toll {
        let mut toll = Toll::default();
        if !self.cpus[at(cpu)].fired.is_empty() {
            toll += Toll::cost(self.cost.irq_ns);
            let mut fired = std::mem::take(&mut self.cpus[at(cpu)].fired);
            for task in fired.drain(..) {
                toll += self.wake_from_timer(cpu, task);
            }
            self.cpus[at(cpu)].fired = fired;
        }
        if std::mem::take(&mut self.cpus[at(cpu)].nohz_kick) {
            toll += Toll::cost(Ns::from(self.cost.irq_ns) + self.nohz_balance(cpu));
        }
        toll
    }

    /// sched_ttwu_pending(): queues what stands on the wake list, first come first.
    fn drain_wake_list(&mut self, cpu: CpuId) -> Toll {
        let mut toll = Toll::default();
        if self.cpus[at(cpu)].wake_list.is_empty() {
            return toll;
        }
        let mut list = std::mem::take(&mut self.cpus[at(cpu)].wake_list);
        for &task in &list {
            toll += self.enqueue_woken(cpu, task, cpu, self.now + toll.stall);
            if self.cpus[at(cpu)].runs_task() {
                toll += self.check_preempt(cpu, cpu, task);
            }
        }
        list.clear();
        self.cpus[at(cpu)].wake_list = list;
        toll
    }

    /// An interrupt from another CPU: the wake list is served, and a preemption asked
    /// for takes place.
    pub(crate) fn ipi(&mut self, cpu: CpuId) {
        if matches!(self.cpus[at(cpu)].step, Step::Idle) {
            self.leave_idle(cpu, self.now);
            return;
        }
        if self.cpus[at(cpu)].step == Step::IdleExit {
            return; // whatever it is, leaving idle serves it
        }
        let mut toll = Toll::cost(self.cost.irq_ns);
        toll += self.drain_wake_list(cpu);
        toll += self.serve_interrupts(cpu);
        self.cpus[at(cpu)].interrupt(self.now, toll.stall, toll.cost);
        self.resched_if_needed(cpu);
    }

    /// Preempts at once if the current task is in its operation; a wake-up in
    /// progress is finished first.
    pub(crate) fn resched_if_needed(&mut self, cpu: CpuId) {
        if self.cpus[at(cpu)].need_resched && self.cpus[at(cpu)].step == Step::Op {
            self.preempt(cpu);
        }
    }

    /// check_preempt_wakeup(): does the woken task preempt what `dst` runs?
    pub(crate) fn check_preempt(&mut self, cpu: CpuId, dst: CpuId, woken: TaskId) -> Toll {
        let Some(curr) = some_task(self.world.curr(dst)) else { return Toll::default() };
        let c = &mut self.cpus[at(dst)];
        if c.need_resched || !self.fair.wakeup_preemption {
            return Toll::default();
        }
        let (running, waking) = (&self.tasks[at(curr)], &self.tasks[at(woken)]);
        if !c.rq.preempts(running.vruntime, waking.vruntime, waking.weight, &self.fair) {
            return Toll::default();
        }
        c.rq.set_buddies(woken, curr, &self.fair);
        c.need_resched = true;
        if cpu == dst { Toll::default() } else { self.send_ipi(cpu, dst) }
    }

    /// Sleeping tasks whose time has come.
    pub(crate) fn fire_timers(&mut self) {
        while let Some(&std::cmp::Reverse(timer)) = self.timers.peek() {
            if timer.at > self.now {
                break;
            }
            self.timers.pop();
            if self.tasks[at(timer.task)].timer != timer.number {
                continue; // woken before its time
            }
            self.tasks[at(timer.task)].timer = 0;
            let cpu = timer.cpu;
            match self.cpus[at(cpu)].step {
                Step::Idle => {
                    self.cpus[at(cpu)].fired.push(timer.task);
                    self.leave_idle(cpu, self.now);
                }
                Step::IdleExit => self.cpus[at(cpu)].fired.push(timer.task),
                _ => {
                    let mut toll = Toll::cost(self.cost.irq_ns);
                    toll += self.wake_from_timer(cpu, timer.task);
                    self.cpus[at(cpu)].interrupt(self.now, toll.stall, toll.cost);
                    self.resched_if_needed(cpu);
                    self.replan(cpu);
                }
            }
        }
        self.replan_timers();
    }

    pub(crate) fn replan_timers(&mut self) {
        let next = self.timers.peek().map_or(NEVER, |t| t.0.at);
        self.clock.set(self.cpus.len(), next);
    }

    /// The scheduler tick: accounting, the end of a slice, and balancing.
    pub(crate) fn tick(&mut self, cpu: CpuId) {
        self.cpus[at(cpu)].tick_at += self.tick_ns;
        let balancing = self.periodic_balance(cpu);
        let step = self.cpus[at(cpu)].step;
        if step == Step::Idle {
            self.idle_tick(cpu, balancing);
            return;
        }
        if step != Step::IdleExit {
            self.update_curr(cpu);
            self.advance_cpu(cpu);
            self.end_slice(cpu);
        }
        let line = self.group_load_moved(cpu, cpu, self.now);
        self.publish_load(cpu);
        let kick = self.kick_nohz_balance(cpu);
        let cost = Ns::from(self.cost.tick_ns) + balancing + kick;
        self.cpus[at(cpu)].interrupt(self.now, line, cost);
        self.resched_if_needed(cpu);
    }

    /// A tick that finds the CPU idle: if the pause goes on, the tick is stopped.
    fn idle_tick(&mut self, cpu: CpuId, balancing: Ns) {
        self.advance_cpu(cpu);
        self.publish_load(cpu);
        let cost = Ns::from(self.cost.tick_ns) + balancing;
        let c = &mut self.cpus[at(cpu)];
        if self.now >= c.idle_from + self.tick_ns {
            c.tick_stopped = true;
            c.tick_at = NEVER;
        }
        if self.now >= c.idle_from {
            c.account_idle(self.now);
            c.time.cost_ns += cost;
            c.idle_accounted = self.now + cost;
            c.idle_from = self.now + cost;
        }
        if !c.rq.is_empty() {
            self.leave_idle(cpu, self.now);
        }
    }

    /// check_preempt_tick(): has the current task had its slice?
    fn end_slice(&mut self, cpu: CpuId) {
        let c = &mut self.cpus[at(cpu)];
        let Some(leftmost) = c.rq.leftmost() else { return };
        let Some(curr) = some_task(self.world.curr(cpu)) else { return };
        let t = &self.tasks[at(curr)];
        let ran = self.now.saturating_sub(t.picked_at);
        let slice = self.fair.slice(c.rq.len() as u64 + 1, t.weight, c.rq.weight);
        if ran > slice {
            c.rq.next_buddy = Default::default();
            c.rq.last_buddy = Default::default();
            c.need_resched = true;
        } else if ran >= self.fair.min_granularity && t.vruntime - leftmost.vruntime > slice as i64
        {
            c.need_resched = true;
        }
    }
}

//! Interprets task programs: each operation is charged with its cost, then takes
//! effect: a message is left, a partner is woken, the task blocks or goes on.

use reveille_measure::Ns;
use reveille_policy::{CpuId, NONE, TaskId, WAKE_IN_TASK};
use reveille_workload::Op;

use crate::cpu::{Step, at};
use crate::engine::{Sim, Toll};

/// Who spins for a lock looks at it this often; the time is the task's own computing.
const LOCK_POLL_NS: Ns = 1_000;

impl Sim<'_> {
    #[inline]
    pub(crate) fn op(&self, task: TaskId) -> Op {
        self.code.op(self.tasks[at(task)].pc)
    }

    #[inline]
    pub(crate) fn next_op(&mut self, task: TaskId) {
        let t = &mut self.tasks[at(task)];
        t.pc = self.code.next(t.pc);
        t.resumed = false;
        t.slept = false;
    }

    /// The current task goes on with its program after `toll`: runs through what
    /// takes no time, up to the first operation that does.
    pub(crate) fn proceed(&mut self, cpu: CpuId, mut toll: Toll) {
        let task = self.world.curr(cpu);
        // One call wakes them all: it ends before the task gives way.
        if self.tasks[at(task)].to_wake != NONE {
            self.begin(cpu, Step::Op, toll, 0, None);
            return;
        }
        if self.cpus[at(cpu)].need_resched {
            self.tasks[at(task)].saved = crate::task::Saved::default();
            self.yield_to_next(cpu, toll);
            return;
        }
        let (mut busy, mut user): (Ns, bool) = (0, false);
        loop {
            let t = &self.tasks[at(task)];
            match self.op(task) {
                Op::Run(ns) => {
                    // What is left of the call before it is short beside the computing.
                    busy += ns;
                    user = true;
                    break;
                }
                Op::RunRandom(mean) => {
                    busy += self.exponential(mean);
                    user = true;
                    break;
                }
                Op::Spin(ns) => {
                    self.spin(cpu, task, toll, busy, ns);
                    return;
                }
                Op::RunArrived => {
                    // What was recorded has its variation already.
                    let work = self.arrival_of(task).work_ns;
                    let busy = self.varied(busy) + work;
                    self.begin(cpu, Step::Op, toll, busy, None);
                    self.compute(cpu, true);
                    return;
                }
                Op::SpinArrived => {
                    let work = self.arrival_of(task).work_ns;
                    self.spin(cpu, task, toll, busy, work);
                    return;
                }
                Op::Send { channel, bytes } => {
                    let (wait, work) = self.send_cost(cpu, task, channel, bytes);
                    toll.stall += wait;
                    busy += work;
                    break;
                }
                Op::Syscall(work) => {
                    busy += self.messages.syscall + work;
                    self.next_op(task);
                }
                Op::Recv { channel, framed, discard } => {
                    let index = t.spec.channel(channel);
                    let from = &self.channels[index];
                    let cost = *self.messages.of(from.kind);
                    // Woken, but another receiver was faster: as if it had just asked.
                    if !t.resumed || from.unread == 0 {
                        busy += cost.receive_begin;
                        break;
                    }
                    busy += cost.receive_end + cost.receive_queued * Ns::from(from.unread - 1);
                    if framed {
                        // The call for the rest finds it there.
                        busy += cost.receive_begin + cost.receive_end;
                    }
                    let lines = self.messages.lines;
                    toll.stall += self.use_channel(cpu, index, lines, cost.receive_locked);
                    let bytes = self.take_message(task, channel);
                    if !discard {
                        busy += self.messages.copy(bytes);
                    }
                    self.next_op(task);
                    if self.tasks[at(task)].to_wake != NONE {
                        break;
                    }
                }
                Op::Sleep { .. }
                | Op::SleepRandom(_)
                | Op::Period { .. }
                | Op::Arrive
                | Op::Wait { .. }
                | Op::AwaitRelease { .. }
                | Op::Lock { .. }
                    if t.resumed =>
                {
                    busy += self.messages.futex.receive_end;
                    if matches!(self.op(task), Op::Wait { .. }) {
                        self.tasks[at(task)].posted = false;
                    }
                    self.next_op(task);
                }
                Op::Sleep { .. }
                | Op::SleepRandom(_)
                | Op::Period { .. }
                | Op::Arrive
                | Op::AwaitRelease { .. }
                | Op::Wait { .. } => {
                    busy += self.messages.futex.receive_begin;
                    break;
                }
                Op::Post { .. } => {
                    busy += self.messages.futex.send;
                    break;
                }
                Op::Join { list } => {
                    let list = self.list_of(task, list);
                    self.tasks[at(task)].list_next = self.lists[list];
                    self.lists[list] = task;
                    self.next_op(task);
                }
                Op::WakeList { list } => {
                    if self.more_to_wake(task, list) {
                        busy += self.messages.futex.send;
                        break;
                    }
                    // Even an empty list is looked at in no less than a system call.
                    busy += self.messages.syscall;
                    self.next_op(task);
                }
                Op::Request { .. } => {
                    if self.next_request_wakes(task) {
                        busy += self.messages.futex.send;
                        break;
                    }
                    let sent_at = self.running_at(cpu, toll, busy);
                    self.send_request(task, sent_at);
                }
                Op::Serve => {
                    if !self.take_request(task) {
                        busy += self.messages.futex.receive_begin;
                        break;
                    }
                    if self.tasks[at(task)].resumed {
                        busy += self.messages.futex.receive_end;
                    }
                    self.next_op(task);
                }
                Op::Note => {
                    self.tasks[at(task)].noted_at = self.running_at(cpu, toll, busy);
                    self.next_op(task);
                }
                Op::Record { record, less } => {
                    let since = self.running_at(cpu, toll, busy).saturating_sub(t.noted_at);
                    let latency = since.saturating_sub(less);
                    self.recorded_latency[usize::from(record)].record(latency);
                    self.next_op(task);
                }
                Op::Answer => {
                    let after = self.running_at(cpu, toll, busy).saturating_sub(t.noted_at);
                    self.answer(task, after);
                    self.next_op(task);
                }
                Op::LockCpu => {
                    if !self.try_lock_cpu(cpu, task) {
                        busy += LOCK_POLL_NS;
                        user = true;
                        break;
                    }
                    self.next_op(task);
                }
                Op::UnlockCpu => {
                    self.unlock_cpu(task);
                    self.next_op(task);
                }
                Op::Lock { lock } => {
                    if !self.try_lock(task, lock) {
                        busy += self.messages.futex.receive_begin;
                        break;
                    }
                    self.next_op(task);
                }
                Op::Unlock { lock } => {
                    if self.lock_is_awaited(task, lock) {
                        busy += self.messages.futex.send;
                        break;
                    }
                    self.unlock(task, lock);
                    self.next_op(task);
                }
                Op::Again { back, times, depth } => {
                    let t = &mut self.tasks[at(task)];
                    let rounds = &mut t.rounds[usize::from(depth)];
                    *rounds += 1;
                    if *rounds < times {
                        t.pc -= u32::from(back);
                    } else {
                        *rounds = 0;
                        self.next_op(task);
                    }
                }
                Op::Respawn | Op::Release { .. } => {
                    busy += self.messages.syscall;
                    break;
                }
                Op::Count(n) => {
                    self.operations += u64::from(n);
                    self.next_op(task);
                }
            }
        }
        let busy = self.varied(busy);
        self.begin(cpu, Step::Op, toll, busy, None);
        self.compute(cpu, user);
    }

    /// The busy part of the activity just begun computes in user space, or it does not.
    #[inline]
    pub(crate) fn compute(&mut self, cpu: CpuId, user: bool) {
        if user {
            let c = &mut self.cpus[at(cpu)];
            c.activity.user = true;
            c.plan_end();
        }
    }

    /// Spins from the end of the overhead on, by the wall clock.
    fn spin(&mut self, cpu: CpuId, task: TaskId, toll: Toll, busy: Ns, ns: Ns) {
        self.begin(cpu, Step::Op, toll, busy, None);
        let until = self.cpus[at(cpu)].end + ns;
        self.tasks[at(task)].spin_until = until;
        let c = &mut self.cpus[at(cpu)];
        c.activity.until = until;
        c.plan_end();
    }

    /// Is there a task left that the batch wake-up in progress, or a new one, wakes?
    fn more_to_wake(&mut self, task: TaskId, list: u16) -> bool {
        if self.tasks[at(task)].batch_at.is_none() {
            let list = self.list_of(task, list);
            let head = std::mem::replace(&mut self.lists[list], NONE);
            let t = &mut self.tasks[at(task)];
            t.batch_at = Some(self.now);
            t.posted = false;
            t.batch = head;
        }
        let t = &mut self.tasks[at(task)];
        if t.batch == NONE {
            t.batch_at = None;
            return false;
        }
        true
    }

    /// When the current task of `cpu` goes on, after `toll` and what it is busy with.
    #[inline]
    fn running_at(&self, cpu: CpuId, toll: Toll, busy: Ns) -> Ns {
        self.now + toll.stall + self.cpus[at(cpu)].stretch(toll.cost + busy)
    }

    /// The operation's time is over: it takes effect.
    pub(crate) fn op_end(&mut self, cpu: CpuId) {
        let task = self.world.curr(cpu);
        if self.tasks[at(task)].to_wake != NONE {
            self.wake_next(cpu, task);
            return;
        }
        match self.op(task) {
            Op::Run(_) | Op::RunRandom(_) | Op::RunArrived => self.next_op(task),
            Op::Spin(_) | Op::SpinArrived => {
                self.tasks[at(task)].spin_until = 0;
                self.next_op(task);
            }
            Op::Send { channel, bytes } => return self.send(cpu, task, channel, bytes),
            Op::Recv { channel, .. } => {
                let index = self.tasks[at(task)].spec.channel(channel);
                self.tasks[at(task)].resumed = true;
                if self.channels[index].unread == 0 {
                    self.tasks[at(task)].slept = true;
                    self.channels[index].wait_to_receive(&mut self.tasks, task);
                    return self.block(cpu);
                }
            }
            Op::Sleep { time, jitter } => {
                let time = time + self.random_below(jitter);
                return self.sleep(cpu, task, time);
            }
            Op::SleepRandom(mean) => {
                let time = self.exponential(mean);
                return self.sleep(cpu, task, time);
            }
            Op::Period { period, restart } => {
                let t = &mut self.tasks[at(task)];
                t.period_at += period;
                t.noted_at = t.period_at.max(self.now);
                if t.period_at > self.now {
                    let time = t.period_at - self.now;
                    return self.sleep(cpu, task, time);
                }
                if restart {
                    t.period_at = self.now;
                }
                t.resumed = true;
            }
            Op::Arrive => {
                self.tasks[at(task)].resumed = true;
                let due = self.next_arrival(task);
                if due > self.now {
                    // It comes from outside, where no timer slack delays it.
                    self.set_timer(cpu, task, due);
                    self.replan_timers();
                    return self.block(cpu);
                }
            }
            Op::Wait { timeout, jitter } => {
                self.tasks[at(task)].resumed = true;
                if !self.tasks[at(task)].posted {
                    self.tasks[at(task)].waits_futex = true;
                    if timeout > 0 {
                        let jitter = self.wait_jitter(task, jitter);
                        self.arm_timer(cpu, task, timeout + jitter);
                    }
                    return self.block(cpu);
                }
            }
            Op::Post { task: member } => {
                let posted = self.tasks[at(task)].spec.task_base + u32::from(member);
                self.next_op(task);
                return self.post(cpu, posted);
            }
            Op::WakeList { .. } => {
                let t = &mut self.tasks[at(task)];
                let posted = t.batch;
                let noted = t.batch_at.unwrap_or(self.now);
                let next = self.tasks[at(posted)].list_next;
                self.tasks[at(task)].batch = next;
                self.tasks[at(posted)].noted_at = noted;
                return self.post(cpu, posted);
            }
            Op::Request { .. } => {
                let to = self.send_request(task, self.now);
                if std::mem::take(&mut self.tasks[at(to)].waits_request) {
                    return self.wake(cpu, to, WAKE_IN_TASK);
                }
            }
            Op::Serve => {
                self.tasks[at(task)].resumed = true;
                if self.requests[at(task)].is_empty() {
                    self.tasks[at(task)].waits_request = true;
                    return self.block(cpu);
                }
            }
            Op::Lock { lock } => {
                if !self.try_lock(task, lock) {
                    self.wait_for_lock(task, lock);
                    self.tasks[at(task)].resumed = true;
                    return self.block(cpu);
                }
                self.next_op(task);
            }
            Op::Unlock { lock } => {
                let next = self.unlock(task, lock);
                self.next_op(task);
                if let Some(next) = next {
                    return self.wake(cpu, next, WAKE_IN_TASK);
                }
            }
            Op::LockCpu => {} // looks at the lock again
            Op::Respawn => return self.respawn(cpu, task),
            Op::AwaitRelease { .. } => return self.await_release(cpu, task),
            Op::Release { sync } => return self.release_all(cpu, task, sync),
            Op::Join { .. }
            | Op::Syscall(_)
            | Op::Note
            | Op::Record { .. }
            | Op::Answer
            | Op::UnlockCpu
            | Op::Again { .. }
            | Op::Count(_) => {
                unreachable!("operations without time have no end")
            }
        }
        self.proceed(cpu, Toll::default());
    }

    /// The task sleeps for `time`.
    fn sleep(&mut self, cpu: CpuId, task: TaskId, time: Ns) {
        self.arm_timer(cpu, task, time);
        self.tasks[at(task)].resumed = true;
        self.block(cpu);
    }

    /// Sets a task's futex, and wakes the task if it waits on it.
    fn post(&mut self, cpu: CpuId, posted: TaskId) {
        let t = &mut self.tasks[at(posted)];
        t.posted = true;
        if std::mem::take(&mut t.waits_futex) {
            t.timer = 0;
            self.wake(cpu, posted, WAKE_IN_TASK);
        } else {
            self.proceed(cpu, Toll::default());
        }
    }

    fn wait_jitter(&mut self, task: TaskId, jitter: Ns) -> Ns {
        if let Some(drawn) = self.tasks[at(task)].wait_jitter {
            return drawn;
        }
        let drawn = self.random_below(jitter);
        self.tasks[at(task)].wait_jitter = Some(drawn);
        drawn
    }

    /// Wakes the task after `time` and the timer slack of ordinary tasks.
    fn arm_timer(&mut self, cpu: CpuId, task: TaskId, time: Ns) {
        let at_ns = self.now + time + Ns::from(self.cost.timer_slack_ns);
        self.set_timer(cpu, task, at_ns);
        self.replan_timers();
    }

    fn list_of(&self, task: TaskId, list: u16) -> usize {
        (self.tasks[at(task)].spec.list_base + u32::from(list)) as usize
    }
}

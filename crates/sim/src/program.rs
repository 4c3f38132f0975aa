//! Interprets task programs: each operation is charged with its cost, then takes
//! effect: a message is left, a partner is woken, the task blocks or goes on.

use reveille_measure::Ns;
use reveille_policy::{CpuId, NONE, TaskId, WAKE_IN_TASK, WAKE_SYNC};
use reveille_workload::{ChannelKind, Op};

use crate::cpu::{Step, at};
use crate::engine::{Sim, Timer, Toll};

impl Sim<'_> {
    #[inline]
    fn op(&self, task: TaskId) -> Op {
        let t = &self.tasks[at(task)];
        self.program.roles[usize::from(t.spec.role)].ops[usize::from(t.pc)]
    }

    #[inline]
    fn next_op(&mut self, task: TaskId) {
        let t = &mut self.tasks[at(task)];
        let ops = self.program.roles[usize::from(t.spec.role)].ops.len();
        t.pc = if usize::from(t.pc) + 1 == ops { 0 } else { t.pc + 1 };
        t.resumed = false;
    }

    /// The current task goes on with its program after `toll`: runs through what
    /// takes no time, up to the first operation that does.
    pub(crate) fn proceed(&mut self, cpu: CpuId, toll: Toll) {
        let task = self.world.curr(cpu);
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
                Op::Spin(ns) => {
                    self.spin(cpu, task, toll, busy, ns);
                    return;
                }
                Op::Send { channel, bytes } => {
                    let kind = self.channel_of(task, channel).kind;
                    busy += self.messages.of(kind).send + self.messages.copy(bytes);
                    break;
                }
                Op::Recv { channel } => {
                    let from = self.channel_of(task, channel);
                    let cost = *self.messages.of(from.kind);
                    // Woken, but another receiver was faster: as if it had just asked.
                    if !t.resumed || from.unread == 0 {
                        busy += cost.receive_begin;
                        break;
                    }
                    busy += cost.receive_end;
                    self.take_message(task, channel);
                    self.next_op(task);
                }
                Op::Sleep { .. } | Op::Wait { .. } if t.resumed => {
                    busy += self.messages.futex.receive_end;
                    if matches!(self.op(task), Op::Wait { .. }) {
                        self.tasks[at(task)].posted = false;
                    }
                    self.next_op(task);
                }
                Op::Sleep { .. } | Op::Wait { .. } => {
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
                Op::Record => {
                    let noted = t.noted_at;
                    let c = &self.cpus[at(cpu)];
                    let running_at = self.now + toll.stall + c.stretch(toll.cost + busy);
                    self.recorded_latency.record(running_at.saturating_sub(noted));
                    self.next_op(task);
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
            c.end = c.activity_end();
        }
    }

    /// Spins from the end of the overhead on, by the wall clock.
    fn spin(&mut self, cpu: CpuId, task: TaskId, toll: Toll, busy: Ns, ns: Ns) {
        self.begin(cpu, Step::Op, toll, busy, None);
        let until = self.cpus[at(cpu)].end + ns;
        self.tasks[at(task)].spin_until = until;
        let c = &mut self.cpus[at(cpu)];
        c.activity.until = Some(until);
        c.end = c.activity_end();
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

    /// The operation's time is over: it takes effect.
    pub(crate) fn op_end(&mut self, cpu: CpuId) {
        let task = self.world.curr(cpu);
        match self.op(task) {
            Op::Run(_) => self.next_op(task),
            Op::Spin(_) => {
                self.tasks[at(task)].spin_until = 0;
                self.next_op(task);
            }
            Op::Send { channel, .. } => {
                self.next_op(task);
                let index = self.channel_index(task, channel);
                let channel = &mut self.channels[index];
                channel.unread += 1;
                let in_task = channel.kind == ChannelKind::Pipe;
                if let Some(reader) = channel.wake_one(&self.tasks) {
                    let flags = WAKE_SYNC | if in_task { WAKE_IN_TASK } else { 0 };
                    self.wake(cpu, reader, flags);
                    return;
                }
            }
            Op::Recv { channel } => {
                if self.channel_of(task, channel).unread == 0 {
                    let index = self.channel_index(task, channel);
                    self.channels[index].wait(&mut self.tasks, task);
                    self.tasks[at(task)].resumed = true;
                    self.block(cpu);
                    return;
                }
                self.tasks[at(task)].resumed = true;
            }
            Op::Sleep { time, jitter } => {
                let time = time + self.random_below(jitter);
                self.arm_timer(cpu, task, time);
                self.tasks[at(task)].resumed = true;
                self.block(cpu);
                return;
            }
            Op::Wait { timeout, jitter } => {
                self.tasks[at(task)].resumed = true;
                if !self.tasks[at(task)].posted {
                    self.tasks[at(task)].waits_futex = true;
                    if timeout > 0 {
                        let jitter = self.wait_jitter(task, jitter);
                        self.arm_timer(cpu, task, timeout + jitter);
                    }
                    self.block(cpu);
                    return;
                }
            }
            Op::Post { task: member } => {
                let posted = self.tasks[at(task)].spec.task_base + u32::from(member);
                self.next_op(task);
                self.post(cpu, posted);
                return;
            }
            Op::WakeList { .. } => {
                let t = &mut self.tasks[at(task)];
                let posted = t.batch;
                let noted = t.batch_at.unwrap_or(self.now);
                let next = self.tasks[at(posted)].list_next;
                self.tasks[at(task)].batch = next;
                self.tasks[at(posted)].noted_at = noted;
                self.post(cpu, posted);
                return;
            }
            Op::Join { .. } | Op::Record | Op::Count(_) => {
                unreachable!("operations without time have no end")
            }
        }
        self.proceed(cpu, Toll::default());
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
        self.timer_number += 1;
        self.tasks[at(task)].timer = self.timer_number;
        self.timers.push(std::cmp::Reverse(Timer {
            at: at_ns,
            task,
            number: self.timer_number,
            cpu,
        }));
        self.replan_timers();
    }

    fn channel_index(&self, task: TaskId, channel: u16) -> usize {
        (self.tasks[at(task)].spec.channel_base + u32::from(channel)) as usize
    }

    #[inline]
    fn channel_of(&self, task: TaskId, channel: u16) -> &crate::channel::Channel {
        &self.channels[self.channel_index(task, channel)]
    }

    #[inline]
    fn take_message(&mut self, task: TaskId, channel: u16) {
        let index = self.channel_index(task, channel);
        debug_assert!(self.channels[index].unread > 0, "a receiver runs on only with a message");
        self.channels[index].unread -= 1;
    }

    fn list_of(&self, task: TaskId, list: u16) -> usize {
        (self.tasks[at(task)].spec.list_base + u32::from(list)) as usize
    }
}

//! Interprets task programs: what each operation costs, up to the next that takes time.
//! Its effect, when that time is over, is in effects.rs.

use reveille_measure::Ns;
use reveille_policy::{CpuId, TaskId};
use reveille_workload::Op;

use crate::hw::cpu::{Step, Toll};
use crate::ids::At;
use crate::sim::Sim;
use crate::tasks::task::Saved;

/// Who spins for a lock looks at it this often; the time is the task's own computing.
const LOCK_POLL_NS: Ns = 1_000;

impl<'a> Sim<'a> {
    #[inline]
    pub(crate) fn op(&self, task: TaskId) -> &'a Op {
        self.work.code.op(self.tasks[task].pc)
    }

    #[inline]
    pub(crate) fn next_op(&mut self, task: TaskId) {
        let t = &mut self.tasks[task];
        t.pc = self.work.code.next(t.pc);
        t.resumed = false;
        t.slept = false;
    }

    /// [`Sim::proceed_here`], out of line.
    #[inline(never)]
    pub(crate) fn proceed(&mut self, cpu: CpuId, toll: Toll) {
        self.proceed_here(cpu, self.world.curr(cpu), toll);
    }

    /// `task`, the current one, goes on with its program after `toll`: runs through what
    /// takes no time, up to the first operation that does.
    #[inline(always)]
    pub(crate) fn proceed_here(&mut self, cpu: CpuId, task: TaskId, mut toll: Toll) {
        // One call wakes them all: it ends before the task gives way.
        if self.tasks[task].to_wake != TaskId::NONE {
            self.begin(cpu, Step::Op, toll, 0, None);
            return;
        }
        if self.cpus[cpu].need_resched || self.exits_throttled(task, cpu) {
            self.tasks[task].saved = Saved::default();
            self.yield_to_next(cpu, toll);
            return;
        }
        let (mut busy, mut user): (Ns, bool) = (0, false);
        loop {
            let t = &self.tasks[task];
            match *self.op(task) {
                Op::Run(ns) => {
                    // What is left of the call before it is short beside the computing.
                    busy += ns;
                    user = true;
                    break;
                }
                Op::RunRandom(mean) => {
                    busy += self.chance.exponential(mean);
                    user = true;
                    break;
                }
                Op::Spin(ns) => {
                    self.spin(cpu, task, toll, busy, ns);
                    return;
                }
                Op::RunArrived => {
                    // What was recorded has its variation already.
                    let work = self.work.arrived_work(t, task);
                    let busy = self.chance.varied(busy) + work;
                    self.begin(cpu, Step::Op, toll, busy, None);
                    self.compute(cpu, true);
                    return;
                }
                Op::SpinArrived => {
                    let work = self.work.arrived_work(t, task);
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
                    busy += self.work.messages.syscall + work;
                    self.next_op(task);
                }
                Op::Recv { channel, framed, discard } => {
                    let index = At(t.spec.channel(channel));
                    let from = &self.work.channels[index];
                    // Woken, but another receiver was faster: as if it had just asked.
                    if !t.resumed || from.unread == 0 {
                        busy += self.work.messages.of(from.kind).receive_begin;
                        break;
                    }
                    let (wait, work) = self.receive(cpu, task, index, (framed, discard));
                    toll.stall += wait;
                    busy += work;
                    let t = &mut self.tasks[task];
                    if t.to_wake != TaskId::NONE {
                        self.next_op(task);
                        break;
                    }
                    let (counts, after) = self.work.code.after(t.pc);
                    (t.pc, t.resumed, t.slept) = (after, false, false);
                    self.measured.operations += u64::from(counts);
                }
                Op::Sleep { .. }
                | Op::SleepRandom(_)
                | Op::Period { .. }
                | Op::Arrive
                | Op::Device(_)
                | Op::Wait { .. }
                | Op::AwaitRelease { .. }
                | Op::Lock { .. }
                    if t.resumed =>
                {
                    busy += self.work.messages.futex.receive_end;
                    if matches!(self.op(task), Op::Wait { .. }) {
                        self.tasks[task].posted = false;
                    }
                    self.next_op(task);
                }
                Op::Sleep { .. }
                | Op::SleepRandom(_)
                | Op::Period { .. }
                | Op::Arrive
                | Op::Device(_)
                | Op::AwaitRelease { .. }
                | Op::Wait { .. } => {
                    busy += self.work.messages.futex.receive_begin;
                    break;
                }
                Op::Post { .. } => {
                    busy += self.work.messages.futex.send;
                    break;
                }
                Op::Join { list } => {
                    let list = self.list_of(task, list);
                    self.tasks[task].list_next = self.work.lists[list];
                    self.work.lists[list] = task;
                    self.next_op(task);
                }
                Op::WakeList { list } => {
                    if self.more_to_wake(task, list, self.running_at(cpu, toll, busy)) {
                        busy += self.work.messages.futex.send;
                        break;
                    }
                    // Even an empty list is looked at in no less than a system call.
                    busy += self.work.messages.syscall;
                    self.next_op(task);
                }
                Op::Request { .. } => {
                    if self.work.next_request_wakes(&mut self.tasks, task) {
                        busy += self.work.messages.futex.send;
                        break;
                    }
                    let sent_at = self.running_at(cpu, toll, busy);
                    self.send_request(task, sent_at);
                }
                Op::Serve => {
                    let Some(sent_at) = self.work.take_request(task) else {
                        busy += self.work.messages.futex.receive_begin;
                        break;
                    };
                    self.tasks[task].noted_at = sent_at;
                    if self.tasks[task].resumed {
                        busy += self.work.messages.futex.receive_end;
                    }
                    self.next_op(task);
                }
                Op::Note => {
                    self.tasks[task].noted_at = self.running_at(cpu, toll, busy);
                    self.next_op(task);
                }
                Op::Record { record, less } => {
                    let since = self.running_at(cpu, toll, busy).saturating_sub(t.noted_at);
                    let latency = since.saturating_sub(less);
                    self.measured.recorded_latency[usize::from(record)].record(latency);
                    self.next_op(task);
                }
                Op::Answer => {
                    let after = self.running_at(cpu, toll, busy).saturating_sub(t.noted_at);
                    self.measured.answer(task, self.work.piece(t, task), after);
                    self.next_op(task);
                }
                Op::LockCpu => {
                    if !self.work.try_lock_cpu(cpu, task) {
                        busy += LOCK_POLL_NS;
                        user = true;
                        break;
                    }
                    self.tasks[task].cpu_lock = cpu;
                    self.next_op(task);
                }
                Op::UnlockCpu => {
                    let locked = std::mem::replace(&mut self.tasks[task].cpu_lock, CpuId::NONE);
                    self.work.unlock_cpu(locked, task);
                    self.next_op(task);
                }
                Op::Lock { lock } => {
                    if !self.work.mutex(&t.spec, lock).try_lock(task) {
                        busy += self.work.messages.futex.receive_begin;
                        break;
                    }
                    self.next_op(task);
                }
                Op::Unlock { lock } => {
                    if self.work.mutex(&t.spec, lock).is_awaited() {
                        busy += self.work.messages.futex.send;
                        break;
                    }
                    let spec = t.spec;
                    self.work.mutex(&spec, lock).unlock(&mut self.tasks, task);
                    self.next_op(task);
                }
                Op::Again { back, times, depth } => {
                    let t = &mut self.tasks[task];
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
                    busy += self.work.messages.syscall;
                    break;
                }
                Op::Count(n) => {
                    self.measured.operations += u64::from(n);
                    self.next_op(task);
                }
            }
        }
        let busy = self.chance.varied(busy);
        self.begin(cpu, Step::Op, toll, busy, None);
        self.compute(cpu, user);
    }

    /// When the current task of `cpu` goes on, after `toll` and what it is busy with.
    #[inline]
    fn running_at(&self, cpu: CpuId, toll: Toll, busy: Ns) -> Ns {
        self.after(cpu, Toll { cost: toll.cost + busy, ..toll })
    }

    /// Sends the next request, and goes on if it was the last. Returns who got it.
    pub(crate) fn send_request(&mut self, task: TaskId, sent_at: Ns) -> TaskId {
        let (to, last) = self.work.send_request(&mut self.tasks[task], sent_at);
        if last {
            self.next_op(task);
        }
        to
    }

    /// The busy part of the activity just begun computes in user space, or it does not.
    #[inline(always)]
    pub(crate) fn compute(&mut self, cpu: CpuId, user: bool) {
        if user {
            let c = &mut self.cpus[cpu];
            c.activity.user = true;
            c.plan_end();
        }
    }

    /// Spins from the end of the overhead on, by the wall clock.
    fn spin(&mut self, cpu: CpuId, task: TaskId, toll: Toll, busy: Ns, ns: Ns) {
        self.begin(cpu, Step::Op, toll, busy, None);
        let until = self.cpus[cpu].end + ns;
        self.tasks[task].spin_until = until;
        let c = &mut self.cpus[cpu];
        c.activity.until = until;
        c.plan_end();
    }

    /// Is there a task left that the batch wake-up in progress, or a new one that begins at `at`, wakes?
    fn more_to_wake(&mut self, task: TaskId, list: u16, at: Ns) -> bool {
        if self.tasks[task].batch_at.is_none() {
            let list = self.list_of(task, list);
            let head = std::mem::replace(&mut self.work.lists[list], TaskId::NONE);
            let t = &mut self.tasks[task];
            t.batch_at = Some(at);
            t.posted = false;
            t.batch = head;
        }
        let t = &mut self.tasks[task];
        if t.batch == TaskId::NONE {
            t.batch_at = None;
            return false;
        }
        true
    }

    fn list_of(&self, task: TaskId, list: u16) -> usize {
        (self.tasks[task].spec.list_base + u32::from(list)) as usize
    }
}

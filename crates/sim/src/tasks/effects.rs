//! What an operation does once its time is over: a message is left, a partner is woken, the
//! task blocks or goes on.

use reveille_measure::Ns;
use reveille_policy::{CpuId, TaskId, WAKE_IN_TASK};
use reveille_workload::Op;

use crate::ids::At;
use crate::sim::Sim;

impl Sim<'_> {
    /// The operation's time is over: it takes effect. Returns whether the task proceeds at once, which
    /// is left to the caller.
    #[inline(always)]
    pub(crate) fn op_end(&mut self, cpu: CpuId, task: TaskId) -> bool {
        if self.tasks[task].to_wake != TaskId::NONE {
            self.wake_next(cpu, task);
            return false;
        }
        match *self.op(task) {
            Op::Run(_) | Op::RunRandom(_) | Op::RunArrived => self.next_op(task),
            Op::Spin(_) | Op::SpinArrived => {
                self.tasks[task].spin_until = 0;
                self.next_op(task);
            }
            Op::Send { channel, bytes } => return self.send(cpu, task, channel, bytes),
            Op::Recv { channel, .. } => {
                let index = At(self.tasks[task].spec.channel(channel));
                self.tasks[task].resumed = true;
                if self.work.channels[index].unread == 0 {
                    self.tasks[task].slept = true;
                    self.work.channels[index].wait_to_receive(&mut self.tasks, task);
                    self.block(cpu);
                    return false;
                }
            }
            Op::Sleep { time, jitter } => {
                let time = time + self.chance.below(jitter);
                self.sleep(cpu, task, time);
                return false;
            }
            Op::SleepRandom(mean) => {
                let time = self.chance.exponential(mean);
                self.sleep(cpu, task, time);
                return false;
            }
            Op::Period { period, restart } => {
                let t = &mut self.tasks[task];
                t.period_at += period;
                t.noted_at = t.period_at.max(self.now);
                if t.period_at > self.now {
                    let time = t.period_at - self.now;
                    self.sleep(cpu, task, time);
                    return false;
                }
                if restart {
                    t.period_at = self.now;
                }
                t.resumed = true;
            }
            Op::Arrive => {
                let t = &mut self.tasks[task];
                t.resumed = true;
                let due = self.work.next_arrival(t, task);
                t.noted_at = due;
                if due > self.now {
                    // It comes from outside, where no timer slack delays it.
                    self.set_timer(cpu, task, due);
                    self.agenda.replan_timers();
                    self.block(cpu);
                    return false;
                }
            }
            Op::Device(time) => {
                self.tasks[task].resumed = true;
                self.set_timer(cpu, task, self.now + time);
                self.agenda.replan_timers();
                self.block(cpu);
                return false;
            }
            Op::Wait { timeout, jitter } => {
                self.tasks[task].resumed = true;
                if !self.tasks[task].posted {
                    self.tasks[task].waits_futex = true;
                    if timeout > 0 {
                        let jitter = self.wait_jitter(task, jitter);
                        self.arm_timer(cpu, task, timeout + jitter);
                    }
                    self.block(cpu);
                    return false;
                }
            }
            Op::Post { task: member } => {
                let posted = TaskId(self.tasks[task].spec.task_base + u32::from(member));
                let posted = self.tasks.checked(posted);
                self.next_op(task);
                return self.post(cpu, posted);
            }
            Op::WakeList { .. } => {
                let t = &mut self.tasks[task];
                let posted = t.batch;
                let noted = t.batch_at.unwrap_or(self.now);
                let next = self.tasks[posted].list_next;
                self.tasks[task].batch = next;
                self.tasks[posted].noted_at = noted;
                return self.post(cpu, posted);
            }
            Op::Request { .. } => {
                let to = self.send_request(task, self.now);
                if std::mem::take(&mut self.tasks[to].waits_request) {
                    self.wake(cpu, to, WAKE_IN_TASK);
                    return false;
                }
            }
            Op::Serve => {
                self.tasks[task].resumed = true;
                if !self.work.has_request(task) {
                    self.tasks[task].waits_request = true;
                    self.block(cpu);
                    return false;
                }
            }
            Op::Lock { lock } => {
                let spec = self.tasks[task].spec;
                let mutex = self.work.mutex(&spec, lock);
                if !mutex.try_lock(task) {
                    mutex.wait(&mut self.tasks, task);
                    self.tasks[task].resumed = true;
                    self.block(cpu);
                    return false;
                }
                self.next_op(task);
            }
            Op::Unlock { lock } => {
                let spec = self.tasks[task].spec;
                let next = self.work.mutex(&spec, lock).unlock(&mut self.tasks, task);
                self.next_op(task);
                if let Some(next) = next {
                    self.wake(cpu, next, WAKE_IN_TASK);
                    return false;
                }
            }
            Op::LockCpu => {} // looks at the lock again
            Op::Respawn => {
                self.respawn(cpu, task);
                return false;
            }
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
        true
    }

    /// The task sleeps for `time`.
    fn sleep(&mut self, cpu: CpuId, task: TaskId, time: Ns) {
        self.arm_timer(cpu, task, time);
        self.tasks[task].resumed = true;
        self.block(cpu);
    }

    /// Sets a task's futex, and wakes the task if it waits on it. Returns whether the poster proceeds
    /// at once.
    fn post(&mut self, cpu: CpuId, posted: TaskId) -> bool {
        let t = &mut self.tasks[posted];
        t.posted = true;
        if std::mem::take(&mut t.waits_futex) {
            t.timer = 0;
            self.wake(cpu, posted, WAKE_IN_TASK);
            return false;
        }
        true
    }

    fn wait_jitter(&mut self, task: TaskId, jitter: Ns) -> Ns {
        if let Some(drawn) = self.tasks[task].wait_jitter {
            return drawn;
        }
        let drawn = self.chance.below(jitter);
        self.tasks[task].wait_jitter = Some(drawn);
        drawn
    }

    /// Wakes the task after `time` and the timer slack of ordinary tasks.
    fn arm_timer(&mut self, cpu: CpuId, task: TaskId, time: Ns) {
        let at_ns = self.now + time + Ns::from(self.hw.cost.timer_slack_ns);
        self.set_timer(cpu, task, at_ns);
        self.agenda.replan_timers();
    }
}

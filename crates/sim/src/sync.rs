//! Requests that tasks send each other, mutexes, and the locks that belong to CPUs.

use reveille_measure::Ns;
use reveille_policy::{CpuId, NONE, TaskId};
use reveille_workload::Op;

use crate::channel::Waiters;
use crate::cpu::at;
use crate::engine::Sim;

/// A mutex that is handed over in the order of arrival.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mutex {
    holder: TaskId,
    waiters: Waiters,
}

impl Default for Mutex {
    fn default() -> Mutex {
        Mutex { holder: NONE, waiters: Waiters::NOBODY }
    }
}

impl Sim<'_> {
    /// Does the task to which the next request goes wait for one?
    pub(crate) fn next_request_wakes(&mut self, task: TaskId) -> bool {
        let (to, _) = self.next_request(task);
        self.tasks[at(to)].waits_request
    }

    /// Sends the next request, and goes on if it was the last. Returns who got it.
    pub(crate) fn send_request(&mut self, task: TaskId, sent_at: Ns) -> TaskId {
        let (to, among) = self.next_request(task);
        self.requests[at(to)].push_back(sent_at);
        let t = &mut self.tasks[at(task)];
        t.request_turn = (t.request_turn + 1) % among;
        t.requests_left -= 1;
        if t.requests_left == 0 {
            self.next_op(task);
        }
        to
    }

    /// To whom the next request goes, and among how many it goes round.
    fn next_request(&mut self, task: TaskId) -> (TaskId, u32) {
        let Op::Request { first, among, count } = self.op(task) else {
            unreachable!("only this operation sends requests")
        };
        let t = &mut self.tasks[at(task)];
        if t.requests_left == 0 {
            t.requests_left = count;
        }
        // Another request operation may have gone round among more.
        (t.spec.task_base + u32::from(first) + t.request_turn % among, among)
    }

    /// Takes the oldest request sent to the task, if there is one.
    pub(crate) fn take_request(&mut self, task: TaskId) -> bool {
        let Some(sent_at) = self.requests[at(task)].pop_front() else { return false };
        self.tasks[at(task)].noted_at = sent_at;
        true
    }

    /// Takes the lock of `cpu`, if it is free.
    pub(crate) fn try_lock_cpu(&mut self, cpu: CpuId, task: TaskId) -> bool {
        if self.cpu_locks[at(cpu)] != NONE {
            return false;
        }
        self.cpu_locks[at(cpu)] = task;
        self.tasks[at(task)].cpu_lock = cpu;
        true
    }

    /// Gives back the CPU lock that the task has.
    pub(crate) fn unlock_cpu(&mut self, task: TaskId) {
        let cpu = std::mem::replace(&mut self.tasks[at(task)].cpu_lock, NONE);
        debug_assert_eq!(self.cpu_locks[at(cpu)], task);
        self.cpu_locks[at(cpu)] = NONE;
    }

    fn mutex(&mut self, task: TaskId, lock: u16) -> &mut Mutex {
        let index = self.tasks[at(task)].spec.lock_base + u32::from(lock);
        &mut self.mutexes[index as usize]
    }

    /// Takes a mutex, if it is free.
    pub(crate) fn try_lock(&mut self, task: TaskId, lock: u16) -> bool {
        let mutex = self.mutex(task, lock);
        let free = mutex.holder == NONE;
        if free {
            mutex.holder = task;
        }
        free
    }

    /// The task waits until the mutex is handed to it.
    pub(crate) fn wait_for_lock(&mut self, task: TaskId, lock: u16) {
        let index = self.tasks[at(task)].spec.lock_base + u32::from(lock);
        self.mutexes[index as usize].waiters.push(&mut self.tasks, task);
    }

    /// Does another task wait for it?
    pub(crate) fn lock_is_awaited(&mut self, task: TaskId, lock: u16) -> bool {
        self.mutex(task, lock).waiters.any()
    }

    /// Gives a mutex back, or hands it to the task that has waited longest, which is
    /// returned to be woken.
    pub(crate) fn unlock(&mut self, task: TaskId, lock: u16) -> Option<TaskId> {
        let index = self.tasks[at(task)].spec.lock_base + u32::from(lock);
        let mutex = &mut self.mutexes[index as usize];
        debug_assert_eq!(mutex.holder, task, "who gives a lock back has it");
        let next = mutex.waiters.pop(&mut self.tasks);
        mutex.holder = next.unwrap_or(NONE);
        next
    }
}

//! The program of a run and what its tasks share: channels, lists, mutexes, requests, and
//! work that arrives from outside at its own times.

use crate::ids::{At, CpuVec, IdVec, TaskVec};
use std::collections::VecDeque;

use reveille_machine::Machine;
use reveille_measure::Ns;
use reveille_policy::{CpuId, TaskId, Tunables, bits};
use reveille_workload::{ChannelKind, Op, Program, TaskSpec};

use crate::tasks::channel::Channel;
use crate::tasks::code::Code;
use crate::tasks::message_cost::MessageCosts;
use crate::tasks::task::Task;
use crate::tasks::waiters::{Gate, Mutex};

/// What tasks run, and what they share.
#[derive(Clone)]
pub(crate) struct Work<'a> {
    pub(crate) program: &'a Program,
    pub(crate) code: &'a Code,
    pub(crate) messages: MessageCosts,
    pub(crate) channels: IdVec<At, Channel>,
    /// Some channel is a Unix socket.
    pub(crate) has_unix: bool,
    /// Head of each list that tasks join.
    pub(crate) lists: Vec<TaskId>,
    mutexes: Vec<Mutex>,
    /// What tasks wait for that are released together.
    pub(crate) gate: Gate,
    /// Who has the lock that belongs to each CPU.
    cpu_locks: CpuVec<TaskId>,
    /// When the requests were sent that each task has not yet taken; empty if no role
    /// sends any.
    requests: TaskVec<VecDeque<Ns>>,
}

impl<'a> Work<'a> {
    pub(crate) fn new(
        program: &'a Program,
        code: &'a Code,
        machine: &Machine,
        tunables: &Tunables,
    ) -> Work<'a> {
        let n_serving = if code.has_requests() { program.tasks.len() } else { 0 };
        let wakes_when_freed = tunables.has(bits::PIPE_WAKE_FREED);
        let channel = |&kind| {
            let mut channel = Channel::new(kind);
            channel.wakes_when_freed = wakes_when_freed;
            channel
        };
        let channels: IdVec<At, Channel> = program.channels.iter().map(channel).collect();
        for task in &program.tasks {
            for op in &program.roles[usize::from(task.role)].ops {
                if let Op::Send { channel, .. } | Op::Recv { channel, .. } = *op {
                    channels.checked(At(task.channel(channel)));
                }
            }
        }
        Work {
            program,
            code,
            messages: MessageCosts::new(&machine.cost),
            channels,
            has_unix: program.channels.contains(&ChannelKind::Unix),
            lists: vec![TaskId::NONE; program.n_lists as usize],
            mutexes: vec![Mutex::default(); program.n_locks as usize],
            gate: Gate::new(program),
            cpu_locks: CpuVec::filled(TaskId::NONE, machine.topology.n_cpus()),
            requests: TaskVec::filled(VecDeque::new(), n_serving),
        }
    }

    /// Does the task to which the next request of `task` goes wait for one?
    pub(crate) fn next_request_wakes(&self, tasks: &mut TaskVec<Task>, task: TaskId) -> bool {
        let (to, _) = self.next_request(&mut tasks[task]);
        tasks[tasks.checked(to)].waits_request
    }

    /// Sends the next request. Returns who got it, and whether it was the last.
    pub(crate) fn send_request(&mut self, t: &mut Task, sent_at: Ns) -> (TaskId, bool) {
        let (to, among) = self.next_request(t);
        let to = self.requests.checked(to);
        self.requests[to].push_back(sent_at);
        t.request_turn = (t.request_turn + 1) % among;
        t.requests_left -= 1;
        (to, t.requests_left == 0)
    }

    /// To whom the next request goes, and among how many it goes round.
    fn next_request(&self, t: &mut Task) -> (TaskId, u32) {
        let Op::Request { first, among, count } = *self.code.op(t.pc) else {
            unreachable!("only this operation sends requests")
        };
        if t.requests_left == 0 {
            t.requests_left = count;
        }
        // Another request operation may have gone round among more.
        (TaskId(t.spec.task_base + u32::from(first) + t.request_turn % among), among)
    }

    /// When the oldest request to the task was sent, which is taken.
    pub(crate) fn take_request(&mut self, task: TaskId) -> Option<Ns> {
        self.requests[task].pop_front()
    }

    pub(crate) fn has_request(&self, task: TaskId) -> bool {
        !self.requests[task].is_empty()
    }

    /// Takes the lock of `cpu`, if it is free.
    pub(crate) fn try_lock_cpu(&mut self, cpu: CpuId, task: TaskId) -> bool {
        let free = self.cpu_locks[cpu] == TaskId::NONE;
        if free {
            self.cpu_locks[cpu] = task;
        }
        free
    }

    /// Gives back the lock of `cpu`, which the task has.
    pub(crate) fn unlock_cpu(&mut self, cpu: CpuId, task: TaskId) {
        let cpu = self.cpu_locks.checked(cpu);
        debug_assert_eq!(self.cpu_locks[cpu], task);
        self.cpu_locks[cpu] = TaskId::NONE;
    }

    pub(crate) fn mutex(&mut self, spec: &TaskSpec, lock: u16) -> &mut Mutex {
        &mut self.mutexes[(spec.lock_base + u32::from(lock)) as usize]
    }

    /// When the task's next piece of work arrives or arrived.
    pub(crate) fn next_arrival(&self, t: &mut Task, task: TaskId) -> Ns {
        let arrivals = &self.program.arrivals;
        let own = &arrivals.of_task[task.index()];
        let (round, piece) = (t.arrived / own.len() as u64, t.arrived % own.len() as u64);
        t.arrived += 1;
        arrivals.begin_ns + round * arrivals.span_ns + own[piece as usize].at_ns
    }

    /// Number of the piece that arrived last for this task, among its own.
    pub(crate) fn piece(&self, t: &Task, task: TaskId) -> usize {
        ((t.arrived - 1) % self.program.arrivals.of_task[task.index()].len() as u64) as usize
    }

    /// What the task works at, in ns.
    pub(crate) fn arrived_work(&self, t: &Task, task: TaskId) -> Ns {
        self.program.arrivals.of_task[task.index()][self.piece(t, task)].work_ns
    }
}

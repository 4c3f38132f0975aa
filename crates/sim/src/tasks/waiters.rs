//! Tasks that wait for the same thing, and what they wait for besides messages.

use crate::ids::TaskVec;
use reveille_policy::TaskId;
use reveille_workload::{Op, Program};

use crate::tasks::task::Task;

/// Tasks that wait, first come first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiters {
    pub(crate) first: TaskId,
    pub(crate) last: TaskId,
}

impl Waiters {
    pub(crate) const EMPTY: Waiters = Waiters { first: TaskId::NONE, last: TaskId::NONE };

    pub(crate) fn any(&self) -> bool {
        self.first != TaskId::NONE
    }

    #[inline]
    pub(crate) fn push(&mut self, tasks: &mut TaskVec<Task>, task: TaskId) {
        tasks[task].next_waiter = TaskId::NONE;
        match self.last {
            TaskId::NONE => self.first = task,
            last => tasks[last].next_waiter = task,
        }
        self.last = task;
    }

    /// All of them, as a chain by `next_waiter`; they no longer wait.
    pub(crate) fn take(&mut self) -> Option<TaskId> {
        std::mem::replace(self, Waiters::EMPTY).first.some()
    }

    #[inline]
    pub(crate) fn pop(&mut self, tasks: &mut TaskVec<Task>) -> Option<TaskId> {
        let first = self.first.some()?;
        self.first = std::mem::replace(&mut tasks[first].next_waiter, TaskId::NONE);
        if self.first == TaskId::NONE {
            self.last = TaskId::NONE;
        }
        Some(first)
    }
}

/// A mutex that is handed over in the order of arrival.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mutex {
    holder: TaskId,
    waiters: Waiters,
}

impl Mutex {
    /// Takes the mutex, if it is free.
    pub(crate) fn try_lock(&mut self, task: TaskId) -> bool {
        let free = self.holder == TaskId::NONE;
        if free {
            self.holder = task;
        }
        free
    }

    /// The task waits until the mutex is handed to it.
    pub(crate) fn wait(&mut self, tasks: &mut TaskVec<Task>, task: TaskId) {
        self.waiters.push(tasks, task);
    }

    pub(crate) fn is_awaited(&self) -> bool {
        self.waiters.any()
    }

    /// `task` gives the mutex back, or hands it to the task that has waited longest,
    /// which is returned to be woken.
    pub(crate) fn unlock(&mut self, tasks: &mut TaskVec<Task>, task: TaskId) -> Option<TaskId> {
        debug_assert_eq!(self.holder, task, "who gives a lock back has it");
        let next = self.waiters.pop(tasks);
        self.holder = next.unwrap_or(TaskId::NONE);
        next
    }
}

impl Default for Mutex {
    fn default() -> Mutex {
        Mutex { holder: TaskId::NONE, waiters: Waiters::EMPTY }
    }
}

/// What tasks that are released together wait for.
#[derive(Clone)]
pub(crate) struct Gate {
    /// Tasks that are still to come.
    pub(crate) missing: u32,
    pub(crate) waiting: Waiters,
    /// The task that releases them, if it waits for the last of them.
    pub(crate) parent: TaskId,
    pub(crate) open: bool,
}

impl Gate {
    pub(crate) fn new(program: &Program) -> Gate {
        let awaits = |role: u16| {
            let ops = &program.roles[usize::from(role)].ops;
            ops.iter().any(|op| matches!(op, Op::AwaitRelease { .. }))
        };
        let missing = program.tasks.iter().filter(|task| awaits(task.role)).count() as u32;
        Gate { missing, waiting: Waiters::EMPTY, parent: TaskId::NONE, open: false }
    }
}

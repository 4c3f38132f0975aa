//! Tasks that are released together: each blocks until all of them are there, and then one
//! task wakes them all by one system call, as dbench and hackbench start.

use reveille_policy::{CpuId, NONE, TaskId, WAKE_IN_TASK, WAKE_SYNC};
use reveille_workload::{Op, Program};

use crate::channel::Waiters;
use crate::cpu::at;
use crate::engine::{Sim, Toll};

/// What they wait for.
pub(crate) struct Gate {
    /// Tasks that are still to come.
    missing: u32,
    waiting: Waiters,
    /// The task that releases them, if it waits for the last of them.
    parent: TaskId,
    open: bool,
}

impl Gate {
    pub(crate) fn new(program: &Program) -> Gate {
        let awaits = |role: u16| {
            let ops = &program.roles[usize::from(role)].ops;
            ops.iter().any(|op| matches!(op, Op::AwaitRelease { .. }))
        };
        let missing = program.tasks.iter().filter(|task| awaits(task.role)).count() as u32;
        Gate { missing, waiting: Waiters::NOBODY, parent: NONE, open: false }
    }
}

impl Sim<'_> {
    /// The task is there, and blocks unless all have been released.
    pub(crate) fn await_release(&mut self, cpu: CpuId, task: TaskId) {
        self.tasks[at(task)].resumed = true;
        if self.gate.open {
            return self.proceed(cpu, Toll::default());
        }
        self.gate.waiting.push(&mut self.tasks, task);
        self.gate.missing -= 1;
        let parent = self.gate.parent;
        if self.gate.missing == 0 && parent != NONE {
            // It looks now and then, woken by a timer of its own CPU.
            let home = self.world.task(parent).prev_cpu;
            self.set_timer(home, parent, self.now + 1);
            self.replan_timers();
        }
        self.block(cpu);
    }

    /// The task wakes all that wait, or waits itself until all are there.
    pub(crate) fn release_all(&mut self, cpu: CpuId, task: TaskId, sync: bool) {
        if self.gate.missing > 0 {
            self.gate.parent = task;
            return self.block(cpu);
        }
        self.gate.open = true;
        self.next_op(task);
        let flags = if sync { WAKE_IN_TASK | WAKE_SYNC } else { WAKE_IN_TASK };
        if let Some(first) = self.gate.waiting.take() {
            self.wake_later(task, first, flags);
        }
        self.proceed(cpu, Toll::default());
    }
}

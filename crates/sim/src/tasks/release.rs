//! Tasks that are released together: each blocks until all of them are there, and then one
//! task wakes them all by one system call, as dbench and hackbench start.

use reveille_policy::{CpuId, TaskId, WAKE_IN_TASK, WAKE_SYNC};

use crate::sim::Sim;

impl Sim<'_> {
    /// The task is there, and blocks unless all have been released. Returns whether it proceeds.
    pub(crate) fn await_release(&mut self, cpu: CpuId, task: TaskId) -> bool {
        self.tasks[task].resumed = true;
        if self.work.gate.open {
            return true;
        }
        self.work.gate.waiting.push(&mut self.tasks, task);
        self.work.gate.missing -= 1;
        let parent = self.work.gate.parent;
        if self.work.gate.missing == 0 && parent != TaskId::NONE {
            // It looks now and then, woken by a timer of its own CPU.
            let home = self.world.task(parent).prev_cpu;
            self.set_timer(home, parent, self.now + 1);
            self.agenda.replan_timers();
        }
        self.block(cpu);
        false
    }

    /// The task wakes all that wait, or waits itself until all are there. Returns whether it proceeds.
    pub(crate) fn release_all(&mut self, cpu: CpuId, task: TaskId, sync: bool) -> bool {
        if self.work.gate.missing > 0 {
            self.work.gate.parent = task;
            self.block(cpu);
            return false;
        }
        self.work.gate.open = true;
        self.next_op(task);
        let flags = if sync { WAKE_IN_TASK | WAKE_SYNC } else { WAKE_IN_TASK };
        if let Some(first) = self.work.gate.waiting.take() {
            self.wake_later(task, first, flags);
        }
        true
    }
}

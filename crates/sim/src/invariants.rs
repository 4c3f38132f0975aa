//! What must hold at any time, checked in debug builds: every task is in exactly
//! one place, and the copies of a fact agree.
#![cfg(debug_assertions)]

use reveille_policy::CpuId;

use crate::cpu::{Step, at, some_task};
use crate::engine::Sim;
use crate::task::Place;

impl Sim<'_> {
    pub(crate) fn check_invariants(&self) {
        let mut seen = vec![0u32; self.tasks.len()];
        for cpu in 0..self.cpus.len() as CpuId {
            let c = &self.cpus[at(cpu)];
            let curr = some_task(self.world.curr(cpu));
            if let Some(task) = curr {
                seen[at(task)] += 1;
                assert_eq!(self.tasks[at(task)].place, Place::Running(cpu));
                assert!(c.runs_task(), "CPU {cpu} has a current task and does {:?}", c.step);
            }
            for waiting in c.rq.waiting() {
                seen[at(waiting.task)] += 1;
                assert_eq!(self.tasks[at(waiting.task)].place, Place::Queued(cpu));
                assert_eq!(self.tasks[at(waiting.task)].vruntime, waiting.vruntime);
            }
            for &task in &c.wake_list {
                seen[at(task)] += 1;
                assert_eq!(self.tasks[at(task)].place, Place::WakeList(cpu));
            }
            if let Step::Commit { wakee, .. } | Step::Select { wakee, .. } = c.step {
                seen[at(wakee)] += 1;
                assert_eq!(self.tasks[at(wakee)].place, Place::Waking);
            }
            let nr = c.rq.len() as u32 + u32::from(curr.is_some());
            assert_eq!(self.world.nr_running(cpu), nr, "nr_running of CPU {cpu}");
            let weight: u64 =
                c.rq.waiting()
                    .iter()
                    .map(|w| w.task)
                    .chain(curr)
                    .map(|t| u64::from(self.tasks[at(t)].weight))
                    .sum();
            assert_eq!(c.rq.weight, weight, "queue weight of CPU {cpu}");
            if self.world.available_idle(cpu) {
                assert!(nr == 0 && c.wake_list.is_empty(), "CPU {cpu} is not available");
            }
        }
        self.channels.iter().for_each(crate::channel::Channel::check);
        for (task, places) in seen.into_iter().enumerate() {
            let blocked = u32::from(self.tasks[task].place == Place::Blocked);
            assert_eq!(places + blocked, 1, "task {task} is in {} places", places + blocked);
        }
    }
}

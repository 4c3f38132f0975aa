//! SIS_CACHE's memory: how long tasks usually sleep, and until when a CPU's last task is
//! expected back. Searches read that in policy/cache_hot.h.
#![allow(unsafe_code)]

use crate::{CpuId, Ns, TaskId, World};

unsafe extern "C" {
    fn reveille_usual_sleep(usual_ns: Ns, slept_ns: Ns) -> Ns;
}

/// When a task fell asleep, and how long it usually sleeps.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sleep {
    since: Ns,
    usual: Ns,
}

/// How long a task usually sleeps after a sleep of `slept_ns`, if that was `usual_ns` before: 0.5 ms
/// and more halve it. Mail of 2023-11-21, SIS_CACHE v2 1/3.
fn usual_sleep(usual_ns: Ns, slept_ns: Ns) -> Ns {
    // SAFETY: arithmetic on its arguments only.
    unsafe { reveille_usual_sleep(usual_ns, slept_ns) }
}

impl<const CHECKED: bool> World<CHECKED> {
    /// The time at which the next decisions are taken.
    #[inline]
    pub fn set_now(&mut self, now: Ns) {
        self.raw().now_ns = now;
    }

    /// A task leaves its CPU's queue for a sleep. A CPU that has no other expects it back when its
    /// usual sleep is over (v2 2/3).
    pub fn fell_asleep(&mut self, task: TaskId, cpu: CpuId, now: Ns) {
        let sleep = &mut self.parts.sleeps[task.index()];
        sleep.since = now;
        let usual = sleep.usual;
        if usual > 0 && self.nr_running(cpu) == 0 {
            self.expect_back(cpu, now + usual);
        }
    }

    /// The last task of `cpu` is expected back by `until`, if no other is later.
    pub fn expect_back(&mut self, cpu: CpuId, until: Ns) {
        let hot = &mut self.parts.hot_until[cpu.index()];
        *hot = until.max(*hot);
    }

    /// A task has been woken, for the first time if it has not run yet: the sleeps of a task whose
    /// number it has are not its own.
    pub fn woke_up(&mut self, task: TaskId, now: Ns) {
        let has_run = self.task(task).sum_exec_ns > 0;
        let sleep = &mut self.parts.sleeps[task.index()];
        sleep.usual = if has_run { usual_sleep(sleep.usual, now - sleep.since) } else { 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LlcShape, Task, WorldShape};

    const CPU: CpuId = CpuId(0);
    const TASK: TaskId = TaskId(0);

    /// One CPU, and a task that has run.
    fn world() -> World {
        let mut world = World::new(&WorldShape { llcs: vec![LlcShape { cores: vec![vec![CPU]] }] });
        world.add_task(Task { sum_exec_ns: 1, ..Task::new(TASK, CPU) });
        world
    }

    fn sleeps_for(world: &mut World, ns: Ns) {
        world.fell_asleep(TASK, CPU, 0);
        world.parts.hot_until[0] = 0;
        world.woke_up(TASK, ns);
    }

    /// Until when the CPU is cache-hot, after the task fell asleep there at 1 ms.
    fn hot_until(sleeps: &[Ns], others: u32) -> Ns {
        let mut world = world();
        sleeps.iter().for_each(|&ns| sleeps_for(&mut world, ns));
        world.set_nr_running(CPU, others);
        world.fell_asleep(TASK, CPU, 1_000_000);
        world.parts.hot_until[0]
    }

    #[test]
    fn a_cpu_is_hot_for_the_usual_sleep_of_the_task_that_left_it_idle() {
        assert_eq!(hot_until(&[], 0), 0);
        assert_eq!(hot_until(&[8_000], 0), 1_001_000);
        assert_eq!(hot_until(&[8_000, 500_000], 0), 1_000_500);
        assert_eq!(hot_until(&[8_000], 1), 0);
    }

    #[test]
    fn a_task_does_not_inherit_the_sleeps_of_its_number() {
        let mut world = world();
        sleeps_for(&mut world, 8_000);
        *world.task_mut(TASK) = Task::new(TASK, CPU);
        world.woke_up(TASK, 500);
        world.fell_asleep(TASK, CPU, 1_000_000);
        assert_eq!(world.parts.hot_until[0], 0);
    }

    #[test]
    fn the_latest_return_counts() {
        let mut world = world();
        world.expect_back(CPU, 9);
        world.expect_back(CPU, 5);
        assert_eq!(world.parts.hot_until[0], 9);
    }
}

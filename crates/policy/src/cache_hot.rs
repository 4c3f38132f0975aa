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
        if self.sleeps.len() <= task.index() {
            self.sleeps.resize(task.index() + 1, Sleep::default());
        }
        let sleep = &mut self.sleeps[task.index()];
        sleep.since = now;
        let back = now + sleep.usual;
        if sleep.usual > 0 && self.nr_running(cpu) == 0 {
            self.expect_back(cpu, back);
        }
    }

    /// The last task of `cpu` is expected back by `until`, if no other is later.
    pub fn expect_back(&mut self, cpu: CpuId, until: Ns) {
        let hot = &mut self.hot_until[cpu.index()];
        *hot = until.max(*hot);
    }

    /// A task that fell asleep has been woken.
    pub fn woke_up(&mut self, task: TaskId, now: Ns) {
        if let Some(sleep) = self.sleeps.get_mut(task.index()) {
            sleep.usual = usual_sleep(sleep.usual, now.saturating_sub(sleep.since));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LlcShape, WorldShape};

    /// Until when CPU 0 is cache-hot, after a task fell asleep there at 1 ms.
    fn hot_until(sleeps: &[Ns], others: u32) -> Ns {
        let core = vec![CpuId(0)];
        let mut world = World::new(&WorldShape { llcs: vec![LlcShape { cores: vec![core] }] });
        for &slept in sleeps {
            world.fell_asleep(TaskId(0), CpuId(0), 0);
            world.hot_until[0] = 0;
            world.woke_up(TaskId(0), slept);
        }
        world.set_nr_running(CpuId(0), others);
        world.fell_asleep(TaskId(0), CpuId(0), 1_000_000);
        world.hot_until[0]
    }

    #[test]
    fn a_cpu_is_hot_for_the_usual_sleep_of_the_task_that_left_it_idle() {
        assert_eq!(hot_until(&[], 0), 0);
        assert_eq!(hot_until(&[8_000], 0), 1_001_000);
        assert_eq!(hot_until(&[8_000, 500_000], 0), 1_000_500);
        assert_eq!(hot_until(&[8_000], 1), 0);
    }

    #[test]
    fn the_latest_return_counts() {
        let core = vec![CpuId(0)];
        let mut world = World::new(&WorldShape { llcs: vec![LlcShape { cores: vec![core] }] });
        world.expect_back(CpuId(0), 9);
        world.expect_back(CpuId(0), 5);
        assert_eq!(world.hot_until[0], 9);
    }
}

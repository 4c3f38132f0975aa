//! Wakeups of kernel threads and daemons by interrupts. Of these only the effect on `wakee_flips` is
//! modelled: record_wakee() counts each as made by the task that is interrupted.

use reveille_measure::{Ns, Random};

/// Seconds after which `wakee_flips` has been halved to nothing, at up to about a hundred of these a second.
const REMEMBERED_S: u32 = 8;

#[derive(Clone)]
pub(crate) struct Background {
    random: Random,
    /// Probability that a tick of a busy CPU wakes one.
    at_tick: f64,
    /// Wakeups a second that are counted as one task's.
    of_task: f64,
}

impl Background {
    /// `per_second` of these come to all CPUs together. A task of a pair runs half the time, or its share
    /// if there are too few CPUs for that.
    pub(crate) fn new(seed: u64, per_second: u32, tick_ns: Ns, cpus: usize, tasks: usize) -> Self {
        let per_second = f64::from(per_second);
        Background {
            random: Random::new(!seed),
            at_tick: per_second / cpus as f64 * tick_ns as f64 / 1e9,
            of_task: per_second / tasks.max(2 * cpus) as f64,
        }
    }

    /// Does this tick of a busy CPU wake one, where ticks come `pace` times as often as they should?
    pub(crate) fn at_tick(&mut self, pace: u64) -> bool {
        self.random.uniform() * pace as f64 <= self.at_tick
    }

    /// Has a task that has long been waking one partner any `wakee_flips`, at any moment of a second?
    pub(crate) fn has_hit(&mut self) -> bool {
        // The thread and then the partner again: each is another wakee than the last one.
        let halved = (0..REMEMBERED_S).fold(0, |flips, _| (flips + 2 * self.within(1.0)) / 2);
        let since = self.random.uniform();
        halved + 2 * self.within(since) > 0
    }

    /// Wakeups counted as one task's within so many seconds.
    fn within(&mut self, seconds: f64) -> u32 {
        let mean = self.of_task * seconds;
        let mut passed = 0.0;
        let mut wakeups = 0;
        loop {
            passed += self.random.exponential(1.0);
            if passed > mean {
                return wakeups;
            }
            wakeups += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A task has no flips if it was not interrupted so since the last halving, half a second ago on average, nor
    /// in the second before; and at most once in the second before that.
    #[test]
    fn few_tasks_are_without_flips() {
        let undisturbed = |per_second, cpus, tasks| {
            let mut background = Background::new(1, per_second, 1_000_000, cpus, tasks);
            (0..20_000).filter(|_| !background.has_hit()).count() as f64 / 20_000.0
        };
        let expected =
            |rate: f64| (1.0 - (-rate).exp()) / rate * (-2.0 * rate).exp() * (1.0 + rate);
        // Half a CPU for each of four tasks on ten, a quarter for each of forty.
        for (per_second, tasks, rate) in [(2, 4, 0.1), (6, 4, 0.3), (4, 40, 0.1), (12, 40, 0.3)] {
            let share = undisturbed(per_second, 10, tasks);
            assert!((share - expected(rate)).abs() < 0.02, "{per_second} {tasks}: {share}");
        }
        assert_eq!(undisturbed(0, 10, 10), 1.0);
        assert!(undisturbed(200, 10, 10) < 1e-3);
    }

    #[test]
    fn ticks_wake_as_many_as_told() {
        let woken = |per_second, pace| {
            let mut background = Background::new(1, per_second, 1_000_000, 10, 10);
            // 10 CPUs x 1,000 ticks x 100 s.
            (0..1_000_000).filter(|_| background.at_tick(pace)).count()
        };
        assert!((1_850..2_150).contains(&woken(20, 1)), "{}", woken(20, 1));
        assert!((210..290).contains(&woken(20, 8)), "{}", woken(20, 8));
        assert_eq!(woken(0, 1), 0);
    }
}

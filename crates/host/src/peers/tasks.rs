//! What all tasks of a run used together, and how unequal they were.

use serde::{Deserialize, Serialize};

use super::lines::Line;
use crate::{HostError, TaskUse};

/// Smallest, middle and largest of some values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Smallest.
    pub min: f64,
    /// Median.
    pub median: f64,
    /// Largest.
    pub max: f64,
    /// Standard deviation in percent of the mean; 0 if the mean is.
    pub cv_pct: f64,
}

impl Spread {
    /// Of these; all 0 if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Spread {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_unstable_by(f64::total_cmp);
        let (Some(&min), Some(&max)) = (values.first(), values.last()) else {
            return Spread::default();
        };
        let n = values.len();
        let median = (values[(n - 1) / 2] + values[n / 2]) / 2.0;
        let mean = values.iter().sum::<f64>() / n as f64;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        let deviation = (squares / (n.max(2) - 1) as f64).sqrt();
        let cv_pct = if mean == 0.0 { 0.0 } else { 100.0 * deviation / mean };
        Spread { min, median, max, cv_pct }
    }
}

/// The tasks of a run, as the kernel counts for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tasks {
    /// How many.
    pub n: u64,
    /// All of them together.
    pub total: TaskUse,
    /// CPU time of each, in ns.
    pub cpu_ns: Spread,
    /// Time that each waited for a CPU, in ns.
    pub run_delay_ns: Spread,
}

impl Tasks {
    /// What these used.
    pub(crate) fn of(uses: &[TaskUse]) -> Tasks {
        let mut total = TaskUse::default();
        for &one in uses {
            total += one;
        }
        Tasks {
            n: uses.len() as u64,
            total,
            cpu_ns: Spread::of(uses.iter().map(|u| u.cpu_ns as f64)),
            run_delay_ns: Spread::of(uses.iter().map(|u| u.run_delay_ns as f64)),
        }
    }
}

/// What a task has used so far; `process` is the one whose thread it is, if it is not one
/// of its own.
pub(crate) fn use_of(line: Line<'_>, process: Option<u32>) -> Result<TaskUse, HostError> {
    let task = line.task();
    TaskUse::of_thread(process.unwrap_or(task), task).map_err(|error| HostError::Died {
        who: format!("task {task}"),
        how: format!("cannot be asked for its figures ({error})"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_that_of_its_values() {
        assert_eq!(Spread::of([]), Spread::default());
        let one = Spread::of([3.0]);
        assert_eq!((one.min, one.median, one.max, one.cv_pct), (3.0, 3.0, 3.0, 0.0));
        let four = Spread::of([4.0, 1.0, 3.0, 2.0]);
        assert_eq!((four.min, four.median, four.max), (1.0, 2.5, 4.0));
        let expected = 100.0 * (5.0f64 / 3.0).sqrt() / 2.5;
        assert!((four.cv_pct - expected).abs() < 1e-9);
    }

    #[test]
    fn tasks_add_up() {
        let one = TaskUse { cpu_ns: 5, migrations: 1, ..TaskUse::default() };
        let two = TaskUse { cpu_ns: 15, migrations: 2, ..TaskUse::default() };
        let tasks = Tasks::of(&[one, two]);
        assert_eq!((tasks.n, tasks.total.cpu_ns, tasks.total.migrations), (2, 20, 3));
        assert_eq!((tasks.cpu_ns.min, tasks.cpu_ns.max), (5.0, 15.0));
    }
}

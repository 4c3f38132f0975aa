//! A series of readings, and a counter that starts over when its container does.

use std::collections::BTreeMap;

use reveille_place::Mistake;

use crate::Ns;
use crate::valid::MAX_SPAN_NS;

/// One series of an answer.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    /// Unix time, and the value; never empty.
    pub(super) points: Vec<(Ns, f64)>,
    /// Falls that have been taken out of it.
    pub(super) resets: usize,
}

/// A series whose values only rise.
pub(super) struct Counter {
    name: String,
    points: Vec<(Ns, f64)>,
    /// How often it fell, which is a start from 0.
    resets: usize,
}

impl Series {
    /// The series as a counter: where it falls, it began anew from 0.
    pub(super) fn counter(mut self) -> Result<Counter, Mistake> {
        // Parts of a range may come in any order, and share their ends.
        self.points.sort_by_key(|point| point.0);
        self.points.dedup();
        let name = &self.name;
        if let Some(pair) = self.points.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let problem = format!("{name} has two values at {} s", pair[0].0 as f64 / 1e9);
            return Err(Mistake::new(problem, "leave one of the answers out"));
        }
        let &[(first_ns, _), .., (last_ns, _)] = self.points.as_slice() else {
            let fix = "query a range with at least two steps";
            return Err(Mistake::new(format!("{name} has a single value"), fix));
        };
        if last_ns - first_ns > MAX_SPAN_NS {
            let problem = format!("{name} goes over more than 31 days");
            return Err(Mistake::new(problem, "query a shorter range"));
        }
        self.resets += self.without_resets();
        Ok(Counter { name: self.name, points: self.points, resets: self.resets })
    }

    /// Makes the values rise: where they fall, the counter began anew from 0. Returns how often.
    pub(super) fn without_resets(&mut self) -> usize {
        let (mut resets, mut base, mut before) = (0, 0.0, 0.0);
        for (_, value) in &mut self.points {
            if *value < before {
                base += before;
                resets += 1;
            }
            before = *value;
            *value += base;
        }
        resets
    }
}

impl Counter {
    /// Unix time of the first and the last reading.
    pub(super) fn range(&self) -> (Ns, Ns) {
        (self.points[0].0, self.points[self.points.len() - 1].0)
    }

    /// From when to when, and by how much it rose.
    pub(super) fn steps(&self) -> impl Iterator<Item = (Ns, Ns, f64)> {
        self.points.windows(2).map(|pair| (pair[0].0, pair[1].0, (pair[1].1 - pair[0].1).max(0.0)))
    }

    /// The step in the middle of all, by length.
    pub(super) fn step_ns(&self) -> Ns {
        let mut steps: Vec<Ns> = self.steps().map(|(from, until, _)| until - from).collect();
        steps.sort_unstable();
        steps[steps.len() / 2]
    }

    /// Its value at the last reading that is not after `at_ns`.
    pub(super) fn at(&self, at_ns: Ns) -> f64 {
        let after = self.points.partition_point(|point| point.0 <= at_ns);
        self.points[after.saturating_sub(1)].1
    }

    /// What whoever uses it has to know.
    pub(super) fn warnings(&self, step_ns: Ns) -> Vec<String> {
        let mut warnings = Vec::new();
        let name = &self.name;
        if self.resets > 0 {
            warnings.push(format!(
                "{name} started over {} times, as after a restart of the container: what was used \
                 between the last reading and the restart is lost.",
                self.resets
            ));
        }
        let gaps = self.steps().filter(|(from, until, _)| 2 * (until - from) > 3 * step_ns);
        let (count, lost_ns) = gaps.fold((0, 0), |(n, ns), step| (n + 1, ns + step.1 - step.0));
        if count > 0 {
            warnings.push(format!(
                "{count} times readings are missing, for {} s in all: there the average is over \
                 the gap.",
                lost_ns as f64 / 1e9
            ));
        }
        warnings
    }
}

//! A series of samples, and a counter that resets when its container restarts.

use std::collections::BTreeMap;

use reveille_place::Mistake;

use crate::Ns;
use crate::valid::MAX_SPAN_NS;

pub(super) const USAGE: &str = "container_cpu_usage_seconds_total";
pub(super) const PERIODS: &str = "container_cpu_cfs_periods_total";
pub(super) const THROTTLED: &str = "container_cpu_cfs_throttled_periods_total";
const THROTTLED_TIME: &str = "container_cpu_cfs_throttled_seconds_total";
pub(super) const QUOTA: &str = "container_spec_cpu_quota";
pub(super) const PERIOD: &str = "container_spec_cpu_period";
pub(super) const NAMES: [&str; 6] = [USAGE, PERIODS, THROTTLED, THROTTLED_TIME, QUOTA, PERIOD];

/// The one series of each name, if it exists.
pub(super) type Picked = [Option<Series>; NAMES.len()];

/// One series from an answer.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    /// Unix time and value; never empty.
    pub(super) points: Vec<(Ns, f64)>,
    /// Number of counter resets removed.
    pub(super) resets: usize,
}

/// A series whose values never decrease.
pub(super) struct Counter {
    name: String,
    points: Vec<(Ns, f64)>,
    resets: usize,
}

impl Series {
    /// When the value changed for the last time, if it ever did.
    pub(super) fn last_change(&self) -> Option<Ns> {
        let mut points = self.points.clone();
        points.sort_by_key(|point| point.0);
        points.windows(2).rev().find(|pair| pair[0].1 != pair[1].1).map(|pair| pair[1].0)
    }

    pub(super) fn forget_before(&mut self, from_ns: Ns) {
        self.points.retain(|point| point.0 >= from_ns);
    }

    pub(super) fn forget_from(&mut self, until_ns: Ns) {
        self.points.retain(|point| point.0 < until_ns);
    }

    /// When it begins, if that is well after `other` does.
    pub(super) fn begins_after(&self, other: &Series) -> Option<Ns> {
        let late_ns = other.points[0].0 + 2 * median_step_ns(&other.points);
        Some(self.points[0].0).filter(|begin_ns| *begin_ns > late_ns)
    }

    /// The series as a counter: a decrease is a reset to 0.
    pub(super) fn counter(mut self) -> Result<Counter, Mistake> {
        // Parts of a range may come in any order and share end points.
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
        self.falls_as_a_counter()?;
        self.resets += self.without_resets();
        Ok(Counter { name: self.name, points: self.points, resets: self.resets })
    }

    /// A counter falls when its container starts over, so rarely, and to what a fresh start can reach:
    /// at most half of what it was, or twice what it grows by in a step.
    fn falls_as_a_counter(&self) -> Result<(), Mistake> {
        let name = &self.name;
        let pairs = || self.points.windows(2).map(|pair| (pair[0].1, pair[1]));
        let falls = pairs().filter(|(before, (_, after))| after < before).count();
        if falls > 1 && 4 * falls > self.points.len() {
            let problem = format!("{name} falls in {falls} of {} steps", self.points.len() - 1);
            let fix = format!("query {name} itself, without rate() or irate()");
            return Err(Mistake::new(problem, fix));
        }
        let most = pairs().map(|(before, (_, after))| after - before).fold(0.0, f64::max);
        let fresh = |before: f64, after: f64| after <= (before / 2.0).max(2.0 * most);
        match pairs().find(|&(before, (_, after))| after < before && !fresh(before, after)) {
            None => Ok(()),
            Some((before, (at_ns, after))) => {
                let at_s = at_ns as f64 / 1e9;
                // Without the digits that only binary fractions have.
                let short = |value: f64| format!("{value:.6}").parse().unwrap_or(value);
                let (before, after) = (short(before), short(after));
                let problem = format!("{name} falls from {before} to {after} at {at_s} s");
                let fix = "query the plain counter, without rate() or irate(), and of one source: it \
                           falls only at a restart, to near 0";
                Err(Mistake::new(problem, fix))
            }
        }
    }

    /// Removes resets, so that the values never decrease. Returns their number. What was counted since
    /// a restart is of part of a step only: CPU time is kept, counts that are held against the step's
    /// length are not.
    pub(super) fn without_resets(&mut self) -> usize {
        let kept = self.name == USAGE;
        let (mut resets, mut base, mut before) = (0, 0.0, 0.0);
        for (_, value) in &mut self.points {
            if *value < before {
                base += if kept { before } else { before - *value };
                resets += 1;
            }
            before = *value;
            *value += base;
        }
        resets
    }
}

/// Median time between two points; there are two at least, or it is 0.
fn median_step_ns(points: &[(Ns, f64)]) -> Ns {
    let mut steps: Vec<Ns> = points.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    steps.sort_unstable();
    steps.get(steps.len() / 2).copied().unwrap_or(0)
}

impl Counter {
    /// Unix time of the first and last sample.
    pub(super) fn range(&self) -> (Ns, Ns) {
        (self.points[0].0, self.points[self.points.len() - 1].0)
    }

    /// Start, end and increase of each step.
    pub(super) fn steps(&self) -> impl Iterator<Item = (Ns, Ns, f64)> {
        self.points.windows(2).map(|pair| (pair[0].0, pair[1].0, (pair[1].1 - pair[0].1).max(0.0)))
    }

    /// Median length of a step.
    pub(super) fn step_ns(&self) -> Ns {
        median_step_ns(&self.points)
    }

    /// The value of the last sample at or before `at_ns`.
    pub(super) fn at(&self, at_ns: Ns) -> f64 {
        let after = self.points.partition_point(|point| point.0 <= at_ns);
        self.points[after.saturating_sub(1)].1
    }

    /// Refuses a counter that begins well after `first_ns` or ends well before `last_ns`: it would count
    /// nothing there.
    pub(super) fn covers(&self, [first_ns, last_ns]: [Ns; 2], step_ns: Ns) -> Result<(), Mistake> {
        let (name, (begin_ns, end_ns)) = (&self.name, self.range());
        let seconds = |ns: Ns| ns as f64 / 1e9;
        let problem = if begin_ns > first_ns + 2 * step_ns {
            format!("{name} begins {} s after the CPU time", seconds(begin_ns - first_ns))
        } else if end_ns + 2 * step_ns < last_ns {
            format!("{name} ends {} s before the CPU time", seconds(last_ns - end_ns))
        } else {
            return Ok(());
        };
        let fix = "query all series over the same range, and one in which it had a limit all the time: \
                   without a limit nothing counts its periods";
        Err(Mistake::new(problem, fix))
    }

    pub(super) fn warnings(&self, step_ns: Ns) -> Vec<String> {
        let mut warnings = Vec::new();
        let name = &self.name;
        if self.resets > 0 {
            warnings.push(format!(
                "{name} started over {}, as after a restart of the container: what was used \
                 between the last reading and the restart is lost.",
                match self.resets {
                    1 => "once".into(),
                    n => format!("{n} times"),
                }
            ));
        }
        warnings.extend(self.gaps(step_ns));
        warnings
    }

    /// A warning of missing readings, if any are.
    pub(super) fn gaps(&self, step_ns: Ns) -> Option<String> {
        let gaps = self.steps().filter(|(from, until, _)| 2 * (until - from) > 3 * step_ns);
        let (count, lost_ns) = gaps.fold((0, 0), |(n, ns), step| (n + 1, ns + step.1 - step.0));
        (count > 0).then(|| {
            format!(
                "Readings are missing {}, for {} s in all: there the average is over the gap.",
                match count {
                    1 => "in one place".into(),
                    n => format!("in {n} places"),
                },
                lost_ns as f64 / 1e9
            )
        })
    }
}

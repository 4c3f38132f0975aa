//! Figures of a setting, as ranges and intervals over many runs.

use reveille_measure::enough_for;
use serde::Serialize;

use crate::goal::{Goal, Subject};

/// Values over phases of the period. The kernel's phase is arbitrary, so any of them can occur.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Range {
    /// In the best phase.
    pub min: f64,
    /// Median over phases.
    pub median: f64,
    /// In the worst phase.
    pub max: f64,
}

impl Range {
    pub const UNKNOWN: Range = Range { min: f64::NAN, median: f64::NAN, max: f64::NAN };
}

/// Range of the central 90% of draws (each a phase and a resampled recording), ends included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Interval {
    /// 5% quantile.
    pub low: f64,
    /// 95% quantile.
    pub high: f64,
}

impl Interval {
    pub const UNKNOWN: Interval = Interval { low: f64::NAN, high: f64::NAN };
}

/// Figures of a setting, each a [`Range`] or an [`Interval`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figures<T> {
    /// Median latency of a request, from arrival to completion.
    pub p50_ns: T,
    pub p90_ns: T,
    pub p99_ns: T,
    pub p999_ns: T,
    pub max_ns: T,
    /// Throttled periods divided by periods with runnable tasks (`cpu.stat`).
    pub throttled_share: T,
    /// Throttled time summed over CPUs, divided by elapsed time.
    pub lost_share: T,
    pub cpus_used: T,
    /// The figure that each goal limits, in the order of [`Plan::goals`](crate::Plan::goals).
    pub goals: Vec<T>,
}

impl<T: Copy> Figures<T> {
    /// Replaces quantiles for which `pieces` requests are too few by `none`.
    pub(crate) fn leave_out(&mut self, pieces: u64, goals: &[Goal], none: T) {
        let own = [
            (&mut self.p50_ns, 0.5),
            (&mut self.p90_ns, 0.9),
            (&mut self.p99_ns, 0.99),
            (&mut self.p999_ns, 0.999),
        ];
        let of_goals = self.goals.iter_mut().zip(goals).filter_map(|(figure, goal)| {
            let Subject::Latency(quantile) = goal.subject else { return None };
            Some((figure, quantile))
        });
        for (figure, quantile) in own.into_iter().chain(of_goals) {
            if !enough_for(pieces, quantile) {
                *figure = none;
            }
        }
    }
}

/// One point of a distribution function.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CdfPoint {
    pub latency_ns: f64,
    /// Share of requests with at most this latency.
    pub share: f64,
}

impl Range {
    /// Minimum, median and maximum; zeros for an empty slice.
    pub(crate) fn over(values: &[f64]) -> Range {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (Some(&min), Some(&max)) = (sorted.first(), sorted.last()) else {
            return Range::default();
        };
        let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        let median = if low == high { low } else { (low + high) / 2.0 };
        Range { min, median, max }
    }
}

impl Interval {
    /// The central 90%.
    pub(crate) fn over(values: &[f64]) -> Interval {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let outside = sorted.len() / 20;
        match (sorted.get(outside), sorted.iter().rev().nth(outside)) {
            (Some(&low), Some(&high)) => Interval { low, high },
            _ => Interval::default(),
        }
    }
}

impl<T> Figures<T> {
    /// Folds each figure over many runs.
    pub(crate) fn over(runs: &[Figures<f64>], fold: impl Fn(&[f64]) -> T) -> Figures<T> {
        let of = |figure: &dyn Fn(&Figures<f64>) -> f64| {
            fold(&runs.iter().map(figure).collect::<Vec<f64>>())
        };
        let n_goals = runs.first().map_or(0, |run| run.goals.len());
        Figures {
            p50_ns: of(&|run| run.p50_ns),
            p90_ns: of(&|run| run.p90_ns),
            p99_ns: of(&|run| run.p99_ns),
            p999_ns: of(&|run| run.p999_ns),
            max_ns: of(&|run| run.max_ns),
            throttled_share: of(&|run| run.throttled_share),
            lost_share: of(&|run| run.lost_share),
            cpus_used: of(&|run| run.cpus_used),
            goals: (0..n_goals).map(|goal| of(&|run| run.goals[goal])).collect(),
        }
    }
}

/// The distribution of these values in about 100 points, ends included.
pub(crate) fn distribution(mut values: Vec<f64>) -> Vec<CdfPoint> {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    let mut shares: Vec<f64> = (0..99).map(|k| f64::from(k) / 100.0).collect();
    shares.extend([0.99, 0.995, 0.999, 0.9995, 0.9999, 1.0]);
    let mut points: Vec<CdfPoint> = Vec::new();
    for share in shares {
        let rank = ((share * n as f64).ceil() as usize).clamp(1, n.max(1));
        let Some(&latency_ns) = values.get(rank - 1) else { break };
        match points.last_mut() {
            Some(last) if last.latency_ns == latency_ns => last.share = share,
            _ => points.push(CdfPoint { latency_ns, share }),
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_intervals_of_few_and_many() {
        assert_eq!(Range::over(&[3.0, 1.0, 2.0]), Range { min: 1.0, median: 2.0, max: 3.0 });
        let endless = f64::INFINITY;
        let range = Range::over(&[endless, 1.0, endless, endless]);
        assert_eq!(range, Range { min: 1.0, median: endless, max: endless });
        let hundred: Vec<f64> = (0..100).map(f64::from).collect();
        assert_eq!(Interval::over(&hundred), Interval { low: 5.0, high: 94.0 });
        assert_eq!(Interval::over(&[4.0]), Interval { low: 4.0, high: 4.0 });
        assert_eq!(Range::over(&[]), Range::default());
    }

    #[test]
    fn a_distribution_ends_at_the_longest() {
        let points = distribution((1..=1000).map(f64::from).collect());
        assert_eq!(points.last(), Some(&CdfPoint { latency_ns: 1000.0, share: 1.0 }));
        assert!(
            points.windows(2).all(|w| w[0].share < w[1].share && w[0].latency_ns < w[1].latency_ns)
        );
        assert_eq!(points.iter().find(|p| p.share == 0.5).unwrap().latency_ns, 500.0);
        assert!(distribution(Vec::new()).is_empty());
    }
}

//! Folds figures of many runs into ranges and intervals.

use crate::plan::{CdfPoint, Figures, Interval, Range};

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

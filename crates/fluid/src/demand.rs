//! A group's new demand for CPU time in each period: a distribution, or periods of a recording.
//!
//! CPU time is in CPUs here, that is CPU time per period over the length of a period.

use reveille_measure::Random;
use reveille_measure::statistics::{nearest_rank, sorted};

/// New demand of one group, period by period.
#[derive(Clone, Debug, PartialEq)]
pub enum Demand {
    /// Memoryless, all periods independent.
    Exponential { mean: f64 },
    /// A Poisson number of equal requests, all periods independent.
    Poisson {
        mean: f64,
        /// One request, in CPUs.
        step: f64,
    },
    /// Heavy-tailed from a least value on (`mean · (alpha - 1) / alpha`), all periods
    /// independent.
    Pareto {
        mean: f64,
        /// The tail falls with this power; above 1, or there is no mean.
        alpha: f64,
    },
    /// Periods of a recording, in CPUs, each drawn independently.
    Drawn(Vec<f64>),
}

impl Demand {
    /// Mean demand of a period, in CPUs.
    pub fn mean(&self) -> f64 {
        match self {
            Demand::Exponential { mean }
            | Demand::Poisson { mean, .. }
            | Demand::Pareto { mean, .. } => *mean,
            Demand::Drawn(periods) => periods.iter().sum::<f64>() / periods.len() as f64,
        }
    }

    /// The probability that one period's demand is above `quota` CPUs; exact.
    pub fn beyond(&self, quota: f64) -> f64 {
        match self {
            Demand::Exponential { mean } => (-quota / mean).exp(),
            Demand::Poisson { mean, step } => {
                let whole = (quota / step * (1.0 + 1e-12)).floor() as usize;
                (1.0 - poisson(mean / step).take(whole + 1).sum::<f64>()).max(0.0)
            }
            Demand::Pareto { mean, alpha } => {
                (mean * (alpha - 1.0) / alpha / quota).powf(*alpha).min(1.0)
            }
            Demand::Drawn(periods) => {
                let beyond = periods.iter().filter(|d| **d > quota).count();
                beyond as f64 / periods.len() as f64
            }
        }
    }

    /// The least quota, in CPUs, that a period's demand stays within with probability
    /// `share`, which lies between 0 and 1; exact.
    pub fn quantile(&self, share: f64) -> f64 {
        match self {
            Demand::Exponential { mean } => -mean * (1.0 - share).ln(),
            Demand::Poisson { mean, step } => {
                let mut sum = 0.0;
                let below = poisson(mean / step).take_while(|p| {
                    sum += p;
                    sum < share
                });
                below.count() as f64 * step
            }
            Demand::Pareto { mean, alpha } => {
                mean * (alpha - 1.0) / alpha * (1.0 - share).powf(-1.0 / alpha)
            }
            Demand::Drawn(periods) => {
                let sorted = sorted(periods);
                nearest_rank(sorted.len(), share).map_or(f64::NAN, |index| sorted[index])
            }
        }
    }

    /// Is there a number to draw, and none that is negative or without a value?
    pub(crate) fn is_sound(&self) -> bool {
        let size = |x: f64| x.is_finite() && x >= 0.0;
        match self {
            Demand::Exponential { mean } => size(*mean) && *mean > 0.0,
            Demand::Poisson { mean, step } => {
                // Beyond, probabilities are too small to be told from 0 in a table.
                size(*mean) && *mean > 0.0 && size(*step) && *step > 0.0 && mean / step <= 700.0
            }
            Demand::Pareto { mean, alpha } => {
                size(*mean) && *mean > 0.0 && alpha.is_finite() && *alpha > 1.0
            }
            Demand::Drawn(periods) => !periods.is_empty() && periods.iter().all(|d| size(*d)),
        }
    }
}

/// Probabilities of 0, 1, 2, … of a Poisson distribution.
fn poisson(mean: f64) -> impl Iterator<Item = f64> {
    let first = (-mean).exp();
    (1u32..).scan(first, move |p, k| {
        let this = *p;
        *p *= mean / f64::from(k);
        Some(this)
    })
}

pub(crate) enum Source<'a> {
    Exponential {
        mean: f64,
    },
    /// Entry `n`: share of periods with at most `n` requests.
    Poisson {
        cumulative: Vec<f64>,
        step: f64,
    },
    Pareto {
        least: f64,
        power: f64,
    },
    Drawn(&'a [f64]),
}

impl<'a> Source<'a> {
    pub(crate) fn new(demand: &'a Demand) -> Source<'a> {
        match demand {
            Demand::Exponential { mean } => Source::Exponential { mean: *mean },
            Demand::Poisson { mean, step } => {
                let mut sum = 0.0;
                // What is left out is less than a draw can tell from 1.
                let cumulative = poisson(mean / step).map(|p| {
                    sum += p;
                    sum
                });
                let longest = (mean / step + 40.0 * (mean / step).sqrt()).ceil() as usize + 40;
                Source::Poisson { cumulative: cumulative.take(longest).collect(), step: *step }
            }
            Demand::Pareto { mean, alpha } => {
                Source::Pareto { least: mean * (alpha - 1.0) / alpha, power: -1.0 / alpha }
            }
            Demand::Drawn(periods) => Source::Drawn(periods),
        }
    }

    /// Demand of the next period, in CPUs.
    pub(crate) fn next(&mut self, random: &mut Random) -> f64 {
        match self {
            Source::Exponential { mean } => random.exponential(*mean),
            Source::Poisson { cumulative, step } => {
                let u = random.uniform();
                cumulative.partition_point(|c| *c < u) as f64 * *step
            }
            Source::Pareto { least, power } => *least * random.uniform().powf(*power),
            Source::Drawn(periods) => periods[random.below(periods.len() as u64) as usize],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Demand> {
        let recorded: Vec<f64> = (0..200).map(|i| f64::from(i * i % 37) / 30.0).collect();
        vec![
            Demand::Exponential { mean: 0.7 },
            Demand::Poisson { mean: 0.7, step: 0.1 },
            Demand::Poisson { mean: 60.0, step: 0.1 },
            Demand::Pareto { mean: 0.7, alpha: 4.0 },
            Demand::Drawn(recorded),
        ]
    }

    #[test]
    fn draws_have_the_mean_and_the_tail_that_the_formulas_say() {
        for demand in all() {
            assert!(demand.is_sound());
            let mut random = Random::new(5);
            let mut source = Source::new(&demand);
            let draws: Vec<f64> = (0..200_000).map(|_| source.next(&mut random)).collect();
            let n = draws.len() as f64;
            let mean = draws.iter().sum::<f64>() / n;
            assert!((mean / demand.mean() - 1.0).abs() < 0.01, "{demand:?}: mean {mean}");
            for share in [0.5, 0.9, 0.99] {
                let quota = demand.quantile(share);
                let beyond = draws.iter().filter(|d| **d > quota + 1e-9).count() as f64 / n;
                let exact = demand.beyond(quota);
                let error = 5.0 * (exact * (1.0 - exact) / n).sqrt() + 1e-9;
                assert!((beyond - exact).abs() < error, "{demand:?} p{share}: {beyond}, {exact}");
                assert!(exact <= 1.0 - share + 1e-9, "{demand:?} p{share}: {exact}");
            }
        }
    }

    #[test]
    fn what_cannot_be_drawn_is_not_sound() {
        for demand in [
            Demand::Exponential { mean: 0.0 },
            Demand::Exponential { mean: f64::NAN },
            Demand::Poisson { mean: 1.0, step: 0.0 },
            Demand::Poisson { mean: 1000.0, step: 1.0 },
            Demand::Pareto { mean: 1.0, alpha: 1.0 },
            Demand::Drawn(vec![]),
            Demand::Drawn(vec![0.1, -0.1]),
            Demand::Drawn(vec![f64::INFINITY]),
        ] {
            assert!(!demand.is_sound(), "{demand:?}");
        }
    }
}

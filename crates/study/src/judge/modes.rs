//! Repeats that fall into several clusters. One workload can settle in either of two
//! states (a pair stacked on one CPU or spread over two), and a mean of both is a figure
//! that no run ever had.

use reveille_measure::statistics::{interpolated, sorted};
use reveille_measure::{Direction, Ns};
use serde::Serialize;

use crate::judge::statistics;

/// Neighbours that lie apart by this factor belong to different modes.
const GAP: f64 = 1.5;
/// Fewer repeats than two make a mode only if they are this share of all.
const LEAST_SHARE: f64 = 0.15;

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Mode {
    pub centre: f64,
    /// Its part of all repeats, from 0 to 1.
    pub share: f64,
}

/// The modes of some repeats, in rising order: clusters on a logarithmic axis with a gap
/// of a factor of 1.5 or more between them, each of two repeats or 15% of all at least.
/// Repeats without a value are left out.
pub fn modes(samples: &[f64]) -> Vec<Mode> {
    let sorted = sorted(samples);
    let all = sorted.len() as f64;
    let clusters = sorted.chunk_by(|a, b| a == b || *a > 0.0 && *b < a * GAP);
    let modes = clusters.map(|c| (c.len(), interpolated(c, 0.5), c.len() as f64 / all));
    let modes = modes.filter(|(n, _, share)| *n >= 2 || *share >= LEAST_SHARE);
    modes.map(|(_, centre, share)| Mode { centre, share }).collect()
}

/// A change from a mode of the baseline to one of the variant.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ModeChange {
    /// In percent, + is better.
    pub change_pct: f64,
    /// Its probability, from 0 to 1.
    pub share: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RowModes {
    pub baseline: Vec<Mode>,
    pub candidate: Vec<Mode>,
    /// In rising order. The kernels that were compared settled independently, so every
    /// mode of one side is held against every mode of the other.
    pub changes: Vec<ModeChange>,
}

impl RowModes {
    /// `None` unless a side has several modes, and where a repeat has no value.
    pub fn of(direction: Direction, baseline: &[f64], candidate: &[f64]) -> Option<RowModes> {
        if !baseline.iter().chain(candidate).all(|x| x.is_finite()) {
            return None;
        }
        let (baseline, candidate) = (modes(baseline), modes(candidate));
        if baseline.is_empty() || candidate.is_empty() || baseline.len() + candidate.len() < 3 {
            return None;
        }
        let pairs = baseline.iter().flat_map(|a| candidate.iter().map(move |b| (a, b)));
        let mut all: Vec<ModeChange> = pairs
            .map(|(a, b)| ModeChange {
                change_pct: statistics::change_pct(direction, a.centre, b.centre),
                share: a.share * b.share,
            })
            .collect();
        all.sort_by(|a, b| a.change_pct.total_cmp(&b.change_pct));
        // Two sides with the same modes have "no change" several times.
        let equal = all.chunk_by(|a, b| a.change_pct == b.change_pct);
        let changes =
            equal.map(|c| ModeChange { share: c.iter().map(|c| c.share).sum(), ..c[0] }).collect();
        Some(RowModes { baseline, candidate, changes })
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spread {
    pub median: f64,
    pub q1: f64,
    pub q3: f64,
    pub min: f64,
    pub max: f64,
    /// The figure of every repeat, in the order in which they ran.
    pub samples: Vec<f64>,
    pub modes: Vec<Mode>,
    /// A quantile that some repeat has fewer than ten samples beyond: `samples` only, no figures.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub too_few: bool,
    /// A duration that has enough of them, at the rate of the repeat with fewest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enough_ns: Option<Ns>,
}

impl Spread {
    /// Of these repeats; its figures are NaN if none has a value.
    pub fn of(samples: &[f64]) -> Spread {
        let sorted = sorted(samples);
        let at = |share| interpolated(&sorted, share);
        Spread {
            median: at(0.5),
            q1: at(0.25),
            q3: at(0.75),
            min: at(0.0),
            max: at(1.0),
            samples: samples.to_vec(),
            modes: modes(samples),
            too_few: false,
            enough_ns: None,
        }
    }

    /// Of repeats that have too few samples for the quantile, and a time that has enough.
    pub fn of_too_few(samples: &[f64], enough_ns: Ns) -> Spread {
        let enough_ns = Some(enough_ns);
        Spread { samples: samples.to_vec(), too_few: true, enough_ns, ..Spread::of(&[]) }
    }

    pub fn is_multimodal(&self) -> bool {
        self.modes.len() > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn centres(samples: &[f64]) -> Vec<f64> {
        modes(samples).iter().map(|m| m.centre).collect()
    }

    #[test]
    fn stacked_and_spread_pairs_are_two_modes() {
        let rates = [4.9, 33.0, 5.0, 32.0, 4.8, 5.1, 34.0, 4.9, 5.0, 33.5];
        let found = modes(&rates);
        assert_eq!(found.len(), 2);
        assert!((found[0].centre - 4.95).abs() < 1e-9 && found[0].share == 0.6, "{found:?}");
        assert!((found[1].centre - 33.25).abs() < 1e-9 && found[1].share == 0.4, "{found:?}");
        assert!(Spread::of(&rates).is_multimodal());
    }

    #[test]
    fn one_outlier_among_many_is_no_mode() {
        let mut rates = vec![10.0; 9];
        rates.push(100.0);
        assert_eq!(centres(&rates), [10.0]);
        // Too few repeats to tell.
        assert_eq!(centres(&[10.0, 10.0, 100.0]), [10.0, 100.0]);
    }

    #[test]
    fn nothing_and_something_are_apart() {
        assert_eq!(centres(&[0.0, 0.0, 1e-9, 1e-9]), [0.0, 1e-9]);
        assert_eq!(centres(&[0.0, 0.0]), [0.0]);
        assert_eq!(centres(&[f64::NAN, 7.0]), [7.0]);
        assert!(modes(&[]).is_empty() && Spread::of(&[f64::NAN]).median.is_nan());
    }

    #[test]
    fn quartiles_lie_between_neighbours() {
        let spread = Spread::of(&[4.0, 1.0, 2.0, 3.0]);
        assert_eq!((spread.q1, spread.median, spread.q3), (1.75, 2.5, 3.25));
        assert_eq!((spread.min, spread.max), (1.0, 4.0));
        assert_eq!(spread.samples, [4.0, 1.0, 2.0, 3.0]);
    }

    #[test]
    fn changes_hold_every_mode_against_every_other() {
        let row = RowModes::of(Direction::Higher, &[10.0, 10.0], &[10.0, 40.0]).unwrap();
        let half = |change_pct| ModeChange { change_pct, share: 0.5 };
        assert_eq!(row.changes, [half(0.0), half(300.0)]);
        let row = RowModes::of(Direction::Lower, &[10.0, 40.0], &[10.0, 40.0]).unwrap();
        let shares: Vec<(f64, f64)> = row.changes.iter().map(|c| (c.change_pct, c.share)).collect();
        assert_eq!(shares, [(-75.0, 0.25), (0.0, 0.5), (300.0, 0.25)]);
        assert_eq!(RowModes::of(Direction::Higher, &[10.0, 14.9], &[10.0]), None);
        assert_eq!(RowModes::of(Direction::Higher, &[10.0, f64::NAN, 40.0], &[10.0]), None);
    }

    proptest! {
        #[test]
        fn modes_lie_apart_and_within_the_repeats(
            samples in proptest::collection::vec(0.001..1e6f64, 0..40)
        ) {
            let found = modes(&samples);
            let spread = Spread::of(&samples);
            prop_assert!(found.iter().map(|m| m.share).sum::<f64>() <= 1.0 + 1e-9);
            prop_assert!(found.windows(2).all(|w| w[1].centre >= w[0].centre * GAP));
            for mode in &found {
                prop_assert!(mode.centre >= spread.min && mode.centre <= spread.max);
                let least = (2.0 / samples.len() as f64).min(LEAST_SHARE);
                prop_assert!(mode.share >= least - 1e-9, "{mode:?}");
            }
        }

        #[test]
        fn the_scale_and_the_order_do_not_matter(
            mut samples in proptest::collection::vec(1.0..1e4f64, 1..30), shift in -8i32..8
        ) {
            // A power of two scales without rounding.
            let factor = 2f64.powi(shift);
            let scaled: Vec<f64> = samples.iter().rev().map(|x| x * factor).collect();
            samples.sort_by(f64::total_cmp);
            let (a, b) = (modes(&samples), modes(&scaled));
            prop_assert_eq!(a.len(), b.len());
            for (a, b) in a.iter().zip(&b) {
                prop_assert!((a.centre * factor - b.centre).abs() <= 1e-9 * b.centre);
                prop_assert_eq!(a.share, b.share);
            }
        }

        #[test]
        fn repeats_close_together_are_one_mode(
            centre in 1e-3..1e9f64, offsets in proptest::collection::vec(1.0..1.49f64, 1..30)
        ) {
            let samples: Vec<f64> = offsets.iter().map(|o| o * centre).collect();
            prop_assert_eq!(modes(&samples).len(), 1);
            prop_assert_eq!(modes(&samples)[0].share, 1.0);
        }
    }
}

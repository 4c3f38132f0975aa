//! Gains as logarithms: of a cell from its repeats, of many cells from theirs, with the 95%
//! interval that the repeats support.

use reveille_measure::Direction;
use reveille_measure::statistics::{mean, variance};
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// In a mean over cells each counts as this factor at most, so that no single cell carries it.
pub(crate) const LARGEST: f64 = 2.0;
/// The gain of a repeat in which the candidate recorded nothing.
const NOTHING: f64 = 1e-3;

/// A ratio of candidate to baseline, higher is better, with its 95% confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Gain {
    pub(crate) gain: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// Of the logarithm of the mean: its variance, and degrees of freedom.
    #[serde(skip)]
    variance: f64,
    #[serde(skip)]
    freedom: f64,
}

impl Gain {
    /// Pairs the repeats of a cell by seed.
    pub(crate) fn of_cell(direction: Direction, base: &[f64], candidate: &[f64]) -> Gain {
        let logs: Vec<f64> =
            base.iter().zip(candidate).map(|(&b, &c)| ln_ratio(direction, b, c)).collect();
        Gain::new(mean(&logs), variance(&logs) / logs.len() as f64, logs.len() as f64 - 1.0)
    }

    /// The same as if it were `gain`: its logarithm and those of its interval by the same share of
    /// themselves.
    pub(crate) fn corrected(self, gain: f64) -> Gain {
        let share = gain.ln() / self.gain.ln();
        Gain::new(gain.ln(), self.variance * share * share, self.freedom)
    }

    /// Geometric mean; exactly 1 if every gain is.
    pub(crate) fn of_cells<'a>(cells: impl IntoIterator<Item = &'a Gain>) -> Option<Gain> {
        let cells: Vec<&Gain> = cells.into_iter().collect();
        if cells.is_empty() {
            return None;
        }
        let n = cells.len() as f64;
        let bound = LARGEST.ln();
        let logs: Vec<f64> = cells.iter().map(|c| c.gain.ln().clamp(-bound, bound)).collect();
        let sum: f64 = cells.iter().map(|c| c.variance).sum();
        // Welch and Satterthwaite: cells of little noise add few degrees of freedom.
        let squares: f64 = cells.iter().map(|c| c.variance * c.variance / c.freedom).sum();
        Some(Gain::new(mean(&logs), sum / (n * n), sum * sum / squares))
    }

    pub(crate) fn parts(&self) -> [f64; 3] {
        [self.gain, self.low, self.high]
    }

    fn new(ln: f64, variance: f64, freedom: f64) -> Gain {
        let student = StudentsT::new(0.0, 1.0, freedom).ok().filter(|_| variance > 0.0);
        let half = student.map_or(0.0, |t| t.inverse_cdf(0.975) * variance.sqrt());
        Gain { gain: ln.exp(), low: (ln - half).exp(), high: (ln + half).exp(), variance, freedom }
    }
}

/// The logarithm of how many times better the candidate is.
fn ln_ratio(direction: Direction, base: f64, candidate: f64) -> f64 {
    let has = |x: f64| x.is_finite() && x > 0.0;
    match (has(base), has(candidate)) {
        (true, true) if direction == Direction::Lower => (base / candidate).ln(),
        (true, true) => (candidate / base).ln(),
        (true, false) => NOTHING.ln(),
        // Nothing to compare with.
        (false, _) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn no_change_is_exactly_one() {
        let cell = Gain::of_cell(Direction::Higher, &[3.0, 7.0], &[3.0, 7.0]);
        let all = Gain::of_cells(&[cell, cell]).unwrap();
        assert_eq!((all.gain, all.low, all.high), (1.0, 1.0, 1.0));
        assert!(Gain::of_cells(&[]).is_none());
    }

    #[test]
    fn a_corrected_gain_keeps_the_side_of_its_interval() {
        let loss = Gain::of_cell(Direction::Higher, &[10.0, 11.0, 12.0], &[6.0, 7.0, 7.0]);
        let small = loss.corrected(0.986);
        assert!((small.gain - 0.986).abs() < 1e-12 && small.low < 0.986 && small.high < 1.0);
        let share = small.high.ln() / loss.high.ln();
        assert!((share - small.gain.ln() / loss.gain.ln()).abs() < 1e-9, "{share}");
    }

    #[test]
    fn one_cell_cannot_carry_the_mean() {
        let ten = Gain::of_cell(Direction::Higher, &[1.0; 2], &[10.0; 2]);
        let same = Gain::of_cell(Direction::Higher, &[1.0; 2], &[1.0; 2]);
        assert!((ten.gain - 10.0).abs() < 1e-9);
        let mean = Gain::of_cells([&ten, &same]).unwrap().gain;
        assert!((mean - LARGEST.sqrt()).abs() < 1e-9, "{mean}");
    }

    #[test]
    fn a_run_that_does_nothing_is_the_largest_loss() {
        let none = Gain::of_cell(Direction::Lower, &[5.0; 2], &[f64::NAN; 2]);
        assert!(none.gain < 0.01);
        let odd = Gain::of_cell(Direction::Lower, &[f64::NAN; 2], &[5.0; 2]);
        assert_eq!(odd.gain, 1.0);
    }

    proptest! {
        #[test]
        fn intervals_hold_their_gain_and_mirror(
            pairs in prop::collection::vec((0.5..2.0f64, 0.5..2.0f64), 2..6)
        ) {
            let (base, candidate): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let up = Gain::of_cell(Direction::Higher, &base, &candidate);
            let down = Gain::of_cell(Direction::Lower, &base, &candidate);
            prop_assert!(up.low <= up.gain && up.gain <= up.high);
            prop_assert!((up.gain * down.gain - 1.0).abs() < 1e-9);
            prop_assert!((up.low * down.high - 1.0).abs() < 1e-9);
        }
    }
}

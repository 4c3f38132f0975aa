//! What a fit minimises; also in docs/fit.md:
//!
//! > mean over rows of min(1, (d / w)²) + 0.01 · Σ ((x − x₀) / (high − low))²
//!
//! where d is how far the logarithm of predicted by published lies from 0, w how far
//! it may for a hit, x a constant and x₀ its shipped value. A row that is off by more
//! than its tolerance costs the same however far it is off: a hopeless row must not
//! bend constants that others need. A row whose repeats fall into several states costs the
//! mean over them.

use serde::Serialize;

use crate::judge::row::Row;
use crate::judge::verdict::Verdict;

/// Price of moving one constant across its whole range.
const PENALTY: f64 = 0.01;

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Objective {
    /// Misfit and penalty together.
    pub total: f64,
    /// Mean over rows, from 0 (all exact) to 1 (all misses).
    pub misfit: f64,
    /// For leaving the shipped values.
    pub penalty: f64,
    pub hits: usize,
    pub counted: usize,
}

/// The objective of rows that count, with constants moved by these shares of their
/// ranges.
pub(crate) fn objective(rows: &[&Row], moved: &[f64]) -> Objective {
    let costs = rows.iter().map(|r| cost(&r.ratios, r.half_width));
    let misfit = if rows.is_empty() { 0.0 } else { costs.sum::<f64>() / rows.len() as f64 };
    let penalty = PENALTY * moved.iter().map(|m| m * m).sum::<f64>();
    let hits = rows.iter().filter(|r| r.verdict == Some(Verdict::Hit)).count();
    Objective { total: misfit + penalty, misfit, penalty, hits, counted: rows.len() }
}

/// What one row costs: 0 where it is exact, 1 from the edge of its tolerance on and
/// where nothing could be predicted; the mean over its states.
fn cost(ratios: &[(f64, f64)], half_width: f64) -> f64 {
    let gain = |(ratio, share): &(f64, f64)| {
        let off = ratio.ln().abs() / half_width;
        if off < 1.0 { share * (1.0 - off * off) } else { 0.0 }
    };
    1.0 - ratios.iter().map(gain).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one(ratio: f64, half_width: f64) -> f64 {
        cost(&[(ratio, 1.0)], half_width)
    }

    #[test]
    fn a_row_costs_nothing_where_it_is_exact_and_one_at_its_edge() {
        assert_eq!(one(1.0, 0.05), 0.0);
        assert!((one(0.025f64.exp(), 0.05) - 0.25).abs() < 1e-12);
        assert_eq!(one(0.06f64.exp(), 0.05), 1.0);
        assert_eq!(one(1000.0, 0.05), 1.0);
        assert_eq!(one(f64::NAN, 0.05), 1.0);
        assert_eq!(one(0.0, 0.05), 1.0);
        assert_eq!(cost(&[(1.0, 0.25), (9.0, 0.75)], 0.05), 0.75);
    }

    #[test]
    fn leaving_the_shipped_values_has_a_price() {
        let objective = objective(&[], &[0.5, -1.0, 0.0]);
        assert!((objective.penalty - 0.0125).abs() < 1e-12);
        assert_eq!(objective.total, objective.penalty);
    }

    proptest! {
        #[test]
        fn a_row_that_is_further_off_never_costs_less(
            a in 0.0..5.0f64, b in 0.0..5.0f64, width in 0.01..2.0f64
        ) {
            let (near, far) = (a.min(b), a.max(b));
            let at = |off: f64| one(off.exp(), width);
            prop_assert!(at(near) <= at(far) + 1e-12);
            prop_assert!((at(near) - one((-near).exp(), width)).abs() < 1e-9);
            prop_assert!((0.0..=1.0).contains(&at(far)));
        }
    }
}

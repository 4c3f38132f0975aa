//! Compares the score with that of the null predictor, which predicts no change. Most published
//! changes are small, so the null predictor hits often.
//!
//! Rows with a published figure of one side are excluded: there is no trivial prediction of a size.

use std::ops::AddAssign;

use serde::Serialize;

use crate::judge::row::Row;
use crate::judge::verdict::{self, Verdict};

/// A published ratio from this one on, or down to [`BIG_LOSS`], is a big change.
const BIG_GAIN: f64 = 1.1;
/// See [`BIG_GAIN`].
const BIG_LOSS: f64 = 0.9;
/// A ratio nearer to 1 than this factor is a small change.
const SMALL: f64 = 1.05;
/// A predicted change has a sign if its logarithm is further from 0 than this.
const SIGN: f64 = 0.01;

/// The score of predicted changes beside that of "nothing ever changes", among counted
/// rows whose published figure is a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Skill {
    pub changes: usize,
    pub hits: usize,
    /// Rows that would hit if 0% were predicted for all of them.
    pub null_hits: usize,
    /// Rows whose published change is 10% or more, either way.
    pub big: usize,
    /// Big rows that are predicted to change by 1% or more in the published direction.
    pub big_sign: usize,
    pub big_hits: usize,
    /// Rows whose published change is below 5%, either way.
    pub small: usize,
    /// Small rows that are predicted to change by less than 5%.
    pub small_quiet: usize,
}

impl Skill {
    /// Of a comparison's rows; those that do not count are passed over.
    pub fn of(rows: &[Row]) -> Skill {
        let mut skill = Skill::default();
        for row in rows {
            let (Some(verdict @ (Verdict::Hit | Verdict::Miss)), Some(published_pct)) =
                (row.verdict, row.published_change_pct)
            else {
                continue;
            };
            skill.add(row, published_pct, verdict == Verdict::Hit);
        }
        skill
    }

    fn add(&mut self, row: &Row, published_pct: f64, hit: bool) {
        let published = 1.0 + published_pct / 100.0;
        let mostly = |holds: &dyn Fn(f64) -> bool| {
            let states = row.changes().into_iter();
            verdict::mostly(states.map(|c| (holds((1.0 + c.change_pct / 100.0).ln()), c.share)))
        };
        self.changes += 1;
        self.hits += usize::from(hit);
        // The half width of a change is its tolerance, as for any prediction of it.
        self.null_hits += usize::from(published.ln().abs() <= row.half_width);
        if published >= BIG_GAIN || published <= BIG_LOSS {
            let right = |ln: f64| ln * published.ln() > 0.0 && ln.abs() > SIGN;
            self.big += 1;
            self.big_sign += usize::from(mostly(&right));
            self.big_hits += usize::from(hit);
        }
        if published.ln().abs() < SMALL.ln() {
            self.small += 1;
            self.small_quiet += usize::from(mostly(&|ln: f64| ln.abs() < SMALL.ln()));
        }
    }
}

impl AddAssign for Skill {
    fn add_assign(&mut self, other: Skill) {
        self.changes += other.changes;
        self.hits += other.hits;
        self.null_hits += other.null_hits;
        self.big += other.big;
        self.big_sign += other.big_sign;
        self.big_hits += other.big_hits;
        self.small += other.small;
        self.small_quiet += other.small_quiet;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::modes::RowModes;
    use crate::judge::row::RowKind;
    use crate::judge::rows::hold;
    use crate::judge::score::{Score, score};
    use crate::judge::statistics::{self, Figure};
    use crate::model::published::{Published, PublishedFigure, Side};
    use proptest::prelude::*;
    use reveille_measure::{Direction, Metric};

    fn published(change_pct: f64) -> Published {
        Published {
            variant: 0,
            metric: 0,
            figure: PublishedFigure::Change { change_pct },
            std_base_pct: None,
            std_variant_pct: None,
            noise: None,
            source: "a mail".into(),
        }
    }

    /// A row of these repeats, held against a published figure.
    fn row_of(published: &Published, baseline: &[f64], candidate: &[f64]) -> Row {
        let direction = Direction::Higher;
        let [base, variant] = [baseline, candidate].map(statistics::figure);
        let mut row = Row {
            case: "case".into(),
            machine: "machine".into(),
            base: "v6.2".into(),
            load: 1,
            variant: "+SIS_SHORT".into(),
            repeats: baseline.len(),
            modes: RowModes::of(direction, baseline, candidate),
            ..Row::of(
                Metric::new("throughput", "operations/s", direction),
                RowKind::Change,
                Figure { mean: base.mean, rel_std: 0.0 },
                Figure { mean: variant.mean, rel_std: 0.0 },
            )
        };
        hold(&mut row, published, None);
        row
    }

    /// A row that predicts one change, in percent.
    fn row(published: &Published, predicted: f64) -> Row {
        row_of(published, &[100.0], &[100.0 + predicted])
    }

    #[test]
    fn rows_count_by_what_was_published() {
        let spread = Published { std_base_pct: Some(8.0), ..published(12.0) };
        let noisy = Published { std_base_pct: Some(31.0), ..published(50.0) };
        let noise = Published { noise: Some("noise".into()), ..published(50.0) };
        let std = PublishedFigure::Std { base: 2.0, variant: 1.0, unit: None };
        let side = PublishedFigure::Side { side: Side::Base, value: 100.0, unit: None, own: 100.0 };
        let rows = [
            row(&published(2.0), 0.0),    // small, quiet; both hit
            row(&published(-4.0), -40.0), // small, shouted; null hits
            row(&published(7.0), 6.0),    // neither big nor small; null misses
            row(&published(10.0), 8.0),   // the least that is big; sign and hit
            row(&published(-10.0), 3.0),  // big; wrong sign
            row(&published(40.0), 0.5),   // big; 0.5% is no sign
            row(&spread, 0.0),            // big, within twice its spread of nothing
            // Noise and spreads do not count, one side alone is no change.
            row(&noisy, 50.0),
            row(&noise, 50.0),
            row(&Published { figure: std, ..published(0.0) }, 100.0),
            row(&Published { figure: side, ..published(0.0) }, 0.0),
        ];
        let skill = Skill {
            changes: 7,
            hits: 4,
            null_hits: 3,
            big: 4,
            big_sign: 1,
            big_hits: 2,
            small: 2,
            small_quiet: 1,
        };
        assert_eq!(Skill::of(&rows), skill);
        assert_eq!(score(&rows), Score { hits: 5, counted: 8 });
        let mut twice = skill;
        twice += skill;
        assert_eq!(Skill::of(&[&rows[..], &rows].concat()), twice);
    }

    #[test]
    fn states_are_judged_by_their_shares_and_not_by_their_mean() {
        // Half of the runs gain nothing, half fourfold: the mean is what nothing shows.
        let verdict = |published_pct, repeats: &[f64]| {
            let row = row_of(&published(published_pct), &[10.0, 10.0], repeats);
            assert!(row.ratio.is_none() && row.modes.is_some());
            row.verdict == Some(Verdict::Hit)
        };
        assert!(verdict(0.0, &[10.0, 40.0]) && verdict(300.0, &[10.0, 40.0]));
        assert!(!verdict(150.0, &[9.0, 41.0]));
        // A third of the runs is too few.
        assert!(verdict(0.0, &[10.0, 10.0, 40.0]) && !verdict(300.0, &[10.0, 10.0, 40.0]));
        let rows = [row_of(&published(300.0), &[10.0, 10.0], &[10.0, 40.0])];
        assert_eq!(Skill { big_sign: 1, big_hits: 1, ..Skill::of(&rows) }, Skill::of(&rows));
        // One side alone by its own states.
        let side = PublishedFigure::Side { side: Side::Variant, value: 4.0, unit: None, own: 40.0 };
        let side = Published { figure: side, ..published(0.0) };
        assert_eq!(row_of(&side, &[1.0], &[1.0, 40.0]).verdict, Some(Verdict::Hit));
        assert_eq!(row_of(&side, &[1.0, 40.0], &[1.0]).verdict, Some(Verdict::Miss));
        assert_eq!(row_of(&side, &[1.0, 40.0], &[40.0]).ratio, Some(1.0));
    }

    proptest! {
        #[test]
        fn no_change_hits_where_a_prediction_of_nothing_does(
            change in -95.0..1e3f64,
            stds in prop::option::of((0.0..40.0f64, 0.0..40.0f64)),
            predicted in -90.0..1e3f64,
        ) {
            let published = Published {
                std_base_pct: stds.map(|s| s.0),
                std_variant_pct: stds.map(|s| s.1),
                ..published(change)
            };
            let skill = Skill::of(&[row(&published, predicted)]);
            let nothing = verdict::Predicted {
                change_pct: 0.0,
                published_change_pct: Some(change),
                side_ratio: f64::NAN,
                within: None,
            };
            let said = verdict::judge(&published, &nothing);
            prop_assert_eq!(skill.null_hits == 1, said == Verdict::Hit);
            prop_assert_eq!(skill.changes == 1, said != Verdict::Informative);
        }
    }
}

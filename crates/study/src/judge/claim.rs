//! Checks published statements about a curve against the predicted curve.

use reveille_measure::Direction;
use serde::Serialize;

use crate::judge::statistics;
use crate::judge::verdict::{self, Verdict};
use crate::model::published::Side;
use crate::model::statement::{Statement, StatementKind};
use crate::model::study::Study;

/// A published statement about a curve, held against the predicted curve.
#[derive(Clone, Debug, Serialize)]
pub struct Claim {
    /// `peak`, `onset`, `fall`, `between` or `steadier`.
    pub kind: &'static str,
    pub claim: String,
    /// The published value, where it is one number.
    pub published: Option<f64>,
    /// The least predicted value that agrees; null if there is no such bound.
    pub low: Option<f64>,
    /// The largest predicted value that agrees; null if there is no such bound.
    pub high: Option<f64>,
    /// The predicted value; null if the curve has none.
    pub predicted: Option<f64>,
    pub verdict: Verdict,
    pub source: String,
}

impl StatementKind {
    /// Bounds of the predicted values that agree.
    fn bounds(&self) -> (Option<f64>, Option<f64>) {
        match *self {
            StatementKind::Peak { load } => {
                let share = verdict::PEAK_TOLERANCE;
                (Some((1.0 - share) * load as f64), Some((1.0 + share) * load as f64))
            }
            StatementKind::Onset { from, to, .. } => (Some(from as f64), Some(to as f64)),
            StatementKind::Fall { factor, .. } | StatementKind::Steadier { factor, .. } => {
                (Some(factor), None)
            }
            StatementKind::Between { min, max, .. } => (min, max),
        }
    }

    fn published(&self) -> Option<f64> {
        match *self {
            StatementKind::Peak { load } => Some(load as f64),
            StatementKind::Fall { factor, .. } | StatementKind::Steadier { factor, .. } => {
                Some(factor)
            }
            StatementKind::Onset { .. } | StatementKind::Between { .. } => None,
        }
    }
}

impl Statement {
    /// What is claimed, in words, without the figures that agree with it.
    pub fn words(&self, study: &Study) -> String {
        let case = &study.cases[self.case];
        let (name, metric) = (&case.name, &case.metrics[self.metric].metric);
        let variant = |i: usize| &case.variants[i].name;
        match self.kind {
            StatementKind::Peak { .. } => {
                format!("{name}: load of highest {metric} under {}", case.base.base)
            }
            StatementKind::Onset { variant: v, above_pct, .. } => {
                let v = variant(v);
                format!("{name}: load from which on {v} gains {above_pct}% or more, {metric}")
            }
            StatementKind::Fall { variant: v, load, .. } => {
                format!(
                    "{name}: factor by which {metric} falls at load {load} under {}",
                    variant(v)
                )
            }
            StatementKind::Between { variant: v, side, load, .. } => {
                let side = if side == Side::Base { &case.base.base } else { variant(v) };
                format!("{name}: {metric} at load {load} under {side}")
            }
            StatementKind::Steadier { variant: v, from, .. } => format!(
                "{name}: least factor by which the standard deviation of {metric} falls from load \
                 {from} on under {}",
                variant(v)
            ),
        }
    }

    /// The predicted values that agree with it, in words.
    pub fn expected(&self) -> String {
        match (self.kind, self.kind.bounds()) {
            (StatementKind::Peak { load }, _) => format!("load {load}, within 15%"),
            (_, (Some(low), Some(high))) => format!("{low} to {high}"),
            (_, (Some(low), None)) => format!("at least {low}"),
            (_, (None, Some(high))) => format!("at most {high}"),
            (_, (None, None)) => "anything".to_owned(),
        }
    }

    /// The statement held against predicted curves. `samples` gives the metric of every
    /// repeat at a load (by position in the case) on a side: 0 is the baseline, variant
    /// i is i + 1. `None` if one that is needed is missing.
    pub(crate) fn claim<'a>(
        &self,
        study: &Study,
        samples: &dyn Fn(usize, usize) -> Option<&'a [f64]>,
    ) -> Option<Claim> {
        let case = &study.cases[self.case];
        let direction = case.metrics[self.metric].metric.direction;
        let loads: Vec<u64> = case.points.iter().map(|p| p.load).collect();
        let predicted = predicted(&self.kind, direction, &loads, samples)?;
        let (low, high) = self.kind.bounds();
        Some(Claim {
            kind: self.kind.name(),
            claim: self.words(study),
            published: self.kind.published(),
            low,
            high,
            predicted,
            verdict: match case.published_on {
                Some(_) => Verdict::Informative,
                None => verdict::judge_claim(low, high, predicted),
            },
            source: self.source.clone(),
        })
    }
}

/// What the curve says; the inner `None` where it has no such point.
fn predicted<'a>(
    kind: &StatementKind,
    direction: Direction,
    loads: &[u64],
    samples: &dyn Fn(usize, usize) -> Option<&'a [f64]>,
) -> Option<Option<f64>> {
    let mean = |at: usize, side: usize| samples(at, side).map(|s| statistics::figure(s).mean);
    let std = |at: usize, side: usize| samples(at, side).map(reveille_measure::statistics::std);
    let position = |load: u64| loads.iter().position(|l| *l == load);
    match *kind {
        StatementKind::Peak { .. } => {
            let mut best: Option<(u64, f64)> = None;
            for (at, &load) in loads.iter().enumerate() {
                let mean = mean(at, 0)?;
                if best.is_none_or(|(_, highest)| mean > highest) {
                    best = Some((load, mean));
                }
            }
            Some(best.map(|(load, _)| load as f64))
        }
        StatementKind::Onset { variant, above_pct, .. } => {
            let mut changes = Vec::new();
            for (at, &load) in loads.iter().enumerate() {
                let change =
                    statistics::change_pct(direction, mean(at, 0)?, mean(at, variant + 1)?);
                changes.push((load, change));
            }
            changes.sort_by_key(|(load, _)| std::cmp::Reverse(*load));
            let gains = changes.iter().take_while(|(_, change)| *change >= above_pct);
            Some(gains.last().map(|(load, _)| *load as f64))
        }
        StatementKind::Fall { variant, load, .. } => {
            let at = position(load)?;
            Some(Some(mean(at, 0)? / mean(at, variant + 1)?))
        }
        StatementKind::Between { variant, side, load, .. } => {
            let side = if side == Side::Base { 0 } else { variant + 1 };
            Some(Some(mean(position(load)?, side)?))
        }
        StatementKind::Steadier { variant, from, .. } => {
            let mut least = f64::INFINITY;
            for (at, _) in loads.iter().enumerate().filter(|(_, load)| **load >= from) {
                let factor = std(at, 0)? / std(at, variant + 1)?;
                // Not f64::min, which would leave NaN out.
                least = if factor < least || factor.is_nan() { factor } else { least };
                if least.is_nan() {
                    break;
                }
            }
            Some(Some(least))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOADS: [u64; 4] = [10, 20, 30, 40];

    fn predict(kind: StatementKind, base: [[f64; 2]; 4], variant: [[f64; 2]; 4]) -> Option<f64> {
        let sides = [base, variant];
        let samples = |at: usize, side: usize| Some(&sides[side][at][..]);
        // The closure borrows `sides`, which outlives the call.
        predicted(&kind, Direction::Higher, &LOADS, &samples).unwrap()
    }

    fn flat(means: [f64; 4]) -> [[f64; 2]; 4] {
        means.map(|m| [m, m])
    }

    #[test]
    fn a_gain_starts_where_it_stays() {
        let onset = StatementKind::Onset { variant: 0, from: 20, to: 30, above_pct: 5.0 };
        let base = flat([100.0; 4]);
        let starts = |means| predict(onset, base, flat(means));
        assert_eq!(starts([100.0, 100.0, 110.0, 120.0]), Some(30.0));
        assert_eq!(starts([110.0, 100.0, 105.0, 120.0]), Some(30.0));
        assert_eq!(starts([110.0; 4]), Some(10.0));
        assert_eq!(starts([110.0, 110.0, 110.0, 104.0]), None);
    }

    #[test]
    fn spread_and_size_fall_by_factors() {
        let base = [[100.0, 104.0], [100.0, 104.0], [100.0, 108.0], [100.0, 104.0]];
        let variant = [[50.0, 54.0], [50.0, 51.0], [50.0, 51.0], [50.0, 52.0]];
        let steadier = |from| StatementKind::Steadier { variant: 0, from, factor: 3.0 };
        assert_eq!(predict(steadier(20), base, variant), Some(2.0));
        assert_eq!(predict(steadier(10), base, variant), Some(1.0));
        let fall = StatementKind::Fall { variant: 0, load: 30, factor: 2.0 };
        assert_eq!(predict(fall, flat([90.0; 4]), flat([30.0; 4])), Some(3.0));
        // Nothing varies: no factor, and so no agreement.
        let nan = predict(steadier(10), flat([1.0; 4]), flat([1.0; 4])).unwrap();
        assert!(nan.is_nan());
    }

    #[test]
    fn one_side_is_looked_at_alone() {
        let between =
            |side| StatementKind::Between { variant: 0, side, load: 20, min: Some(1.0), max: None };
        let (base, variant) = (flat([1.0, 2.0, 3.0, 4.0]), flat([5.0, 6.0, 7.0, 8.0]));
        assert_eq!(predict(between(Side::Base), base, variant), Some(2.0));
        assert_eq!(predict(between(Side::Variant), base, variant), Some(6.0));
    }
}

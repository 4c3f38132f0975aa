//! Does a prediction agree with what this host measured? The rule for every study:
//!
//! - A *value* of one side (throughput, quantile of a latency, share of time) is a hit if
//!   the medians over repeats lie within a factor of two. If the measured repeats have a
//!   relative standard deviation above 30%, it is shown and not counted.
//! - If the repeats of either world form several [`modes`](crate::modes()), no mean or
//!   median stands for them. Then it is a hit if every measured mode with a share of 25%
//!   or more has a predicted one within a factor of two, and the other way round. Shares
//!   are shown and not judged.
//! - Under a bandwidth limit the phase of the period decides, which cannot be controlled on a
//!   kernel: a prediction is a range over phases, and one measurement is no oracle. A
//!   quantile of a latency is a hit if the measured median lies between the least and the
//!   largest prediction, widened by 10% (so within 10% where phases do not matter); so is
//!   a counter of a task group. The share of throttled periods may leave the range by 10
//!   points. A latency that stays below 1 ms in both worlds, the shortest period there
//!   is, was not throttled: it is a value.
//! - *Runs*: the share p of repeats that throttle at all, or that have a quantile above a
//!   tenth of the period, is a hit if |p̂ − p| ≤ max(0.15, 2·√(p̄(1 − p̄)(1/n + 1/m))),
//!   with n and m repeats and p̄ over both.
//! - A *change* between two sides is judged as a published one, with s the larger
//!   measured relative standard deviation; it is not counted where that is above 30% or
//!   where a side has several modes.
//! - A quantile with fewer than ten samples beyond it in some repeat of a world has no figure there
//!   and is not counted; a count of *runs* is, for it holds each repeat against a bound.

use serde::Serialize;

use super::{NOISY_STD_PCT, hit, judge_change, ratio};
use crate::judge::modes::{Mode, Spread};
use crate::judge::statistics;
use crate::judge::verdict::Verdict;

/// Medians, and modes, agree within this factor.
const FACTOR: f64 = 2.0;
/// Modes of a smaller share need no counterpart.
const MODE_SHARE: f64 = 0.25;
/// By how much a range over phases is widened.
const WIDENED: f64 = 0.1;
/// By how many points the share of throttled periods may leave its range.
const POINTS: f64 = 10.0;
/// Latencies below this, in ns, were not throttled.
const THROTTLED_NS: f64 = 1e6;
/// Shares of runs that differ by less agree, however many runs there are.
const LEAST_SHARE: f64 = 0.15;

/// By which part of the rule a row is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// Medians within a factor.
    Factor,
    /// Each mode against the nearest.
    Modes,
    /// Measured median within the range over phases.
    Phases,
    /// Shares of runs within what chance does.
    Runs,
    /// Ratios of two sides.
    Change,
}

/// What a figure is, for the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantity {
    /// Anything that the machine decides.
    Free,
    /// A quantile of a latency, in ns, under a bandwidth limit.
    LimitedLatency,
    /// The share of throttled periods, in percent.
    ThrottledPct,
    /// Their number.
    ThrottledPeriods,
    /// Another counter of a task group.
    Counter,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Judged {
    pub(crate) rule: Rule,
    pub(crate) verdict: Verdict,
    pub(crate) reason: String,
}

impl Judged {
    fn new(rule: Rule, verdict: Verdict, reason: impl Into<String>) -> Judged {
        Judged { rule, verdict, reason: reason.into() }
    }
}

/// Judges the figure of one side.
pub(crate) fn value(quantity: Quantity, predicted: &Spread, measured: &Spread) -> Judged {
    let unthrottled = predicted.max < THROTTLED_NS && measured.max < THROTTLED_NS;
    let free = quantity == Quantity::Free || quantity == Quantity::LimitedLatency && unthrottled;
    let rule = match (free, predicted.is_multimodal() || measured.is_multimodal()) {
        (true, false) => Rule::Factor,
        (true, true) => Rule::Modes,
        (false, _) => Rule::Phases,
    };
    for (spread, world) in [(measured, "measured"), (predicted, "predicted")] {
        if spread.too_few {
            return Judged::new(rule, Verdict::Informative, too_few(world));
        }
        if spread.median.is_nan() {
            let reason = format!("no {world} repeat has this figure");
            return Judged::new(rule, Verdict::Informative, reason);
        }
    }
    match rule {
        Rule::Modes => by_modes(predicted, measured),
        Rule::Phases => by_phases(quantity, predicted, measured),
        _ => by_factor(predicted, measured),
    }
}

fn too_few(world: &str) -> String {
    format!("some {world} repeat has fewer than 10 samples beyond the quantile; measure longer")
}

fn by_factor(predicted: &Spread, measured: &Spread) -> Judged {
    let std_pct = 100.0 * statistics::figure(&finite(&measured.samples)).rel_std;
    if std_pct > NOISY_STD_PCT {
        let reason = format!("the measured repeats scatter by {std_pct:.0}%");
        return Judged::new(Rule::Factor, Verdict::Informative, reason);
    }
    let off = off(predicted.median, measured.median);
    let verdict = hit(off <= FACTOR);
    Judged::new(Rule::Factor, verdict, format!("medians differ by a factor of {off:.2}"))
}

/// By what factor two figures differ, 1 or more; two that are nothing agree.
fn off(a: f64, b: f64) -> f64 {
    let ratio = ratio(a, b).abs();
    if ratio < 1.0 { 1.0 / ratio } else { ratio }
}

fn finite(samples: &[f64]) -> Vec<f64> {
    samples.iter().copied().filter(|x| x.is_finite()).collect()
}

fn by_modes(predicted: &Spread, measured: &Spread) -> Judged {
    let without = lonely(&measured.modes, &predicted.modes)
        .map(|(mode, off)| ("measured", mode, "predicted", off))
        .or_else(|| {
            let (mode, off) = lonely(&predicted.modes, &measured.modes)?;
            Some(("predicted", mode, "measured", off))
        });
    match without {
        None => {
            let reason = "every mode of either world has one of the other within a factor of 2";
            Judged::new(Rule::Modes, Verdict::Hit, reason)
        }
        Some((world, mode, other, off)) => {
            let share = 100.0 * mode.share;
            let reason = format!(
                "the {world} mode of {share:.0}% of repeats has no {other} one near: the nearest \
                 is off by a factor of {off:.2}"
            );
            Judged::new(Rule::Modes, Verdict::Miss, reason)
        }
    }
}

/// The first mode that counts and has no counterpart, and how far off the nearest is.
fn lonely(modes: &[Mode], others: &[Mode]) -> Option<(Mode, f64)> {
    modes.iter().filter(|m| m.share >= MODE_SHARE).find_map(|mode| {
        let distances = others.iter().map(|other| off(mode.centre, other.centre));
        let nearest = distances.fold(f64::INFINITY, f64::min);
        (nearest > FACTOR).then_some((*mode, nearest))
    })
}

fn by_phases(quantity: Quantity, predicted: &Spread, measured: &Spread) -> Judged {
    let (low, high) = match quantity {
        Quantity::ThrottledPct => (predicted.min - POINTS, predicted.max + POINTS),
        _ => (predicted.min * (1.0 - WIDENED), predicted.max * (1.0 + WIDENED)),
    };
    let within = (low..=high).contains(&measured.median);
    let widened = if quantity == Quantity::ThrottledPct { "by 10 points" } else { "by 10%" };
    let reason = format!(
        "the measured median lies {} the range predicted over {} phases, widened {widened}",
        if within { "within" } else { "outside" },
        predicted.samples.len()
    );
    Judged::new(Rule::Phases, hit(within), reason)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Runs {
    pub above: usize,
    pub of: usize,
}

impl Runs {
    /// Counts those of `samples` that are above `bound`; what has no value is left out.
    pub(crate) fn above(samples: &[f64], bound: f64) -> Runs {
        let finite = finite(samples);
        Runs { above: finite.iter().filter(|x| **x > bound).count(), of: finite.len() }
    }

    fn share(self) -> f64 {
        self.above as f64 / self.of as f64
    }
}

pub(crate) fn runs(predicted: Runs, measured: Runs) -> Judged {
    if predicted.of == 0 || measured.of == 0 {
        return Judged::new(Rule::Runs, Verdict::Informative, "one world has no runs to count");
    }
    let (n, m) = (predicted.of as f64, measured.of as f64);
    let both = (predicted.above + measured.above) as f64 / (n + m);
    let chance = 2.0 * (both * (1.0 - both) * (1.0 / n + 1.0 / m)).sqrt();
    let allowed = chance.max(LEAST_SHARE);
    let apart = (predicted.share() - measured.share()).abs();
    // Shares that are equal to the last digit but one are equal.
    let verdict = hit(apart <= allowed + 1e-9);
    let reason = format!(
        "shares differ by {:.0} points; {:.0} may be chance",
        100.0 * apart,
        100.0 * allowed
    );
    Judged::new(Rule::Runs, verdict, reason)
}

/// Both sides of a change in one world.
pub(crate) struct Pair<'a> {
    pub(crate) base: &'a Spread,
    pub(crate) variant: &'a Spread,
    /// In percent, + is better.
    pub(crate) change_pct: f64,
}

/// Judges a change between two sides.
pub(crate) fn change(predicted: &Pair<'_>, measured: &Pair<'_>) -> Judged {
    let informative = |reason: String| Judged::new(Rule::Change, Verdict::Informative, reason);
    for (pair, world) in [(measured, "measured"), (predicted, "predicted")] {
        if pair.base.too_few || pair.variant.too_few {
            return informative(too_few(world));
        }
    }
    let spreads = [predicted.base, predicted.variant, measured.base, measured.variant];
    if spreads.iter().any(|s| s.is_multimodal()) {
        return informative("a side has several modes, and no one ratio".to_owned());
    }
    if !measured.change_pct.is_finite() {
        return informative("the measured change has no value".to_owned());
    }
    let std_pct = |s: &Spread| 100.0 * statistics::figure(&finite(&s.samples)).rel_std;
    let std_pct = std_pct(measured.base).max(std_pct(measured.variant));
    if std_pct > NOISY_STD_PCT {
        return informative(format!("the measured repeats scatter by {std_pct:.0}%"));
    }
    let verdict = judge_change(measured.change_pct, std_pct, predicted.change_pct);
    let off = off(100.0 + predicted.change_pct, 100.0 + measured.change_pct);
    Judged::new(Rule::Change, verdict, format!("ratios differ by a factor of {off:.2}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{Hit, Informative, Miss};
    use proptest::prelude::*;

    fn verdict(quantity: Quantity, predicted: &[f64], measured: &[f64]) -> (Rule, Verdict) {
        let judged = value(quantity, &Spread::of(predicted), &Spread::of(measured));
        assert!(!judged.reason.is_empty());
        (judged.rule, judged.verdict)
    }

    fn free(predicted: &[f64], measured: &[f64]) -> (Rule, Verdict) {
        verdict(Quantity::Free, predicted, measured)
    }

    #[test]
    fn values_hit_within_a_factor_of_two() {
        assert_eq!(free(&[100.0], &[51.0, 50.0, 52.0]), (Rule::Factor, Hit));
        assert_eq!(free(&[100.0], &[49.0, 48.0, 47.0]), (Rule::Factor, Miss));
        assert_eq!(free(&[0.0, 0.0], &[0.0, 0.0]), (Rule::Factor, Hit));
        assert_eq!(free(&[0.0, 0.0], &[1.0, 1.0]), (Rule::Factor, Miss));
        assert_eq!(free(&[1.0, 1.0], &[0.0, 0.0]), (Rule::Factor, Miss));
    }

    #[test]
    fn what_scatters_without_a_gap_or_is_not_observed_does_not_count() {
        let scattered = [50.0, 70.0, 100.0, 140.0, 200.0];
        assert_eq!(free(&[100.0], &scattered), (Rule::Factor, Informative));
        assert_eq!(free(&[100.0], &[f64::NAN; 3]), (Rule::Factor, Informative));
        assert_eq!(free(&[], &[1.0]), (Rule::Factor, Informative));
    }

    #[test]
    fn modes_are_held_against_modes_and_never_averaged() {
        let two = [5.0, 5.0, 33.0, 33.0];
        assert_eq!(free(&[5.0, 5.0, 5.0, 33.0], &two), (Rule::Modes, Hit));
        // The medians of both worlds are the same, and no mode is.
        assert_eq!(free(&[19.0; 4], &two), (Rule::Modes, Miss));
        // One mode of two is not enough, whichever world has two.
        assert_eq!(free(&[5.0; 4], &two), (Rule::Modes, Miss));
        assert_eq!(free(&two, &[33.0; 4]), (Rule::Modes, Miss));
        // A rare state need not be predicted.
        let mut rare = vec![33.0; 8];
        rare.extend([5.0, 5.0]);
        assert_eq!(free(&[33.0; 4], &rare), (Rule::Modes, Hit));
    }

    #[test]
    fn limited_latencies_are_held_against_a_range_over_phases() {
        let limited = |p: &[f64], m: &[f64]| verdict(Quantity::LimitedLatency, p, m);
        let phases = [1e3, 8e6, 22e6, 50e6];
        assert_eq!(limited(&phases, &[20e6, 21e6]), (Rule::Phases, Hit));
        assert_eq!(limited(&phases, &[54e6]), (Rule::Phases, Hit));
        assert_eq!(limited(&phases, &[56e6]), (Rule::Phases, Miss));
        assert_eq!(limited(&[20e6], &[22.5e6]), (Rule::Phases, Miss));
        assert_eq!(limited(&[20e6], &[21.5e6]), (Rule::Phases, Hit));
        // Nothing was throttled: the machine decides.
        assert_eq!(limited(&[50e3, 52e3], &[90e3, 91e3]), (Rule::Factor, Hit));
        assert_eq!(limited(&[5e3, 5e3], &[90e3, 91e3]), (Rule::Factor, Miss));
    }

    #[test]
    fn counters_have_a_margin_of_their_own() {
        let pct = |p: &[f64], m: f64| verdict(Quantity::ThrottledPct, p, &[m]).1;
        assert_eq!((pct(&[0.0, 40.0], 49.0), pct(&[0.0, 40.0], 51.0)), (Hit, Miss));
        assert_eq!((pct(&[30.0, 40.0], 21.0), pct(&[30.0, 40.0], 19.0)), (Hit, Miss));
        let counter = |p: &[f64], m: f64| verdict(Quantity::Counter, p, &[m]).1;
        assert_eq!((counter(&[200.0], 219.0), counter(&[200.0], 221.0)), (Hit, Miss));
        assert_eq!((counter(&[0.0], 0.0), counter(&[0.0], 1.0)), (Hit, Miss));
    }

    #[test]
    fn runs_may_differ_by_chance() {
        let judge = |above, of, m, n| runs(Runs { above, of }, Runs { above: m, of: n }).verdict;
        assert_eq!(judge(16, 20, 4, 5), Hit);
        assert_eq!(judge(16, 20, 2, 5), Hit);
        assert_eq!(judge(16, 20, 0, 5), Miss);
        assert_eq!(judge(0, 20, 0, 5), Hit);
        assert_eq!(judge(0, 20, 5, 5), Miss);
        assert_eq!(judge(850, 1000, 1000, 1000), Hit);
        assert_eq!(judge(840, 1000, 1000, 1000), Miss);
        assert_eq!(judge(0, 0, 1, 1), Informative);
        let nothing = Runs::above(&[1.0, 3.0, f64::NAN], 2.0);
        assert_eq!(nothing, Runs { above: 1, of: 2 });
    }

    #[test]
    fn changes_are_judged_as_published_ones() {
        let judge = |predicted_pct: f64, base: &[f64], variant: &[f64], measured_pct: f64| {
            let (base, variant) = (Spread::of(base), Spread::of(variant));
            let pair = |change_pct| Pair { base: &base, variant: &variant, change_pct };
            change(&pair(predicted_pct), &pair(measured_pct)).verdict
        };
        let (a, b) = ([10.0, 10.1, 9.9], [12.0, 12.1, 11.9]);
        assert_eq!(judge(15.0, &a, &b, 20.0), Hit);
        assert_eq!(judge(0.0, &a, &b, 20.0), Miss);
        assert_eq!(judge(20.0, &[5.0, 5.0, 33.0, 33.0], &b, 20.0), Informative);
        assert_eq!(judge(20.0, &[5.0, 7.0, 9.5, 13.0], &b, 20.0), Informative);
        assert_eq!(judge(20.0, &a, &b, f64::NAN), Informative);
        assert_eq!(judge(f64::NAN, &a, &b, 20.0), Miss);
    }

    proptest! {
        #[test]
        fn a_prediction_agrees_with_itself(
            samples in proptest::collection::vec(0.1..1e8f64, 1..20), which in 0usize..4
        ) {
            let quantities = [
                Quantity::Free, Quantity::LimitedLatency, Quantity::ThrottledPct,
                Quantity::Counter,
            ];
            let (_, verdict) = verdict(quantities[which], &samples, &samples);
            prop_assert!(verdict != Miss, "{samples:?}");
        }

        #[test]
        fn neither_world_is_preferred(
            a in proptest::collection::vec(1.0..1e3f64, 6), scale in 0.1..10f64
        ) {
            // Both scatter alike, so that either may be the measured one.
            let b: Vec<f64> = a.iter().map(|x| x * scale).collect();
            prop_assume!([0.5, 2.0].iter().all(|edge: &f64| (scale - edge).abs() > 1e-6));
            prop_assert_eq!(free(&a, &b).1, free(&b, &a).1);
        }

        #[test]
        fn runs_agree_the_more_closely_the_more_there_are(above in 0usize..10, m in 0usize..10) {
            let few = runs(Runs { above, of: 10 }, Runs { above: m, of: 10 }).verdict;
            let many =
                runs(Runs { above: above * 20, of: 200 }, Runs { above: m * 20, of: 200 }).verdict;
            prop_assert!(few == Hit || many == Miss);
        }
    }
}

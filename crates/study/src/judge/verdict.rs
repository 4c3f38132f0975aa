//! Does a prediction agree with a published figure? One rule for every study,
//! fixed here and not in study files, so that no study can be lenient with itself.
//!
//! For a published pair let r be variant / baseline on a scale where higher is
//! better, r̂ the predicted ratio, and s the larger published relative standard
//! deviation. The prediction is a hit if
//!
//! > |ln r̂ − ln r| ≤ max(½·|ln r|, 0.05, 2·s)
//!
//! so +946% (r = 10.5) accepts ×3.2 to ×34, +10% accepts +4.7% to +15.8% or so,
//! and "no change" about ±5%. A figure whose published standard deviation is above
//! 30% on either side, or that its source calls noise, is shown but not counted; so
//! is a standard deviation itself.
//!
//! The figure of one side alone is a hit within a factor of two, for it depends on
//! the machine more than a ratio does; a quantile of a latency under bandwidth limits
//! within 10%, for there the limits decide and not the machine. A study of baselines
//! (`baselines = true`) is about that machine: there a side is a hit within 20% where two
//! tasks run and within 30% where more do.
//!
//! Where the repeats of a side fall into several states ([`modes`](crate::modes())), the
//! prediction is no single ratio but each change from a state of one side to a state of
//! the other, with the product of their shares as its probability. It is a hit if the
//! changes that are hits by themselves have at least half of all probability; a mean of
//! states is judged nowhere. So is the figure of one side by the states of that side.
//!
//! What groups that share CPUs do to each other follows from distributions and from no
//! machine, so the rule is narrower: a share of periods is a hit within 25% of the
//! published one or one point, a number of periods within 25% of what it is above its
//! rest (1 for a time until something is done in time, else 0) or 0.01.
//!
//! What this host measures is held against predictions by the rule in
//! [`measured`](self::measured).

pub mod measured;

use serde::{Deserialize, Serialize};

use crate::model::published::{Published, PublishedFigure};

/// Does a prediction agree with the published figure?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Within the tolerance of the scoring rule.
    Hit,
    Miss,
    /// Shown, but too noisy at the source to count, or of another machine.
    Informative,
}

/// Published relative standard deviations above this are too noisy to count.
const NOISY_STD_PCT: f64 = 30.0;

/// The claimed and the predicted peak may differ by this share of the claimed one.
pub(crate) const PEAK_TOLERANCE: f64 = 0.15;

/// What a prediction is held against; see [`judge`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Predicted {
    /// Change of both sides in percent, + is better.
    pub change_pct: f64,
    /// The published change, by the direction of the metric.
    pub published_change_pct: Option<f64>,
    /// Predicted by published figure of the one side that was published.
    pub side_ratio: f64,
    /// The share of the published figure that one side may be off; a factor of two if none.
    pub within: Option<f64>,
}

pub fn judge(published: &Published, predicted: &Predicted) -> Verdict {
    if !counts(published) {
        return Verdict::Informative;
    }
    match predicted.published_change_pct {
        Some(change_pct) => judge_change(change_pct, std_pct(published), predicted.change_pct),
        None => judge_side(predicted.side_ratio, predicted.within),
    }
}

/// Judges what repeats predict that fall into several states: each state's prediction
/// and its share.
pub fn judge_states(published: &Published, states: &[(Predicted, f64)]) -> Verdict {
    if !counts(published) {
        return Verdict::Informative;
    }
    let hits = |p: &Predicted| judge(published, p) == Verdict::Hit;
    hit(mostly(states.iter().map(|(predicted, share)| (hits(predicted), *share))))
}

/// Do states in which something holds have at least half of the probability?
pub(crate) fn mostly(states: impl Iterator<Item = (bool, f64)>) -> bool {
    let share: f64 = states.filter(|(holds, _)| *holds).map(|(_, share)| share).sum();
    // Shares are rounded products.
    share >= 0.5 - 1e-9
}

/// Is a figure precise enough to count, whatever is predicted?
pub(crate) fn counts(published: &Published) -> bool {
    let of_spread = matches!(published.figure, PublishedFigure::Std { .. });
    published.noise.is_none() && std_pct(published) <= NOISY_STD_PCT && !of_spread
}

/// The larger published relative standard deviation, in percent; 0 if there is none.
fn std_pct(published: &Published) -> f64 {
    let stds = [published.std_base_pct, published.std_variant_pct];
    stds.into_iter().flatten().fold(0.0, f64::max)
}

/// How far the logarithm of predicted by published (of ratios, or of one side's
/// figures) may lie from 0 for a hit: the unit in which misses can be compared. Where
/// the rule is not symmetrical, the wider side.
pub fn half_width(published: &Published, predicted: &Predicted) -> f64 {
    match predicted.published_change_pct {
        Some(change_pct) => tolerance((1.0 + change_pct / 100.0).ln(), std_pct(published) / 100.0),
        None => predicted.within.map_or(2.0f64.ln(), |share| -(1.0 - share).ln()),
    }
}

/// Judges a predicted change (percent, positive is better) by a published one.
fn judge_change(published_pct: f64, std_pct: f64, predicted_pct: f64) -> Verdict {
    let ln_published = (1.0 + published_pct / 100.0).ln();
    let ln_predicted = (1.0 + predicted_pct / 100.0).ln();
    let distance = (ln_predicted - ln_published).abs();
    // NaN, where nothing could be predicted, is no hit.
    hit(distance <= tolerance(ln_published, std_pct / 100.0))
}

/// A quantile of a latency under bandwidth limits may be off by this share.
pub(crate) const LIMITED_LATENCY: f64 = 0.1;

/// What a study of baselines lets `tasks` be off by: a pair of tasks knows no contention.
pub(crate) fn baseline_tolerance(tasks: usize) -> f64 {
    if tasks <= 2 { 0.2 } else { 0.3 }
}

/// Judges the size of one side by predicted / published.
fn judge_side(ratio: f64, within: Option<f64>) -> Verdict {
    let (low, high) = within.map_or((0.5, 2.0), |share| (1.0 - share, 1.0 + share));
    hit((low..=high).contains(&ratio))
}

/// The share of a published figure of interference that a prediction may be off.
pub const INTERFERENCE_SHARE: f64 = 0.25;

/// Judges a figure of interference by the published one, both relative to the undisturbed value;
/// smaller differences than `floor` are ignored.
pub fn judge_interference(published: f64, predicted: f64, floor: f64) -> Verdict {
    // A difference in the last digit of a sum is rounding, where the rule is met exactly.
    hit((predicted - published).abs() <= (INTERFERENCE_SHARE * published).max(floor) + 1e-12)
}

fn hit(hit: bool) -> Verdict {
    if hit { Verdict::Hit } else { Verdict::Miss }
}

/// How far the logarithms of both ratios may lie apart.
fn tolerance(ln_published: f64, rel_std: f64) -> f64 {
    (0.5 * ln_published.abs()).max(0.05).max(2.0 * rel_std)
}

/// Judges a claim by the bounds of what agrees with it.
pub fn judge_claim(low: Option<f64>, high: Option<f64>, predicted: Option<f64>) -> Verdict {
    let within = |value: f64| low.is_none_or(|l| value >= l) && high.is_none_or(|h| value <= h);
    hit(predicted.is_some_and(within))
}

/// Predicted by published, where two figures that are both nothing agree.
pub(crate) fn ratio(predicted: f64, published: f64) -> f64 {
    if predicted == published { 1.0 } else { predicted / published }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::published::Side;
    use proptest::prelude::*;
    use reveille_measure::Direction;

    fn published(change_pct: f64, stds: Option<(f64, f64)>) -> Published {
        Published {
            variant: 0,
            metric: 0,
            figure: PublishedFigure::Change { change_pct },
            std_base_pct: stds.map(|s| s.0),
            std_variant_pct: stds.map(|s| s.1),
            noise: None,
            source: "a mail".to_owned(),
        }
    }

    fn judge(p: &Published, change_pct: f64) -> Verdict {
        judge_as(p, Direction::Higher, change_pct)
    }

    fn judge_as(p: &Published, direction: Direction, change_pct: f64) -> Verdict {
        let predicted = Predicted {
            change_pct,
            published_change_pct: p.change_pct(direction),
            side_ratio: f64::NAN,
            within: None,
        };
        super::judge(p, &predicted)
    }

    /// The predicted ratio is a hit just inside, and a miss just outside.
    fn edge(p: &Published, ratio: f64, outwards: f64) {
        let inside = 100.0 * (ratio / outwards - 1.0);
        let outside = 100.0 * (ratio * outwards - 1.0);
        assert_eq!(judge(p, inside), Verdict::Hit, "{p:?} {inside}");
        assert_eq!(judge(p, outside), Verdict::Miss, "{p:?} {outside}");
    }

    #[test]
    fn tenfold_accepts_a_factor_of_its_square_root() {
        let p = published(946.68, None);
        edge(&p, 3.235, 0.999);
        edge(&p, 33.86, 1.001);
    }

    #[test]
    fn ten_percent_accepts_five_to_sixteen() {
        let p = published(10.0, None);
        // 1.1 * e^(+-0.05): half of ln 1.1 is 0.0477, less than the floor.
        edge(&p, 1.0464, 0.999);
        edge(&p, 1.1564, 1.001);
    }

    #[test]
    fn no_change_accepts_five_percent() {
        let p = published(0.0, None);
        edge(&p, 0.9512, 0.999);
        edge(&p, 1.0513, 1.001);
    }

    #[test]
    fn spread_widens_and_drowns() {
        let p = published(0.0, Some((15.88, 19.96)));
        edge(&p, (-2.0 * 0.1996f64).exp(), 0.999);
        edge(&p, (2.0 * 0.1996f64).exp(), 1.001);
        assert_eq!(judge(&published(0.0, Some((30.0, 1.0))), 0.0), Verdict::Hit);
        assert_eq!(judge(&published(0.0, Some((30.1, 1.0))), 0.0), Verdict::Informative);
        assert_eq!(judge(&published(0.0, Some((1.0, 30.1))), 900.0), Verdict::Informative);
        let noise = Published { noise: Some("run-to-run variance".into()), ..p };
        assert_eq!(judge(&noise, 0.0), Verdict::Informative);
    }

    #[test]
    fn what_cannot_be_predicted_is_a_miss() {
        for predicted in [f64::NAN, f64::INFINITY, -100.0, -200.0] {
            assert_eq!(judge(&published(5.0, None), predicted), Verdict::Miss);
        }
    }

    #[test]
    fn claims_hit_from_bound_to_bound() {
        let judge = |predicted| judge_claim(Some(95.2), Some(128.8), predicted);
        assert_eq!(judge(Some(128.0)), Verdict::Hit);
        assert_eq!(judge(Some(96.0)), Verdict::Hit);
        assert_eq!(judge(Some(129.0)), Verdict::Miss);
        assert_eq!(judge(Some(84.0)), Verdict::Miss);
        assert_eq!(judge(None), Verdict::Miss);
        assert_eq!(judge_claim(Some(3.0), None, Some(f64::INFINITY)), Verdict::Hit);
        assert_eq!(judge_claim(Some(3.0), None, Some(f64::NAN)), Verdict::Miss);
    }

    fn of(figure: PublishedFigure) -> Published {
        Published { figure, ..published(0.0, None) }
    }

    #[test]
    fn standard_deviations_never_count() {
        let std = of(PublishedFigure::Std { base: 0.78, variant: 0.097, unit: None });
        assert_eq!(judge_as(&std, Direction::Lower, 700.0), Verdict::Informative);
        assert_eq!(judge_as(&std, Direction::Lower, -90.0), Verdict::Informative);
    }

    #[test]
    fn interference_hits_within_a_quarter_or_the_floor() {
        let judge = |published, predicted| judge_interference(published, predicted, 1.0);
        for (published, low, high) in [(20.0, 15.0, 25.0), (2.0, 1.0, 3.0), (0.0, 0.0, 1.0)] {
            assert_eq!(judge(published, low), Verdict::Hit);
            assert_eq!(judge(published, high), Verdict::Hit);
            assert_eq!(judge(published, high + 0.01), Verdict::Miss);
            assert_eq!(judge(published, low - 0.01), hit(published == 0.0));
        }
        assert_eq!(judge(20.0, f64::NAN), Verdict::Miss);
        assert_eq!(judge_interference(0.3042, 0.39, 0.01), Verdict::Miss);
    }

    #[test]
    fn both_nothing_agree() {
        assert_eq!(judge_side(ratio(0.0, 0.0), Some(0.1)), Verdict::Hit);
        assert_eq!(judge_side(ratio(0.1, 0.0), None), Verdict::Miss);
        assert_eq!(judge_side(ratio(0.0, 0.1), None), Verdict::Miss);
    }

    proptest! {
        #[test]
        fn a_hit_lies_within_the_half_width(
            change in -90.0..1e3f64, predicted in -90.0..1e3f64, ratio in 0.01..100f64,
            limited: bool, pair: bool,
        ) {
            let p = published(change, None);
            let predicted = Predicted {
                change_pct: predicted,
                published_change_pct: pair.then_some(change),
                side_ratio: ratio,
                within: limited.then_some(LIMITED_LATENCY),
            };
            let off = if pair {
                ((100.0 + predicted.change_pct) / (100.0 + change)).ln().abs()
            } else {
                ratio.ln().abs()
            };
            let width = half_width(&p, &predicted);
            prop_assume!((off - width).abs() > 0.02);
            prop_assert_eq!(super::judge(&p, &predicted) == Verdict::Hit, off < width);
        }

        #[test]
        fn the_published_figure_itself_hits(change in -99.0..1e5f64) {
            prop_assert_eq!(judge(&published(change, None), change), Verdict::Hit);
        }

        #[test]
        fn direction_matters_for_large_changes(change in 20.0..1e5f64) {
            // Twice the fold beyond the published one, or none at all, is a miss.
            prop_assert_eq!(judge(&published(change, None), 0.0), Verdict::Miss);
            let squared = 100.0 * ((1.0 + change / 100.0).powi(2) - 1.0);
            prop_assert_eq!(judge(&published(change, None), squared), Verdict::Miss);
        }

        #[test]
        fn gains_and_losses_are_judged_alike(a in 0.1..10f64, b in 0.1..10f64) {
            let pct = |r: f64| 100.0 * (r - 1.0);
            let there = judge(&published(pct(a), None), pct(b));
            let back = judge(&published(pct(1.0 / a), None), pct(1.0 / b));
            let distance = (b / a).ln().abs() - tolerance(a.ln(), 0.0);
            prop_assume!(distance.abs() > 1e-9);
            prop_assert_eq!(there, back);
        }

        #[test]
        fn a_pair_is_judged_as_the_change_that_it_shows(
            base in 0.01..1e4f64,
            ratio in 0.05..20f64,
            predicted in -90.0..1e3f64,
            lower in any::<bool>(),
        ) {
            let direction = if lower { Direction::Lower } else { Direction::Higher };
            let pair = PublishedFigure::Pair { base, variant: base * ratio, unit: None };
            let r = if lower { 1.0 / ratio } else { ratio };
            let distance = ((1.0 + predicted / 100.0) / r).ln().abs() - tolerance(r.ln(), 0.0);
            prop_assume!(distance.abs() > 1e-9);
            let change = published(100.0 * (r - 1.0), None);
            prop_assert_eq!(judge_as(&of(pair), direction, predicted), judge(&change, predicted));
        }

        #[test]
        fn one_side_hits_within_a_factor(value in 0.01..1e6f64, factor in 0.01..100f64) {
            let side = of(PublishedFigure::Side {
                side: Side::Base,
                value,
                unit: None,
                own: value,
            });
            let verdict = |within| {
                let side_ratio = ratio(value * factor, value);
                let predicted = Predicted {
                    change_pct: 0.0,
                    published_change_pct: side.change_pct(Direction::Lower),
                    side_ratio,
                    within,
                };
                super::judge(&side, &predicted)
            };
            for (bounds, within) in [((0.5, 2.0), None), ((0.9, 1.1), Some(0.1))] {
                let near = [bounds.0, bounds.1].iter().any(|b| (factor - b).abs() < 1e-9);
                prop_assume!(!near);
                let inside = bounds.0 < factor && factor < bounds.1;
                prop_assert_eq!(verdict(within), hit(inside));
            }
        }
    }
}

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
//! 30% on either side, or that its source calls noise, is shown but not counted.

use crate::{Published, Row, Score, Verdict};

/// Published relative standard deviations above this are too noisy to count.
const NOISY_STD_PCT: f64 = 30.0;

/// The claimed and the predicted peak may differ by this share of the claimed one.
const PEAK_TOLERANCE: f64 = 0.15;

/// Judges a predicted change (percent, positive is better) by a published one.
pub fn judge(published: &Published, predicted_change_pct: f64) -> Verdict {
    let stds = [published.std_base_pct, published.std_variant_pct];
    let std_pct = stds.into_iter().flatten().fold(0.0, f64::max);
    if published.noise.is_some() || std_pct > NOISY_STD_PCT {
        return Verdict::Informative;
    }
    let ln_published = (1.0 + published.change_pct / 100.0).ln();
    let ln_predicted = (1.0 + predicted_change_pct / 100.0).ln();
    let distance = (ln_predicted - ln_published).abs();
    // NaN, where nothing could be predicted, is no hit.
    if distance <= tolerance(ln_published, std_pct / 100.0) { Verdict::Hit } else { Verdict::Miss }
}

/// How far the logarithms of both ratios may lie apart.
fn tolerance(ln_published: f64, rel_std: f64) -> f64 {
    (0.5 * ln_published.abs()).max(0.05).max(2.0 * rel_std)
}

/// Judges the load at which a curve peaks.
pub fn judge_peak(published_load: f64, predicted_load: f64) -> Verdict {
    let distance = (predicted_load - published_load).abs();
    if distance <= PEAK_TOLERANCE * published_load { Verdict::Hit } else { Verdict::Miss }
}

/// Hits among the rows that count.
pub fn score(rows: &[Row]) -> Score {
    let count = |verdict| rows.iter().filter(|r| r.verdict == Some(verdict)).count();
    let hits = count(Verdict::Hit);
    Score { hits, counted: hits + count(Verdict::Miss) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn published(change_pct: f64, stds: Option<(f64, f64)>) -> Published {
        Published {
            variant: 0,
            change_pct,
            std_base_pct: stds.map(|s| s.0),
            std_variant_pct: stds.map(|s| s.1),
            noise: None,
            source: "a mail".to_owned(),
        }
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
    fn peaks() {
        assert_eq!(judge_peak(112.0, 128.0), Verdict::Hit);
        assert_eq!(judge_peak(112.0, 96.0), Verdict::Hit);
        assert_eq!(judge_peak(112.0, 129.0), Verdict::Miss);
        assert_eq!(judge_peak(112.0, 84.0), Verdict::Miss);
    }

    proptest! {
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
    }
}

//! Statistics over repeats: mean, spread, change and significance.

use reveille_measure::Direction;
use reveille_measure::statistics::{mean, std, variance};
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Mean over repeats, in the metric's own unit.
    pub mean: f64,
    /// Standard deviation over repeats divided by the mean (0.02 is 2%).
    pub rel_std: f64,
}

/// Mean of the samples and their standard deviation (n − 1) relative to it.
///
/// One sample has no spread (0). A mean of 0 has none either, unless samples
/// differ: then it is NaN.
pub fn figure(samples: &[f64]) -> Figure {
    let mean = mean(samples);
    let std = std(samples);
    Figure { mean, rel_std: if std == 0.0 { 0.0 } else { relative(std, mean) } }
}

fn relative(std: f64, mean: f64) -> f64 {
    if mean == 0.0 { f64::NAN } else { std / mean.abs() }
}

/// Two-sided p-value of Welch's t-test: how likely means at least this far apart
/// are if both sides are the same. Repeats are taken as independent, although
/// both sides use the same seeds, so p errs on the large side.
///
/// `None` with fewer than two samples on a side, or if one is not finite. If
/// neither side varies, 1 if they are equal and 0 if not.
pub fn welch_p(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.len() < 2 || b.len() < 2 || a.iter().chain(b).any(|x| !x.is_finite()) {
        return None;
    }
    let difference = mean(a) - mean(b);
    let (n_a, n_b) = (a.len() as f64, b.len() as f64);
    let (e_a, e_b) = (variance(a) / n_a, variance(b) / n_b);
    if e_a + e_b == 0.0 {
        return Some(if difference == 0.0 { 1.0 } else { 0.0 });
    }
    let t = difference / (e_a + e_b).sqrt();
    // Shares of the error, so that tiny and huge samples do not leave f64's range.
    let (s_a, s_b) = (e_a / (e_a + e_b), e_b / (e_a + e_b));
    let freedom = 1.0 / (s_a * s_a / (n_a - 1.0) + s_b * s_b / (n_b - 1.0));
    let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
    Some((2.0 * student.sf(t.abs())).clamp(0.0, 1.0))
}

/// The change in percent that the repeats support: that of the means, its logarithm drawn
/// towards 0 by the share of its square that the standard errors of both means explain
/// (positive-part James-Stein). A change within the noise is 0; one far above it, or of single
/// samples, which show no noise, stays what it is.
pub fn supported_change_pct(direction: Direction, base: &[f64], candidate: &[f64]) -> f64 {
    let means = [mean(base), mean(candidate)];
    let plain = change_pct(direction, means[0], means[1]);
    let ln = (1.0 + plain / 100.0).ln();
    let error = |samples: &[f64], mean: f64| {
        let relative = std(samples) / mean;
        relative * relative / samples.len() as f64
    };
    let noise = error(base, means[0]) + error(candidate, means[1]);
    if noise == 0.0 || !noise.is_finite() || !ln.is_finite() || ln == 0.0 {
        return plain;
    }
    let supported = ln * (1.0 - noise / (ln * ln)).max(0.0);
    100.0 * (supported.exp() - 1.0)
}

/// Change in percent; + is better. Where higher is better (throughput) it is
/// `candidate / base − 1`; where lower is better (times, latencies) it is
/// `base / candidate − 1`, so that twice as fast is +100% either way. Where neither is
/// better it is the plain change, `candidate / base − 1`.
///
/// Equal figures have not changed, zeros included; a change from or to zero has
/// no finite value.
pub fn change_pct(direction: Direction, base: f64, candidate: f64) -> f64 {
    if base == candidate {
        return 0.0;
    }
    let ratio = match direction {
        Direction::Higher | Direction::Neither => candidate / base,
        Direction::Lower => base / candidate,
    };
    100.0 * (ratio - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The p-value by integrating the density of Student's t in small steps.
    fn slow_p(t: f64, freedom: u32) -> f64 {
        let v = f64::from(freedom);
        let density = |x: f64| (1.0 + x * x / v).powf(-(v + 1.0) / 2.0);
        // x = tan θ maps the whole line to a finite interval.
        let steps = 400_000;
        let integral = |from: f64| {
            let width = (std::f64::consts::FRAC_PI_2 - from) / f64::from(steps);
            let at = |i: i32| {
                let angle = from + (f64::from(i) + 0.5) * width;
                density(angle.tan()) / angle.cos().powi(2)
            };
            (0..steps).map(at).sum::<f64>() * width
        };
        integral(t.abs().atan()) / integral(0.0)
    }

    #[test]
    fn a_change_within_the_noise_is_none_and_one_far_above_it_stays() {
        let change = |a: &[f64], b: &[f64]| supported_change_pct(Direction::Higher, a, b);
        assert_eq!(change(&[90.0, 110.0], &[95.0, 125.0]), 0.0);
        assert_eq!(change(&[100.0], &[110.0]), change_pct(Direction::Higher, 100.0, 110.0));
        let far = change(&[99.0, 101.0], &[199.0, 201.0]);
        assert!((99.0..100.0).contains(&far), "{far}");
        let near = change(&[99.0, 101.0], &[103.0, 105.0]);
        assert!((0.5..4.0).contains(&near), "{near}");
        assert!(
            (change(&[103.0, 105.0], &[99.0, 101.0]) + 100.0 * near / (100.0 + near)).abs() < 1e-9
        );
    }

    #[test]
    fn welch_agrees_with_integration() {
        // Equal sizes and variances: 2(n-1) degrees of freedom.
        let a = [10.0, 11.0, 12.0, 13.0, 14.0];
        for shift in [0.5, 1.0, 2.0, 5.0] {
            let b = a.map(|x| x + shift);
            let t = shift / (2.5f64 * 2.0 / 5.0).sqrt();
            let p = welch_p(&a, &b).unwrap();
            assert!((p - slow_p(t, 8)).abs() < 1e-6, "shift {shift}: {p} {}", slow_p(t, 8));
        }
        // One side without spread: the other's n-1 degrees.
        let p = welch_p(&a, &[13.0; 4]).unwrap();
        assert!((p - slow_p(2f64.sqrt(), 4)).abs() < 1e-6);
    }

    #[test]
    fn without_spread() {
        assert_eq!(welch_p(&[1.0, 1.0], &[1.0, 1.0]), Some(1.0));
        assert_eq!(welch_p(&[1.0, 1.0], &[2.0, 2.0]), Some(0.0));
        assert_eq!(welch_p(&[0.1; 3], &[0.1; 7]), Some(1.0));
        assert_eq!(welch_p(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(welch_p(&[1.0, f64::NAN], &[1.0, 2.0]), None);
    }

    #[test]
    fn figures() {
        let f = figure(&[1.0, 2.0, 3.0]);
        assert_eq!((f.mean, f.rel_std), (2.0, 0.5));
        assert_eq!(figure(&[7.0]).rel_std, 0.0);
        assert_eq!(figure(&[0.0, 0.0]).rel_std, 0.0);
        assert!(figure(&[-1.0, 1.0]).rel_std.is_nan());
    }

    #[test]
    fn changes() {
        assert_eq!(change_pct(Direction::Higher, 100.0, 200.0), 100.0);
        assert_eq!(change_pct(Direction::Lower, 200.0, 100.0), 100.0);
        assert_eq!(change_pct(Direction::Lower, 100.0, 200.0), -50.0);
        assert_eq!(change_pct(Direction::Higher, 0.0, 0.0), 0.0);
        assert_eq!(change_pct(Direction::Higher, 5.0, 0.0), -100.0);
        assert!(!change_pct(Direction::Higher, 0.0, 5.0).is_finite());
        assert!(change_pct(Direction::Higher, f64::NAN, f64::NAN).is_nan());
    }

    fn samples() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(1.0..1e9f64, 2..12)
    }

    proptest! {
        #[test]
        fn p_is_a_probability_and_knows_no_side(a in samples(), b in samples()) {
            let p = welch_p(&a, &b).unwrap();
            prop_assert!((0.0..=1.0).contains(&p));
            prop_assert!((p - welch_p(&b, &a).unwrap()).abs() < 1e-12);
        }

        #[test]
        fn p_does_not_depend_on_the_unit(a in samples(), b in samples(), power in -20i32..20) {
            let scale = 2f64.powi(power);
            let scaled = |v: &[f64]| v.iter().map(|x| x * scale).collect::<Vec<_>>();
            let (p, q) = (welch_p(&a, &b).unwrap(), welch_p(&scaled(&a), &scaled(&b)).unwrap());
            prop_assert!((p - q).abs() < 1e-9);
        }

        #[test]
        fn a_wider_gap_is_less_likely(a in samples(), gap in 0.0..1e9f64) {
            let shifted = |by: f64| a.iter().map(|x| x + by).collect::<Vec<_>>();
            let near = welch_p(&a, &shifted(gap)).unwrap();
            let far = welch_p(&a, &shifted(2.0 * gap)).unwrap();
            prop_assert!(far <= near + 1e-9);
        }

        #[test]
        fn a_mean_lies_among_its_samples(a in samples()) {
            let f = figure(&a);
            let low = a.iter().copied().fold(f64::INFINITY, f64::min);
            let high = a.iter().copied().fold(0.0, f64::max);
            prop_assert!(f.mean >= low * (1.0 - 1e-12) && f.mean <= high * (1.0 + 1e-12));
            // The spread is largest with one sample apart from all others.
            prop_assert!(f.rel_std <= (a.len() as f64).sqrt() + 1e-9);
        }

        #[test]
        fn changes_there_and_back_cancel(a in 1e-3..1e9f64, b in 1e-3..1e9f64) {
            let there = change_pct(Direction::Higher, a, b) / 100.0;
            let back = change_pct(Direction::Higher, b, a) / 100.0;
            prop_assert!(((1.0 + there) * (1.0 + back) - 1.0).abs() < 1e-9);
            prop_assert_eq!(change_pct(Direction::Higher, a, b), change_pct(Direction::Lower, b, a));
        }
    }
}

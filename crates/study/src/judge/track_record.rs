//! What predictions are worth, by published changes of tables that no constant is set by: which
//! simulated sizes mean nothing, and how predictions like a row's fared, in classes by the
//! baseline's idle time and the size of the predicted change.

use reveille_measure::Explain;
use serde::Serialize;

use crate::judge::tracked::{
    CLASSES, COLLAPSE, COLLAPSES, Class, GAIN, HELD, IDLE_PCT, MOVED, UNSIZED_PCT, UNSURE_P,
};

/// The best prediction, where `simulated_pct` came out with `p_value`: that or, where migrations per
/// wakeup of the two sides differ or the repeats do not tell the sides apart, a small change towards the
/// same side. Measurements do not count wakeups (NaN) and stay.
pub(crate) fn predicted_pct(
    simulated_pct: f64,
    p_value: Option<f64>,
    [baseline, candidate]: [f64; 2],
) -> f64 {
    let moved_by = (candidate - baseline).abs();
    let unsure = p_value.is_some_and(|p| p >= UNSURE_P);
    let collapses = size(1.0 + simulated_pct / 100.0) >= COLLAPSE;
    if collapses || !moved_by.is_finite() || (moved_by < MOVED && !unsure) {
        return simulated_pct;
    }
    simulated_pct.clamp(-UNSIZED_PCT, UNSIZED_PCT)
}

/// NaN of measurements.
pub(crate) fn migrations_per_wakeup(side: &Explain) -> f64 {
    side.migrations_per_s / side.ttwu_count_per_s
}

/// A gain of this factor, or a loss by it.
fn size(ratio: f64) -> f64 {
    ratio.max(1.0 / ratio)
}

/// What was published where the model predicted a change of this size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TrackRecord {
    /// Published changes.
    pub rows: usize,
    pub hits: usize,
    /// Those that a prediction of 0% would have hit.
    pub null_hits: usize,
    /// A tenth of the published changes were lower, in percent. Positive is better.
    pub low_pct: f64,
    /// A tenth of the published changes were higher.
    pub high_pct: f64,
    /// The prediction is 5% or more, and 0% would have hit more often.
    pub misled: bool,
}

impl TrackRecord {
    /// Of how many changes that were predicted at 5% and more the range that the other tables give
    /// holds the published one: their number, and that of all of them.
    pub const HELD: (usize, usize) = HELD;

    /// Is it one of 5% and more?
    pub fn is_large(change_pct: f64) -> bool {
        size(1.0 + change_pct / 100.0) >= GAIN
    }

    /// Of predictions of `change_pct`, where CPUs idle for `idle_pct` of the time under the baseline.
    /// `None` for a change without a value, and for measurements, which do not know `idle_pct`.
    pub(crate) fn of(idle_pct: f64, change_pct: f64) -> Option<TrackRecord> {
        let ratio = 1.0 + change_pct / 100.0;
        if !idle_pct.is_finite() || !ratio.is_finite() || ratio <= 0.0 {
            return None;
        }
        let size = size(ratio);
        let is_large = TrackRecord::is_large(change_pct);
        let of_idle_time = &CLASSES[usize::from(idle_pct >= IDLE_PCT)];
        let class =
            if size >= COLLAPSE { &COLLAPSES } else { &of_idle_time[usize::from(is_large)] };
        let &Class { rows, hits, null_hits, ratios: (low, high) } = class;
        let (low, high) =
            if is_large && ratio < 1.0 { (1.0 / high, 1.0 / low) } else { (low, high) };
        let pct = |ratio: f64| 100.0 * (ratio - 1.0);
        Some(TrackRecord {
            rows,
            hits,
            null_hits,
            low_pct: pct(low),
            high_pct: pct(high),
            misled: is_large && hits < null_hits,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_that_migrations_or_noise_made_is_none() {
        let predicted = |pct, p_value, migrations, ttwu_count_per_s| {
            let [baseline, candidate] =
                [0.2 * ttwu_count_per_s, migrations].map(|migrations_per_s| Explain {
                    migrations_per_s,
                    ttwu_count_per_s,
                    ..Explain::default()
                });
            predicted_pct(pct, p_value, [&baseline, &candidate].map(migrations_per_wakeup))
        };
        let of = |pct, migrations| predicted(pct, Some(0.001), migrations, 1e6);
        assert_eq!(of(-34.0, 0.24e6), -34.0);
        assert_eq!(of(-34.0, 0.26e6), -UNSIZED_PCT);
        assert_eq!(of(34.0, 0.1e6), UNSIZED_PCT);
        assert_eq!((of(0.4, 0.9e6), of(-0.4, 0.9e6)), (0.4, -0.4));
        assert_eq!((of(120.0, 0.9e6), of(-51.0, 0.9e6)), (120.0, -51.0));
        assert!(of(f64::NAN, 0.9e6).is_nan());
        let alike = |pct, p_value| predicted(pct, p_value, 0.2e6, 1e6);
        assert_eq!((alike(34.0, Some(0.0099)), alike(34.0, Some(0.01))), (34.0, UNSIZED_PCT));
        assert_eq!((alike(-34.0, Some(0.3)), alike(-0.4, Some(0.3))), (-UNSIZED_PCT, -0.4));
        assert_eq!((alike(120.0, Some(0.3)), alike(34.0, None)), (120.0, 34.0));
        // A measurement, and a run without wakeups.
        for p_value in [Some(0.001), Some(0.3)] {
            assert_eq!(predicted(-34.0, p_value, 5.0, f64::NAN), -34.0);
            assert_eq!(predicted(-34.0, p_value, 5.0, 0.0), -34.0);
        }
    }

    #[test]
    fn classes_are_chosen_by_idle_time_and_size() {
        let rows = |idle, change| TrackRecord::of(idle, change).expect("a class").rows;
        assert_eq!(rows(0.0, 4.9), CLASSES[0][0].rows);
        assert_eq!(rows(59.9, 5.1), CLASSES[0][1].rows);
        assert_eq!(rows(60.0, -40.0), CLASSES[1][1].rows);
        assert_eq!(rows(99.0, -4.0), CLASSES[1][0].rows);
        assert_eq!((rows(0.0, 100.1), rows(99.0, -51.0)), (COLLAPSES.rows, COLLAPSES.rows));
        assert_eq!(TrackRecord::of(50.0, f64::NAN), None);
        assert_eq!(TrackRecord::of(50.0, -100.0), None);
    }

    #[test]
    fn a_tenth_of_every_class_is_a_row() {
        assert!(CLASSES.iter().flatten().chain([&COLLAPSES]).all(|class| class.rows >= 10));
    }

    #[test]
    fn documents_say_how_few_large_predictions_their_range_holds() {
        let (held, of) = HELD;
        let readme = include_str!("../../../../README.md");
        assert!(readme.contains(&format!("{held} of the {of} changes predicted at 5% and more")));
        let page = include_str!("../../../../docs/reading-results.md");
        assert!(page.contains(&format!("{held} of the {of} that were predicted at 5% and more")));
    }

    #[test]
    fn a_loss_turns_the_range_over() {
        let gain = TrackRecord::of(70.0, 10.0).expect("a class");
        let loss = TrackRecord::of(70.0, 100.0 * (1.0 / 1.1 - 1.0)).expect("a class");
        assert_eq!((gain.rows, gain.misled), (loss.rows, loss.misled));
        for (a, b) in [(gain.low_pct, loss.high_pct), (gain.high_pct, loss.low_pct)] {
            assert!(((1.0 + a / 100.0) * (1.0 + b / 100.0) - 1.0).abs() < 1e-9);
        }
        assert!(loss.low_pct < loss.high_pct);
    }

    #[test]
    fn a_small_prediction_misleads_nobody() {
        for idle in [0.0, 30.0, 90.0] {
            assert!(!TrackRecord::of(idle, 0.0).expect("a class").misled);
        }
    }
}

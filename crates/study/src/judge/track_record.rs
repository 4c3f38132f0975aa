//! What predictions are worth, by published changes of tables that no constant is set by: a size that
//! simulated migrations made is none, and how predictions like a row's fared, in classes by the
//! baseline's idle time and the size of the predicted change.

use reveille_measure::Explain;
use serde::Serialize;

use crate::judge::tracked::{CLASSES, COLLAPSE, Class, GAIN, IDLE_PCT, MOVED, MOVED_PCT};

/// The best prediction, where `simulated_pct` came out: that or, where it comes with migrations, a
/// small change towards the same side. Measurements do not count wakeups and stay.
pub(crate) fn predicted_pct(simulated_pct: f64, sides: [&Explain; 2]) -> f64 {
    let [baseline, candidate] = sides.map(|side| side.migrations_per_s / side.ttwu_count_per_s);
    let moved = (candidate - baseline).abs() >= MOVED;
    let ratio = 1.0 + simulated_pct / 100.0;
    if !moved || ratio >= COLLAPSE || ratio <= 1.0 / COLLAPSE {
        return simulated_pct;
    }
    simulated_pct.clamp(-MOVED_PCT, MOVED_PCT)
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
    /// Of predictions of `change_pct`, where CPUs idle for `idle_pct` of the time under the baseline.
    /// `None` for a change without a value, and for measurements, which do not know `idle_pct`.
    pub(crate) fn of(idle_pct: f64, change_pct: f64) -> Option<TrackRecord> {
        let ratio = 1.0 + change_pct / 100.0;
        if !idle_pct.is_finite() || !ratio.is_finite() || ratio <= 0.0 {
            return None;
        }
        let reached = |x: f64, bounds: [f64; 2]| bounds.iter().filter(|b| x >= **b).count();
        let size = reached(ratio.max(1.0 / ratio), GAIN);
        let Class { rows, hits, null_hits, ratios: (low, high) } =
            CLASSES[reached(idle_pct, IDLE_PCT)][size];
        let (low, high) =
            if size > 0 && ratio < 1.0 { (1.0 / high, 1.0 / low) } else { (low, high) };
        let pct = |ratio: f64| 100.0 * (ratio - 1.0);
        Some(TrackRecord {
            rows,
            hits,
            null_hits,
            low_pct: pct(low),
            high_pct: pct(high),
            misled: size > 0 && hits < null_hits,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_that_migrations_made_is_none() {
        let predicted = |pct, migrations, ttwu_count_per_s| {
            let [baseline, candidate] =
                [0.2 * ttwu_count_per_s, migrations].map(|migrations_per_s| Explain {
                    migrations_per_s,
                    ttwu_count_per_s,
                    ..Explain::default()
                });
            predicted_pct(pct, [&baseline, &candidate])
        };
        let of = |pct, migrations| predicted(pct, migrations, 1e6);
        assert_eq!(of(-34.0, 0.24e6), -34.0);
        assert_eq!(of(-34.0, 0.26e6), -MOVED_PCT);
        assert_eq!(of(34.0, 0.1e6), MOVED_PCT);
        assert_eq!((of(0.4, 0.9e6), of(-0.4, 0.9e6)), (0.4, -0.4));
        assert_eq!((of(120.0, 0.9e6), of(-51.0, 0.9e6)), (120.0, -51.0));
        assert!(of(f64::NAN, 0.9e6).is_nan());
        // A measurement, and a run without wakeups.
        assert_eq!(predicted(-34.0, 5.0, f64::NAN), -34.0);
        assert_eq!(predicted(-34.0, 5.0, 0.0), -34.0);
    }

    #[test]
    fn classes_are_chosen_by_idle_time_and_size() {
        let rows = |idle, change| TrackRecord::of(idle, change).expect("a class").rows;
        assert_eq!(rows(0.0, 4.9), CLASSES[0][0].rows);
        assert_eq!(rows(5.0, 5.1), CLASSES[1][1].rows);
        assert_eq!(rows(60.0, 300.0), CLASSES[2][2].rows);
        assert_eq!(rows(99.0, -4.0), CLASSES[2][0].rows);
        assert_eq!(TrackRecord::of(50.0, f64::NAN), None);
        assert_eq!(TrackRecord::of(50.0, -100.0), None);
    }

    #[test]
    fn a_tenth_of_every_class_is_a_row() {
        assert!(CLASSES.iter().flatten().all(|class| class.rows >= 10));
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

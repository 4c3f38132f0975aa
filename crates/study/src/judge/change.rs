//! What a change between the runs of two sides is worth: one rule for every command that shows one.

use reveille_measure::{Direction, Ns};

use crate::judge::modes::RowModes;
use crate::judge::statistics;
use crate::judge::track_record::predicted_pct;

/// What a change of one metric is judged by, of the runs of one side.
#[derive(Clone, Debug, PartialEq)]
pub struct Runs {
    /// The figure of every repeat; NaN of one that recorded nothing.
    pub samples: Vec<f64>,
    /// A time long enough for a quantile that some repeat has too few samples for.
    pub enough_ns: Option<Ns>,
    /// Mean over repeats. `None` where the tables of the track record have no change of the kind:
    /// such changes are not corrected.
    pub migrations_per_wakeup: Option<f64>,
}

/// The change from a baseline to a candidate, in percent; + is better.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The best prediction: that of the runs, or less where its size means nothing.
    pub predicted_pct: f64,
    /// That of the runs.
    pub uncorrected_pct: f64,
    pub p_value: Option<f64>,
    pub modes: Option<RowModes>,
}

impl Change {
    pub fn of(direction: Direction, [base, candidate]: [&Runs; 2]) -> Change {
        let samples = [&*base.samples, &*candidate.samples];
        let uncorrected_pct = statistics::supported_change_pct(direction, samples[0], samples[1]);
        let p_value = statistics::welch_p(samples[0], samples[1]);
        let modes = RowModes::of(direction, samples[0], samples[1]);
        let predicted_pct = match (base.migrations_per_wakeup, candidate.migrations_per_wakeup) {
            (Some(base), Some(candidate)) if modes.is_none() => {
                predicted_pct(uncorrected_pct, p_value, [base, candidate])
            }
            _ => uncorrected_pct,
        };
        Change { predicted_pct, uncorrected_pct, p_value, modes }
    }
}

/// Did runs finish nothing, so that there is nothing to compare with? They were too short for a
/// single operation.
pub fn nothing(direction: Direction, mean: f64) -> bool {
    direction == Direction::Higher && mean == 0.0
}

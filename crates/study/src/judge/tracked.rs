//! Written by scripts/track-record.py; not edited by hand.

/// Idle time of the baseline, in percent, from which a row is in the second and in the third class.
pub(super) const IDLE_PCT: [f64; 2] = [5.0, 60.0];
/// Predicted gain, or as large a loss, from which a row is in the second and in the third class.
pub(super) const GAIN: [f64; 2] = [1.05, 1.20];
/// Difference of migrations per wakeup from which a change comes with migrations. Races of some
/// hundred nanoseconds decide about them, which the model does not get right.
pub(super) const MOVED: f64 = 0.05;
/// The model knows the direction of a change by this factor even so.
pub(super) const COLLAPSE: f64 = 2.0;
/// What is predicted, in percent, where a simulated change of 5% to 100% comes with migrations.
pub(super) const MOVED_PCT: f64 = 1.4;

pub(super) struct Class {
    pub(super) rows: usize,
    pub(super) hits: usize,
    pub(super) null_hits: usize,
    /// A tenth of the published ratios was lower, a tenth higher. Above the first size a ratio is
    /// above 1 if it went the predicted way, below that if it was a gain.
    pub(super) ratios: (f64, f64),
}

/// From 960 published changes of 11 tables: by idle time, then by size.
#[rustfmt::skip]
pub(super) const CLASSES: [[Class; 3]; 3] = [
    [
        Class { rows: 159, hits: 93, null_hits: 91, ratios: (0.882, 1.199) },
        Class { rows: 21, hits: 11, null_hits: 10, ratios: (0.954, 1.156) },
        Class { rows: 29, hits: 13, null_hits: 13, ratios: (0.878, 1.208) },
    ],
    [
        Class { rows: 204, hits: 102, null_hits: 104, ratios: (0.785, 1.145) },
        Class { rows: 24, hits: 9, null_hits: 13, ratios: (0.938, 1.147) },
        Class { rows: 14, hits: 10, null_hits: 1, ratios: (1.131, 4.906) },
    ],
    [
        Class { rows: 490, hits: 358, null_hits: 364, ratios: (0.919, 1.091) },
        Class { rows: 21, hits: 15, null_hits: 7, ratios: (0.965, 1.144) },
        Class { rows: 19, hits: 18, null_hits: 0, ratios: (1.181, 1.443) },
    ],
];

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
        Class { rows: 147, hits: 82, null_hits: 83, ratios: (0.885, 1.201) },
        Class { rows: 21, hits: 9, null_hits: 10, ratios: (0.933, 1.216) },
        Class { rows: 25, hits: 10, null_hits: 13, ratios: (0.941, 1.317) },
    ],
    [
        Class { rows: 224, hits: 122, null_hits: 119, ratios: (0.811, 1.145) },
        Class { rows: 28, hits: 11, null_hits: 11, ratios: (0.975, 1.210) },
        Class { rows: 16, hits: 7, null_hits: 4, ratios: (0.834, 2.970) },
    ],
    [
        Class { rows: 474, hits: 349, null_hits: 356, ratios: (0.917, 1.083) },
        Class { rows: 33, hits: 22, null_hits: 6, ratios: (0.951, 1.302) },
        Class { rows: 13, hits: 10, null_hits: 1, ratios: (1.100, 1.432) },
    ],
];

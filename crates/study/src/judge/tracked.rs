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
        Class { rows: 159, hits: 94, null_hits: 91, ratios: (0.882, 1.192) },
        Class { rows: 21, hits: 10, null_hits: 10, ratios: (0.898, 1.156) },
        Class { rows: 29, hits: 12, null_hits: 13, ratios: (0.814, 1.227) },
    ],
    [
        Class { rows: 205, hits: 100, null_hits: 106, ratios: (0.786, 1.137) },
        Class { rows: 24, hits: 9, null_hits: 11, ratios: (0.967, 1.278) },
        Class { rows: 13, hits: 9, null_hits: 1, ratios: (0.948, 2.972) },
    ],
    [
        Class { rows: 490, hits: 358, null_hits: 364, ratios: (0.919, 1.091) },
        Class { rows: 21, hits: 15, null_hits: 7, ratios: (0.965, 1.144) },
        Class { rows: 19, hits: 18, null_hits: 0, ratios: (1.181, 1.443) },
    ],
];

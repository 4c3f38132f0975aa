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
        Class { rows: 158, hits: 93, null_hits: 90, ratios: (0.882, 1.193) },
        Class { rows: 23, hits: 11, null_hits: 12, ratios: (0.909, 1.153) },
        Class { rows: 30, hits: 13, null_hits: 14, ratios: (0.816, 1.216) },
    ],
    [
        Class { rows: 206, hits: 101, null_hits: 106, ratios: (0.787, 1.136) },
        Class { rows: 23, hits: 8, null_hits: 11, ratios: (0.966, 1.284) },
        Class { rows: 13, hits: 9, null_hits: 1, ratios: (0.948, 2.972) },
    ],
    [
        Class { rows: 490, hits: 358, null_hits: 364, ratios: (0.919, 1.091) },
        Class { rows: 21, hits: 15, null_hits: 7, ratios: (0.965, 1.144) },
        Class { rows: 19, hits: 18, null_hits: 0, ratios: (1.181, 1.443) },
    ],
];

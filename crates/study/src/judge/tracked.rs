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
/// Median published change, in percent, of predictions of 5% to 100% that come with migrations.
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
        Class { rows: 160, hits: 74, null_hits: 83, ratios: (0.844, 1.200) },
        Class { rows: 32, hits: 14, null_hits: 18, ratios: (0.963, 1.138) },
        Class { rows: 19, hits: 5, null_hits: 8, ratios: (0.828, 2.672) },
    ],
    [
        Class { rows: 183, hits: 105, null_hits: 108, ratios: (0.864, 1.112) },
        Class { rows: 24, hits: 12, null_hits: 10, ratios: (0.931, 1.273) },
        Class { rows: 12, hits: 10, null_hits: 1, ratios: (1.025, 3.020) },
    ],
    [
        Class { rows: 482, hits: 351, null_hits: 356, ratios: (0.919, 1.091) },
        Class { rows: 30, hits: 20, null_hits: 4, ratios: (0.967, 1.370) },
        Class { rows: 18, hits: 10, null_hits: 5, ratios: (0.874, 1.419) },
    ],
];

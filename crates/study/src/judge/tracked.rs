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
        Class { rows: 153, hits: 83, null_hits: 83, ratios: (0.880, 1.204) },
        Class { rows: 23, hits: 10, null_hits: 13, ratios: (0.959, 1.197) },
        Class { rows: 29, hits: 13, null_hits: 16, ratios: (0.972, 1.248) },
    ],
    [
        Class { rows: 218, hits: 118, null_hits: 118, ratios: (0.850, 1.157) },
        Class { rows: 29, hits: 12, null_hits: 10, ratios: (0.974, 1.210) },
        Class { rows: 15, hits: 7, null_hits: 4, ratios: (0.834, 2.916) },
    ],
    [
        Class { rows: 474, hits: 354, null_hits: 356, ratios: (0.916, 1.082) },
        Class { rows: 29, hits: 23, null_hits: 5, ratios: (0.982, 1.213) },
        Class { rows: 13, hits: 10, null_hits: 1, ratios: (1.100, 1.432) },
    ],
];

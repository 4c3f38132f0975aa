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
        Class { rows: 193, hits: 94, null_hits: 100, ratios: (0.845, 1.197) },
        Class { rows: 20, hits: 7, null_hits: 7, ratios: (0.801, 1.060) },
        Class { rows: 21, hits: 4, null_hits: 8, ratios: (0.959, 2.887) },
    ],
    [
        Class { rows: 179, hits: 108, null_hits: 109, ratios: (0.914, 1.120) },
        Class { rows: 20, hits: 4, null_hits: 10, ratios: (0.950, 1.309) },
        Class { rows: 16, hits: 7, null_hits: 3, ratios: (0.912, 2.970) },
    ],
    [
        Class { rows: 469, hits: 349, null_hits: 351, ratios: (0.917, 1.084) },
        Class { rows: 27, hits: 21, null_hits: 2, ratios: (1.014, 1.305) },
        Class { rows: 15, hits: 10, null_hits: 3, ratios: (1.018, 1.440) },
    ],
];

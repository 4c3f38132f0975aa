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
        Class { rows: 181, hits: 89, null_hits: 91, ratios: (0.841, 1.199) },
        Class { rows: 33, hits: 14, null_hits: 15, ratios: (0.866, 1.083) },
        Class { rows: 32, hits: 5, null_hits: 11, ratios: (0.836, 2.598) },
    ],
    [
        Class { rows: 154, hits: 99, null_hits: 99, ratios: (0.932, 1.101) },
        Class { rows: 17, hits: 6, null_hits: 11, ratios: (0.981, 1.170) },
        Class { rows: 26, hits: 11, null_hits: 6, ratios: (0.884, 3.612) },
    ],
    [
        Class { rows: 486, hits: 355, null_hits: 358, ratios: (0.918, 1.097) },
        Class { rows: 23, hits: 13, null_hits: 2, ratios: (1.007, 1.373) },
        Class { rows: 8, hits: 5, null_hits: 0, ratios: (1.113, 1.456) },
    ],
];

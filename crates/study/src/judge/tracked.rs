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
        Class { rows: 150, hits: 87, null_hits: 86, ratios: (0.909, 1.191) },
        Class { rows: 17, hits: 7, null_hits: 9, ratios: (0.828, 1.173) },
        Class { rows: 26, hits: 9, null_hits: 12, ratios: (0.810, 1.268) },
    ],
    [
        Class { rows: 223, hits: 116, null_hits: 117, ratios: (0.806, 1.145) },
        Class { rows: 25, hits: 12, null_hits: 10, ratios: (0.975, 1.221) },
        Class { rows: 16, hits: 7, null_hits: 5, ratios: (0.872, 4.273) },
    ],
    [
        Class { rows: 477, hits: 348, null_hits: 355, ratios: (0.916, 1.085) },
        Class { rows: 30, hits: 23, null_hits: 7, ratios: (0.986, 1.215) },
        Class { rows: 13, hits: 10, null_hits: 1, ratios: (1.100, 1.432) },
    ],
];

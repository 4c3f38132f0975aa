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
        Class { rows: 191, hits: 92, null_hits: 97, ratios: (0.870, 1.220) },
        Class { rows: 18, hits: 8, null_hits: 8, ratios: (0.883, 1.116) },
        Class { rows: 11, hits: 4, null_hits: 5, ratios: (1.021, 2.620) },
    ],
    [
        Class { rows: 179, hits: 100, null_hits: 104, ratios: (0.866, 1.122) },
        Class { rows: 22, hits: 6, null_hits: 11, ratios: (0.925, 1.187) },
        Class { rows: 24, hits: 8, null_hits: 10, ratios: (0.934, 3.010) },
    ],
    [
        Class { rows: 470, hits: 349, null_hits: 352, ratios: (0.917, 1.083) },
        Class { rows: 33, hits: 22, null_hits: 6, ratios: (0.968, 1.327) },
        Class { rows: 12, hits: 9, null_hits: 0, ratios: (1.127, 1.435) },
    ],
];

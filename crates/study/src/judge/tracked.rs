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
        Class { rows: 179, hits: 98, null_hits: 97, ratios: (0.844, 1.176) },
        Class { rows: 22, hits: 5, null_hits: 8, ratios: (0.824, 1.154) },
        Class { rows: 12, hits: 3, null_hits: 4, ratios: (0.969, 2.859) },
    ],
    [
        Class { rows: 185, hits: 109, null_hits: 109, ratios: (0.870, 1.123) },
        Class { rows: 20, hits: 7, null_hits: 9, ratios: (0.959, 1.309) },
        Class { rows: 14, hits: 7, null_hits: 3, ratios: (0.876, 3.010) },
    ],
    [
        Class { rows: 487, hits: 352, null_hits: 359, ratios: (0.917, 1.091) },
        Class { rows: 25, hits: 21, null_hits: 2, ratios: (1.057, 1.286) },
        Class { rows: 16, hits: 11, null_hits: 2, ratios: (1.030, 1.425) },
    ],
];

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

pub(super) struct Class {
    pub(super) rows: usize,
    pub(super) hits: usize,
    pub(super) null_hits: usize,
    /// A tenth of the published ratios was lower, a tenth higher. Above the first size a ratio is
    /// above 1 if it went the predicted way, below that if it was a gain.
    pub(super) ratios: (f64, f64),
}

/// Median published change, in percent, of predictions of 5% to 100% that come with migrations.
pub(super) const MOVED_PCT: f64 = 1.4;

/// From 960 published changes of 11 tables: by idle time, then by size.
#[rustfmt::skip]
pub(super) const CLASSES: [[Class; 3]; 3] = [
    [
        Class { rows: 195, hits: 96, null_hits: 94, ratios: (0.855, 1.251) },
        Class { rows: 26, hits: 15, null_hits: 15, ratios: (0.950, 1.158) },
        Class { rows: 30, hits: 6, null_hits: 12, ratios: (0.833, 2.424) },
    ],
    [
        Class { rows: 160, hits: 100, null_hits: 98, ratios: (0.892, 1.098) },
        Class { rows: 17, hits: 7, null_hits: 9, ratios: (0.997, 1.231) },
        Class { rows: 18, hits: 10, null_hits: 6, ratios: (0.885, 3.365) },
    ],
    [
        Class { rows: 474, hits: 349, null_hits: 354, ratios: (0.924, 1.091) },
        Class { rows: 26, hits: 13, null_hits: 1, ratios: (1.026, 1.661) },
        Class { rows: 14, hits: 5, null_hits: 4, ratios: (1.002, 1.430) },
    ],
];

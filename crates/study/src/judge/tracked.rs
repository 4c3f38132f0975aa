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
        Class { rows: 189, hits: 93, null_hits: 94, ratios: (0.862, 1.225) },
        Class { rows: 20, hits: 6, null_hits: 7, ratios: (0.846, 1.416) },
        Class { rows: 17, hits: 2, null_hits: 11, ratios: (0.949, 1.738) },
    ],
    [
        Class { rows: 159, hits: 99, null_hits: 97, ratios: (0.933, 1.121) },
        Class { rows: 29, hits: 10, null_hits: 16, ratios: (0.914, 1.148) },
        Class { rows: 22, hits: 11, null_hits: 7, ratios: (0.957, 2.931) },
    ],
    [
        Class { rows: 478, hits: 354, null_hits: 354, ratios: (0.917, 1.087) },
        Class { rows: 29, hits: 23, null_hits: 3, ratios: (1.022, 1.339) },
        Class { rows: 17, hits: 8, null_hits: 4, ratios: (0.987, 1.422) },
    ],
];

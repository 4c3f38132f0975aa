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
        Class { rows: 168, hits: 93, null_hits: 92, ratios: (0.894, 1.208) },
        Class { rows: 13, hits: 5, null_hits: 8, ratios: (0.871, 1.125) },
        Class { rows: 21, hits: 6, null_hits: 11, ratios: (0.834, 1.169) },
    ],
    [
        Class { rows: 207, hits: 112, null_hits: 109, ratios: (0.788, 1.149) },
        Class { rows: 25, hits: 10, null_hits: 11, ratios: (0.925, 1.145) },
        Class { rows: 14, hits: 8, null_hits: 3, ratios: (0.982, 3.010) },
    ],
    [
        Class { rows: 475, hits: 354, null_hits: 359, ratios: (0.920, 1.083) },
        Class { rows: 32, hits: 22, null_hits: 7, ratios: (0.986, 1.259) },
        Class { rows: 18, hits: 15, null_hits: 1, ratios: (1.113, 1.443) },
    ],
];

//! Written by scripts/track-record.py; not edited by hand.

/// Idle time of the baseline, in percent, from which a row is in the second class.
pub(super) const IDLE_PCT: f64 = 60.0;
/// Predicted gain, or as large a loss, from which a row is in the second class.
pub(super) const GAIN: f64 = 1.05;
/// Difference of migrations per wakeup from which a change comes with migrations. Races of some
/// hundred nanoseconds decide about them, which the model does not get right.
pub(super) const MOVED: f64 = 0.05;
/// A change by this factor keeps its size, and is of a class of its own.
pub(super) const COLLAPSE: f64 = 2.0;
/// From this p-value of Welch's t-test the repeats do not tell the sides apart.
pub(super) const UNSURE_P: f64 = 0.01;
/// What is predicted, in percent, for a change below [`COLLAPSE`] that comes with migrations or whose
/// repeats disagree.
pub(super) const UNSIZED_PCT: f64 = 1.4;

pub(super) struct Class {
    pub(super) rows: usize,
    pub(super) hits: usize,
    pub(super) null_hits: usize,
    /// A tenth of the published ratios was lower, a tenth higher. From [`GAIN`] on a ratio is above 1 if
    /// it went the predicted way, below that if it was a gain.
    pub(super) ratios: (f64, f64),
}

/// From 960 published changes of 11 tables: by idle time, then by size.
#[rustfmt::skip]
pub(super) const CLASSES: [[Class; 2]; 2] = [
    [
        Class { rows: 397, hits: 212, null_hits: 212, ratios: (0.875, 1.184) },
        Class { rows: 13, hits: 6, null_hits: 5, ratios: (0.963, 1.273) },
    ],
    [
        Class { rows: 480, hits: 367, null_hits: 365, ratios: (0.933, 1.083) },
        Class { rows: 34, hits: 32, null_hits: 1, ratios: (1.101, 1.424) },
    ],
];
/// Of predicted changes by a factor of [`COLLAPSE`] and more, whatever the idle time.
#[rustfmt::skip]
pub(super) const COLLAPSES: Class =
    Class { rows: 36, hits: 18, null_hits: 10, ratios: (0.984, 4.559) };
/// Of the changes that were predicted at [`GAIN`] and more, those in the range that the other tables give.
pub(super) const HELD: (usize, usize) = (47, 83);

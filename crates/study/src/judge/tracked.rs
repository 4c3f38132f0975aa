//! Written by scripts/track-record.py; not edited by hand.

use crate::judge::track_record::Class;

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

//! Written by scripts/track-record.py; not edited by hand.

use crate::judge::track_record::Class;

/// From 960 published changes of 11 tables: by idle time, then by size.
#[rustfmt::skip]
pub(super) const CLASSES: [[Class; 3]; 3] = [
    [
        Class { rows: 156, hits: 81, null_hits: 79, ratios: (0.892, 1.226) },
        Class { rows: 49, hits: 22, null_hits: 25, ratios: (0.950, 1.572) },
        Class { rows: 46, hits: 11, null_hits: 17, ratios: (0.847, 2.697) },
    ],
    [
        Class { rows: 113, hits: 75, null_hits: 76, ratios: (0.932, 1.102) },
        Class { rows: 45, hits: 15, null_hits: 24, ratios: (0.945, 1.150) },
        Class { rows: 37, hits: 10, null_hits: 13, ratios: (0.879, 2.525) },
    ],
    [
        Class { rows: 445, hits: 332, null_hits: 336, ratios: (0.917, 1.079) },
        Class { rows: 36, hits: 15, null_hits: 8, ratios: (0.894, 1.414) },
        Class { rows: 33, hits: 5, null_hits: 15, ratios: (0.902, 1.404) },
    ],
];

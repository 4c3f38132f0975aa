//! The law of SIS_UTIL against the table that its commit prints (70fb5ccf2ebb).

use reveille_policy::nr_idle_scan;

/// Mean utilisation in percent, and how many CPUs a search may look at of 112 and of 16.
const PUBLISHED: [(u64, u32, u32); 11] = [
    (0, 112, 16),
    (5, 111, 15),
    (15, 108, 15),
    (25, 102, 14),
    (35, 93, 13),
    (45, 81, 11),
    (55, 65, 9),
    (65, 47, 6),
    (75, 25, 3),
    (85, 1, 0),
    (86, 0, 0),
];

#[test]
fn searches_shrink_with_utilisation_as_published() {
    for (pct, of_112, of_16) in PUBLISHED {
        let scan = |weight: u32| nr_idle_scan(1024 * u64::from(weight) * pct / 100, weight, 117);
        assert_eq!((scan(112), scan(16)), (of_112, of_16), "at {pct}%");
    }
}

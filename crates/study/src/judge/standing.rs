//! How firm a verdict is when a constant is moved over its plausible range. One rule
//! for every study, fixed here as the verdicts themselves are.
//!
//! A row that hits at the shipped value is *fragile* if it hits at fewer than half of
//! the sampled positions of some constant's range: then the hit owes more to the choice
//! of that constant than to the mechanism. A row that misses at the shipped value is
//! *near* if it hits at more than half of the positions of some range: then the miss may
//! be the constant's fault. Exactly half is neither. Positions lie evenly across the
//! range, its ends included; the shipped value counts only where it is one of them.

use serde::Serialize;

use crate::judge::verdict::Verdict;

/// See the head of this file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// Neither of the others.
    Firm,
    /// Hits at the shipped value, and misses over more than half of a range.
    Fragile,
    /// Misses at the shipped value, and hits over more than half of a range.
    Near,
}

/// How firm the verdict at the shipped value is, given those across one range.
pub fn standing(shipped: Verdict, sampled: &[Verdict]) -> Standing {
    let hits = sampled.iter().filter(|v| **v == Verdict::Hit).count();
    match shipped {
        Verdict::Hit if 2 * hits < sampled.len() => Standing::Fragile,
        Verdict::Miss if 2 * hits > sampled.len() => Standing::Near,
        _ => Standing::Firm,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{Hit, Informative, Miss};

    #[test]
    fn a_hit_is_fragile_below_half() {
        assert_eq!(standing(Hit, &[Hit, Hit, Miss, Miss, Miss]), Standing::Fragile);
        assert_eq!(standing(Hit, &[Hit, Hit, Hit, Miss, Miss]), Standing::Firm);
        assert_eq!(standing(Hit, &[Hit, Hit, Miss, Miss]), Standing::Firm);
        assert_eq!(standing(Hit, &[Miss, Miss]), Standing::Fragile);
        assert_eq!(standing(Hit, &[Hit, Miss]), Standing::Firm);
    }

    #[test]
    fn a_miss_is_near_above_half() {
        assert_eq!(standing(Miss, &[Hit, Hit, Hit, Miss, Miss]), Standing::Near);
        assert_eq!(standing(Miss, &[Hit, Hit, Miss, Miss]), Standing::Firm);
        assert_eq!(standing(Miss, &[Miss, Miss, Miss]), Standing::Firm);
        assert_eq!(standing(Miss, &[Hit, Hit]), Standing::Near);
    }

    #[test]
    fn nothing_else_has_a_standing() {
        assert_eq!(standing(Informative, &[Hit, Miss, Miss]), Standing::Firm);
        assert_eq!(standing(Hit, &[]), Standing::Firm);
        assert_eq!(standing(Miss, &[]), Standing::Firm);
    }
}

//! Under which rules a random machine decides, and what its CPUs remember of idle
//! time and searches.

use reveille_policy::{BASELINES, FEATURES, Policy, Tunables, bits};

use crate::machine::Dice;
use crate::variants::Scan;

/// The policy named, or a baseline with some features turned over:
/// half of the time one of v6.2 with SIS_SHORT.
pub fn tunables(dice: &mut Dice, n_cpus: usize, policy: &str) -> Tunables {
    let hz = [100, 250, 1000][dice.below(3)];
    let mut tunables = if let Some((base, edits)) = policy.split_once(' ') {
        Policy::baseline(base).unwrap().with(edits).unwrap().tunables(n_cpus, hz)
    } else if !policy.is_empty() {
        Policy::baseline(policy).unwrap().tunables(n_cpus, hz)
    } else {
        let base =
            if dice.one_in(2) { "v6.2" } else { BASELINES[dice.below(BASELINES.len())].name };
        let mut any = Policy::baseline(base).unwrap().tunables(n_cpus, hz);
        if base == "v6.2" {
            any.features |= bits::SIS_SHORT;
        }
        for bit in [bits::SIS_NODE, bits::SIS_CLUSTER, bits::SIS_CURRENT, bits::SIS_CACHE] {
            any.features |= if dice.one_in(3) { bit } else { 0 };
        }
        // All of them, so that no new one goes untested.
        for feature in FEATURES {
            if dice.one_in(10) {
                any.features ^= feature.bit;
            }
        }
        any
    };
    if dice.one_in(5) {
        tunables.imbalance_pct = 100 + dice.below(60) as u32;
        tunables.smt_imbalance_pct = 100 + dice.below(60) as u32;
    }
    tunables
}

/// Budgets from the least to all, by idle times and search costs of any size.
pub fn scan(dice: &mut Dice, now_j: u64) -> Scan {
    let ns = |dice: &mut Dice| match dice.below(5) {
        0 => 0,
        1 => dice.below(2_000) as u64,
        2 => dice.below(100_000) as u64,
        _ => dice.below(1_000_001) as u64,
    };
    Scan {
        avg_idle: ns(dice),
        avg_scan_cost: [0, dice.below(1_000), dice.below(100_000)][dice.below(3)] as u64,
        wake_avg_idle: ns(dice),
        wake_stamp: now_j - [0, dice.below(4), dice.below(100)][dice.below(3)] as u64,
    }
}

//! What a policy means to scx_reveille. Its loader and those who predict what it does go by
//! the same rules, so they stand here.

use reveille_place::Mistake;

use crate::features::{FEATURES, Policy, bits, names_of};

/// The baseline that scx_reveille takes unless told otherwise.
pub const SCX_DEFAULT_BASE: &str = "v7.2";

/// Features that have no meaning in a sched_ext scheduler, and why.
const WITHOUT_MEANING: &[(u64, &str)] = &[
    (
        bits::TTWU_QUEUE
            | bits::TTWU_QUEUE_ON_CPU
            | bits::TTWU_QUEUE_IDLE
            | bits::TTWU_PENDING_HELD,
        "the kernel puts tasks of sched_ext on no wake list, and idle CPUs are claimed atomically",
    ),
    (
        bits::LAST_BUDDY
            | bits::EEVDF
            | bits::PLACE_LAG
            | bits::RUN_TO_PARITY
            | bits::PREEMPT_SHORT
            | bits::DELAY_DEQUEUE
            | bits::DELAY_ZERO
            | bits::SLICE_PROTECT
            | bits::DELAYED_HIDDEN,
        "tasks of a CPU run in order of weighted virtual time there",
    ),
    (
        bits::AUTOGROUP | bits::LOAD_AVG_RATELIMIT | bits::EMPTY_KEEPS_WEIGHT,
        "sessions have no groups there, and no group has a load",
    ),
    (
        bits::SIS_NODE | bits::SIS_NODE_LIMIT | bits::SIS_NODE_TOPOEXT | bits::SIS_CLUSTER,
        "memory nodes and clusters are not told apart there",
    ),
    (
        bits::NEWIDLE_COST
            | bits::NEWIDLE_BUMP
            | bits::NI_RANDOM
            | bits::NI_RATE
            | bits::SCHED_CACHE
            | bits::SCHED_CACHE_ALL,
        "the kernel's balancing leaves its tasks alone",
    ),
    (bits::PREEMPT_LAZY, "the kernel that runs it decides how its tasks are preempted"),
    (bits::PIPE_WAKE_FREED, "whom a pipe wakes is the kernel's decision"),
    (bits::UTIL_EST, "a CPU's utilisation is what it was used, not what its tasks once used"),
    (
        bits::SWQUEUE_NEWIDLE | bits::SWQUEUE_GATE_ABOVE_LLC,
        "a CPU looks at its shared queue when it has no task of its own, and nowhere else",
    ),
    (
        bits::SWQUEUE_ENQUEUE,
        "a task stands on its CPU's queue or on the shared one there, not on both",
    ),
    (bits::THROTTLE_EXIT, "a throttled task runs on until it returns to user mode, set or not"),
    (bits::SIS_FILTER, "a search there finds idle CPUs by their mask, and looks at no others"),
    (
        bits::SIS_CACHE | bits::SIS_CACHE_V1,
        "an idle CPU does not know there when its last task will be back",
    ),
];

/// A feature that an edit may not touch under scx_reveille.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WithoutMeaning {
    /// Its name.
    pub feature: &'static str,
    /// Why it means nothing there.
    pub why: &'static str,
}

/// The first of `changed` features that means nothing to scx_reveille. Baselines have such
/// features all the same; only to set or unset one is a mistake.
pub fn scx_without_meaning(changed: u64) -> Option<WithoutMeaning> {
    let (bits, why) = WITHOUT_MEANING.iter().find(|(bits, _)| bits & changed != 0)?;
    let feature = FEATURES.iter().find(|f| f.bit & bits & changed != 0)?;
    Some(WithoutMeaning { feature: feature.name, why })
}

/// Names of those of `features` that mean something to scx_reveille, in bit order.
pub fn scx_names(features: u64) -> Vec<&'static str> {
    names_of(features & with_meaning())
}

fn with_meaning() -> u64 {
    !WITHOUT_MEANING.iter().fold(0, |all, (bits, _)| all | bits)
}

impl Policy {
    /// [`Policy::with`], whose errors propose only edits that mean something to scx_reveille.
    ///
    /// # Errors
    /// As [`Policy::with`]; see [`scx_without_meaning`] too.
    pub fn with_for_scx(&self, edits: &str) -> Result<Policy, Mistake> {
        self.edited(edits, with_meaning())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_queues_and_order_are_made_of_means_nothing() {
        let found = scx_without_meaning(bits::SIS_SHORT | bits::PLACE_LAG | bits::EEVDF).unwrap();
        assert_eq!(found.feature, "EEVDF");
        assert!(found.why.contains("virtual time"));
        let none = bits::SIS_SHORT | bits::SWQUEUE | bits::SIS_UTIL | bits::WAKEUP_PREEMPTION;
        assert_eq!(scx_without_meaning(none), None);
        for (bits, why) in WITHOUT_MEANING {
            let feature = scx_without_meaning(*bits).unwrap();
            assert_eq!(feature.why, *why);
        }
        Policy::baseline(SCX_DEFAULT_BASE).unwrap();
    }

    #[test]
    fn names_are_those_that_set_accepts() {
        assert_eq!(scx_names(bits::EEVDF | bits::SIS_UTIL | bits::TTWU_QUEUE), ["SIS_UTIL"]);
        let named = scx_names(u64::MAX);
        for feature in FEATURES {
            let accepted = scx_without_meaning(feature.bit).is_none();
            assert_eq!(named.contains(&feature.name), accepted, "{}", feature.name);
        }
    }
}

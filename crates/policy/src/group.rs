//! Task groups of a run: who is limited, and how. The simulator and the host runner
//! are given the same value.

use crate::{BandwidthLimits, Ns};

/// A task group with a bandwidth limit, and the tasks in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskGroup {
    /// Its name in results.
    pub name: String,
    /// Index of the group that it lies in; groups come after their parents.
    pub parent: Option<usize>,
    /// Quota, period and burst.
    pub limits: BandwidthLimits,
    /// Roles of the program whose tasks are in it; empty for all. A task is in one
    /// group at most, the last that names its role.
    pub roles: Vec<u16>,
    /// When the first period ends, from the start of the run, modulo the period; drawn
    /// from the seed, uniform over a period, if not given.
    pub phase_ns: Option<Ns>,
}

impl TaskGroup {
    /// A group that all tasks are in, and that is in no other.
    pub fn new(name: &str, limits: BandwidthLimits) -> TaskGroup {
        TaskGroup { name: name.to_owned(), parent: None, limits, roles: Vec::new(), phase_ns: None }
    }
}

/// Task groups of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    /// Parents first.
    pub groups: Vec<TaskGroup>,
    /// What a queue draws from its group's quota at a time
    /// (`sched_cfs_bandwidth_slice_us`); 5 ms by default.
    pub slice_ns: Ns,
}

impl From<TaskGroup> for Groups {
    /// This one, with the usual slice.
    fn from(group: TaskGroup) -> Groups {
        Groups { groups: vec![group], ..Groups::default() }
    }
}

impl Default for Groups {
    fn default() -> Groups {
        Groups { groups: Vec::new(), slice_ns: 5_000_000 }
    }
}

//! The state that decisions read, laid out as the C code reads it: mirrors
//! `csrc/sim_world.h` and `policy/types.h`.

use crate::{CpuId, Ns, TaskId};

/// Words of 64 CPUs in an LLC.
pub(crate) const LLC_WORDS: usize = 64;
/// The waker is about to sleep (WF_SYNC).
pub const WAKE_SYNC: u32 = 1;
/// The waker runs in task context, not in an interrupt.
pub const WAKE_IN_TASK: u32 = 2;
/// All other tasks on the waker's CPU are delayed: a wake-up with [`WAKE_SYNC`] finds it alone there.
pub const WAKE_ALONE: u32 = 4;

/// What the policy remembers of one task (`struct policy_task`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// Jiffies when `wakee_flips` was last halved.
    pub wakee_flip_decay_j: u64,
    /// CPU time since birth.
    pub sum_exec_ns: Ns,
    /// `sum_exec_ns` at the last sleep.
    pub prev_sleep_sum_ns: Ns,
    /// Average CPU time between sleeps.
    pub dur_avg_ns: i64,
    /// Its own number.
    pub id: TaskId,
    /// The task that it woke last.
    pub last_wakee: TaskId,
    /// How often it changed whom it wakes, decaying.
    pub wakee_flips: u32,
    /// Where it ran last.
    pub prev_cpu: CpuId,
    /// The CPU before that.
    pub recent_used_cpu: CpuId,
    /// PELT load as last updated.
    pub load_avg: u32,
    /// Index of its allowed set; 0 allows every CPU.
    pub affinity: u32,
    /// Bit 0: a kernel thread bound to one CPU.
    pub flags: u32,
}

impl Task {
    /// A task that has just been born on `cpu`.
    pub fn new(id: TaskId, cpu: CpuId) -> Task {
        Task {
            id,
            last_wakee: TaskId::NONE,
            prev_cpu: cpu,
            recent_used_cpu: cpu,
            ..Task::default()
        }
    }
}

/// What a CPU remembers of its idle time, and of what its own searches cost
/// (`struct policy_scan_state`).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanState {
    /// The mean of its idle stretches (`rq->avg_idle`).
    pub avg_idle_ns: Ns,
    /// The mean of its searches, in its own copy of the LLC domain (SIS_PROP).
    pub avg_scan_cost_ns: Ns,
    /// Idle time that its wake-ups may count on (SIS_AGE).
    pub wake_avg_idle_ns: Ns,
    /// Up to when that has aged, in jiffies.
    pub wake_stamp_j: u64,
}

impl Default for ScanState {
    /// As at boot: twice the default migration cost of 500 us, and no search yet.
    fn default() -> ScanState {
        ScanState {
            avg_idle_ns: 1_000_000,
            avg_scan_cost_ns: 0,
            wake_avg_idle_ns: 1_000_000,
            wake_stamp_j: 0,
        }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WorldCpu {
    pub(crate) nr_running: u32,
    pub(crate) curr: TaskId,
    pub(crate) cfs_load: u32,
    pub(crate) capacity: u16,
    pub(crate) available_idle: u8,
    pub(crate) sched_idle: u8,
    pub(crate) llc: u16,
    pub(crate) position: u16,
    pub(crate) smt_first: u16,
    pub(crate) smt_width: u16,
    pub(crate) cluster: u32,
    pub(crate) reserved: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorldLlc {
    pub(crate) usable: [u64; LLC_WORDS],
    pub(crate) filter: [u64; LLC_WORDS],
    pub(crate) first: u32,
    pub(crate) weight: u32,
    pub(crate) nr_idle_scan: u32,
    pub(crate) has_idle_cores: u32,
    pub(crate) next: u32,
    pub(crate) rank: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct RawWorld {
    pub(crate) cpus: *mut WorldCpu,
    pub(crate) llcs: *mut WorldLlc,
    pub(crate) tasks: *mut Task,
    pub(crate) scans: *mut ScanState,
    pub(crate) hot_until: *const Ns,
    pub(crate) llc_cpus: *const u16,
    pub(crate) smt_cpus: *const u16,
    pub(crate) allowed: *const u64,
    pub(crate) clusters: *const u64,
    pub(crate) now_ns: Ns,
    pub(crate) n_llcs: u32,
    pub(crate) n_cpus: u32,
    pub(crate) n_tasks: u32,
    pub(crate) n_affinities: u32,
    pub(crate) smt_active: u32,
    pub(crate) cluster_active: u32,
}

/// Which rule chose the CPU.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The target was idle.
    TargetIdle = 1,
    /// The wakee's previous CPU was idle.
    PrevIdle,
    /// A per-CPU kernel thread hands back to its CPU.
    Kthread,
    /// The CPU before the previous one was idle.
    RecentIdle,
    /// A sibling of the previous CPU was idle.
    SiblingIdle,
    /// A whole idle core was found.
    IdleCore,
    /// An idle CPU was found.
    IdleCpu,
    /// SIS_SHORT kept the pair together.
    Short,
    /// Nothing idle was found.
    Target,
    /// A policy file chose an idle CPU.
    Own,
    /// A policy file chose a busy CPU.
    OwnBusy,
}

impl Rule {
    /// Is the chosen CPU one that looked idle?
    #[inline]
    pub fn found_idle(self) -> bool {
        !matches!(self, Rule::Kthread | Rule::Short | Rule::Target | Rule::OwnBusy)
    }
}

/// A decision and what it looked at (`struct policy_pick`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pick {
    /// Where the task will run.
    pub cpu: CpuId,
    /// Where wake_affine proposed to start.
    pub target: CpuId,
    /// Idle tests of single CPUs before the search.
    pub tested: u8,
    /// Other LLCs that were searched (SIS_NODE).
    pub far_llcs: u8,
    /// CPUs that the idle search looked at.
    pub searched: u16,
    /// Those of other LLCs among them.
    pub far: u16,
    rule: u8,
    search: u8,
    core_search: u8,
    cleared: u8,
    exhausted: u8,
    affine: u8,
    /// Threads of the previous CPU's core that select_idle_smt() came to, that CPU included.
    pub siblings: u8,
    /// Cores that the search looked at, if SIS_LIMITED_CORES bounds them.
    pub cores: u8,
    /// Idle CPUs that the search asked whether they are cache-hot (SIS_CACHE).
    pub asked: u16,
}

impl Pick {
    /// `cpu`, without a look at any other.
    pub fn unsearched(cpu: CpuId) -> Pick {
        Pick { cpu, target: cpu, ..Pick::default() }
    }

    /// The rule that chose the CPU.
    pub fn rule(&self) -> Rule {
        match self.rule {
            1 => Rule::TargetIdle,
            2 => Rule::PrevIdle,
            3 => Rule::Kthread,
            4 => Rule::RecentIdle,
            5 => Rule::SiblingIdle,
            6 => Rule::IdleCore,
            7 => Rule::IdleCpu,
            8 => Rule::Short,
            // As any other number; without a gap there is no table to look in.
            9 => Rule::Target,
            10 => Rule::Own,
            11 => Rule::OwnBusy,
            _ => Rule::Target,
        }
    }

    /// An idle search was made.
    #[inline]
    pub fn search(&self) -> bool {
        self.search != 0
    }

    /// The search was for a whole idle core.
    #[inline]
    pub fn core_search(&self) -> bool {
        self.core_search != 0
    }

    /// The search failed, and `has_idle_cores` or SIS_FILTER's mask was cleared.
    #[inline]
    pub fn cleared_idle_cores(&self) -> bool {
        self.cleared != 0
    }

    /// The search was ended by its budget, with CPUs left to look at.
    #[inline]
    pub fn exhausted(&self) -> bool {
        self.exhausted != 0
    }
}

#[cfg(test)]
pub(crate) fn c_layout() -> String {
    use crate::layout::layout;
    [
        layout! { Task, "struct policy_task",
        wakee_flip_decay_j, sum_exec_ns, prev_sleep_sum_ns, dur_avg_ns, id, last_wakee,
        wakee_flips, prev_cpu, recent_used_cpu, load_avg, affinity, flags },
        layout! { ScanState, "struct policy_scan_state",
        avg_idle_ns, avg_scan_cost_ns, wake_avg_idle_ns, wake_stamp_j },
        layout! { WorldCpu, "struct world_cpu",
        nr_running, curr, cfs_load, capacity, available_idle, sched_idle, llc, position,
        smt_first, smt_width, cluster, reserved },
        layout! { WorldLlc, "struct world_llc",
        usable, filter, first, weight, nr_idle_scan, has_idle_cores, next, rank },
        layout! { RawWorld, "struct world",
        cpus, llcs, tasks, scans, hot_until, llc_cpus, smt_cpus, allowed, clusters, now_ns,
        n_llcs, n_cpus, n_tasks, n_affinities, smt_active, cluster_active },
        layout! { Pick, "struct policy_pick",
        cpu, target, tested, far_llcs, searched, far, rule, search, core_search, cleared,
        exhausted, affine, siblings, cores, asked },
    ]
    .concat()
}

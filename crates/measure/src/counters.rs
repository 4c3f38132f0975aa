//! Counters of one run, and how each CPU spent its time.

use serde::{Deserialize, Serialize};

use crate::Ns;

/// What the scheduler did in the measured time. All are counts unless named `_ns`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Wake-ups placed on the waker's own CPU.
    pub wakeups_same_cpu: u64,
    /// Wake-ups placed on an SMT sibling of the waker's CPU.
    pub wakeups_sibling: u64,
    /// Wake-ups placed elsewhere in the waker's last-level cache.
    pub wakeups_same_llc: u64,
    /// Wake-ups placed in another last-level cache.
    pub wakeups_remote: u64,
    /// Searches of a last-level cache for an idle CPU.
    pub idle_searches: u64,
    /// CPUs that those searches looked at.
    pub cpus_searched: u64,
    /// Calls of select_idle_sibling().
    pub sis_search: u64,
    /// ... that found neither the target nor the CPUs tried beside it idle.
    pub sis_domain_search: u64,
    /// Runqueues looked at: one per call, however many of target, previous and recent CPU
    /// it tried, and each that the search of the cache looked at.
    pub sis_scanned: u64,
    /// Calls that found no idle CPU.
    pub sis_failed: u64,
    /// Wake-ups that chose a CPU which another waker had already chosen while
    /// it still looked idle (the race of the SIS_SHORT mail).
    pub stacked_wakeups: u64,
    /// Tasks that changed CPU at a wake-up.
    pub wakeup_migrations: u64,
    /// Tasks moved by load balancing, or pulled from a shared wake queue.
    pub balance_migrations: u64,
    /// Tasks that new-idle balancing pulled; they are among `balance_migrations` too.
    pub newidle_pulls: u64,
    pub ipis: u64,
    /// Context switches from one task to another or to and from idle.
    pub context_switches: u64,
    /// Preemptions of a running task by a wake-up or a tick.
    pub preemptions: u64,
    /// Time spent waiting for runqueue locks, over all CPUs.
    pub lock_wait_ns: Ns,
    /// Time spent waiting for contended cache lines, over all CPUs.
    pub hot_line_wait_ns: Ns,
    /// Time spent waiting for the locks of shared wake queues to append a wakee.
    pub swqueue_append_wait_ns: Ns,
    /// Time spent waiting for the same locks to remove a wakee: at its pick, at its dequeue, or to
    /// pull it elsewhere.
    pub swqueue_remove_wait_ns: Ns,
    /// Tasks that a CPU about to go idle pulled from a shared wake queue; they are
    /// among `balance_migrations` too.
    pub swqueue_pulls: u64,
    /// Time that the idle task was current, over all CPUs: idle, and the way in and out.
    pub idle_task_ns: Ns,
    pub activations: u64,
}

/// How one CPU spent the measured time. The three add up to the elapsed time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTime {
    /// Doing the workload's own work, system calls included.
    pub busy_ns: Ns,
    pub idle_ns: Ns,
    /// Kernel cost of scheduling: placement, switches, locks, idle exit, balancing.
    pub cost_ns: Ns,
}

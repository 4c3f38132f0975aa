//! Virtual time: the kernel's wakeup path, runqueues, idle states and balancing
//! on a modelled machine.

mod arrivals;
mod balance;
mod balance_pass;
mod bandwidth;
mod cfs;
mod channel;
mod clock;
mod clock_speed;
mod code;
mod contention;
mod cpu;
mod delayed;
mod domains;
mod eevdf;
mod engine;
mod fair;
mod fork;
mod idle;
mod idle_loop;
mod imbalance;
mod interrupts;
mod invariants;
mod message_cost;
mod messages;
mod near;
mod pelt;
mod program;
mod release;
mod runqueue;
mod schedule;
mod start;
mod swqueue;
mod sync;
mod task;
mod throttle;
mod wakeup;

use std::sync::atomic::AtomicBool;

use reveille_machine::Machine;
use reveille_measure::{Ns, RunResult, RunSpec};
use reveille_policy::{BandwidthError, Groups, Policy};
use reveille_workload::Program;

pub use bandwidth::GroupMoment;

/// The longest virtual time of one run, warm-up included: event times are kept in 48 bits.
pub const MAX_RUN_NS: Ns = 1 << 47;

/// Why a run has no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SimError {
    /// `stop` was set.
    #[error("interrupted")]
    Interrupted,
    /// Nothing can happen any more: every task waits for another.
    #[error(
        "deadlock at {at_ns} ns: all {tasks} tasks wait for each other; check the workload's operations"
    )]
    Deadlock {
        /// Virtual time.
        at_ns: Ns,
        /// Number of tasks.
        tasks: usize,
    },
    /// The kernel would refuse a group's limits.
    #[error("group `{group}`: {error}")]
    Limits {
        /// Name of the group.
        group: String,
        /// Which rule they break.
        error: BandwidthError,
    },
    /// A group lies in one that does not come before it.
    #[error("group `{group}` lies in group number {parent}, which must come before it")]
    GroupOrder {
        /// Name of the group.
        group: String,
        /// Index of the group that it should lie in.
        parent: usize,
    },
}

/// Runs a program on a machine under a policy. Errors: see [`SimError`]. The same arguments give the same
/// result, bit for bit. Stops within some 10 ms of real time once `stop` is set.
pub fn run(
    machine: &Machine,
    program: &Program,
    policy: &Policy,
    groups: &Groups,
    spec: &RunSpec,
    stop: &AtomicBool,
) -> Result<RunResult, SimError> {
    let n_cpus = machine.topology.n_cpus();
    let bandwidth = bandwidth::Bandwidth::new(groups, program, n_cpus, spec.seed)?;
    engine::Sim::new(machine, program, policy, bandwidth, spec).run(spec, stop).map(|ran| ran.0)
}

/// The same, and what happened to the groups meanwhile, in the order in which it did.
/// Errors: see [`SimError`].
pub fn run_with_history(
    machine: &Machine,
    program: &Program,
    policy: &Policy,
    groups: &Groups,
    spec: &RunSpec,
    stop: &AtomicBool,
) -> Result<(RunResult, Vec<GroupMoment>), SimError> {
    let n_cpus = machine.topology.n_cpus();
    let mut bandwidth = bandwidth::Bandwidth::new(groups, program, n_cpus, spec.seed)?;
    if let Some(bandwidth) = &mut bandwidth {
        bandwidth.history = Some(Vec::new());
    }
    engine::Sim::new(machine, program, policy, bandwidth, spec).run(spec, stop)
}

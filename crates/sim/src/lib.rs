//! Virtual time: the kernel's wakeup path, runqueues, idle states and balancing
//! on a modelled machine.
#![allow(missing_docs, reason = "names and types of the few public items say it")]

mod chance;
mod engine;
mod error;
mod hw;
mod ids;
mod invariants;
mod measured;
mod rq;
mod rules;
mod sched;
mod sim;
mod start;
mod tasks;

use std::sync::atomic::AtomicBool;

use reveille_machine::Machine;
use reveille_measure::{Ns, RunResult, RunSpec};
use reveille_policy::{Groups, Policy};
use reveille_workload::Program;

pub use error::SimError;
pub use rq::groups::GroupMoment;

use rq::groups::Bandwidth;
use sim::Sim;

/// The longest virtual time of one run, warm-up included: event times are kept in 48 bits.
pub const MAX_RUN_NS: Ns = 1 << 47;

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
    let bandwidth = Bandwidth::new(groups, program, n_cpus, spec.seed)?;
    Sim::new(machine, program, policy, bandwidth, spec).run(spec, stop).map(|ran| ran.0)
}

/// As [`run`], and also returns what happened to the groups, in order.
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
    let mut bandwidth = Bandwidth::new(groups, program, n_cpus, spec.seed)?;
    if let Some(bandwidth) = &mut bandwidth {
        bandwidth.history = Some(Vec::new());
    }
    Sim::new(machine, program, policy, bandwidth, spec).run(spec, stop)
}

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
mod together;

use std::sync::atomic::AtomicBool;

use reveille_machine::Machine;
use reveille_measure::{Ns, RunResult, RunSpec};
use reveille_policy::{Groups, Policy};
use reveille_workload::Program;

pub use error::SimError;
pub use rq::groups::GroupMoment;

use rq::groups::Bandwidth;
use sim::Sim;
use together::{Follower, checkable};

/// The longest virtual time of one run, warm-up included: event times are kept in 47 bits.
pub const MAX_RUN_NS: Ns = 1 << 46;

/// Runs a program on a machine under a policy. Deterministic: equal arguments give the same result,
/// bit for bit. Stops within about 10 ms of real time once `stop` is set. Errors: see [`SimError`].
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
    Sim::new(machine, program, policy, bandwidth, spec).run(spec, stop).map(|ran| ran.result)
}

/// Runs the first of several policies as [`run`] does, and tells for each whether its result is the
/// same. A policy whose result differs, or would need a run of its own to tell, is reported as
/// different. Errors: see [`SimError`].
pub fn run_together(
    machine: &Machine,
    program: &Program,
    policies: &[&Policy],
    groups: &Groups,
    spec: &RunSpec,
    stop: &AtomicBool,
) -> Result<(RunResult, Vec<bool>), SimError> {
    let n_cpus = machine.topology.n_cpus();
    let bandwidth = Bandwidth::new(groups, program, n_cpus, spec.seed)?;
    let mut sim = Sim::new(machine, program, policies[0], bandwidth, spec);
    let follower = |(index, policy): (usize, &&Policy)| {
        let tunables = policy.tunables(n_cpus, machine.hz);
        checkable(policies[0], policy).then_some(Follower { index, tunables, decided: None })
    };
    sim.followers = policies.iter().enumerate().skip(1).filter_map(follower).collect();
    let ran = sim.run(spec, stop)?;
    let mut same = vec![false; policies.len()];
    same[0] = true;
    ran.followers.iter().for_each(|&index| same[index] = true);
    Ok((ran.result, same))
}

/// As [`run`], and also returns the history of the groups, in order. Errors: see [`SimError`].
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
    let ran = Sim::new(machine, program, policy, bandwidth, spec).run(spec, stop)?;
    Ok((ran.result, ran.history))
}

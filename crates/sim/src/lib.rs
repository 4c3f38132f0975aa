//! Virtual time: the kernel's wakeup path, runqueues, idle states and balancing
//! on a modelled machine.
#![allow(missing_docs, reason = "names and types of the few public items say it")]

mod chance;
mod engine;
mod error;
mod followers;
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

use std::iter;
use std::sync::atomic::AtomicBool;

use reveille_machine::Machine;
use reveille_measure::{Ns, RunResult, RunSpec};
use reveille_policy::{Groups, Policy};
use reveille_workload::Program;

pub use error::SimError;
pub use rq::groups::GroupMoment;

use followers::Follower;
use rq::groups::Bandwidth;
use sim::Sim;
use tasks::code::Code;
use together::checkable;

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
    let code = Code::new(program);
    Sim::new(machine, program, &code, policy, bandwidth, spec).run(spec, stop).map(|ran| ran.result)
}

/// A result, and the policies that have it.
pub type Shared = (Vec<usize>, RunResult);

/// Runs the first of several policies as [`run`] does, and along with it those that decide alike, at
/// least for a while: each result is the one that [`run`] gives each of its policies. Policies that would
/// need a run from its start are in none. Errors: see [`SimError`], with the policy that ran.
pub fn run_together(
    machine: &Machine,
    program: &Program,
    policies: &[&Policy],
    groups: &Groups,
    spec: &RunSpec,
    stop: &AtomicBool,
) -> Result<Vec<Shared>, (usize, SimError)> {
    let n_cpus = machine.topology.n_cpus();
    let bandwidth = Bandwidth::new(groups, program, n_cpus, spec.seed).map_err(|e| (0, e))?;
    let code = Code::new(program);
    let mut sim = Sim::new(machine, program, &code, policies[0], bandwidth, spec);
    let follower = |(index, policy): (usize, &&Policy)| {
        let tunables = policy.tunables(n_cpus, machine.hz);
        checkable(policies[0], policy).then_some(Follower { index, tunables, decided: None })
    };
    sim.followers.agreeing = policies.iter().enumerate().skip(1).filter_map(follower).collect();
    sim.start(spec);
    let mut shared = Vec::new();
    let mut runs = vec![(0, sim)];
    while let Some((index, sim)) = runs.pop() {
        let ran = sim.go_on(spec, stop).map_err(|error| (index, error))?;
        let followers = ran.followers.iter().map(|follower| follower.index);
        shared.push((iter::once(index).chain(followers).collect(), ran.result));
        runs.extend(ran.together.forks());
    }
    Ok(shared)
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
    let code = Code::new(program);
    let ran = Sim::new(machine, program, &code, policy, bandwidth, spec).run(spec, stop)?;
    Ok((ran.result, ran.history))
}

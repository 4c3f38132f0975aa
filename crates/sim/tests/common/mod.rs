//! Machines, programs and runs as the tests of this crate write them.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use reveille_machine::{CostModel, Machine, Topology};
use reveille_measure::{Ns, RunResult, RunSpec};
use reveille_policy::{Groups, Policy};
use reveille_workload::{Program, Workload};

pub const MS: Ns = 1_000_000;

/// A uniform machine with the constants and idle states of a preset.
pub fn machine(preset: &str, sockets: u32, llcs: u32, cores: u32, threads: u32) -> Machine {
    let topology = Topology::uniform(sockets, llcs, cores, threads).expect("a valid topology");
    Machine { topology, ..reveille_machine::load(preset).expect("a preset") }
}

/// The machine, but its idle CPUs are woken by interrupts, as HLT is.
pub fn halting(mut machine: Machine) -> Machine {
    machine.idle.truncate(1);
    machine.idle[0].polling = false;
    (machine.idle[0].exit_ns, machine.cost.ipi_flight_ns) = (4000, 2500);
    machine
}

/// The machine, but equal work always takes equal time, and interrupts wake nothing. The plausible ranges
/// exclude that, so the plain numbers are set.
pub fn exact(machine: Machine) -> Machine {
    with_costs(machine, |cost| {
        (cost.noise, cost.speed, cost.all_core_clock) = (0.0, 1.0, 1.0);
        cost.background_wakes = 0;
    })
}

pub fn with_costs(mut machine: Machine, set: impl FnOnce(&mut CostModel)) -> Machine {
    set(&mut machine.cost);
    machine
}

/// Time of all CPUs that the kernel and its waits took.
pub fn cost_ns(result: &RunResult) -> f64 {
    result.cpus.iter().map(|cpu| cpu.cost_ns).sum::<Ns>() as f64
}

/// The v6.2 baseline with edits, if any.
pub fn policy(edits: &str) -> Policy {
    kernel("v6.2", edits)
}

/// Any baseline with edits, if any.
pub fn kernel(base: &str, edits: &str) -> Policy {
    let base = Policy::baseline(base).expect("a baseline");
    if edits.is_empty() { base } else { base.with(edits).expect("edits that apply") }
}

pub fn baseline(name: &str) -> Policy {
    Policy::baseline(name).expect("a baseline")
}

/// A workload file with one throughput metric, built for `load` instances.
pub fn program(body: &str, load: u64) -> Program {
    let head = "name = \"test\"\nabout = \"a test\"\nload = \"instances\"\n";
    let metric = "[[metric]]\nname = \"throughput (1/s)\"\nthroughput = true\n";
    // Keys of the document stand before its first table.
    let at = body.find("[[task]]").expect("a task");
    let text = format!("{head}{}{metric}{}", &body[..at], &body[at..]);
    let workload =
        Workload::parse("test.toml", &text).unwrap_or_else(|error| panic!("{error:?} in\n{text}"));
    workload.build(load, &BTreeMap::new()).expect("a load that can be built")
}

/// A workload of the catalogue with parameters.
pub fn catalogue(name: &str, load: u64, params: &[(&str, &str)]) -> Program {
    let params = params.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect();
    reveille_workload::find(name).expect(name).build(load, &params).expect("parameters that exist")
}

/// A run with seed 1.
pub fn run(
    machine: &Machine,
    program: &Program,
    policy: &Policy,
    warmup: Ns,
    duration: Ns,
) -> RunResult {
    run_seed(machine, program, policy, 1, warmup, duration)
}

/// A run with any seed.
pub fn run_seed(
    machine: &Machine,
    program: &Program,
    policy: &Policy,
    seed: u64,
    warmup_ns: Ns,
    duration_ns: Ns,
) -> RunResult {
    let spec = RunSpec { seed, warmup_ns, duration_ns };
    reveille_sim::run(machine, program, policy, &Groups::default(), &spec, &AtomicBool::new(false))
        .unwrap_or_else(|error| panic!("{error} with {spec:?}"))
}

/// Fails unless `value` is within `share` of `expected`.
#[track_caller]
pub fn assert_near(what: &str, value: f64, expected: f64, share: f64) {
    let off = (value - expected).abs() / expected.abs();
    assert!(off <= share, "{what}: {value} is {:.2}% off {expected}", off * 100.0);
}

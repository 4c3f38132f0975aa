//! Quota, period and burst as a group's tasks feel them: the published tail of schbench
//! under a quota, its closed form by phase, nesting, and what no group can exceed.

mod common;

use std::sync::atomic::AtomicBool;

use common::{MS, assert_near, exact, machine, policy, program, run_seed};
use proptest::prelude::*;
use reveille_machine::Machine;
use reveille_measure::{GroupStats, Ns, RunResult};
use reveille_policy::{BandwidthError, BandwidthLimits};
use reveille_sim::{Groups, RunSpec, SimError, TaskGroup};
use reveille_workload::Program;

/// Requests come this often, and each is 80 ms of wall-clock time for a worker.
const CYCLE: Ns = 200 * MS;
const WORK: Ns = 80 * MS;

fn limits(quota_ms: u64, period_ms: u64, burst_ms: u64) -> BandwidthLimits {
    BandwidthLimits {
        quota_ns: Some(quota_ms * MS),
        period_ns: period_ms * MS,
        burst_ns: burst_ms * MS,
    }
}

fn group(name: &str, limits: BandwidthLimits, phase_ns: Ns) -> TaskGroup {
    TaskGroup {
        name: name.to_owned(),
        parent: None,
        limits,
        roles: Vec::new(),
        phase_ns: Some(phase_ns),
    }
}

fn run_groups(
    machine: &Machine,
    program: &Program,
    groups: Vec<TaskGroup>,
    warmup_ns: Ns,
    duration_ns: Ns,
) -> RunResult {
    let groups = Groups { groups, ..Groups::default() };
    let spec = RunSpec { seed: 1, warmup_ns, duration_ns };
    reveille_sim::run(machine, program, &policy(""), &groups, &spec, &AtomicBool::new(false))
        .unwrap_or_else(|error| panic!("{error} with {spec:?}"))
}

/// Eight CPUs with a tick of 1 ms, where equal work takes equal time.
fn box_1000hz() -> Machine {
    Machine { hz: 1000, ..exact(machine("skx-2s20c", 1, 1, 8, 1)) }
}

/// One request is two posts, as of three workers two are asked at a time: each third
/// round a worker rests. A request is noted when it is sent, and recorded when done.
fn requests(machine: &Machine, drift: Ns) -> Program {
    // Timers come late by their slack, and a cycle has its own system calls.
    let slack = Ns::from(machine.cost.timer_slack_ns);
    let sleep = CYCLE + drift - slack;
    program(
        &format!(
            "lists = [\"first\", \"second\", \"third\"]\n\
             [[task]]\nname = \"message\"\nprogram = [\
             {{ wake_list = \"first\" }}, {{ wake_list = \"second\" }}, {{ sleep = \"{sleep}ns\" }}, \
             {{ wake_list = \"third\" }}, {{ wake_list = \"first\" }}, {{ sleep = \"{sleep}ns\" }}, \
             {{ wake_list = \"second\" }}, {{ wake_list = \"third\" }}, {{ sleep = \"{sleep}ns\" }}]\n\
             {}{}{}",
            worker("first"),
            worker("second"),
            worker("third"),
        ),
        1,
    )
}

fn worker(list: &str) -> String {
    format!(
        "[[task]]\nname = \"{list}\"\nprogram = [{{ join = \"{list}\" }}, {{ wait = true }}, \
         {{ spin = \"80ms\" }}, {{ record = true }}, {{ count = 1 }}]\n"
    )
}

/// A run of `cycles` whose first batch comes at `phase` in the period.
fn throttled_requests(limits: BandwidthLimits, phase: Ns, drift: Ns, cycles: u64) -> RunResult {
    let machine = box_1000hz();
    let program = requests(&machine, drift);
    // The first batch after the start finds no worker; the next comes a cycle later.
    let first = 2 * CYCLE;
    let period = limits.period_ns;
    let group = group("schbench", limits, (first + period - phase) % period);
    run_groups(&machine, &program, vec![group], first - MS, cycles * CYCLE)
}

fn excess_ms(run: &RunResult, quantile: f64) -> f64 {
    run.recorded_latency.quantile(quantile) as f64 / 1e6 - WORK as f64 / 1e6
}

#[test]
fn print_vector() {
    for phase in [0, 10, 19, 25, 45, 55, 65, 75, 85, 97] {
        let run = throttled_requests(limits(100, 100, 0), phase * MS, 0, 20);
        println!(
            "{phase}: n {} {} min {} max {} {:?}",
            run.recorded_latency.count(),
            excess_ms(&run, 0.5),
            excess_ms(&run, 0.0),
            excess_ms(&run, 1.0),
            run.groups
        );
    }
    let run = throttled_requests(limits(100, 100, 0), 97_300_000, 57_000, 100);
    for q in [0.5, 0.75, 0.9, 0.95, 0.99] {
        println!("{q} {}", excess_ms(&run, q));
    }
    println!("{:?} {}", run.groups, run.recorded_latency.count());
}

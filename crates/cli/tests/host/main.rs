//! Workloads on this host's kernel, in children of the built command. Times are short and
//! the machine may be busy: what is asserted holds however slowly it goes.

mod ends;
mod groups;
mod random;
mod semantics;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use reveille_host::HostError;
use reveille_host::program::{HostRun, Setting};
use reveille_measure::RunSpec;
use reveille_workload::{Program, Workload};

const MS: u64 = 1_000_000;

/// A program of a workload file without its head, of one instance.
fn program(body: &str) -> Program {
    let head = "name = \"test\"\nabout = \"a test\"\nload = \"instances\"\n";
    let metric = "[[metric]]\nname = \"throughput (1/s)\"\nthroughput = true\n";
    // Keys of the document stand before its first table.
    let at = body.find("[[task]]").expect("a task");
    let text = format!("{head}{}{metric}{}", &body[..at], &body[at..]);
    let workload = Workload::parse("test.toml", &text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    workload.build(1, &BTreeMap::new()).expect("one instance can be built")
}

/// Runs it until `stop` is set.
fn run_until(
    program: &Program,
    setting: &Setting,
    times_ms: (u64, u64),
    stop: &AtomicBool,
) -> Result<HostRun, HostError> {
    let spec = RunSpec { seed: 1, warmup_ns: times_ms.0 * MS, duration_ns: times_ms.1 * MS };
    let exe = Path::new(env!("CARGO_BIN_EXE_reveille"));
    reveille_host::program::run(exe, program, setting, &spec, stop)
}

/// Runs it on all CPUs.
fn try_run(program: &Program, warmup_ms: u64, ms: u64) -> Result<HostRun, HostError> {
    run_until(program, &Setting::default(), (warmup_ms, ms), &AtomicBool::new(false))
}

/// As above; it must succeed, and is given more time until it has done `enough`: on a busy
/// machine a task may wait that long for a CPU.
fn run_until_enough(
    program: &Program,
    warmup_ms: u64,
    ms: u64,
    enough: impl Fn(&HostRun) -> bool,
) -> HostRun {
    let mut ms = ms;
    loop {
        let host = try_run(program, warmup_ms, ms).unwrap_or_else(|e| panic!("{e} in {program:?}"));
        if enough(&host) || ms > 2000 {
            return host;
        }
        ms *= 4;
    }
}

/// Until something was counted or recorded.
fn run(program: &Program, warmup_ms: u64, ms: u64) -> HostRun {
    run_until_enough(program, warmup_ms, ms, |host| {
        let recorded = host.result.recorded_latency.iter().map(|latency| latency.count());
        host.result.operations + recorded.sum::<u64>() > 0
    })
}

/// What two sorts of tasks have counted, each something, of which the second counts millions.
fn run_two(program: &Program, warmup_ms: u64, ms: u64) -> (u64, u64) {
    let both = |host: &HostRun| {
        let (one, two) = two_counts(host.result.operations);
        one > 0 && two > 0
    };
    two_counts(run_until_enough(program, warmup_ms, ms, both).result.operations)
}

/// What two sorts of tasks have counted, of which the second counts millions.
fn two_counts(operations: u64) -> (u64, u64) {
    (operations % 1_000_000, operations / 1_000_000)
}

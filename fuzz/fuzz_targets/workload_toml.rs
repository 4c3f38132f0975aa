//! Any text as a workload. One that is accepted can be built, and small ones run.
#![no_main]

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;

use libfuzzer_sys::fuzz_target;
use reveille_machine::{Machine, Topology};
use reveille_policy::Policy;
use reveille_sim::{RunSpec, SimError};
use reveille_workload::Workload;

/// More tasks than this take too long for one input.
const MAX_TASKS: usize = 64;

static MACHINE: LazyLock<Machine> = LazyLock::new(|| {
    let topology = Topology::uniform(2, 1, 2, 2).expect("a valid topology");
    Machine { topology, ..reveille_machine::load("icx-guest-32").expect("a preset") }
});
static POLICY: LazyLock<Policy> = LazyLock::new(|| Policy::baseline("v6.2").expect("a baseline"));

fuzz_target!(|text: &str| {
    let workload = match Workload::parse("fuzz.toml", text) {
        Ok(workload) => workload,
        Err(error) => return reveille_fuzz::show(&error),
    };
    assert_eq!(workload.source_text(), text);
    for load in 1..=2 {
        let program = match workload.build(load, &BTreeMap::new()) {
            Ok(program) => program,
            Err(error) => {
                assert!(load > 1, "a workload that was accepted can be built once: {error}");
                return reveille_fuzz::show(&error);
            }
        };
        if program.tasks.len() > MAX_TASKS {
            return;
        }
        let spec = RunSpec { seed: 1, warmup_ns: 200_000, duration_ns: 1_000_000 };
        match reveille_sim::run(&MACHINE, &program, &POLICY, &spec, &AtomicBool::new(false)) {
            Ok(result) => assert_eq!(result.elapsed_ns, spec.duration_ns),
            Err(error) => assert!(matches!(error, SimError::Deadlock { .. }), "{error}"),
        }
    }
});

//! What the targets demand of every reader: an end, and an error that can be shown.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme};
use reveille_machine::{Machine, Topology};
use reveille_policy::{Groups, Policy};
use reveille_measure::RunSpec;
use reveille_sim::SimError;
use reveille_usage::Usage;
use reveille_workload::Workload;

/// More tasks than this take too long for one input.
const MAX_TASKS: usize = 64;

static MACHINE: LazyLock<Machine> = LazyLock::new(|| {
    let topology = Topology::uniform(2, 1, 2, 2).expect("a valid topology");
    Machine { topology, ..reveille_machine::load("icx-guest-32").expect("a preset") }
});
static POLICY: LazyLock<Policy> = LazyLock::new(|| Policy::baseline("v6.2").expect("a baseline"));

/// Shows an error as the command does; the places that it marks must lie in the text.
pub fn show(error: &dyn Diagnostic) {
    let mut shown = String::new();
    GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor())
        .render_report(&mut shown, error)
        .expect("an error can be shown");
    assert!(!shown.is_empty());
}

/// A machine that was accepted keeps the rules that everything else relies on.
pub fn check_machine(machine: &Machine) {
    let topology = &machine.topology;
    assert!(topology.n_cpus() > 0 && !machine.idle.is_empty() && machine.hz > 0);
    assert!(!topology.describe().is_empty());
    for constant in &machine.constants {
        assert!(constant.low <= constant.value && constant.value <= constant.high);
        assert_eq!(machine.cost.get(constant.key), Some(constant.value));
    }
}

/// A workload that was accepted can be built, and runs if it is small.
pub fn check_workload(workload: &Workload) {
    for load in 1..=2 {
        let program = match workload.build(load, &BTreeMap::new()) {
            Ok(program) => program,
            Err(error) => {
                assert!(load > 1, "a workload that was accepted can be built once: {error}");
                return show(&error);
            }
        };
        if program.tasks.len() > MAX_TASKS {
            return;
        }
        let spec = RunSpec { seed: 1, warmup_ns: 200_000, duration_ns: 1_000_000 };
        let (groups, stop) = (Groups::default(), AtomicBool::new(false));
        match reveille_sim::run(&MACHINE, &program, &POLICY, &groups, &spec, &stop) {
            Ok(result) => assert_eq!(result.elapsed_ns, spec.duration_ns),
            Err(error) => assert!(matches!(error, SimError::Deadlock { .. }), "{error}"),
        }
    }
}

/// A recording that was accepted keeps the rules, can be summed up, and is the same after
/// it was written and read.
pub fn check_usage(usage: &Usage) {
    usage.validate().expect("what was read is valid");
    assert!(usage.summary().mean_cpus >= 0.0);
    let bytes = usage.to_parquet().expect("what is valid can be written");
    assert_eq!(&Usage::from_parquet("again.parquet", bytes).expect("and read"), usage);
}

//! Equal arguments give the same result, bit for bit, on any thread; the
//! seed is the only source of variation.

mod common;

use std::fmt::Write;
use std::sync::atomic::AtomicBool;

use common::{MS, baseline, catalogue, machine, policy, program, run_seed};
use reveille_machine::Machine;
use reveille_measure::{RunResult, RunSpec};
use reveille_policy::{Groups, Policy};
use reveille_workload::Program;

/// Every figure of a result, so that two can be compared.
fn figures(result: &RunResult) -> String {
    let mut text = format!(
        "{} ns, {} operations, {:?}, {:?}",
        result.elapsed_ns, result.operations, result.counters, result.cpus
    );
    for latency in result.recorded_latency.iter().chain([&result.wakeup_latency]) {
        write!(text, "\n{} of {:?}", latency.count(), latency.cdf()).expect("a string grows");
    }
    text
}

/// Cases that together use every random choice: work, timers, and balancing phases.
fn cases() -> Vec<(Machine, Program)> {
    let mixed = program(
        "channels = { there = \"udp\", back = \"udp\" }\n\
         [[task]]\nname = \"a\"\nprogram = [{ send = \"there\" }, { recv = \"back\" }, { count = 1 }]\n\
         [[task]]\nname = \"b\"\nprogram = [{ recv = \"there\" }, { run = \"3us\" }, { send = \"back\" }]\n\
         [[task]]\nname = \"c\"\ncount = 2\nprogram = [{ run = \"90us\" }, { sleep = \"50us\", jitter = \"400us\" }, { count = 1 }]\n",
        9,
    );
    let fast = [("cputime", "300us"), ("sleeptime", "200us")];
    vec![
        (machine("spr-2s56c", 2, 1, 4, 2), mixed.clone()),
        (machine("icx-guest-32", 1, 2, 3, 1), mixed),
        (machine("zen3-milan-36c", 1, 3, 4, 2), catalogue("context_switch1", 20, &[])),
        (machine("hsw-2s24c", 2, 1, 6, 2), catalogue("schbench", 2, &fast)),
    ]
}

#[test]
fn the_same_arguments_give_the_same_result_in_any_thread() {
    for (machine, program) in cases() {
        for policy in [
            policy(""),
            policy("+SIS_SHORT"),
            policy("-TTWU_QUEUE -AUTOGROUP"),
            baseline("v6.12"),
            baseline("v6.18"),
            baseline("v7.2"),
        ] {
            let once = || figures(&run_seed(&machine, &program, &policy, 7, 5 * MS, 20 * MS));
            let first = once();
            assert_eq!(first, once(), "a second run differs");
            let threads: Vec<String> = std::thread::scope(|scope| {
                let running: Vec<_> = (0..4).map(|_| scope.spawn(once)).collect();
                running.into_iter().map(|t| t.join().expect("the run ends")).collect()
            });
            for result in threads {
                assert_eq!(first, result, "a run in another thread differs");
            }
        }
    }
}

#[test]
fn another_seed_gives_another_result() {
    for (machine, program) in cases() {
        let of_seed =
            |seed| figures(&run_seed(&machine, &program, &policy(""), seed, 5 * MS, 20 * MS));
        assert_ne!(of_seed(1), of_seed(2));
        assert_ne!(of_seed(0), of_seed(u64::MAX));
    }
}

#[test]
fn policies_that_decide_the_same_have_the_same_result() {
    let stop = AtomicBool::new(false);
    let spec = RunSpec { seed: 3, warmup_ns: 20 * MS, duration_ns: 5 * MS };
    let (mut shared, mut forked) = (0, 0);
    let crowded = [("udp_rr", 10), ("tcp_rr", 10), ("tcp_rr", 13)]
        .map(|(name, pairs)| (machine("spr-2s56c", 1, 2, 4, 2), catalogue(name, pairs, &[])));
    for (machine, program) in cases().into_iter().chain(crowded) {
        for base in ["v6.2", "v6.4", "v7.2"] {
            let edits = [
                "+SIS_SHORT",
                "+SIS_SHORT_V4",
                "+SIS_CURRENT",
                "-WA_IDLE",
                "-WA_WEIGHT",
                "-TTWU_QUEUE",
            ];
            let base = baseline(base);
            let edited = edits.iter().map(|edit| base.with(edit).expect("an edit"));
            let all: Vec<Policy> = [base.clone()].into_iter().chain(edited).collect();
            let all: Vec<&Policy> = all.iter().collect();
            let groups = Groups::default();
            let together =
                reveille_sim::run_together(&machine, &program, &all, &groups, &spec, &stop);
            for (n, (policies, result)) in together.expect("it runs").into_iter().enumerate() {
                for index in policies {
                    let alone = run_seed(&machine, &program, all[index], 3, 20 * MS, 5 * MS);
                    assert!(figures(&result) == figures(&alone), "{:?} differs", all[index]);
                    *if n == 0 { &mut shared } else { &mut forked } += 1;
                }
            }
        }
    }
    assert!(shared > 20 && forked > 3, "{shared} shared, {forked} forked");
}

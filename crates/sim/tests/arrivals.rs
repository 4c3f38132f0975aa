//! Work that arrives at given times: all of it is done, in order, and where in a period it
//! comes decides what a quota does to it, as the closed form of the burst mail's experiment
//! has it.

mod common;

use std::sync::atomic::AtomicBool;

use common::{MS, baseline, exact, machine};
use proptest::prelude::*;
use reveille_machine::Machine;
use reveille_measure::{Ns, RunResult, RunSpec, UNANSWERED};
use reveille_policy::{BandwidthLimits, Groups, TaskGroup};
use reveille_workload::{Arrival, Arrivals, Metric, MetricKind, Op, Program, Role, TaskSpec};

/// Tasks that each do the work that arrives for them.
fn program(of_task: Vec<Vec<Arrival>>, span_ns: Ns, work: Op) -> Program {
    let task = TaskSpec {
        role: 0,
        process: 0,
        channel_base: 0,
        list_base: 0,
        task_base: 0,
        lock_base: 0,
        own: 0,
    };
    Program {
        name: "arrivals".into(),
        roles: vec![Role { name: "worker".into(), ops: vec![Op::Arrive, work, Op::Answer] }],
        tasks: vec![task; of_task.len()],
        channels: Vec::new(),
        n_lists: 0,
        n_locks: 0,
        arrivals: Arrivals { begin_ns: 0, span_ns, of_task },
        records: Vec::new(),
        metric: Metric { name: "answers".into(), kind: MetricKind::Throughput },
    }
}

/// The sum of what a group may use in a period, and when its first period ends.
fn group(quota_ms: u64, period_ms: u64, burst_ms: u64, phase_ns: Ns) -> Groups {
    let group = TaskGroup {
        name: "app".into(),
        parent: None,
        limits: BandwidthLimits {
            quota_ns: Some(quota_ms * MS),
            period_ns: period_ms * MS,
            burst_ns: burst_ms * MS,
        },
        roles: Vec::new(),
        phase_ns: Some(phase_ns),
    };
    Groups { groups: vec![group], ..Groups::default() }
}

/// CPUs with a tick of 1 ms, where equal work takes equal time and idle is left at once.
fn cpus(n: u32) -> Machine {
    let mut machine = Machine { hz: 1000, ..exact(machine("skx-2s20c", 1, 1, n, 1)) };
    machine.idle.truncate(1);
    machine.idle[0].exit_ns = 0;
    machine
}

fn simulate(
    machine: &Machine,
    program: &Program,
    groups: &Groups,
    warmup_ns: Ns,
    duration_ns: Ns,
) -> RunResult {
    let spec = RunSpec { seed: 1, warmup_ns, duration_ns };
    let stop = AtomicBool::new(false);
    reveille_sim::run(machine, program, &baseline("v6.12"), groups, &spec, &stop).unwrap()
}

/// How late two threads are that are asked for 80 ms of wall-clock time each 200 ms, at a
/// given time in a period of 100 ms with a quota of 100 ms, which they use up in 50 ms.
fn closed_form_ms(phase_ms: f64) -> f64 {
    match phase_ms {
        p if p < 20.0 => 20.0 - p,
        p if p < 70.0 => 0.0,
        p => 120.0 - p,
    }
}

#[test]
fn lateness_follows_the_closed_form_all_round_the_circle_of_phases() {
    let batch = vec![Arrival { at_ns: 0, work_ns: 80 * MS }];
    let program = program(vec![batch; 2], 200 * MS, Op::SpinArrived);
    // The form is of a quota without slices that is enforced at once. What it throttles just
    // before its end, at 70 ms, escapes as long as what a CPU holds of the earlier refill lasts:
    // up to a slice less the tick at which it is drawn, or the 1 ms that it keeps and a tick.
    for (slice_us, escape) in [(5000, 700..=740), (100, 700..=720)] {
        for tenths in (0..1000u64).filter(|tenths| !escape.contains(tenths)) {
            let phase_ms = tenths as f64 / 10.0;
            let mut groups = group(100, 100, 0, (1000 - tenths) * MS / 10);
            groups.slice_ns = slice_us * 1000;
            let run = simulate(&cpus(8), &program, &groups, 199 * MS, 2000 * MS);
            for took in run.answers {
                let late = took as f64 / 1e6 - 80.0;
                let off = late - closed_form_ms(phase_ms);
                assert!(off.abs() <= 0.1, "at {phase_ms} ms: {late} ms late, {off} ms off");
            }
        }
    }
}

#[test]
fn work_of_a_thread_waits_for_its_earlier_work_and_keeps_its_arrival() {
    let piece = |at: u64, work: u64| Arrival { at_ns: at * MS, work_ns: work * MS };
    let own = vec![piece(10, 30), piece(20, 5), piece(90, 1)];
    let program = program(vec![own], 100 * MS, Op::RunArrived);
    let free = Groups::default();
    let run = simulate(&cpus(1), &program, &free, 100 * MS, 100 * MS);
    let took: Vec<f64> = run.answers.iter().map(|&ns| ns as f64 / 1e6).collect();
    for (took, due) in took.iter().zip([30.0, 25.0, 1.0]) {
        assert!((took - due).abs() < 0.1, "{took} ms, not {due}");
    }
}

#[test]
fn what_a_quota_never_lets_run_is_unanswered() {
    let own = vec![Arrival { at_ns: 0, work_ns: 100 * MS }];
    let program = program(vec![own], 100 * MS, Op::RunArrived);
    let run = simulate(&cpus(1), &program, &group(10, 100, 0, 0), 0, 500 * MS);
    assert_eq!(run.answers, [UNANSWERED]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Between any two moments a group uses no more than what it had, what periods added, and
    /// what CPUs held or overran: a slice and a tick on each.
    #[test]
    fn quota_and_burst_are_never_exceeded(
        gaps in prop::collection::vec((0u64..60, 1u64..40), 4..40),
        quota_ms in 2u64..100,
        period_ms in 5u64..150,
        burst in 0u64..=100,
    ) {
        let (mut at_ns, mut of_task) = (0, vec![Vec::new(); 3]);
        for (number, (gap, work)) in gaps.into_iter().enumerate() {
            at_ns += gap * MS / 2;
            of_task[number % 3].push(Arrival { at_ns, work_ns: work * MS });
        }
        let program = program(of_task, at_ns + MS, Op::RunArrived);
        let groups = group(quota_ms, period_ms, quota_ms * burst / 100, 0);
        let limits = groups.groups[0].limits;
        let spec = RunSpec { seed: 1, warmup_ns: 0, duration_ns: 2000 * MS };
        let (machine, stop) = (cpus(2), AtomicBool::new(false));
        let policy = baseline("v6.12");
        let (_, history) =
            reveille_sim::run_with_history(&machine, &program, &policy, &groups, &spec, &stop)
                .unwrap();
        let quota_ns = limits.quota_ns.unwrap();
        let held = 2 * (groups.slice_ns + MS);
        for moment in &history {
            prop_assert!(moment.runtime_ns <= quota_ns + limits.burst_ns + held, "{moment:?}");
        }
        for (k, from) in history.iter().enumerate() {
            for to in &history[k..] {
                let periods = (to.at_ns - from.at_ns) / limits.period_ns + 1;
                let most = quota_ns * (periods + 1) + limits.burst_ns + held;
                let used = to.usage_ns - from.usage_ns;
                prop_assert!(used <= most, "{used} > {most} from {from:?} to {to:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Nothing is lost or done twice: what was used is what was asked for, and no piece is
    /// done sooner than it can be.
    #[test]
    fn all_work_is_done_and_paid_for(
        pieces in prop::collection::vec(prop::collection::vec((0u64..900, 1u64..60), 1..12), 1..4),
        quota_ms in 20u64..200,
        burst in 0u64..=100,
        phase in 0u64..100,
    ) {
        let of_task: Vec<Vec<Arrival>> = pieces.iter().map(|own| {
            let mut own: Vec<Arrival> = own
                .iter()
                .map(|&(at, work)| Arrival { at_ns: at * MS, work_ns: work * MS / 10 })
                .collect();
            own.sort_by_key(|arrival| arrival.at_ns);
            own
        }).collect();
        let asked: Ns = of_task.iter().flatten().map(|arrival| arrival.work_ns).sum();
        // Each of the last ten periods has room for all of it: nothing is left over.
        prop_assume!(asked <= quota_ms * MS * 5);
        let program = program(of_task.clone(), 1000 * MS, Op::RunArrived);
        let groups = group(quota_ms, 100, quota_ms * burst / 100, phase * MS);
        // Once round, and another time until before anything arrives: what is late is done.
        let run = simulate(&cpus(2), &program, &groups, 0, 1000 * MS);
        for (took, arrival) in run.answers.iter().zip(of_task.iter().flatten()) {
            if *took != UNANSWERED {
                prop_assert!(*took >= arrival.work_ns, "{took} for {arrival:?}");
            }
        }
        let done: Ns = run
            .answers
            .iter()
            .zip(of_task.iter().flatten())
            .filter(|(took, _)| **took != UNANSWERED)
            .map(|(_, arrival)| arrival.work_ns)
            .sum();
        let used = run.groups[0].usage_ns;
        // Beside it there is what asking and sleeping take, and the piece in progress.
        prop_assert!(used >= done, "used {used}, done {done}");
        prop_assert!(used <= asked + MS, "used {used} of {asked}");
    }
}

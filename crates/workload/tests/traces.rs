//! Traces of the scheduler as workloads.

use std::collections::BTreeMap;

use proptest::prelude::*;
use reveille_workload::{Op, Program, Workload};

const SERVICE: &str = include_str!("traces/service.txt");

fn parse(text: &str) -> Workload {
    Workload::parse_trace("dir/service.txt", text.to_owned()).unwrap()
}

fn kept(only: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("only".to_owned(), only.to_owned())])
}

fn build(text: &str, only: &str) -> Program {
    parse(text).build(1, &kept(only)).unwrap()
}

fn names(program: &Program) -> Vec<&str> {
    program.roles.iter().map(|role| role.name.as_str()).collect()
}

/// What follows each wait for a wakeup.
const WOKEN: [Op; 2] = [Op::Record { record: 0, less: 0 }, Op::Count(1)];

fn ask(first: u16) -> Op {
    Op::Request { first, among: 1, count: 1 }
}

#[test]
fn tasks_compute_wake_and_wait_as_they_did() {
    let program = build(SERVICE, "*");
    assert_eq!(names(&program), ["client-11", "hog-30", "worker 1-21"]);
    let [record, count] = WOKEN;
    let client = [Op::Arrive, record, count, Op::Run(20_000), ask(2), Op::Run(10_000)];
    let again = [Op::Serve, record, count, Op::Run(2_000), ask(2), Op::Run(8_000)];
    let next = [Op::Arrive, record, count];
    assert_eq!(program.roles[0].ops, [&client[..], &again[..], &next[..]].concat());
    // It was preempted four times, and runs between.
    assert_eq!(program.roles[1].ops, [Op::Run(1_035_000 + 305_000 + 4_000 + 480_000)]);
    let worker = [Op::Serve, record, count, Op::Run(100_000), Op::Device(300_000), count];
    let again =
        [Op::Run(50_000), ask(0), Op::Run(6_000), Op::Serve, record, count, Op::Run(20_000)];
    assert_eq!(program.roles[2].ops, [&worker[..], &again[..]].concat());
    let arrivals: Vec<u64> = program.arrivals.of_task[0].iter().map(|a| a.at_ns).collect();
    assert_eq!((arrivals, program.arrivals.span_ns), (vec![1_000_000, 2_000_000], 2_000_000));
    assert!(program.arrivals.of_task[1..].iter().all(Vec::is_empty));
    let workload = parse(SERVICE);
    assert_eq!((workload.name.as_str(), workload.pass_ns), ("service", 2_000_000));
    let about = "3 tasks in 0.002 s of a trace, using 1.02 CPUs; 3 wakeups by tasks, 2 by \
                 interrupts, 1 by devices";
    assert_eq!(workload.about, about);
    assert_eq!(workload.metrics[0].name, "p99 wakeup latency (ns)");
    assert_eq!(workload.source_text().lines().count(), 4);
}

#[test]
fn what_tasks_left_out_did_comes_from_outside() {
    let [record, count] = WOKEN;
    for only in ["worker 1", "work*", "21", "20", " worker 1 "] {
        let program = build(SERVICE, only);
        assert_eq!(names(&program), ["worker 1-21"], "{only}");
        let worker = [Op::Arrive, record, count, Op::Run(100_000), Op::Device(300_000), count];
        let again = [Op::Run(56_000), Op::Arrive, record, count, Op::Run(20_000)];
        let computes = |ops: &[Op]| -> u64 {
            ops.iter().map(|op| if let Op::Run(ns) = op { *ns } else { 0 }).sum()
        };
        let without_runs = |ops: &[Op]| -> Vec<Op> {
            ops.iter().filter(|op| !matches!(op, Op::Run(_))).copied().collect()
        };
        let expected = [&worker[..], &again[..]].concat();
        let ops = &program.roles[0].ops;
        assert_eq!(without_runs(ops), without_runs(&expected));
        assert_eq!(computes(ops), computes(&expected));
        let arrivals: Vec<u64> = program.arrivals.of_task[0].iter().map(|a| a.at_ns).collect();
        assert_eq!(arrivals, [1_030_000, 1_495_000]);
    }
    let both = build(SERVICE, "client,worker 1");
    assert_eq!(names(&both), ["client-11", "worker 1-21"]);
    assert!(both.roles[0].ops.contains(&ask(1)));
}

#[test]
fn a_trace_cut_to_some_lines_has_no_task_that_runs_for_ever() {
    // As `grep` leaves it: the task that computes is seen, but not when it leaves its CPU.
    let lines = SERVICE.lines().filter(|line| line.contains("client"));
    let program = build(&lines.collect::<Vec<_>>().join("\n"), "*");
    assert_eq!(names(&program), ["client-11", "worker 1-21"]);
}

#[test]
fn who_has_almost_ended_in_perf_is_the_task_that_is_switched_away() {
    let text = "\
        sh 9 [001] 1.000: sched:sched_switch: swapper/1:0 [120] R ==> sh:9 [120]\n\
        :-1 -1 [001] 1.002: sched:sched_waking: comm=m pid=7 prio=120 target_cpu=000\n\
        swapper 0 [000] 1.003: sched:sched_switch: swapper/0:0 [120] R ==> m:7 [120]\n\
        :-1 -1 [001] 1.005: sched:sched_switch: sh:9 [120] X ==> swapper/1:0 [120]\n\
        m 7 [000] 1.006: sched:sched_switch: m:7 [120] S ==> swapper/0:0 [120]\n";
    let program = build(text, "*");
    assert_eq!(names(&program), ["sh-9", "m-7"]);
    let sh = [Op::Arrive, Op::Run(2_000_000), ask(1), Op::Run(3_000_000)];
    assert_eq!(program.roles[0].ops, sh);
}

#[test]
fn a_task_that_is_never_switched_has_the_name_that_lines_begin_with() {
    let name = "spin-77 [003] ..... 100.000001: sched_waking: comm=client pid=11 prio=120\n  ";
    let line = SERVICE.lines().nth(2).unwrap();
    let workload = parse(&SERVICE.replacen(line, &format!("{line}\n{name}"), 1));
    assert!(workload.source_text().contains("  spin-77\n"), "{}", workload.source_text());
}

#[test]
fn what_ran_once_runs_once_in_each_pass() {
    // It runs as the trace begins, asks the worker, and exits.
    let once = "   once-40 [002] ..... 100.000000: sched_waking: comm=worker 1 pid=21 prio=120\n   \
                once-40 [002] ..... 100.000500: sched_switch: once:40 [120] X ==> swapper/2:0 [120]\n";
    let line = SERVICE.lines().nth(2).unwrap();
    let program = build(&SERVICE.replacen(line, &format!("{line}\n{once}"), 1), "once,worker*");
    assert_eq!(names(&program), ["once-40", "worker 1-21"]);
    assert_eq!(program.roles[0].ops, [Op::Arrive, ask(1), Op::Run(500_000)]);
    assert_eq!(program.arrivals.of_task[0].iter().map(|a| a.at_ns).collect::<Vec<_>>(), [0]);
    // Two tasks that only wake each other repeat as fast as they can.
    let mut text = String::new();
    for ms in 0..4 {
        let (a, b) = if ms % 2 == 0 { (1, 2) } else { (2, 1) };
        text += &format!("t{a}-{a} [0] ..... 7.{ms}1: sched_waking: comm=t{b} pid={b} prio=120\n");
        text +=
            &format!("t{a}-{a} [0] ..... 7.{ms}2: sched_switch: t{a}:{a} [9] S ==> t{b}:{b} [9]\n");
    }
    let pair = build(&text, "*");
    assert_eq!(names(&pair), ["t1-1", "t2-2"]);
    assert!(!pair.arrivals.some());
}

#[test]
fn copies_are_tasks_of_their_own_at_even_distances() {
    let program = parse(SERVICE).build(2, &BTreeMap::new()).unwrap();
    assert_eq!((program.roles.len(), program.tasks.len()), (3, 6));
    let bases: Vec<u32> = program.tasks.iter().map(|task| task.task_base).collect();
    assert_eq!(bases, [0, 0, 0, 3, 3, 3]);
    let processes: Vec<u32> = program.tasks.iter().map(|task| task.process).collect();
    assert_eq!(processes, [0, 1, 2, 3, 4, 5]);
    // The second starts where the first is after half the trace.
    let arrivals = |task: usize| {
        program.arrivals.of_task[task].iter().map(|arrival| arrival.at_ns).collect::<Vec<_>>()
    };
    assert_eq!(arrivals(0), [1_000_000, 2_000_000]);
    assert_eq!(arrivals(3), [0, 1_000_000]);
    // After three quarters the client waits for its last interrupt, and the worker computes.
    let program = parse(SERVICE).build(4, &BTreeMap::new()).unwrap();
    let tasks = &program.tasks;
    let begins = |role: usize| (0..4).map(move |copy| tasks[3 * copy + role].first_op);
    assert_eq!(begins(0).collect::<Vec<_>>(), [0, 0, 0, 12]);
    assert_eq!(program.roles[0].ops[12], Op::Arrive);
    assert_eq!(begins(2).collect::<Vec<_>>(), [0, 0, 0, 12]);
    assert_eq!(program.roles[2].ops[12], Op::Run(20_000));
}

#[test]
fn perf_prints_no_interrupts() {
    let mut text = String::new();
    for line in SERVICE.lines().filter(|line| !line.starts_with('#')) {
        let (head, event) = line.split_once(": ").unwrap();
        let [task, rest] = head.split_once(" (").map(|(a, b)| [a, b]).unwrap();
        let (task, id) = task.rsplit_once('-').unwrap();
        let time = rest.rsplit(' ').next().unwrap();
        let cpu = rest.split_once('[').unwrap().1;
        let name = task.trim().replace("<idle>", "swapper");
        text += &format!("{name:>16} {:>5} [{}] {time}:  sched:{event}\n", id.trim(), &cpu[..3]);
    }
    let workload = parse(&text);
    let about = "3 tasks in 0.002 s of a trace, using 1.02 CPUs; 5 wakeups by tasks (the trace \
                 does not tell interrupts), 0 by interrupts, 1 by devices";
    assert_eq!(workload.about, about);
    assert_eq!(workload.metrics[0].name, "throughput (wakeups/s)");
    // Without thread groups each task has an address space of its own.
    let program = workload.build(1, &BTreeMap::new()).unwrap();
    assert_eq!(program.tasks.iter().map(|task| task.process).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn each_mistake_is_named_with_its_line_and_fix() {
    let line = |from: &str, to: &str| SERVICE.replacen(from, to, 1);
    let later = line("100.001040", "100.000900");
    let cases = [
        String::new(),
        "no trace".to_owned(),
        SERVICE.lines().filter(|line| !line.contains("waking")).collect::<Vec<_>>().join("\n"),
        SERVICE.lines().filter(|line| !line.contains("switch")).collect::<Vec<_>>().join("\n"),
        line("prev_pid=30", "prev_pid=x"),
        line("   100.001440: ", "   100: "),
        later,
        SERVICE.replacen("        worker 1-21", "CPU:1 [LOST 12 EVENTS]\n worker 1-21", 1),
        SERVICE.replacen("             hog-30", "##### CPU 1 buffer started ####\n hog-30", 1),
        SERVICE.replacen(
            "             hog-30",
            "hog 30 [001] 100.0005: PERF_RECORD_LOST lost 2\n hog-30",
            1,
        ),
        SERVICE.replace(" 100.002000:", " 3701.002000:"),
        // It runs already.
        SERVICE.lines().nth(4).unwrap().to_owned()
            + "\n<idle>-0 [002] d.h2. 100.001020: sched_waking: comm=client pid=11 prio=120",
    ];
    let mut shown = String::new();
    for text in cases {
        let error = Workload::parse_trace("trace.txt", text).unwrap_err();
        let help = miette::Diagnostic::help(&error).unwrap().to_string();
        shown += &format!("{error}\n  {help}\n");
    }
    let woken = |n: u32| {
        format!(
            "<idle>-0 [0] d.h2. {n}.1: sched_waking: comm=c pid=1 prio=120\n\
             <idle>-0 [0] d..2. {n}.2: sched_switch: swapper/0:0 [120] R ==> c:1 [120]\n\
             c-1 [0] d..2. {n}.3: sched_switch: c:1 [120] S ==> swapper/0:0 [120]\n"
        )
    };
    let often: String = (0..21).map(woken).collect();
    for (text, load, only) in [(SERVICE, 1, "client,wroker 1"), (&often, 1_000_000, "*")] {
        let error = parse(text).build(load, &kept(only)).unwrap_err();
        shown += &format!("{error}\n  {}\n", miette::Diagnostic::help(&error).unwrap());
    }
    insta::assert_snapshot!(shown);
}

proptest! {
    /// Whatever the events, each wakeup of a task by a task is waited for once: in every pass a
    /// task is asked as often as it serves.
    #[test]
    fn wakeups_and_waits_match(events in prop::collection::vec(
        (0u32..4, 0u32..3, 0u32..6, 0u32..6, any::<bool>(), 0usize..4), 1..80,
    ), only in 1u32..6) {
        let mut text = String::new();
        for (number, (kind, cpu, by, other, interrupt, state)) in events.into_iter().enumerate() {
            let flag = if interrupt { 'h' } else { '.' };
            let state = ["S", "D", "R", "R+"][state];
            text += &format!("t{by}-{by} [{cpu:03}] d.{flag}2. {number}.5: ");
            text += &match kind {
                0 | 1 => format!("sched_waking: comm=t{other} pid={other} prio=120 target_cpu=0\n"),
                _ => format!("sched_switch: t{by}:{by} [120] {state} ==> t{other}:{other} [120]\n"),
            };
        }
        let Ok(workload) = Workload::parse_trace("trace.txt", text) else { return Ok(()) };
        for params in [BTreeMap::new(), kept(&format!("t{only}"))] {
            let Ok(program) = workload.build(2, &params) else { continue };
            let roles = &program.roles;
            for (role, own) in roles.iter().enumerate() {
                let asked = roles.iter().flat_map(|role| &role.ops);
                let asked = asked.filter(|op| **op == ask(role as u16)).count();
                let count = |wanted: Op| own.ops.iter().filter(|op| **op == wanted).count();
                prop_assert_eq!(asked, count(Op::Serve));
                for task in [role, roles.len() + role] {
                    let times = &program.arrivals.of_task[task];
                    prop_assert_eq!(times.len(), count(Op::Arrive));
                    prop_assert!(times.is_sorted_by_key(|arrival| arrival.at_ns));
                }
                // The second copy starts in the middle, and what is left of the pass matches, too. A task
                // that starts with operation 0 has the whole pass to do, or nothing before the next.
                // A wakeup that came before its task had slept may be on the other side of the cut.
                let rest = |role: usize, wanted: Op| {
                    let first_op = program.tasks[roles.len() + role].first_op as usize;
                    let count = roles[role].ops[first_op..].iter().filter(|op| **op == wanted);
                    (first_op > 0, count.count())
                };
                let asked = (0..roles.len()).map(|waker| rest(waker, ask(role as u16)));
                let (least, most) = asked.fold((0, 0), |(least, most), (sure, n)| {
                    (least + n * usize::from(sure), most + n)
                });
                let (sure, serves) = rest(role, Op::Serve);
                prop_assert!(!sure || (least..=most + 1).contains(&serves), "{}", serves);
                let takes_time = own.ops.iter().any(|op| !matches!(op, Op::Request { .. }));
                prop_assert!(takes_time);
            }
        }
    }
}

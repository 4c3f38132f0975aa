//! Files of rt-app become the operations that do the same, or are refused with the line,
//! the path and the fix.

mod scraps;

use std::fmt::Write;

use miette::Diagnostic;
use proptest::prelude::*;
use reveille_workload::{MetricKind, Op, Program, Workload};
use scraps::{edit, edited};

/// A file as rt-app's users write them; each refusal below is one edit away.
const GOOD: &str = include_str!("rtapp/player.json");

/// Text of [`GOOD`], and the mistake in its place.
const BAD: &[(&str, &str)] = &[
    ("\"global\": {", "\"global\": "),
    ("\"global\"", "\"globl\""),
    ("\"duration\"", "\"durration\""),
    ("\"default_policy\": \"SCHED_OTHER\"", "\"default_policy\": \"SCHED_FIFO\""),
    ("\"policy\": \"SCHED_OTHER\"", "\"policy\": \"SCHED_DEADLINE\""),
    ("\"suspend\": \"\"", "\"cpus\": [0], \"suspend\": \"\""),
    ("\"suspend\": \"\"", "\"taskgroup\": \"/a\", \"suspend\": \"\""),
    ("\"suspend\": \"\"", "\"util_min\": 3, \"suspend\": \"\""),
    ("\"suspend\": \"\"", "\"sleep\": 4"),
    ("\"resume\": \"render\"", "\"resume\": \"rendr\""),
    ("\"resume\": \"render\"", "\"run\": 3"),
    ("\"resume\": \"render\"", "\"resume\": 3"),
    ("\"sleep0\": 500", "\"barrier\": \"b\""),
    ("\"sleep0\": 500", "\"mem\": 500"),
    ("\"sleep0\": 500", "\"iorun\": 500"),
    ("\"sleep0\": 500", "\"yield\": \"\""),
    ("\"sleep0\": 500", "\"sem_wait\": \"s\""),
    ("\"sleep0\": 500", "\"fork\": \"s\""),
    ("\"sleep0\": 500", "\"slep\": 500"),
    ("\"sleep0\": 500", "\"sleep0\": -1"),
    ("\"sleep0\": 500", "\"sleep0\": 0.5"),
    ("\"sleep0\": 500", "\"sleep0\": \"500\""),
    ("\"sleep0\": 500", "\"sleep0\": 3600000001"),
    ("\"sleep0\": 500", "\"sleep0\": 99999999999999999999"),
    ("\"loop\": 3", "\"loop\": 0"),
    (
        "\"runtime\": 5000, \"timer1\": { \"ref\": \"v\", \"period\": 16000 }",
        "\"loop\": -1, \"lock\": \"m\", \"unlock\": \"m\"",
    ),
    ("\"loop\": 3", "\"loop\": -1"),
    ("\"loop\": 3", "\"loop\": 3, \"loop\": 3"),
    ("\"loop\": 3", "\"instance\": 3"),
    ("\"delay\": 1500", "\"delay\": 1500, \"run\": 3"),
    ("\"runtime\": 5000, \"timer1\": { \"ref\": \"v\", \"period\": 16000 }", ""),
    ("\"ref\": \"v\"", "\"rf\": \"v\""),
    ("\"ref\": \"v\", ", ""),
    ("\"period\": 16000", "\"period\": 0"),
    ("\"ref\": \"unique\"", "\"ref\": \"a\""),
    ("\"run1\": 100", "\"timer\": { \"ref\": \"w\", \"period\": 3 }"),
    ("\"absolute\"", "\"absolut\""),
    ("\"instance\": 2", "\"instance\": -2"),
    ("\"instance\": 2", "\"instance\": 1000001"),
    ("\"instance\": 2, \"loop\": -1, \"priority\": -4", "\"priority\": 0"),
    ("\"mutex\": \"m\" }", "}"),
    ("\"lock\": \"m\", \"wait\"", "\"wait\""),
    ("\"signal\": \"queue\", ", ""),
    ("\"eater\": {", "\"eater\": { \"instance\": 3,"),
    ("\"unlock\": \"m\", \"run\": 90", "\"run\": 90"),
    ("\"run\": 90, \"sleep\": 400", "\"run\": 0"),
    ("\"off\"", "\"audio\""),
    ("\"off\"", "\" \""),
];

/// The same, but no mistakes.
const STILL_GOOD: &[(&str, &str)] = &[("\"run\": 90, \"sleep\": 400", "\"sleep\": 400")];

fn build(text: &str) -> Program {
    Workload::parse_rtapp("dir/player.json", text).unwrap().build(1, &Default::default()).unwrap()
}

fn ops<'a>(program: &'a Program, name: &str) -> &'a [Op] {
    &program.roles.iter().find(|role| role.name == name).expect("a task of the file").ops
}

#[test]
fn events_become_the_operations_that_do_the_same() {
    let program = build(GOOD);
    assert_eq!(program.name, "player");
    assert_eq!(program.tasks.len(), 6, "two of audio, none of off");
    assert!(program.tasks.iter().all(|task| task.process == 0), "threads of one process");
    let record = Op::Record { record: 0, less: 0 };
    assert_eq!(
        ops(&program, "audio"),
        [Op::Run(800_000), Op::Period { period: 4_000_000, restart: false }, record, Op::Count(1)]
    );
    let (resumed, queue) = (0, 1);
    let wait = Op::Wait { timeout: 0, jitter: 0 };
    assert_eq!(
        ops(&program, "video"),
        [
            Op::Period { period: 1_500_000, restart: false },
            Op::Run(2_000_000),
            Op::Sleep { time: 500_000, jitter: 0 },
            Op::Run(100_000),
            Op::WakeList { list: resumed },
            Op::Count(1),
            Op::Again { back: 5, times: 3, depth: 1 },
            Op::Spin(5_000_000),
            Op::Period { period: 16_000_000, restart: true },
            record,
            Op::Count(1),
            Op::Again { back: 10, times: u32::MAX, depth: 0 },
        ]
    );
    assert_eq!(
        ops(&program, "render"),
        [Op::Join { list: resumed }, wait, Op::Run(700_000), Op::Count(1)]
    );
    let (lock, unlock) = (Op::Lock { lock: 0 }, Op::Unlock { lock: 0 });
    let eater = ops(&program, "eater");
    assert_eq!(eater[..6], [lock, Op::Join { list: queue }, unlock, wait, lock, unlock]);
    assert_eq!(ops(&program, "feeder")[..3], [lock, Op::WakeList { list: queue }, unlock]);
}

#[test]
fn two_tasks_in_step() {
    let sync = r#"{ "sync": { "ref": "c", "mutex": "m" }, "run": 5 }"#;
    let program = build(&format!(r#"{{ "tasks": {{ "a": {sync}, "b": {sync} }} }}"#));
    let (lock, unlock) = (Op::Lock { lock: 0 }, Op::Unlock { lock: 0 });
    let wait = Op::Wait { timeout: 0, jitter: 0 };
    let meet = [lock, Op::WakeList { list: 0 }, Op::Join { list: 0 }, unlock, wait, lock, unlock];
    for name in ["a", "b"] {
        assert_eq!(ops(&program, name)[..7], meet);
    }
    let three = format!(r#"{{ "tasks": {{ "a": {sync}, "b": {sync}, "c": {sync} }} }}"#);
    let problem = Workload::parse_rtapp("x.json", &three).unwrap_err().to_string();
    assert!(problem.contains("`tasks.a.sync`: 2 tasks can wait for `c`"), "{problem}");
}

#[test]
fn a_repeated_key_is_an_event_more() {
    let program = build(r#"{ "tasks": { "t": { "run": 1 "sleep": 2 "run": 3 } } }"#);
    let sleep = Op::Sleep { time: 2_000, jitter: 0 };
    assert_eq!(ops(&program, "t"), [Op::Run(1_000), sleep, Op::Run(3_000), Op::Count(1)]);
}

#[test]
fn timers_have_a_latency_to_be_judged_by() {
    let metrics = Workload::parse_rtapp("x.json", GOOD).unwrap().metrics;
    assert_eq!(metrics[0].name, "p99 wu_lat (ns)");
    assert_eq!(metrics[0].kind, MetricKind::RecordedLatency { record: 0, quantile: 0.99 });
    assert!(metrics.iter().any(|m| m.kind == MetricKind::Throughput));
    let none = r#"{ "tasks": { "t": { "run": 1, "sleep": 2 } } }"#;
    let metrics = Workload::parse_rtapp("x.json", none).unwrap().metrics;
    assert_eq!(metrics.len(), 1);
    assert_eq!(metrics[0].kind, MetricKind::Throughput);
}

#[test]
fn each_mistake_is_named_with_its_line_path_and_fix() {
    for (from, to) in STILL_GOOD {
        assert!(Workload::parse_rtapp("good", &GOOD.replace(from, to)).is_ok(), "{to}");
    }
    let mut said = String::new();
    for (from, to) in BAD {
        assert_eq!(GOOD.matches(from).count(), 1, "{from} stands once in the good file");
        let error = Workload::parse_rtapp("bad.json", &GOOD.replace(from, to)).expect_err(to);
        assert!(error.labels().is_some() && error.source_code().is_some(), "{to}: {error}");
        let help = error.help().expect("every mistake has a fix");
        let _ = writeln!(said, "{to:?}\n  {error}\n  help: {help}");
    }
    for text in [
        "",
        "3",
        "{}",
        r#"{ "tasks": {} }"#,
        r#"{ "tasks": { "a": { "instance": 0 } } }"#,
        r#"{ "tasks": { "a": { "phases": {} } } }"#,
        r#"{ "tasks": { "a": 3 } }"#,
    ] {
        let error = Workload::parse_rtapp("bad.json", text).unwrap_err();
        let _ = writeln!(said, "{text:?}\n  {error}");
    }
    let deep = Workload::parse_rtapp("bad.json", &"[".repeat(100_000)).unwrap_err();
    assert!(deep.to_string().contains("is no JSON"), "{deep}");
    insta::assert_snapshot!(said);
}

/// Any JSON, often with keys that rt-app knows.
fn value() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec![
        "tasks", "global", "phases", "loop", "instance", "delay", "run", "run1", "runtime",
        "sleep", "timer", "ref", "period", "mode", "mutex", "lock", "unlock", "wait", "signal",
        "broad", "sync", "suspend", "resume", "cpus", "policy", "priority", "a", "",
    ]);
    let leaf = prop_oneof![
        (-2..9i64).prop_map(|n| n.to_string()),
        any::<i64>().prop_map(|n| n.to_string()),
        prop::sample::select(vec![
            "\"\"",
            "\"a\"",
            "\"b\"",
            "\"unique\"",
            "\"relative\"",
            "null",
            "true",
            "1.5",
            "1e9",
            "[0]",
            "\"\\u00e9\"",
        ])
        .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop::collection::vec((key.clone(), inner), 0..6).prop_map(|members| {
            let members: Vec<String> =
                members.into_iter().map(|(key, value)| format!("\"{key}\": {value}")).collect();
            format!("{{ {} }}", members.join(",\n"))
        })
    })
}

/// The good file with scraps in it.
fn nearly_good() -> impl Strategy<Value = String> {
    let scraps = ["", "\"", "{", "}", ",", ":", "-1", "0", "null", "/*", "é", "\"run\": 1,", "\n"];
    prop::collection::vec(edit(&scraps, 30), 0..5).prop_map(|edits| edited(GOOD.to_owned(), edits))
}

#[test]
fn a_byte_order_mark_changes_nothing() {
    let plain = Workload::parse_rtapp("x.json", GOOD).unwrap();
    let marked = Workload::parse_rtapp("x.json", &format!("\u{feff}{GOOD}")).unwrap();
    assert_eq!(marked.source_text(), plain.source_text());
    assert_eq!(marked.metrics, plain.metrics);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_text_panics(text in prop_oneof![
        ".{0,200}",
        value(),
        value().prop_map(|tasks| format!("{{ \"tasks\": {tasks} }}")),
        value().prop_map(|task| format!("{{ \"tasks\": {{ \"a\": {task}, \"b\": {{ \"run\": 1 }} }} }}")),
        nearly_good(),
    ], load in 0..3u64) {
        match Workload::parse_rtapp("any.json", &text) {
            Ok(workload) => {
                prop_assert_eq!(workload.source_text(), &text);
                if load > 0 && workload.build(1, &Default::default()).unwrap().tasks.len() < 9 {
                    prop_assert!(workload.build(load, &Default::default()).is_ok());
                }
            }
            Err(error) => {
                let shown = format!("{:?}", miette::Report::new(error));
                prop_assert!(!shown.is_empty());
            }
        }
    }
}

//! Files of rt-app become the operations that do the same, or are refused with the line,
//! the path and the fix.

use miette::Diagnostic;
use proptest::prelude::*;
use reveille_workload::{InputError, MetricKind, Op, Program, Workload, WorkloadError};

/// A file as rt-app's users write them; each refusal below is one edit away.
const GOOD: &str = include_str!("rtapp/player.json");

#[rustfmt::skip]
const BAD: &[(&str, &str, u64, &str)] = &[
    ("\"global\": {", "\"global\": ", 27, "is no JSON"),
    ("\"global\"", "\"globl\"", 27, "`globl`: no object of a file is called `globl`; did you mean `global`?"),
    ("\"duration\"", "\"durration\"", 27, "`global.durration`: no key of `global` is called `durration`; did you mean `duration`?"),
    ("\"default_policy\": \"SCHED_OTHER\"", "\"default_policy\": \"SCHED_FIFO\"", 27, "`global.default_policy`: `SCHED_FIFO` is not simulated"),
    ("\"policy\": \"SCHED_OTHER\"", "\"policy\": \"SCHED_DEADLINE\"", 16, "`tasks.render.policy`: `SCHED_DEADLINE` is not simulated"),
    ("\"suspend\": \"\"", "\"cpus\": [0], \"suspend\": \"\"", 16, "`tasks.render.cpus`: CPU affinity is not simulated"),
    ("\"suspend\": \"\"", "\"taskgroup\": \"/a\", \"suspend\": \"\"", 16, "`tasks.render.taskgroup`: groups of a file"),
    ("\"suspend\": \"\"", "\"util_min\": 3, \"suspend\": \"\"", 16, "`tasks.render.util_min`: utilization clamping"),
    ("\"suspend\": \"\"", "\"sleep\": 4", 12, "`tasks.video.phases.light.resume`: no task ever waits for `render`"),
    ("\"resume\": \"render\"", "\"resume\": \"rendr\"", 12, "`tasks.video.phases.light.resume`: no task ever waits for `rendr`; did you mean `render`?"),
    ("\"resume\": \"render\"", "\"run\": 3", 16, "`tasks.render.suspend`: no other task would ever wake who waits for `render`"),
    ("\"resume\": \"render\"", "\"resume\": 3", 12, "`tasks.video.phases.light.resume`: is not a text"),
    ("\"sleep0\": 500", "\"barrier\": \"b\"", 12, "`tasks.video.phases.light.barrier`: barriers are not simulated"),
    ("\"sleep0\": 500", "\"mem\": 500", 12, "`tasks.video.phases.light.mem`: memory access"),
    ("\"sleep0\": 500", "\"iorun\": 500", 12, "input and output are not simulated"),
    ("\"sleep0\": 500", "\"yield\": \"\"", 12, "sched_yield() is not simulated"),
    ("\"sleep0\": 500", "\"sem_wait\": \"s\"", 12, "semaphores are not simulated"),
    ("\"sleep0\": 500", "\"fork\": \"s\"", 12, "tasks cannot be started later"),
    ("\"sleep0\": 500", "\"slep\": 500", 12, "`tasks.video.phases.light.slep`: no key or event is called `slep`; did you mean `sleep`?"),
    ("\"sleep0\": 500", "\"sleep0\": -1", 12, "`tasks.video.phases.light.sleep0`: is -1: too small"),
    ("\"sleep0\": 500", "\"sleep0\": 0.5", 12, "is not a whole number"),
    ("\"sleep0\": 500", "\"sleep0\": \"500\"", 12, "is not a whole number"),
    ("\"sleep0\": 500", "\"sleep0\": 3600000001", 12, "is 3600000001: too large"),
    ("\"sleep0\": 500", "\"sleep0\": 99999999999999999999", 12, "is not a whole number"),
    ("\"loop\": 3", "\"loop\": 0", 12, "`tasks.video.phases.light.loop`: would never run"),
    ("\"runtime\": 5000, \"timer1\": { \"ref\": \"v\", \"period\": 16000 }", "\"loop\": -1, \"lock\": \"m\", \"unlock\": \"m\"", 13, "`tasks.video.phases.heavy`: would loop without taking time"),
    ("\"loop\": 3", "\"loop\": -1", 13, "`tasks.video.phases.heavy`: never begins"),
    ("\"loop\": 3", "\"loop\": 3, \"loop\": 3", 12, "`tasks.video.phases.light.loop`: stands here twice"),
    ("\"loop\": 3", "\"instance\": 3", 12, "no key or event is called `instance`"),
    ("\"delay\": 1500", "\"delay\": 1500, \"run\": 3", 10, "`tasks.video.run`: stands beside `phases`"),
    ("\"runtime\": 5000, \"timer1\": { \"ref\": \"v\", \"period\": 16000 }", "", 13, "`tasks.video.phases.heavy`: has no event"),
    ("\"ref\": \"v\"", "\"rf\": \"v\"", 13, "`tasks.video.phases.heavy.timer1.rf`: no key of this event is called `rf`"),
    ("\"ref\": \"v\", ", "", 13, "`tasks.video.phases.heavy.timer1`: has no `ref`"),
    ("\"period\": 16000", "\"period\": 0", 13, "`tasks.video.phases.heavy.timer1.period`: is 0: too small"),
    ("\"ref\": \"unique\"", "\"ref\": \"a\"", 7, "`tasks.audio.timer.ref`: several tasks would share a timer"),
    ("\"run1\": 100", "\"timer\": { \"ref\": \"w\", \"period\": 3 }", 13, "`tasks.video.phases.heavy.timer1.ref`: the task has another timer, `w`, already"),
    ("\"absolute\"", "\"absolut\"", 7, "`tasks.audio.timer.mode`: no mode of a timer is called `absolut`; did you mean `absolute`?"),
    ("\"instance\": 2", "\"instance\": -2", 5, "`tasks.audio.instance`: is -2: too small"),
    ("\"instance\": 2", "\"instance\": 1000001", 5, "`tasks.audio.instance`: is 1000001: too large"),
    ("\"instance\": 2, \"loop\": -1, \"priority\": -4", "\"priority\": 0", 10, "`tasks.video.priority`: nice -4 beside nice 0"),
    ("\"mutex\": \"m\" }", "}", 22, "`tasks.eater.wait`: has no `mutex`"),
    ("\"lock\": \"m\", \"wait\"", "\"wait\"", 22, "`tasks.eater.wait`: the task does not have this lock"),
    ("\"signal\": \"queue\", ", "", 22, "`tasks.eater.wait`: no other task would ever wake who waits for `queue`"),
    ("\"eater\": {", "\"eater\": { \"instance\": 3,", 18, "`tasks.feeder.signal`: 3 tasks can wait for `queue`"),
    ("\"unlock\": \"m\", \"run\": 90", "\"run\": 90", 18, "`tasks.feeder.lock`: the task has this lock already"),
    ("\"run\": 90, \"sleep\": 400", "\"sleep\": 400", 0, ""),
    ("\"run\": 90, \"sleep\": 400", "\"run\": 0", 17, "`tasks.feeder`: would loop without taking time"),
    ("\"off\"", "\"audio\"", 24, "`tasks.audio`: stands here twice"),
    ("\"off\"", "\" \"", 24, "has no name"),
];

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
    for &(from, to, line, reason) in BAD {
        assert_eq!(GOOD.matches(from).count(), 1, "{from} stands once in the good file");
        let result = Workload::parse_rtapp("bad.json", &GOOD.replace(from, to));
        if reason.is_empty() {
            assert!(result.is_ok(), "{to}: {result:?}");
            continue;
        }
        let Err(WorkloadError::Input(InputError::File(error))) = result else {
            panic!("{to}: {result:?}")
        };
        let message = error.to_string();
        assert!(message.contains(reason), "{to}: {message}");
        assert_eq!(error.line, Some(line), "{to}: {message}");
        assert!(!error.help.is_empty() && error.labels().is_some(), "{message}");
    }
    for (text, reason) in [
        ("", "the file is empty"),
        ("3", "is not an object"),
        ("{}", "`tasks` is missing"),
        (r#"{ "tasks": {} }"#, "`tasks`: has no task that runs"),
        (r#"{ "tasks": { "a": { "instance": 0 } } }"#, "`tasks`: has no task that runs"),
        (r#"{ "tasks": { "a": { "phases": {} } } }"#, "`tasks.a.phases`: has no phase"),
        (r#"{ "tasks": { "a": 3 } }"#, "`tasks.a`: is not an object"),
        (&"[".repeat(100_000), "is no JSON"),
    ] {
        let problem = Workload::parse_rtapp("bad.json", text).unwrap_err().to_string();
        assert!(problem.contains(reason), "{problem}");
    }
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
    let edit = (any::<prop::sample::Index>(), 0..30usize, prop::sample::select(scraps.to_vec()));
    prop::collection::vec(edit, 0..5).prop_map(|edits| {
        let mut text = GOOD.to_owned();
        for (at, length, scrap) in edits {
            let boundary = |i: usize| {
                (i..=text.len()).find(|i| text.is_char_boundary(*i)).unwrap_or(text.len())
            };
            let start = boundary(at.index(text.len() + 1));
            let end = boundary((start + length).min(text.len()));
            text.replace_range(start..end, scrap);
        }
        text
    })
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

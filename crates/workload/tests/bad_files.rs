//! Files that are no workload are refused with the line, the key and the reason.

use miette::Diagnostic;
use proptest::prelude::*;
use reveille_workload::{InputError, Workload, WorkloadError, find, names};

/// A file with one mistake: what to replace in `GOOD` by what, the line that is
/// named, and a part of the message.
const GOOD: &str = r#"name = "good"
about = "a pair and a helper"
load = "pairs"
channels = { there = "pipe", back = "udp" }
lists = ["done"]
metric = [{ name = "p99 (ns)", quantile = 0.99 }, { name = "ops/s", throughput = true }]
[params.workers]
default = 2
about = "helpers"
[params.pause]
default = "1.5us"
about = "a pause"
[[task]]
name = "first"
program = [
  { send = "there", bytes = 8 },
  { recv = "back" },
  { count = 2 },
  { wake_list = "done" },
  { sleep = "$pause", jitter = "$pause/4" },
]
[[task]]
name = "second"
process = "instance"
program = [{ recv = "there" }, { run = "1ms" }, { send = "back" }, { wait = "1us" }]
[[task]]
name = "helper"
count = "$workers"
program = [{ join = "done" }, { post = "second" }, { wait = true }, { record = true }]
"#;

#[rustfmt::skip]
const BAD: &[(&str, &str, u64, &str)] = &[
    ("name = \"good\"\n", "", 1, "`name`: is missing"),
    ("\"good\"", "\" \"", 1, "`name`: is not a text"),
    ("\"good\"", "good", 1, "string"),
    ("load =", "laod =", 3, "no key of a workload is called `laod`; did you mean `load`?"),
    ("\"pipe\"", "\"pip\"", 4, "no kind of channel is called `pip`; did you mean `pipe`?"),
    ("back = \"udp\"", "back = \"udp\", more = \"tcp\"", 4, "no task sends to channel `more`"),
    ("[\"done\"]", "[\"done\", \"done\"]", 5, "names `done` twice"),
    ("[\"done\"]", "[\"done\", \"more\"]", 5, "no task joins list `more`"),
    ("[\"done\"]", "3", 5, "`lists`: is not an array"),
    ("0.99", "99", 6, "not a number between 0 and 1"),
    ("0.99", "nan", 6, "not a number between 0 and 1"),
    ("quantile = 0.99", "throughput = true, quantile = 0.99", 6, "in no way, or in two"),
    (", throughput = true", "", 6, "in no way, or in two"),
    ("throughput = true", "throughput = false", 6, "is not `true`"),
    ("default = 2", "default = -2", 8, "`-2` is negative"),
    ("default = 2", "default = 0x10", 8, "is not a number or a text"),
    ("default = 2", "default = 0", 27, "`count`: task `helper` has no task (with workers = 0)"),
    ("default = 2", "default = 9999999", 27, "has 9999999 tasks"),
    ("default = 2", "default = 65536", 0, ""),
    ("default = 2", "defualt = 2", 8, "did you mean `default`?"),
    ("default = 2", "default = \"2ms\"", 28, "`$workers` is a time, but a whole number belongs here"),
    ("\"1.5us\"", "\"-1.5us\"", 11, "negative"),
    ("\"1.5us\"", "nan", 11, "`nan` is not a time"),
    ("\"1.5us\"", "1.5", 11, "no unit of time"),
    ("\"1.5us\"", "\"2000h\"", 11, "not a time"),
    ("\"1.5us\"", "\"3601s\"", 11, "more than an hour"),
    ("\"$workers\"", "3", 7, "nothing uses `$workers`"),
    ("\"$workers\"", "\"$wrokers\"", 28, "no parameter is called `wrokers`; did you mean `workers`?"),
    ("\"$workers\"", "\"$workers/0\"", 28, "divides by zero"),
    ("\"$workers\"", "\"$workers/3\"", 27, "has no task"),
    ("\"$workers\"", "[]", 28, "`count`: is not a number or a text"),
    ("name = \"second\"", "name = \"first\"", 23, "`first` names two tasks"),
    ("process = \"instance\"", "process = \"instanse\"", 24, "did you mean `instance`?"),
    ("process = \"instance\"", "proces = \"instance\"", 24, "did you mean `process`?"),
    ("{ run = \"1ms\" }", "{ rnu = \"1ms\" }", 25, "no key of an operation is called `rnu`; did you mean `run`?"),
    ("{ run = \"1ms\" }", "{ run = \"1ms\", spin = \"1ms\" }", 25, "`run` and `spin` stand in one table"),
    ("{ run = \"1ms\" }", "{ jitter = \"1ms\" }", 25, "an operation is missing"),
    ("{ run = \"1ms\" }", "{ run = \"1ms\", bytes = 3 }", 25, "`bytes`: does not belong to `run`"),
    ("{ run = \"1ms\" }", "{ run = 30 }", 25, "no unit of time"),
    ("{ run = \"1ms\" }", "\"run\"", 25, "`program`: is not a table"),
    ("bytes = 8", "bytes = 0", 16, "`send`: is 0"),
    ("bytes = 8", "bytes = 4294967296", 16, "`send`: is too large"),
    ("send = \"there\"", "send = \"theer\"", 16, "no channel is called `theer`; did you mean `there`?"),
    ("recv = \"back\"", "recv = \"back\", framed = true", 17, "has no stream of bytes"),
    ("recv = \"back\"", "recv = \"back\", discard = true", 17, "`recv`: cannot discard"),
    ("bytes = 8", "discard = true", 16, "`discard`: does not belong to `send`"),
    ("{ count = 2 }", "{ count = 2 }, { repeat = 3, program = [{ syscall = \"1us\" }] }", 18, "would loop without taking time"),
    ("name = \"second\"", "name = \"second\"\nrelease = \"togehter\"", 24, "no way to release is called `togehter`; did you mean `together`?"),
    ("name = \"second\"", "name = \"second\"\nrelease = true", 24, "`release`: is not a text"),
    ("name = \"second\"", "name = \"second\"\nrelease = \"together\"\nbefore = []", 25, "`before`: is empty"),
    ("name = \"second\"", "name = \"second\"\nbefore = [{ respawn = true }]", 24, "`before`: would be done again and again"),
    ("name = \"first\"", "name = \"parent\"\nrelease = \"together\"", 14, "`parent` is the task that releases the others"),
    ("name = \"helper\"\n", "name = \"helper\"\nrelease = \"together\"\nprogram = [{ run = \"1us\" }]\n[[task]]\nname = \"more\"\nrelease = \"together-sync\"\nprogram = [{ run = \"1us\" }]\n[[task]]\nname = \"last\"\n", 32, "`release`: differs from that of another task"),
    ("{ recv = \"back\" },", "", 4, "no task receives from channel `back`"),
    ("{ count = 2 }", "{ count = 0 }", 18, "`count`: is 0"),
    ("  { count = 2 },\n", "", 6, "no task has the operation `count` that `ops/s` needs"),
    ("wake_list = \"done\"", "wake_list = \"doen\"", 19, "no list is called `doen`; did you mean `done`?"),
    ("post = \"second\"", "post = \"helper\"", 29, "wake itself"),
    ("{ count = 2 }", "{ post = \"helper\" }, { count = 2 }", 18, "`helper` joins a list"),
    ("{ count = 2 }", "{ wait = true }, { count = 2 }", 18, "no task ever wakes this one"),
    ("{ count = 2 }", "{ record = true }, { count = 2 }", 18, "joins no list"),
    ("{ wait = \"1us\" }", "{ wait = \"0us\" }", 25, "a limit of 0"),
    ("{ wait = true }", "{ wait = true, jitter = \"1us\" }", 29, "has no limit that could jitter"),
    ("{ wait = true }", "{ wait = \"1us\" }", 29, "could still be on a list"),
    ("post = \"second\"", "post = \"secnod\"", 29, "no task is called `secnod`; did you mean `second`?"),
    ("back = \"udp\"", "back = { kind = \"udp\", count = 2 }", 17, "`back` is 2 channels"),
    ("recv = \"back\"", "recv = \"back[0]\"", 17, "`back[0]` names no channel"),
    ("back = \"udp\"", "back = { kind = \"udp\", count = 0 }", 1, "channel `back` has no member"),
    ("back = \"udp\"", "back = \"$pause\"", 4, "no parameter with choices is called `pause`"),
    ("{ count = 2 }", "{ repeat = 3, program = [{ count = 2 }] }", 18, "would loop without taking time"),
    ("lists = [\"done\"]", "lists = [\"done\"]\nlocks = [\"m\"]", 6, "no task takes lock `m`"),
    ("{ count = 2 }", "{ count = 2 }, { repeat = 3, program = [{ lock_cpu = true }, { unlock_cpu = true }] }", 18, "would loop without taking time"),
    ("{ count = 2 }", "{ repeat = 3 }", 18, "`repeat`: has nothing to repeat"),
    ("{ count = 2 }", "{ repeat = 0, program = [{ run = \"1us\" }, { count = 2 }] }", 18, "`repeat`: is 0"),
    ("{ count = 2 }", "{ count = 2 }, { serve = true }", 18, "no task sends this one requests"),
    ("{ count = 2 }", "{ count = 2 }, { request = \"second\" }", 18, "`second` serves no requests"),
    ("{ count = 2 }", "{ count = 2 }, { lock_cpu = true }", 18, "has this lock already"),
    ("{ count = 2 }", "{ count = 2 }, { unlock_cpu = true }", 18, "does not have this lock"),
    ("{ count = 2 }", "{ lock = \"m\" }, { count = 2 }", 18, "no lock is called `m`"),
    ("{ count = 2 }", "{ count = 2 }, { lock_cpu = true }, { respawn = true }", 18, "exits with a lock"),
    ("bytes = 8", "bytes = 65537", 16, "more than a pipe holds"),
    ("{ record = true }", "{ record = true }, { record = \"more\" }", 6, "does not say which latency"),
    ("quantile = 0.99", "quantile = 0.99, record = \"lat\"", 6, "no recorded latency is called `lat`"),
    ("name = \"second\"", "count = 2\nname = \"second\"", 30, "an instance has 2 tasks `second`"),
    ("program = [{ join", "program = [] # [{ join", 29, "`program`: is empty"),
    ("[{ join = \"done\" }, { post = \"second\" }, { wait = true }, { record = true }]",
     "[{ post = \"second\" }]\n[[task]]\nname = \"x\"\nprogram = [{ join = \"done\" }, { wait = true }, { record = true }]",
     27, "task `helper` would loop without taking time"),
];

#[test]
fn the_good_file_is_good() {
    let workload = Workload::parse("good.toml", GOOD).unwrap();
    assert_eq!(workload.source_text(), GOOD);
    let program = workload.build(2, &Default::default()).unwrap();
    let processes: Vec<u32> = program.tasks.iter().map(|t| t.process).collect();
    assert_eq!(processes, [1, 0, 2, 3, 5, 4, 6, 7]);
    assert_eq!(program.tasks[7].task_base, 4);
}

#[test]
fn each_mistake_is_named_with_its_line_and_fix() {
    for &(from, to, line, reason) in BAD {
        assert_eq!(GOOD.matches(from).count(), 1, "{from} stands once in the good file");
        let text = GOOD.replace(from, to);
        let result = Workload::parse("bad.toml", &text);
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
        assert!(message.starts_with(&format!("bad.toml:{line}: ")), "{message}");
        assert!(!error.help.is_empty() && error.help().is_some());
        assert!(error.labels().is_some() && error.source_code().is_some());
    }
}

#[test]
fn a_task_that_only_receives_what_it_sent_is_refused() {
    let text = r#"
        name = "self"
        about = "x"
        load = "tasks"
        channels = { c = "pipe" }
        metric = [{ name = "ops/s", throughput = true }]
        [params.n]
        default = 2
        about = "tasks on the channel"
        [[task]]
        name = "t"
        count = "$n"
        program = [{ send = "c" }, { recv = "c" }, { count = 1 }]
    "#;
    let workload = Workload::parse("self.toml", text).unwrap();
    let one = [("n".to_owned(), "1".to_owned())].into();
    let problem = workload.build(1, &one).unwrap_err().to_string();
    assert!(problem.contains("would loop without taking time"), "{problem}");
}

/// Text that is often nearly a workload file.
fn nearly_toml() -> impl Strategy<Value = String> {
    let files: Vec<String> = names()
        .map(|name| find(name).unwrap().source_text().to_owned())
        .chain([GOOD.into()])
        .collect();
    let scraps = [
        "",
        "\"",
        "[[task]]",
        "{",
        "}",
        "[",
        "]",
        "=",
        "$",
        "-1",
        "nan",
        "inf",
        "1e999",
        "true",
        "99999999999999999999",
        "µ",
        "\0",
        "program = []",
        "count = 0",
        "\n",
        "/0",
        "1979-05-27",
    ];
    (
        prop::sample::select(files),
        prop::collection::vec(
            (any::<prop::sample::Index>(), 0..40usize, prop::sample::select(scraps.to_vec())),
            0..6,
        ),
    )
        .prop_map(|(mut text, edits)| {
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
    fn no_text_panics(text in prop_oneof![".{0,200}", nearly_toml()], load in 0..4u64) {
        match Workload::parse("any.toml", &text) {
            Ok(workload) => drop(workload.build(load, &Default::default())),
            Err(error) => {
                let report = miette::Report::new(error);
                let shown = format!("{report:?}");
                prop_assert!(!shown.is_empty());
            }
        }
    }

    #[test]
    fn no_parameter_panics(value in prop_oneof![".{0,30}", "[0-9.]{0,25}(ns|us|ms|s)?"]) {
        let schbench = find("schbench").unwrap();
        for name in ["workers", "cputime", "sleeptime"] {
            let _ = schbench.build(1, &[(name.to_owned(), value.clone())].into());
        }
    }
}

//! Files that are no workload are refused with the line, the key and the reason.

mod scraps;

use std::fmt::Write;

use miette::Diagnostic;
use proptest::prelude::*;
use reveille_workload::{Workload, find, names};
use scraps::{edit, edited};

/// Each refusal is one edit away.
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

/// Text of [`GOOD`], and the mistake in its place.
const BAD: &[(&str, &str)] = &[
    ("name = \"good\"\n", ""),
    ("\"good\"", "\" \""),
    ("\"good\"", "good"),
    ("load =", "laod ="),
    ("\"pipe\"", "\"pip\""),
    ("back = \"udp\"", "back = \"udp\", more = \"tcp\""),
    ("[\"done\"]", "[\"done\", \"done\"]"),
    ("[\"done\"]", "[\"done\", \"more\"]"),
    ("[\"done\"]", "3"),
    ("p99 (ns)", "p99 (ms)"),
    ("p99 (ns)", "p99"),
    ("ops/s", "ops (ms)"),
    ("ops/s", "p99 (ns)"),
    ("0.99", "99"),
    ("0.99", "nan"),
    ("quantile = 0.99", "throughput = true, quantile = 0.99"),
    (", throughput = true", ""),
    ("throughput = true", "throughput = false"),
    ("default = 2", "default = -2"),
    ("default = 2", "default = 0x10"),
    ("default = 2", "default = 0"),
    ("default = 2", "default = 9999999"),
    ("default = 2", "defualt = 2"),
    ("default = 2", "default = \"2ms\""),
    ("\"1.5us\"", "\"-1.5us\""),
    ("\"1.5us\"", "nan"),
    ("\"1.5us\"", "1.5"),
    ("\"1.5us\"", "\"2000h\""),
    ("\"1.5us\"", "\"3601s\""),
    ("\"$workers\"", "3"),
    ("\"$workers\"", "\"$wrokers\""),
    ("\"$workers\"", "\"$workers/0\""),
    ("\"$workers\"", "\"$workers/3\""),
    ("\"$workers\"", "[]"),
    ("name = \"second\"", "name = \"first\""),
    ("process = \"instance\"", "process = \"instanse\""),
    ("process = \"instance\"", "proces = \"instance\""),
    ("{ run = \"1ms\" }", "{ rnu = \"1ms\" }"),
    ("{ run = \"1ms\" }", "{ run = \"1ms\", spin = \"1ms\" }"),
    ("{ run = \"1ms\" }", "{ jitter = \"1ms\" }"),
    ("{ run = \"1ms\" }", "{ run = \"1ms\", bytes = 3 }"),
    ("{ run = \"1ms\" }", "{ run = 30 }"),
    ("{ run = \"1ms\" }", "\"run\""),
    ("bytes = 8", "bytes = 0"),
    ("bytes = 8", "bytes = 4294967296"),
    ("send = \"there\"", "send = \"theer\""),
    ("recv = \"back\"", "recv = \"back\", framed = true"),
    ("recv = \"back\"", "recv = \"back\", discard = true"),
    ("bytes = 8", "discard = true"),
    ("{ count = 2 }", "{ count = 2 }, { repeat = 3, program = [{ syscall = \"1us\" }] }"),
    ("name = \"second\"", "name = \"second\"\nrelease = \"togehter\""),
    ("name = \"second\"", "name = \"second\"\nrelease = true"),
    ("name = \"second\"", "name = \"second\"\nrelease = \"together\"\nbefore = []"),
    ("name = \"second\"", "name = \"second\"\nbefore = [{ respawn = true }]"),
    ("name = \"second\"", "name = \"second\"\nsetup = [{ respawn = true }]"),
    ("name = \"first\"", "name = \"parent\"\nrelease = \"together\""),
    (
        "name = \"helper\"\n",
        "name = \"helper\"\nrelease = \"together\"\nprogram = [{ run = \"1us\" }]\n[[task]]\nname = \"more\"\nrelease = \"together-sync\"\nprogram = [{ run = \"1us\" }]\n[[task]]\nname = \"last\"\n",
    ),
    ("{ recv = \"back\" },", ""),
    ("{ count = 2 }", "{ count = 0 }"),
    ("  { count = 2 },\n", ""),
    ("wake_list = \"done\"", "wake_list = \"doen\""),
    ("post = \"second\"", "post = \"helper\""),
    ("{ count = 2 }", "{ post = \"helper\" }, { count = 2 }"),
    ("{ count = 2 }", "{ wait = true }, { count = 2 }"),
    ("{ count = 2 }", "{ record = true }, { count = 2 }"),
    ("{ wait = \"1us\" }", "{ wait = \"0us\" }"),
    ("{ wait = true }", "{ wait = true, jitter = \"1us\" }"),
    ("{ wait = true }", "{ wait = \"1us\" }"),
    ("post = \"second\"", "post = \"secnod\""),
    ("back = \"udp\"", "back = { kind = \"udp\", count = 2 }"),
    ("recv = \"back\"", "recv = \"back[0]\""),
    ("back = \"udp\"", "back = { kind = \"udp\", count = 0 }"),
    ("back = \"udp\"", "back = \"$pause\""),
    ("{ count = 2 }", "{ repeat = 3, program = [{ count = 2 }] }"),
    ("lists = [\"done\"]", "lists = [\"done\"]\nlocks = [\"m\"]"),
    (
        "{ count = 2 }",
        "{ count = 2 }, { repeat = 3, program = [{ lock_cpu = true }, { unlock_cpu = true }] }",
    ),
    ("{ count = 2 }", "{ repeat = 3 }"),
    ("{ count = 2 }", "{ repeat = 0, program = [{ run = \"1us\" }, { count = 2 }] }"),
    ("{ count = 2 }", "{ count = 2 }, { serve = true }"),
    ("{ count = 2 }", "{ count = 2 }, { request = \"second\" }"),
    ("{ count = 2 }", "{ count = 2 }, { lock_cpu = true }"),
    ("{ count = 2 }", "{ count = 2 }, { unlock_cpu = true }"),
    ("{ count = 2 }", "{ lock = \"m\" }, { count = 2 }"),
    ("{ count = 2 }", "{ count = 2 }, { lock_cpu = true }, { respawn = true }"),
    ("bytes = 8", "bytes = 65537"),
    ("{ record = true }", "{ record = true }, { record = \"more\" }"),
    ("quantile = 0.99", "quantile = 0.99, record = \"lat\""),
    ("name = \"second\"", "count = 2\nname = \"second\""),
    ("program = [{ join", "program = [] # [{ join"),
    (
        "[{ join = \"done\" }, { post = \"second\" }, { wait = true }, { record = true }]",
        "[{ post = \"second\" }]\n[[task]]\nname = \"x\"\nprogram = [{ join = \"done\" }, { wait = true }, { record = true }]",
    ),
];

/// The same, but no mistakes.
const STILL_GOOD: &[(&str, &str)] = &[("default = 2", "default = 65536")];

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
    for (from, to) in STILL_GOOD {
        assert!(Workload::parse("good", &GOOD.replace(from, to)).is_ok(), "{to}");
    }
    let mut said = String::new();
    for (from, to) in BAD {
        assert_eq!(GOOD.matches(from).count(), 1, "{from} stands once in the good file");
        let error = Workload::parse("bad.toml", &GOOD.replace(from, to)).expect_err(to);
        assert!(error.labels().is_some() && error.source_code().is_some(), "{to}: {error}");
        let help = error.help().expect("every mistake has a fix");
        let _ = writeln!(said, "{to:?}\n  {error}\n  help: {help}");
    }
    insta::assert_snapshot!(said);
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
    (prop::sample::select(files), prop::collection::vec(edit(&scraps, 40), 0..6))
        .prop_map(|(text, edits)| edited(text, edits))
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

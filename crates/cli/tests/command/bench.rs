//! `reveille bench -- COMMAND`, run for real: figures, failures, saved runs, and nothing left
//! behind however it ends.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{failure, json, output, processes_with, refused, reveille, send, words};

/// Standard output of a bench that succeeds. Without privileges the command says on standard
/// error that there is no task group.
fn text(args: &[&str]) -> String {
    let output = output(args);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {errors}");
    assert!(errors.is_empty() || errors.contains("no task group of its own"), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_run_has_quantiles_only_where_there_are_enough_samples() {
    let few = text(&["bench", "--repeats", "3", "--", "sleep", "0.01"]);
    let row = |text: &str, name: &str| {
        let row =
            text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{text}"));
        row.to_owned()
    };
    assert_eq!(row(&few, "wall time").matches("too few").count(), 3, "{few}");
    assert!(few.contains("too few: p50 needs 20 runs, p90 needs 100 runs, p99 needs 1000 runs"));
    assert!(few.contains("exit status 0 in 3 runs"), "{few}");
    assert!(few.contains("host: Linux "), "{few}");
    for name in ["CPU time", "user time", "system time", "voluntary switches", "involuntary"] {
        row(&few, name);
    }
    let enough = text(&["bench", "--warmup", "0", "--", "true"]);
    assert_eq!(row(&enough, "wall time").matches("too few").count(), 2, "{enough}");
}

#[test]
fn json_has_every_run_and_what_it_used() {
    let spin = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 0.02";
    let args = ["bench", "--cpus", "0", "--repeats", "4", "--json", "--", "sh", "-c", spin];
    let all: Value = serde_json::from_str(&text(&args)).unwrap();
    assert_eq!((&all["format"], &all["warmup"]), (&1.into(), &1.into()));
    assert_eq!(all["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(all["command"], serde_json::json!(["sh", "-c", spin]));
    assert_eq!(all["cpus"], serde_json::json!([0]));
    let runs = all["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 4);
    for run in runs {
        let get = |key: &str| run[key].as_u64().unwrap_or_else(|| panic!("{key} in {run}"));
        assert!(get("wall_ns") >= 20_000_000, "{run}");
        assert!(get("user_ns") + get("system_ns") > 0, "{run}");
        assert!(get("user_ns") + get("system_ns") < get("wall_ns"), "one CPU: {run}");
        assert!(get("voluntary_switches") >= 1, "it sleeps: {run}");
        assert_eq!((get("exit_status"), get("left_running")), (0, 0));
    }
    let wall = &all["figures"][0];
    assert_eq!(wall["metric"], "wall time (ns)");
    assert!(wall["p50"].is_null() && wall["mean"].as_f64().unwrap() >= 2e7, "{wall}");
    assert!(all["host"]["kernel"].is_string() && all["group"].is_null());
}

#[test]
fn output_is_shown_if_asked_for() {
    let script = ["--repeats", "1", "--warmup", "0", "--", "sh", "-c", "echo said; echo also >&2"];
    let quiet = output(&[&["bench"][..], &script].concat());
    assert!(!String::from_utf8_lossy(&quiet.stderr).contains("said"));
    let shown = output(&[&["bench", "--show-output"][..], &script].concat());
    let errors = String::from_utf8_lossy(&shown.stderr);
    assert!(errors.contains("said") && errors.contains("also"), "{errors}");
    assert!(!String::from_utf8_lossy(&shown.stdout).contains("said"));
}

#[test]
fn what_fails_is_named() {
    let says = |code, args: &[&str], parts: &[&str]| {
        let errors = failure(&mut reveille(&[&["bench"], args].concat()), code);
        assert!(parts.iter().all(|part| errors.contains(part)), "{args:?}: {errors}");
    };
    let seventh = words("--warmup 0 --repeats 3 -- sh -c");
    let run = ["`sh -c exit 7` ended with exit code 7 in run 1 of 3", "--show-output"];
    says(1, &[&seventh[..], &["exit 7"]].concat(), &run);
    says(1, &["--", "sh", "-c", "kill -9 $$"], &["killed by signal 9 in warm-up run"]);
    for (line, parts) in [
        ("-- no-such-program", ["start `no-such-program`", "No such file"]),
        ("-- /etc/passwd", ["start `/etc/passwd`", "chmod +x"]),
        ("", ["COMMAND", ""]),
        ("true", ["true", ""]),
        ("--repeats 0 -- true", ["--repeats", ""]),
        ("--cpus 0- -- true", ["--cpus", ""]),
        ("--cpus 4000 -- true", ["CPU 4000", ""]),
        ("--save /nowhere/run.json -- true", ["--save", "/nowhere"]),
        ("--before a.json", ["--after", ""]),
    ] {
        says(2, &words(line), &parts);
    }
}

#[test]
fn saved_runs_are_compared() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (short, long, bad) = (path("short.json"), path("long.json"), path("bad.json"));
    for (file, seconds) in [(&short, "0.01"), (&long, "0.05")] {
        text(&["bench", "--save", file, "--", "sleep", seconds]);
    }
    let saved = fs::read(&short).unwrap();
    refused(&["bench", "--save", &short, "--", "true"], &["--save", "it exists", "--force"]);
    assert_eq!(fs::read(&short).unwrap(), saved);
    text(&["bench", "--save", &short, "--force", "--", "sleep", "0.01"]);
    let compare = |before: &str, after: &str| {
        ["bench", "--before", before, "--after", after].map(str::to_owned)
    };
    let args = compare(&short, &long);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let table = text(&args);
    assert!(table.contains("before: 20 runs of sleep 0.01"), "{table}");
    // The kernel does not know how so little CPU time is split.
    let of =
        |text: &str, name: &str| text.lines().find(|l| l.starts_with(name)).unwrap().to_owned();
    for name in ["user time", "system time"] {
        let row = of(&table, name);
        assert_eq!((row.matches("n/a").count(), row.contains('*')), (4, false), "{table}");
    }
    assert!(!of(&table, "CPU time").contains("n/a"), "{table}");
    let (figures, _) = table.split_once("* p < 0.05").unwrap();
    assert!(figures.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert_eq!(figures.matches("\n  p50 ").count(), 4, "{table}");
    assert!(table.contains("n/a: the kernel splits CPU time by samples"), "{table}");
    assert!(table.contains("warning: command: sleep 0.01 before, sleep 0.05 after"), "{table}");
    let changed = json(&[&args[..], &["--json"]].concat());
    assert_eq!(changed["version"], env!("CARGO_PKG_VERSION"));
    let user = &changed["rows"][2];
    assert!(user["before"]["mean"].is_null() && user["change_pct"].is_null(), "{user}");
    assert_eq!(user["significant"], false);
    let wall = &changed["rows"][0];
    assert_eq!(wall["metric"], "wall time (ns)");
    // Sleeps are at least as long as asked; a busy host makes each longer by an unknown time.
    assert!(wall["change_pct"].as_f64().unwrap() > 20.0, "{wall}");
    assert!(wall["before"]["p50"].as_f64().unwrap() < wall["after"]["p50"].as_f64().unwrap());
    assert!(wall["p_value"].as_f64().unwrap() < 0.05 && wall["significant"] == true, "{wall}");
    for (content, problem) in
        [("{", "no JSON"), ("{}", "no `format`"), (r#"{"format": 99}"#, "format is 99")]
    {
        fs::write(&bad, content).unwrap();
        refused(&["bench", "--before", &bad, "--after", &long], &["bad.json", problem]);
    }
    refused(&["bench", "--before", "none.json", "--after", &long], &["none.json"]);
    let device = ["bench", "--before", "/dev/zero", "--after", &long];
    refused(&device, &["it is a device; name a regular file"]);
}

#[test]
fn what_a_command_leaves_running_is_killed_and_told() {
    let mark = Mark::new("left");
    let script = "setsid sleep 1000 & exit 0";
    let mut command =
        reveille(&["bench", "--repeats", "2", "--warmup", "0", "--", "sh", "-c", script]);
    let output = command.env(&mark.key, &mark.value).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("left 2 processes running"), "{text}");
    assert_eq!(mark.processes(), Vec::<u32>::new());
}

/// A variable by which all processes of a run are found, whatever became of their parents.
struct Mark {
    key: String,
    value: String,
}

impl Mark {
    fn new(name: &str) -> Mark {
        Mark { key: "REVEILLE_TEST_RUN".into(), value: format!("{}-{name}", std::process::id()) }
    }

    fn processes(&self) -> Vec<u32> {
        processes_with(&format!("{}={}", self.key, self.value))
    }
}

/// Task groups that a process has made and that are still there.
pub(crate) fn groups_of(pid: u32) -> Vec<String> {
    let find = format!("find /sys/fs/cgroup -type d -name 'reveille-{pid}-*' 2>/dev/null");
    let found = Command::new("sh").args(["-c", &find]).output().unwrap();
    String::from_utf8_lossy(&found.stdout).lines().map(str::to_owned).collect()
}

/// A command that starts others, one of them in a session of its own, and never ends.
fn start(mark: &Mark) -> Child {
    let script = "setsid sleep 1000 & sleep 1000 & wait";
    let mut command = reveille(&["bench", "--json", "--", "sh", "-c", script]);
    command.env(&mark.key, &mark.value).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let begin = Instant::now();
    // This command, its child, the shell and both sleepers.
    while mark.processes().len() < 5 {
        assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", mark.processes());
        sleep(Duration::from_millis(5));
    }
    child
}

#[test]
fn however_it_ends_nothing_is_left() {
    for (signal, code) in [("INT", Some(130)), ("TERM", Some(130)), ("KILL", None)] {
        let mark = Mark::new(signal);
        let child = start(&mark);
        let pid = child.id();
        send(&child, signal);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), code, "{signal}");
        assert!(output.stdout.is_empty(), "{signal}: half a result");
        let begin = Instant::now();
        while !(mark.processes().is_empty() && groups_of(pid).is_empty()) {
            let left = (mark.processes(), groups_of(pid));
            assert!(begin.elapsed() < Duration::from_secs(5), "{signal}: {left:?}");
            sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn a_limit_is_kept_and_counted() {
    let spin = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    let limit = "quota=10ms,period=100ms";
    let line = format!("bench --cgroup {limit} --repeats 2 --warmup 0 --json -- sh -c");
    let args = [&words(&line)[..], &[spin]].concat();
    let output = output(&args);
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("task group") {
        eprintln!("SKIPPED: {errors}");
        return;
    }
    assert!(output.status.success(), "{errors}");
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&all["limit"], &all["task_group"]), (&limit.into(), &true.into()));
    assert!(all["group"]["nr_throttled"].as_u64().unwrap() >= 2, "{}", all["group"]);
}

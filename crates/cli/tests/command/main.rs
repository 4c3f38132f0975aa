//! The built command, used as a user would.

mod bad_input;
mod bench;
mod bench_schbench;
mod both_worlds;
mod calibrate;
mod fleet;
mod front;
mod inputs;
mod interrupt;
mod kernels;
mod lists;
mod plan;
mod plan_act;
mod plan_edges;
mod policy;
mod results;
mod rtapp;
mod schedulers;
mod score;
mod sensitivity;
mod sweep;
mod traces;
mod usage;
mod usage_record;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The command with these arguments. No test loads a scheduler, on whatever host it runs.
fn reveille(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reveille"));
    command.args(args).env("NO_COLOR", "1").env("SCX_REVEILLE", "/dev/null");
    command
}

/// A command line as typed, without quotes.
fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

fn output(args: &[&str]) -> Output {
    reveille(args).output().expect("the command starts")
}

/// Its standard output, if it succeeds.
fn stdout(args: &[&str]) -> String {
    let output = output(args);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {:?} {errors}", output.status);
    assert!(is_progress(&errors), "{args:?} is not silent in a pipe: {errors}");
    String::from_utf8(output.stdout).expect("output is UTF-8")
}

/// Long commands say every 10 s how far they are, and nothing else.
fn is_progress(errors: &str) -> bool {
    errors.lines().all(|line| line.contains(" of about ") && line.ends_with(" s"))
}

/// Its standard output as JSON, if it succeeds.
fn json(args: &[&str]) -> serde_json::Value {
    serde_json::from_str(&stdout(args)).expect("standard output is JSON and nothing else")
}

/// What it says when it fails with this exit code, without a result. A run that is not refused
/// could last for ever, so it is ended.
fn failure(command: &mut Command, code: i32) -> String {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > end {
            child.kill().unwrap();
        }
        sleep(Duration::from_millis(1));
    }
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{command:?}: {errors}");
    assert!(output.stdout.is_empty(), "{command:?} printed a result");
    assert!(!errors.contains("RUST_BACKTRACE"), "{command:?}: {errors}");
    errors
}

/// Sends a signal: `INT`.
fn send(child: &Child, signal: &str) {
    let kill = format!("kill -{signal} {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
}

/// Starts it and lets it run for so long.
fn started(args: &[&str], ms: u64) -> Child {
    let child = reveille(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    sleep(Duration::from_millis(ms));
    child
}

/// Sends a signal; the command must end within a second.
fn interrupted(child: Child, name: &str) -> Output {
    send(&child, name);
    let sent = Instant::now();
    let output = child.wait_with_output().unwrap();
    assert!(sent.elapsed() < Duration::from_secs(1), "{name}: {:?}", sent.elapsed());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{name}: {errors}");
    assert!(errors.contains("interrupted"), "{name}: {errors}");
    output
}

/// Processes with a variable in their environment that begins so: `NAME=VALUE`.
fn processes_with(mark: &str) -> Vec<u32> {
    let here = |id: &u32| {
        fs::read(format!("/proc/{id}/environ"))
            .is_ok_and(|all| all.split(|b| *b == 0).any(|var| var.starts_with(mark.as_bytes())))
    };
    let all = fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|e| e.file_name().to_str()?.parse().ok()).filter(here).collect()
}

/// A path in a directory, as an argument.
fn path(dir: &Path, name: &str) -> String {
    dir.join(name).display().to_string()
}

/// Writes a table of requests on so many threads: this CPU time every so many ms, so many times.
fn requests(path: PathBuf, threads: u32, cpu_ms: u32, every_ms: u32, times: u32) -> PathBuf {
    let mut text = String::from("at_ms,cpu_ms,thread\n");
    for round in 0..times {
        for thread in 0..threads {
            text += &format!("{},{cpu_ms},{thread}\n", every_ms * round);
        }
    }
    fs::write(&path, text).unwrap();
    path
}

/// A series of Prometheus: its labels in JSON, and values by their times in s.
fn series(labels: &str, values: impl IntoIterator<Item = (u32, f64)>) -> String {
    let values = values.into_iter().map(|(at, value)| format!("[{at},\"{value}\"]"));
    let values = values.collect::<Vec<_>>().join(",");
    format!(r#"{{"metric":{{{labels}}},"values":[{values}]}}"#)
}

/// An answer of Prometheus with these series.
fn answer(series: &[String]) -> String {
    let list = series.join(",");
    format!(r#"{{"status":"success","data":{{"resultType":"matrix","result":[{list}]}}}}"#)
}

fn refused(args: &[&str], parts: &[&str]) {
    let errors = failure(&mut reveille(args), 2);
    for part in parts {
        assert!(errors.contains(part), "{args:?}: no `{part}` in {errors}");
    }
}

/// The messages with which all of these are refused, each below its arguments.
fn refusals<'a>(cases: impl IntoIterator<Item = Vec<&'a str>>) -> String {
    let told =
        |args: Vec<&str>| format!("{}\n{}\n", args.join(" "), failure(&mut reveille(&args), 2));
    cases.into_iter().map(told).collect()
}

/// A comparison of a few milliseconds of virtual time.
const SMALL: &str = "compare --machine zen4-7950x --workload context_switch1 --load 1,16 \
                     --base v6.2 --with +SIS_SHORT,-TTWU_QUEUE --repeats 3 --warmup 1ms \
                     --duration 2ms";

/// [`SMALL`] with more arguments.
fn small<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&words(SMALL)[..], more].concat()
}

/// [`SMALL`] with the value of `option` replaced.
fn small_with<'a>(option: &str, value: &'a str) -> Vec<&'a str> {
    let mut args = words(SMALL);
    let at = args.iter().position(|arg| *arg == option).expect("an option of SMALL");
    args[at + 1] = value;
    args
}

/// [`SMALL`] with these variants in place of its own.
fn small_of<'a>(variants: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    let mut args = words(SMALL);
    let at = args.iter().position(|arg| *arg == "--with").unwrap();
    args.drain(at..at + 2);
    args.extend(variants.iter().flat_map(|variant| ["--with", variant]));
    args.extend(more);
    args
}

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
mod usage;
mod usage_record;

use std::process::{Command, Output};

/// The command with these arguments.
fn reveille(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reveille"));
    command.args(args).env("NO_COLOR", "1");
    command
}

/// Runs it to its end.
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

/// A comparison of a few milliseconds of virtual time.
const SMALL: [&str; 17] = [
    "compare",
    "--machine",
    "zen4-7950x",
    "--workload",
    "context_switch1",
    "--load",
    "1,16",
    "--base",
    "v6.2",
    "--with",
    "+SIS_SHORT,-TTWU_QUEUE",
    "--repeats",
    "3",
    "--warmup",
    "1ms",
    "--duration",
    "2ms",
];

/// [`SMALL`] with more arguments.
fn small<'a>(more: &[&'a str]) -> Vec<&'a str> {
    SMALL.into_iter().chain(more.iter().copied()).collect()
}

//! Scores: what a policy gains over a suite, and what breaks by name.

use std::fs;

use serde_json::Value;

use super::policy::Desk;
use super::{json, output, stdout};

/// A suite of two stages that takes a moment.
const SMALL: &str = r#"
name = "small"
about = "two cells of a moment"
base = "v6.2"
guardrails_of = "default"
repeats = 2
warmup = "2ms"
duration = "2ms"

[[case]]
workload = "schbench"
machine = "zen4-7950x"
loads = [1]
params = { workers = "8", cputime = "50us", sleeptime = "50us" }
stage = 1
guardrails = ["stacking"]

[[case]]
workload = "tcp_rr"
machine = "quad-1s4c"
loads = [1]
guardrails = ["few-clients", "stacking"]
"#;

/// A case where tasks of first_fit.c migrate differently.
const SIZED: &str = r#"
[[case]]
workload = "tcp_rr"
machine = "zen4-7950x"
loads = [8]
warmup = "16ms"
duration = "8ms"
guardrails = ["few-clients"]
"#;

const STACK: &str = "pick.cpu = 0; pick.target = 0;";
const AS_KERNEL: &str = "pick = policy_select_cpu(w, t, p, waker, this_cpu, flags, now_j);";

fn desk() -> Desk {
    let desk = Desk::new();
    fs::write(desk.path("small.toml"), SMALL).unwrap();
    desk
}

/// What a run with the small suite prints as JSON, given that it ends with this code.
fn scored(desk: &Desk, code: i32, args: &[&str]) -> Value {
    let all = [&["score", "--json", "--suite", "small.toml"], args].concat();
    let output = desk.output(&all);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {errors}");
    desk.nothing_is_left();
    serde_json::from_slice(&output.stdout).unwrap()
}

fn combined(score: &Value) -> f64 {
    score["metrics"]["combined_score"].as_f64().unwrap()
}

/// Names of the guardrails that fail.
fn failed(score: &Value) -> Vec<&str> {
    let guardrails = score["guardrails"].as_array().unwrap().iter();
    guardrails.filter(|g| g["passed"] == false).map(|g| g["name"].as_str().unwrap()).collect()
}

#[test]
fn no_edit_scores_one_and_passes_everything() {
    let score = json(&["score", "--stage", "1", "--json"]);
    assert_eq!((combined(&score), &score["status"]), (1.0, &"passed".into()));
    assert_eq!(score["metrics"]["gain_low"], 1.0);
    assert_eq!((failed(&score).len(), score["guardrails"].as_array().unwrap().len()), (0, 6));
    assert_eq!(score["artifacts"], serde_json::json!({}));
    let desk = desk();
    desk.policy("same.c", AS_KERNEL);
    assert_eq!(combined(&scored(&desk, 0, &["same.c"])), 1.0);
    let table = stdout(&["score", "--stage", "1"]);
    assert!(table.contains("score       1.000: mean gain +0.0%"), "{table}");
}

#[test]
fn stacking_fails_by_name_and_the_cheap_stage_rejects_it() {
    let desk = desk();
    desk.policy("stack.c", STACK);
    let score = scored(&desk, 3, &["stack.c"]);
    assert_eq!(score["status"], "rejected");
    assert_eq!(score["cells"].as_array().unwrap().len(), 1);
    assert!(score["artifacts"]["not_run"].as_str().unwrap().contains("full stage"));
    let whole = scored(&desk, 3, &["stack.c", "--stage", "2"]);
    assert_eq!(whole["status"], "guardrail_failed");
    assert!(failed(&whole).contains(&"stacking"), "{whole}");
    assert_eq!(whole["metrics"]["guardrail_stacking"], 0.0);
    assert!((0.0..1.0).contains(&combined(&whole)));
    let why = &whole["artifacts"];
    assert!(why["guardrails"].as_str().unwrap().contains("stacking failed: "), "{why}");
    assert!(why["worst_cells"].as_str().unwrap().contains("schbench 1 on zen4-7950x: -"), "{why}");
    let one = output(&["score", "--stage", "1", desk.path("stack.c").to_str().unwrap()]);
    let table = String::from_utf8(one.stdout).unwrap();
    assert!(table.contains("FAILS  stacking"), "{table}");
}

#[test]
fn a_size_that_means_nothing_fails_no_guardrail() {
    let desk = desk();
    let suite = format!("{}{SIZED}", SMALL.split_once("[[case]]").unwrap().0);
    fs::write(desk.path("small.toml"), suite).unwrap();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/policies/first_fit.c");
    let output = desk.output(&["score", "--json", "--suite", "small.toml", file]);
    let score: Value = serde_json::from_slice(&output.stdout).unwrap();
    let cell = &score["cells"][0];
    let [gain, low, runs] = ["gain", "low", "uncorrected_gain"].map(|k| cell[k].as_f64().unwrap());
    assert!(runs < 0.9, "{cell}");
    assert!((gain - 0.986).abs() < 1e-9 && low < gain, "{cell}");
    assert!(!failed(&score).contains(&"few-clients"), "{score}");
    let why = score["artifacts"]["worst_cells"].as_str().unwrap();
    assert!(
        why.contains("tcp_rr 8 on zen4-7950x: -1.4%~ (") && why.contains("simulated -"),
        "{why}"
    );
}

#[test]
fn a_broken_policy_scores_zero_and_says_why() {
    let desk = desk();
    let files: [(&str, &str, i32, &str, &str); 5] = [
        ("null.c", "pick.cpu = waker ? 0 : *(u32 *)(now_j & 1);", 5, "policy_failed", "SIGSEGV"),
        ("loop.c", "for (;;) __asm__ volatile(\"\");", 5, "policy_failed", "longer than 2 s"),
        ("far.c", "pick.cpu = 4096;", 5, "policy_failed", "chose CPU 4096"),
        ("gone.c", "pick.cpu = puts(\"x\");", 4, "not_compiled", "gone.c:7:"),
        ("bad.c", "pick.cpu = ;", 4, "not_compiled", "bad.c:7:"),
    ];
    for (file, body, code, status, says) in files {
        desk.policy(file, body);
        let score = scored(&desk, code, &[file]);
        assert_eq!((combined(&score), &score["status"]), (0.0, &status.into()), "{file}");
        let why = score["artifacts"]["error"].as_str().unwrap();
        assert!(why.contains(says), "{file}: {why}");
    }
    assert_eq!(desk.output(&["score", "none.c"]).status.code(), Some(2));
}

#[test]
fn a_time_limit_ends_it_and_names_what_did_not_run() {
    let desk = desk();
    let score = scored(&desk, 6, &["--time-limit", "1us"]);
    assert_eq!((combined(&score), &score["status"]), (0.0, &"time_limit".into()));
    assert_eq!(score["not_run"], serde_json::json!(["schbench 1 on zen4-7950x"]));
    assert_eq!(
        (&score["metrics"]["cells"], &score["metrics"]["cells_not_run"]),
        (&0.0.into(), &1.0.into())
    );
    let page = desk.output(&["score", "--suite", "small.toml", "--time-limit", "1us"]);
    let page = String::from_utf8(page.stdout).unwrap();
    assert!(
        page.contains("score       none: the time limit ended it before a cell had run"),
        "{page}"
    );
    let holdout = output(&["score", "--holdout", "--stage", "2", "--time-limit", "1us", "--json"]);
    assert_eq!(holdout.status.code(), Some(6));
    let holdout: Value = serde_json::from_slice(&holdout.stdout).unwrap();
    assert_eq!(holdout["suite"], "holdout");
    assert!(!holdout["not_run"].to_string().contains("zen4-7950x"));
}

#[test]
fn json_is_what_searchers_take_at_any_number_of_threads() {
    let desk = desk();
    let args = ["score", "--json", "--suite", "small.toml", "-WA_IDLE,-TTWU_QUEUE"];
    let [one, two] = ["1", "2"].map(|jobs| desk.output(&[&args[..], &["--jobs", jobs]].concat()));
    assert_eq!(one.stdout, two.stdout);
    let score: Value = serde_json::from_slice(&one.stdout).unwrap();
    let keys: Vec<&String> = score.as_object().unwrap().keys().collect();
    let known = ["artifacts", "base", "candidate", "cells", "guardrails", "metrics", "not_run"];
    assert_eq!(keys, [&known[..], &["seed", "status", "suite", "version"]].concat());
    assert!(score["metrics"].as_object().unwrap().values().all(|v| v.is_f64()));
    assert!(score["artifacts"].as_object().unwrap().values().all(Value::is_string));
    let cell: Vec<&String> = score["cells"][0].as_object().unwrap().keys().collect();
    let known = ["baseline", "candidate", "direction", "gain", "guardrails", "high", "load", "low"];
    let more = ["machine", "metric", "stage", "uncorrected_gain", "workload"];
    assert_eq!(cell, [&known[..], &more].concat());
    desk.policy("stack.c", STACK);
    let short = scored(&desk, 3, &["stack.c", "--stage", "2", "--artifact-bytes", "200"]);
    let artifacts = short["artifacts"].as_object().unwrap();
    let size: usize = artifacts.iter().map(|(k, v)| k.len() + v.as_str().unwrap().len()).sum();
    assert!((1..=200).contains(&size), "{size}: {artifacts:?}");
}

#[test]
fn mistakes_have_a_place() {
    let desk = desk();
    let says = |change: (&str, &str), more: &[&str]| {
        let text = SMALL.replace(change.0, change.1);
        fs::write(desk.path("wrong.toml"), text).unwrap();
        desk.refused(&[&["score", "--suite", "wrong.toml"], more].concat(), 2)
    };
    let machine = says(("zen4-7950x", "zen4-7950y"), &[]);
    assert!(
        machine.contains("wrong.toml:12: `machine`")
            && machine.contains("did you mean `zen4-7950x`")
    );
    assert!(says(("stage = 1", "stagee = 1"), &[]).contains("did you mean `stage`"));
    assert!(says(("", ""), &["+SIS_SHRT"]).contains("did you mean `SIS_SHORT`"));
    assert!(says(("", ""), &["--holdout"]).contains("has no hold-out"));
    let taken = "base = \"v6.2\"\nholdout = \"small.toml\"";
    assert!(says(("base = \"v6.2\"", taken), &["--holdout"]).contains("is in small, too"));
    assert!(desk.refused(&["score", "--suite", "defualt"], 2).contains("did you mean `default`"));
    let mut told = desk.command(&["score", "--suite", "wrong.toml", "--holdout"]);
    let told = told.env("REVEILLE_ERRORS", "json").output().unwrap().stderr;
    let told: Value = serde_json::from_slice(&told).unwrap();
    assert_eq!((&told["kind"], &told["key"]), (&"input".into(), &"machine".into()));
    assert_eq!(told["line"], 12);
    let wrong_base = says(("base = \"v6.2\"", "base = \"v9\""), &[]);
    assert!(wrong_base.contains("wrong.toml:4: `base`"), "{wrong_base}");
    // The command line itself is an error like any other.
    let mut told = desk.command(&["score", "--stage", "3"]);
    let told = told.env("REVEILLE_ERRORS", "json").output().unwrap();
    let line: Value = serde_json::from_slice(&told.stderr).unwrap();
    assert_eq!((told.status.code(), &line["option"]), (Some(2), &"stage".into()));
    assert!(line["message"].as_str().unwrap().starts_with("`--stage`: `3` is"), "{line}");
    assert_eq!(line["fix"], "give a whole number from 1 to 2");
}

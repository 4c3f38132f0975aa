//! `reveille sensitivity` and `reveille fit` on a machine of two CPUs, where the cost of
//! the switch from idle decides whether a row hits.

use std::path::Path;

use serde_json::Value;

use super::{interrupted, json, output, refusals, started, stdout};

const MACHINE: &str = r#"
name = "pair"
about = "two CPUs"
source = "a test"
cost = "generic-x86"
topology = { sockets = 1, llcs_per_socket = 1, cores_per_llc = 2, threads = 1 }
"#;

/// One pair makes some 211000 hops a second, a little above half of the figure.
fn study(duration: &str) -> String {
    format!(
        r#"
name = "probe"
about = "one pair on two CPUs"
machine = "pair.toml"
base = "v6.2"
variants = ["+SIS_SHORT"]
warmup = "1ms"
duration = "{duration}"
[[case]]
name = "pair of tasks"
workload = "context_switch1"
loads = [1]
source = "a test"
published = [{{ load = 1, side = "base", value = 415000 }}]
[[case]]
name = "silent"
workload = "context_switch1"
loads = [1]
"#
    )
}

/// A directory with the machine and the study, and the path of the study.
fn lab(duration: &str) -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("pair.toml"), MACHINE).unwrap();
    let path = directory.path().join("probe.toml");
    std::fs::write(&path, study(duration)).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (directory, path)
}

#[test]
fn the_table_and_the_page_name_the_constant_that_flips_the_row() {
    let (directory, study) = lab("4ms");
    let page = directory.path().join("page.html");
    let keys = ["--constant", "switch_idle_ns", "--constant", "tcp_send_ns"];
    let mut args = vec!["sensitivity", &study, "--html", page.to_str().unwrap()];
    args.extend(keys);
    let text = stdout(&args);
    let line = |word: &str| text.lines().find(|l| l.contains(word)).unwrap_or_default();
    assert!(text.contains("shipped     1 of 1 hit"), "{text}");
    let flips = text.lines().find(|l| l.contains("switch_idle_ns (ns)")).unwrap();
    for word in ["[150, 1200]", "150", "1200", "fragile"] {
        assert!(flips.contains(word), "no {word} in {flips}");
    }
    assert!(line("fragile  ").contains("pair of tasks 1 (by switch_idle_ns)"), "{text}");
    assert!(line("without influence").contains("tcp_send_ns"), "{text}");
    assert!(text.lines().all(|l| l.chars().count() <= 100), "{text}");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("<svg") && page.contains("switch_idle_ns"));
    assert!(!page.contains("<script") && !page.contains("http://") && !page.contains("https://"));
}

#[test]
fn json_is_the_same_on_any_number_of_threads() {
    let (_directory, study) = lab("2ms");
    let args = |jobs| {
        ["sensitivity", &study, "--points", "3", "--json", "--jobs", jobs].map(str::to_owned)
    };
    let run = |jobs| {
        let args = args(jobs);
        stdout(&args.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let one = run("1");
    for jobs in ["2", "7", "16"] {
        assert_eq!(run(jobs), one, "{jobs} threads");
    }
    let result: Value = serde_json::from_str(&one).unwrap();
    assert_eq!(result["machines"][0], "pair");
    assert_eq!(result["score"]["counted"], 1);
    assert_eq!(result["partial"], false);
    let constants = result["constants"].as_array().unwrap();
    let named = |list: &Value| list.as_array().unwrap().iter().any(|k| k == "unix_send_ns");
    assert!(named(&result["without_influence"]));
    let reach: Vec<f64> = constants.iter().map(|c| c["reach"].as_f64().unwrap()).collect();
    assert!(reach.windows(2).all(|w| w[0] >= w[1]), "{reach:?}");
    let idle = constants.iter().find(|c| c["key"] == "idle.C1.exit_ns").unwrap();
    assert_eq!(idle["machines"][0]["origin"], "cited");
    assert_eq!(idle["samples"].as_array().unwrap().len(), 3);
    assert_eq!(idle["samples"][0]["values"][0], 500.0);
}

#[test]
fn wrong_input_is_refused_with_the_fix() {
    let (directory, study) = lab("2ms");
    let directory = directory.path();
    let cited = directory.join("cited.toml");
    std::fs::write(&cited, without_fitted()).unwrap();
    let there = directory.join("pair.toml");
    let [there, cited] = [&there, &cited].map(|p| p.to_str().unwrap());
    let s = study.as_str();
    let cases = [
        vec!["sensitivity", s, "--constant", "switch_idel_ns"],
        vec!["sensitivity", s, "--constant", "idle.C2.exit_ns"],
        vec!["sensitivity", s, "--case", "pair of task"],
        vec!["sensitivity", s, "--case", "silent"],
        vec!["sensitivity", s, "--points", "1"],
        vec!["sensitivity", s, "--points", "102"],
        vec!["sensitivity", s, "--repeats", "0"],
        vec!["sensitivity", "sis-shrot"],
        vec!["fit", "--machine", cited, "--study", s],
        vec!["fit", "--machine", "spr-2s56", "--study", s],
        vec!["fit", "--machine", "quad-1s4c", "--study", s],
        vec!["fit", "--machine", there, "--study", s, "--rounds", "0"],
        vec!["fit", "--machine", there, "--study", s, "--points", "1"],
        vec!["fit", "--machine", there, "--study", s, "-o", there],
    ];
    let told = refusals(cases).replace(directory.to_str().unwrap(), "DIR");
    insta::assert_snapshot!(told);
}

/// A machine that gives every number which its cost model fits a source of its own.
fn without_fitted() -> String {
    let shown = json(&["machines", "spr-2s56c", "--json"]);
    let mut text = MACHINE.replace("\"pair\"", "\"cited\"");
    for c in shown["machine"]["constants"].as_array().unwrap() {
        if c["origin"]["kind"] == "fitted" {
            let number = |key: &str| c[key].as_f64().unwrap();
            text += &format!(
                "[constants.{}]\nvalue = {}\nrange = [{}, {}]\nsource = \"a mail\"\n",
                c["key"].as_str().unwrap(),
                number("value"),
                number("low"),
                number("high")
            );
        }
    }
    text
}

#[test]
fn a_fit_shows_its_steps_and_writes_a_machine_that_loads() {
    let (directory, study) = lab("2ms");
    let machine = directory.path().join("pair.toml");
    let fitted = directory.path().join("fitted.toml");
    let [machine, fitted] = [&machine, &fitted].map(|p| p.to_str().unwrap());
    let args = ["fit", "--machine", machine, "--study", &study, "--points", "3", "--rounds", "2"];
    let text = stdout(&args);
    for word in ["objective", "switch_idle_ns", "steps", "penalty"] {
        assert!(text.contains(word), "no {word} in {text}");
    }
    assert!(!Path::new(fitted).exists());
    let written = output(&[&args[..], &["-o", fitted, "--jobs", "1"]].concat());
    assert_eq!(written.status.code(), Some(0));
    assert_eq!(String::from_utf8(written.stdout).unwrap(), text);
    assert!(String::from_utf8_lossy(&written.stderr).contains("wrote"));
    let constant = |machine: &str| {
        let shown = json(&["machines", machine, "--json"]);
        let constants = shown["machine"]["constants"].as_array().unwrap().clone();
        constants.into_iter().find(|c| c["key"] == "switch_idle_ns").unwrap()
    };
    let (before, after) = (constant(machine), constant(fitted));
    assert!(after["value"].as_f64() < before["value"].as_f64(), "{after}");
    assert_eq!(after["origin"], before["origin"]);
    let result = json(&[&args[..], &["--json"]].concat());
    assert!(result["after"]["total"].as_f64() < result["before"]["total"].as_f64());
    let steps = result["steps"].as_array().unwrap();
    assert!(steps.iter().any(|s| s["key"] == "switch_idle_ns"));
}

#[test]
fn an_interruption_prints_what_is_finished() {
    let (_directory, study) = lab("20s");
    let args = ["sensitivity", &study, "--jobs", "1", "--json"];
    let output = interrupted(started(&args, 1500), "INT");
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["partial"], true);
}

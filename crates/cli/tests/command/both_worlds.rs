//! `--on host` and `--on sim,host`: real runs of some milliseconds, in every form, and what
//! is refused or interrupted. Nothing is said about speed, for the host may be busy.

use serde_json::Value;

use super::{interrupted, json, refused, started, stdout, words};

/// One pair for some milliseconds, twice.
const PAIR: &str = "compare --workload context_switch1 --load 1 --repeats 2 --warmup 10ms \
                    --duration 50ms";

fn pair<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&words(PAIR)[..], more].concat()
}

fn kernel() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    release.trim().to_owned()
}

#[test]
fn a_pair_is_predicted_and_measured() {
    let result = json(&pair(&["--on", "sim,host", "--machine", "quad-1s4c", "--json"]));
    assert_eq!(result["partial"], false);
    assert_eq!(result["host"]["kernel"], kernel());
    assert!(result["host"]["warnings"].is_array());
    let rows = result["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 1, "the baseline's throughput");
    let row = &rows[0];
    assert_eq!((&row["kind"], &row["variant"]), (&Value::from("value"), &Value::Null));
    for world in ["predicted", "measured"] {
        let samples = row[world]["samples"].as_array().unwrap();
        assert_eq!(samples.len(), 2, "{world}");
        assert!(samples.iter().all(|s| s.as_f64().unwrap() > 0.0), "{world}: {samples:?}");
        assert!(!row[world]["modes"].as_array().unwrap().is_empty());
    }
    let verdict = row["verdict"].as_str().unwrap();
    assert!(["hit", "miss", "informative"].contains(&verdict));
    let counted = usize::from(verdict != "informative");
    assert_eq!(result["score"]["counted"], counted);
}

/// 60 ms have some dozens of wakeups.
#[test]
fn a_quantile_of_too_few_samples_has_no_figure_in_either_world() {
    let args = "compare --on sim,host --machine quad-1s4c --workload schbench --load 1 --with \
                cpus=0 --metric p99 --repeats 2 --warmup 5ms --duration 60ms";
    let args = words(args);
    let table = stdout(&args);
    let rows: Vec<&str> = table.lines().filter(|l| l.trim_start().starts_with("1 ")).collect();
    assert_eq!(rows.len(), 3, "both sides and the change: {table}");
    for row in rows {
        assert!(row.matches("too few").count() == 2 && row.contains("info"), "{table}");
    }
    assert!(table.contains("too few: fewer than 10 samples beyond the quantile"), "{table}");
    let legend = table.replace('\n', " ");
    assert!(
        legend.contains("measure for at least ") && legend.contains("s (--duration)"),
        "{table}"
    );
    let result = json(&[&args[..], &["--json"]].concat());
    assert_eq!(result["score"]["counted"], 0);
    for row in result["rows"].as_array().unwrap() {
        assert!(row["predicted"]["too_few"].as_bool().unwrap(), "{row}");
        assert!(row["measured"]["median"].is_null() && row["ratio"].is_null(), "{row}");
        assert!(row["predicted_change_pct"].is_null() && row["reason"] != "", "{row}");
    }
}

#[test]
fn a_study_is_shown_as_table_page_and_csv() {
    let directory = tempfile::tempdir().unwrap();
    let study = directory.path().join("short.toml");
    let text = r#"
name = "short"
about = "one client in both worlds"
machine = "quad-1s4c"
base = "host"
on = "sim,host"
variants = []
repeats = 1
warmup = "0ms"
duration = "100ms"
[[case]]
name = "request"
workload = "udp_rr"
loads = [1]
"#;
    std::fs::write(&study, text).unwrap();
    let page = directory.path().join("page.html");
    let path = study.to_str().unwrap();
    let table = stdout(&["study", path, "--html", page.to_str().unwrap()]);
    for word in ["short", &kernel(), "request, throughput", "predicted", "measured", "score:"] {
        assert!(table.contains(word), "{word} in {table}");
    }
    assert!(table.lines().all(|l| l.chars().count() <= 100), "{table}");
    let page = std::fs::read_to_string(page).unwrap();
    assert_eq!(page.matches("<circle").count() % 2, 0);
    assert!(page.contains("request") && page.ends_with("</html>\n"));
    let csv = stdout(&["study", path, "--csv"]);
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].ends_with("measured_above,measured_change_pct"), "{csv}");
    assert!([",hit,", ",miss,", ",informative,"].iter().any(|v| lines[1].contains(v)), "{csv}");
    // One world alone.
    let simulated = json(&["study", path, "--on", "sim", "--json"]);
    assert!(simulated["host"].is_null());
    let [row] = &simulated["rows"].as_array().unwrap()[..] else { panic!("{simulated}") };
    assert_eq!((&row["variant"], &row["load"]), (&"".into(), &1.into()), "the baseline alone");
}

#[test]
fn measured_figures_name_the_kernel_and_not_a_baseline() {
    let result = json(&pair(&["--on", "host", "--with", "cpus=0", "--json"]));
    assert_eq!(result["host"]["kernel"], kernel());
    assert_eq!(result["base"], format!("Linux {}", kernel()));
    let row = &result["rows"][0];
    assert_eq!(row["base"], result["base"]);
    assert!(row["baseline"]["mean"].as_f64().unwrap() > 0.0);
    assert!(row["candidate"]["mean"].as_f64().unwrap() > 0.0);
    let table = stdout(&pair(&["--on", "host", "--with", "cpus=0"]));
    assert!(table.contains("measured") && !table.contains("cost model"), "{table}");
}

#[test]
fn what_this_host_cannot_do_is_refused_at_once() {
    let cases: &[(&[&str], &[&str])] = &[
        (&["--on", "host", "--with", "+SIS_SHORT"], &["`+SIS_SHORT`", "this host", "SIS_SHORT"]),
        (&["--on", "host", "--with", "cpus=0-7000"], &["--with", "cpus=0-7000", "host has no CPU"]),
        (&["--on", "host", "--with", "cpus=x"], &["--with", "cpus=x", "cpus=0-1"]),
        (&["--on", "host", "--with", "cpus="], &["--with", "no CPU"]),
        (&["--on", "host", "--with", "cpus=0 cpus=1"], &["--with", "second time"]),
        (&["--on", "moon"], &["--on", "`moon`", "sim,host"]),
        (&["--on", "host", "--machine", "spr-2s56c", "--with", "cpus=0"], &["--machine", "--on"]),
        (&["--on", "host", "--base", "hots", "--with", "cpus=0"], &["--base", "`host`"]),
        (&["--with", "cpus=0"], &["--machine", "--base"]),
    ];
    for (more, parts) in cases {
        refused(&pair(more), parts);
    }
    refused(&["study", "--all", "--on", "host"], &[]);
}

#[test]
fn an_interrupted_measurement_shows_its_whole_passes() {
    let more = ["--on", "host", "--with", "cpus=0", "--json"];
    let mut args = pair(&more);
    args[6] = "1000";
    let output = interrupted(started(&args, 2500), "INT");
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["partial"], true);
    assert_eq!(result["rows"].as_array().unwrap().len(), 1);
    assert!(result["rows"][0]["candidate"]["mean"].as_f64().unwrap() > 0.0);
}

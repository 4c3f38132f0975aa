//! `reveille fleet`: many recordings, whole or in parts.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use super::{output, stdout};

const NAMES: [&str; 4] =
    ["usage_seconds", "cfs_periods", "cfs_throttled_periods", "cfs_throttled_seconds"];

/// Averages over 15 s of a container with 0.5 CPUs that was throttled in this share of its periods.
fn averages(to: &Path, throttled: f64) {
    let per_step = [3.75, 150.0, 150.0 * throttled, 150.0 * throttled * 0.04];
    let mut series = Vec::new();
    for (name, step) in NAMES.iter().zip(per_step) {
        let mut values = String::new();
        for n in 0..8 {
            // Busier steps are throttled more.
            let level =
                f64::from(n) + if name.contains("throttled") { f64::from(n % 2) } else { 0.0 };
            let comma = if n > 0 { "," } else { "" };
            write!(values, "{comma}[{}, \"{}\"]", 1_700_000_000 + 15 * n, level * step).unwrap();
        }
        let metric = format!(r#"{{"__name__":"container_cpu_{name}_total","container":"app"}}"#);
        series.push(format!(r#"{{"metric":{metric},"values":[{values}]}}"#));
    }
    for (name, value) in [("quota", 50_000), ("period", 100_000)] {
        let metric = format!(r#"{{"__name__":"container_spec_cpu_{name}","container":"app"}}"#);
        series.push(format!(r#"{{"metric":{metric},"values":[[1700000000,"{value}"]]}}"#));
    }
    let answer = format!(
        r#"{{"status":"success","data":{{"resultType":"matrix","result":[{}]}}}}"#,
        series.join(",")
    );
    let file = to.with_extension("json");
    fs::write(&file, answer).unwrap();
    stdout(&["import", file.to_str().unwrap(), "-o", to.to_str().unwrap()]);
    fs::remove_file(file).unwrap();
}

/// A live recording of requests of 4 ms, 25 a second, on one thread.
fn requests(to: &Path) {
    let mut table = String::from("at_ms,cpu_us,thread\n");
    (0..2000).for_each(|n| writeln!(table, "{},4000,a", 40 * n).unwrap());
    let file = to.with_extension("csv");
    fs::write(&file, table).unwrap();
    stdout(&["import", file.to_str().unwrap(), "-o", to.to_str().unwrap()]);
    fs::remove_file(file).unwrap();
}

#[test]
fn those_at_risk_stand_first_and_parts_make_the_whole() {
    let dir = tempfile::tempdir().unwrap();
    let fleet = dir.path().join("fleet");
    fs::create_dir_all(fleet.join("shop/web-0")).unwrap();
    averages(&fleet.join("shop/web-0/app.parquet"), 0.3);
    averages(&fleet.join("shop/calm.parquet"), 0.0);
    requests(&fleet.join("live.parquet"));
    fs::write(fleet.join("broken.parquet"), "PAR1").unwrap();
    let from = fleet.to_str().unwrap();
    let goal = ["--goal", "throttled<5%", "--cpus", "4"];
    let run = |args: &[&str]| {
        let output = output(args);
        assert_eq!(output.status.code(), Some(1), "one of them is broken");
        String::from_utf8(output.stdout).unwrap()
    };
    let whole = run(&[&["fleet", from][..], &goal, &["--json"]].concat());
    let shown: serde_json::Value = serde_json::from_str(&whole).unwrap();
    let containers = shown["containers"].as_array().unwrap();
    let by = |name: &str| containers.iter().find(|c| c["name"] == name).unwrap();
    assert_eq!(containers[0]["name"], "app", "{whole}");
    let share = by("app")["throttled_share"].as_f64().unwrap();
    assert!((0.29..0.36).contains(&share), "{share}");
    // Advice never goes below a limit that throttles too much.
    let needed = by("app")["needed_cpus"].as_f64();
    assert!(needed.is_none_or(|cpus| cpus > 0.5), "{needed:?}");
    assert!(by("calm")["p99_ns"].is_null() && by("calm")["needed_cpus"].is_null());
    assert!(by("calm")["note"].as_str().unwrap().contains("never throttled"));
    assert_eq!(by("calm")["spare_cpus"], 0.25);
    assert!(by("live")["needed_cpus"].as_f64().unwrap() > 0.11);
    assert_eq!(shown["failed"][0]["name"], "broken.parquet");

    let parts: Vec<String> = (1..=3)
        .map(|n| {
            let shard = format!("{n}/3");
            let args = [&["fleet", from][..], &goal, &["--shard", &shard, "--jobs", "1", "--json"]]
                .concat();
            let part = dir.path().join(format!("part{n}.json"));
            fs::write(&part, output(&args).stdout).unwrap();
            part.to_str().unwrap().to_owned()
        })
        .collect();
    let merged = |more: &[&str]| run(&[&["fleet", &parts[2], &parts[0], &parts[1]], more].concat());
    assert_eq!(merged(&["--json"]), whole);
    let missing = output(&["fleet", &parts[0], &parts[1]]);
    let errors = String::from_utf8(missing.stderr).unwrap();
    assert!(missing.status.code() == Some(2) && errors.contains("1/3, 2/3"), "{errors}");

    let csv = merged(&["--csv"]);
    assert!(
        csv.starts_with("container,limit_cpus,mean_cpus,") && csv.lines().count() == 4,
        "{csv}"
    );
    let html = dir.path().join("fleet.html");
    let table = merged(&["--html", html.to_str().unwrap()]);
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    assert!(table.contains("failed  broken.parquet: "), "{table}");
    assert!(fs::read_to_string(html).unwrap().contains("never throttled"));
}

#[test]
fn what_holds_no_recording_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let empty = dir.path().to_str().unwrap();
    for (args, words) in [
        (vec!["fleet", empty], "no recording (FILE.parquet)"),
        (vec!["fleet", "/nowhere"], "/nowhere"),
        (
            vec!["fleet", empty, "--shard", "3/2"],
            "`3/2` is no shard; write 1/4 for the first of four",
        ),
        (vec!["fleet", empty, "--goal", "fast"], "goals are p99=20ms"),
        (vec!["record", "-o", "x.parquet"], "--cgroup <NAME>"),
        (vec!["record", "--prometheus", "host", "-o", "x.parquet"], "is no URL"),
        (vec!["record", "--cgroup", "a", "--all", "-o", "x"], "cannot be used with"),
        (vec!["record", "--cgroup", "a", "--goal", "p99=5ms", "-o", "x"], "`--goal` means nothing"),
        (vec!["record", "--prometheus", "http://a", "--workload", "web", "-o", "x"], "deploy/web"),
        (vec!["record", "--prometheus", "http://a", "--header", "a", "-o", "x"], "NAME: VALUE"),
    ] {
        let output = output(&args);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && errors.contains(words), "{args:?}: {errors}");
    }
}

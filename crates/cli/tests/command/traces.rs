//! Traces of the scheduler, given as a user has them.

use std::fs;

use super::{json, refused, stdout};

const SERVICE: &str = include_str!("../../../workload/tests/traces/service.txt");

#[test]
fn a_trace_is_shown_and_repeated() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("service.txt");
    fs::write(&path, SERVICE).unwrap();
    let path = path.to_str().unwrap();
    insta::assert_snapshot!(stdout(&["workloads", path]));
    let run = ["compare", "--machine", "quad-1s4c", "--base", "v6.12", "--repeats", "2", "--json"];
    let of = |load: &'static str, param: &'static str| -> Vec<&str> {
        let metric = ["--metric", "throughput (wakeups/s)", "--duration", "200ms"];
        let workload = ["--workload", path, "--load", load, "--param", param];
        run.into_iter().chain(workload).chain(metric).collect()
    };
    let rate =
        |load, param| json(&of(load, param))["rows"][0]["baseline"]["mean"].as_f64().unwrap();
    // Six wakeups in each 2 ms, three of them the worker's, whatever computes beside them.
    for (load, param, expected) in
        [("1", "only=*", 3_000.0), ("3", "only=*", 9_000.0), ("1", "only=worker 1", 1_500.0)]
    {
        let found = rate(load, param);
        assert!((found / expected - 1.0).abs() < 0.02, "{load} {param}: {found}");
    }
    let latency = ["--metric", "p50 wakeup latency (ns)", "--workload", path, "--load", "1"];
    let args: Vec<&str> = run.into_iter().chain(latency).collect();
    let p50 = json(&args)["rows"][0]["baseline"]["mean"].as_f64().unwrap();
    assert!((500.0..100_000.0).contains(&p50), "{p50}");
    refused(&of("1", "only=wroker 1"), &["no task is called `wroker 1`", "`worker 1`"]);
}

/// Warm-up and one pass of a trace of 0.2 s in which a timer and a task wake every millisecond: in none of
/// four copies has anything still to begin.
#[test]
fn all_copies_run_from_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("long.txt");
    let trace: String = (0..200)
        .map(|ms| {
            format!(
                "<idle>-0 [0] d.h4. 7.{ms:03}000: sched_waking: comm=a pid=1 prio=120\n\
                 <idle>-0 [0] d..2. 7.{ms:03}005: sched_switch: swapper/0:0 [120] R ==> a:1 [120]\n\
                 a-1 [0] d..3. 7.{ms:03}100: sched_waking: comm=b pid=2 prio=120\n\
                 <idle>-0 [1] d..2. 7.{ms:03}105: sched_switch: swapper/1:0 [120] R ==> b:2 [120]\n\
                 a-1 [0] d..2. 7.{ms:03}150: sched_switch: a:1 [120] S ==> swapper/0:0 [120]\n\
                 b-2 [1] d..2. 7.{ms:03}250: sched_switch: b:2 [120] S ==> swapper/1:0 [120]\n"
            )
        })
        .collect();
    fs::write(&path, trace).unwrap();
    let path = path.to_str().unwrap();
    let shown = json(&[
        "compare",
        "--machine",
        "quad-1s4c",
        "--base",
        "v6.12",
        "--workload",
        path,
        "--load",
        "1,4",
        "--metric",
        "throughput (wakeups/s)",
        "--json",
    ]);
    let rate = |row: usize| shown["rows"][row]["baseline"]["mean"].as_f64().unwrap();
    assert!((rate(1) / rate(0) - 4.0).abs() < 0.02, "{} {}", rate(0), rate(1));
}

#[test]
fn studies_and_sweeps_find_a_trace_beside_them() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    file("service.txt", SERVICE);
    let sweep = "name = \"a\"\nmachines = [\"quad-1s4c\"]\nbases = [\"v6.2\"]\n\
                 edits = [\"+SIS_SHORT\"]\n[[workload]]\nname = \"service.txt\"\nloads = [1]\n";
    stdout(&["sweep", &file("sweep.toml", sweep), "--dry-run"]);
    let study = "name = \"a\"\nabout = \"b\"\nmachine = \"quad-1s4c\"\nbase = \"v6.2\"\n\
                 variants = [\"+SIS_SHORT\"]\nwarmup = \"1ms\"\nduration = \"2ms\"\n\
                 [[case]]\nname = \"c\"\nworkload = \"service.txt\"\nloads = [1]\nmetric = \"p50\"\n";
    stdout(&["study", &file("study.toml", study)]);
}

#[test]
fn what_is_no_trace_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes.txt");
    fs::write(&path, "nothing\n").unwrap();
    let path = path.to_str().unwrap();
    refused(&["workloads", path], &[path, "has no event of the scheduler", "trace-cmd report"]);
    refused(&["workloads", "perf.data"], &["in .txt for a trace as text"]);
}

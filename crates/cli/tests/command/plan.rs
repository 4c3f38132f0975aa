//! `reveille plan` as a user would run it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{json, refused, stdout};

/// Two threads of 10 ms of work every 50 ms.
fn requests(directory: &Path, name: &str) -> PathBuf {
    super::requests(directory.join(name), 2, 10, 50, 40)
}

/// Options that make a plan small.
const SMALL: [&str; 8] =
    ["--cpus", "2", "--phases", "2", "--machine", "zen4-7950x", "--base", "v6.12"];

pub(crate) fn with<'a>(file: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["plan", file], &SMALL[..], more].concat()
}

#[test]
fn a_plan_is_the_same_for_any_number_of_jobs() {
    let directory = tempfile::tempdir().unwrap();
    let file = requests(directory.path(), "app.csv");
    let file = file.to_str().unwrap();
    let goal = ["--goal", "p99=15ms", "--today", "quota=20ms,period=100ms", "--json", "--jobs"];
    let one = stdout(&with(file, &[&goal[..], &["1"]].concat()));
    for jobs in ["2", "3"] {
        assert_eq!(one, stdout(&with(file, &[&goal[..], &[jobs]].concat())), "{jobs} threads");
    }
    assert_ne!(one, stdout(&with(file, &[&goal[..], &["2", "--seed", "2"]].concat())));
    let plan: serde_json::Value = serde_json::from_str(&one).unwrap();
    let limits = &plan["recommended"]["limits"];
    let quota = limits["quota_ns"].as_f64().unwrap() / limits["period_ns"].as_f64().unwrap();
    assert!((0.4..1.5).contains(&quota), "{limits}");
    // 80 pieces of work say nothing about p99, and enough about the longest.
    assert!(plan["recommended"]["effect"]["p99_ns"]["max"].is_null());
    assert!(plan["recommended"]["effect"]["max_ns"]["max"].as_f64().unwrap() <= 15e6);
    // A quota of half of the demand: what is not done has no latency.
    assert_eq!(plan["today"]["holds_share"], 0.0);
    assert!(plan["today"]["effect"]["max_ns"]["max"].is_null());
}

#[test]
fn a_plan_with_a_neighbour_names_it() {
    let directory = tempfile::tempdir().unwrap();
    let (file, other) =
        (requests(directory.path(), "app.csv"), requests(directory.path(), "db.csv"));
    let other = format!("{}:quota=60ms,period=100ms,burst=20ms", other.display());
    let goal = ["--goal", "p99=40ms", "--neighbours", &other, "--json"];
    let plan = json(&with(file.to_str().unwrap(), &goal));
    assert_eq!(plan["neighbours"][0]["recording"]["name"], "db");
    assert_eq!(plan["neighbours"][0]["limits"]["burst_ns"], 20_000_000);
    let neighbour = &plan["recommended"]["neighbours"][0];
    assert!(neighbour["missed_share"]["median"].as_f64().unwrap() <= 1.0, "{neighbour}");
    let form = &plan["recommended"]["closed_form"];
    assert!(form["stable"].as_bool().unwrap(), "{form}");
}

#[test]
fn wrong_input_is_refused_with_the_fix() {
    let directory = tempfile::tempdir().unwrap();
    let file = requests(directory.path(), "app.csv");
    let file = file.to_str().unwrap();
    let empty = directory.path().join("empty.parquet");
    fs::write(&empty, "").unwrap();
    let empty = empty.to_str().unwrap();
    let goal = ["--goal", "p99=15ms"];
    let cases: [(Vec<&str>, &str); 12] = [
        (with(file, &[]), "no goal is given"),
        (with(file, &["--goal", "p99=15"]), "has no unit"),
        (with(file, &["--goal", "mean=15ms"]), "there is no goal `mean`"),
        (with(file, &["--goal", "p99=9ms"]), "takes 10.000 ms of CPU time"),
        (with(file, &[&goal[..], &["--today", "quota=1us"]].concat()), "less than 1 ms"),
        (
            with(file, &[&goal[..], &["--today", "quota=10ms,burst=20ms"]].concat()),
            "more than the quota",
        ),
        (with(file, &[&goal[..], &["--confidence", "1.5"]].concat()), "is no share"),
        (with(file, &[&goal[..], &["--confidence", "nan"]].concat()), "is no share"),
        (with(file, &[&goal[..], &["--quota-sum", "0.2"]].concat()), "leave 0.20"),
        (with(file, &[&goal[..], &["--neighbours", "none.csv"]].concat()), "cannot read none.csv"),
        (with(empty, &goal), "no Parquet file"),
        (with("nothing.parquet", &goal), "cannot read nothing.parquet"),
    ];
    for (args, what) in cases {
        refused(&args, &[what, "help: "]);
    }
}

/// The example of <https://go.dev/issue/73193>: 10 CPUs, 200 ms per 100 ms, and each 100 ms a
/// request with 50 ms of work for all threads there are. It takes 5 ms on 10 threads, 25 on 2.
#[test]
fn few_threads_wait_for_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("go.csv");
    let mut table = String::from("at_ms,cpu_us,thread\n");
    for request in 0..120 {
        (0..10).for_each(|thread| table += &format!("{},5000,g{thread}\n", 100 * request));
    }
    fs::write(&file, table).unwrap();
    let today = "quota=200ms,period=100ms";
    let file = file.to_str().unwrap();
    let goal = "p99=20ms";
    let args = ["plan", file, "--goal", goal, "--cpus", "10", "--today", today, "--machine"];
    // Later kernels leave it to chance whether a CPU that has nothing to do looks for work.
    let args = [&args[..], &["quad-1s4c", "--threads", "2,10", "--base", "v6.12"]].concat();
    let plan = json(&[&args[..], &["--json"]].concat());
    let of = |n: usize| &plan["threads"][n];
    assert_eq!((&of(0)["threads"], &of(1)["threads"]), (&2.into(), &10.into()));
    assert!(of(0)["problem"].as_str().unwrap().contains("cannot be reached"), "{}", of(0));
    assert!(of(1)["problem"].is_null() && plan["model"]["cpus"] == 10);
    let p99_ms = of(1)["today"]["p99_ns"].as_f64().unwrap() / 1e6;
    assert!((5.0..6.0).contains(&p99_ms), "{p99_ms}");
    let text = stdout(&args);
    assert!(text.contains("for 10 threads") && text.contains("cannot be reached"), "{text}");
    // Half of the work each, or 6 and 4 pieces.
    let slower: Vec<&str> =
        args.iter().map(|arg| if *arg == goal { "p99=50ms" } else { arg }).collect();
    let slower = json(&[&slower[..], &["--json"]].concat());
    let p99_ms = slower["threads"][0]["today"]["p99_ns"].as_f64().unwrap() / 1e6;
    assert!((25.0..31.0).contains(&p99_ms), "{p99_ms}");
    refused(&["plan", file, "--goal", goal, "--threads", "0..4"], &[]);
}

#[test]
fn recorded_latency_stands_beside_the_models() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("web.csv");
    let plan = |waits_ms: f64| {
        let mut table = String::from("at_ms,cpu_us,thread,latency_ms\n");
        for request in 0..1200 {
            table += &format!("{},4000,{},{}\n", 20 * request, request % 2, 4.1 + waits_ms);
        }
        fs::write(&file, table).unwrap();
        let file = file.to_str().unwrap();
        let args = ["plan", file, "--goal", "p99=50ms", "--cpus", "4", "--machine", "quad-1s4c"];
        (json(&[&args[..], &["--json"]].concat()), stdout(&args))
    };
    let (values, text) = plan(0.0);
    assert_eq!(values["observed"]["p99_ns"], 4_100_000.0);
    assert!(text.contains("under the limits of that time: they agree"), "{text}");
    let (values, text) = plan(15.0);
    assert_eq!(values["observed"]["requests"], 1200);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("of the p99 is not explained by CPU time"), "{words}");
}

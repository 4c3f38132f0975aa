//! `reveille fleet`: many recordings, whole or in parts.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;

use super::{answer, json, output, path, requests, series, stdout};

const NAMES: [&str; 4] =
    ["usage_seconds", "cfs_periods", "cfs_throttled_periods", "cfs_throttled_seconds"];

/// Averages over 15 s of a container with 0.5 CPUs that was throttled in this share of its periods.
fn averages(to: &Path, throttled: f64) {
    let file = to.with_extension("json");
    answers(&file, NAMES.len(), throttled);
    import(&file, to);
}

/// Prometheus' answers for the first `counters` of [`NAMES`].
fn answers(file: &Path, counters: usize, throttled: f64) {
    let per_step = [3.75, 150.0, 150.0 * throttled, 150.0 * throttled * 0.04];
    let of = |name: &str, values: Vec<(u32, f64)>| {
        series(&format!(r#""__name__":"container_{name}","container":"app""#), values)
    };
    let counter = |(name, step): (&&str, f64)| {
        // Busier steps are throttled more.
        let more = u32::from(name.contains("throttled"));
        let value = |n: u32| (1_700_000_000 + 15 * n, f64::from(n + more * (n % 2)) * step);
        of(&format!("cpu_{name}_total"), (0..8).map(value).collect())
    };
    let mut all: Vec<_> = NAMES.iter().zip(per_step).take(counters).map(counter).collect();
    for (name, value) in [("quota", 50_000.0), ("period", 100_000.0)] {
        all.push(of(&format!("spec_cpu_{name}"), vec![(1_700_000_000, value)]));
    }
    fs::write(file, answer(&all)).unwrap();
}

/// Imports a file and removes it.
fn import(file: &Path, to: &Path) {
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
    // A live recording.
    import(&requests(fleet.join("live.csv"), 1, 4, 40, 2000), &fleet.join("live.parquet"));
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
fn no_cpus_are_offered_where_throttling_was_not_counted() {
    let dir = tempfile::tempdir().unwrap();
    let (blind, calm) = (dir.path().join("blind.json"), dir.path().join("calm.json"));
    answers(&blind, 1, 0.1);
    answers(&calm, NAMES.len(), 0.0);
    let (blind, calm) = (blind.to_str().unwrap(), calm.to_str().unwrap());
    let shown = json(&["fleet", blind, calm, "--json"]);
    let of = |name: &str| {
        let all = shown["containers"].as_array().unwrap();
        all.iter().find(|c| c["name"] == name).unwrap().clone()
    };
    assert!(of("blind")["spare_cpus"].is_null(), "{shown}");
    assert!(of("blind")["note"].as_str().unwrap().contains("not counted"), "{shown}");
    assert_eq!(of("calm")["spare_cpus"], 0.25);
    let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = words(stdout(&["fleet", blind, calm]));
    let head = "2 containers, 0 throttled, 1 whose throttling is unknown, at most 0.2 CPUs";
    assert!(text.starts_with(head), "{text}");
    assert!(text.contains("query container_cpu_cfs_periods_total and "), "{text}");
    let counted = words(stdout(&["fleet", calm]));
    assert!(counted.starts_with("1 container, 0 throttled, at most"), "{counted}");
    assert!(!counted.contains("container_cpu_cfs"), "{counted}");

    // Nor does a plan pass off what it simulates for what was.
    let plan = |file| words(stdout(&["plan", file, "--goal", "throttled<5%", "--cpus", "2"]));
    let simulated = "today 50 ms per 100 ms, no burst: simulated with an even load, 0% of periods";
    let planned = plan(blind);
    assert!(planned.contains(simulated), "{planned}");
    assert!(planned.contains("warning Throttling was not counted"), "{planned}");
}

#[test]
fn a_directory_is_read_whole_and_what_is_left_out_is_named() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("shop")).unwrap();
    averages(&dir.path().join("shop/calm.parquet"), 0.0);
    answers(&dir.path().join("shop/web.json"), NAMES.len(), 0.3);
    requests(dir.path().join("table.csv"), 1, 4, 40, 50);
    // What was imported stands beside what it was imported from.
    answers(&dir.path().join("shop/calm.json"), NAMES.len(), 0.0);
    fs::write(dir.path().join("README.md"), "about\n").unwrap();
    fs::write(dir.path().join("empty.csv"), "").unwrap();
    let from = dir.path().to_str().unwrap();
    let whole = stdout(&["fleet", from, "--json"]);
    fs::write(dir.path().join("fleet.json"), &whole).unwrap();
    fs::write(dir.path().join("fleet.csv"), stdout(&["fleet", from, "--csv"])).unwrap();
    let shown = json(&["fleet", from, "--json"]);
    let names = |key: &str| -> Vec<String> {
        let all = shown[key].as_array().unwrap().iter();
        all.map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("containers"), ["shop/web", "calm", "table"]);
    let skipped = ["README.md", "empty.csv", "fleet.csv", "fleet.json", "shop/calm.json"];
    assert_eq!(names("skipped"), skipped);
    assert_eq!(shown["failed"].as_array().unwrap().len(), 0);
    // 50 requests of 4 ms in 2 s: 25 in each second.
    assert_eq!(shown["containers"][2]["peak_cpus"], 0.1);
    let halves = ["1/2", "2/2"].map(|n| stdout(&["fleet", from, "--json", "--shard", n]));
    let parts = ["part1.json", "part2.json"].map(|name| path(dir.path(), name));
    for (part, text) in parts.iter().zip(halves) {
        fs::write(part, text).unwrap();
    }
    assert_eq!(json(&["fleet", &parts[0], &parts[1], "--json"]), shown);

    fs::write(dir.path().join("other.csv"), "a,b\n1,2\n").unwrap();
    let failed = output(&["fleet", from]);
    let text = String::from_utf8(failed.stdout).unwrap();
    assert_eq!(failed.status.code(), Some(1), "{text}");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "1 could not be read; 7 files skipped",
        "failed other.csv: ",
        "no column for `at`",
        "skipped fleet.json: it is a result of reveille",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn what_holds_no_recording_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let empty = dir.path().to_str().unwrap();
    for (args, words) in [
        (vec!["fleet", empty], "no recording (FILE.parquet, .json or .csv)"),
        (vec!["fleet", "/nowhere"], "/nowhere"),
        (vec!["fleet", empty, "--shard", "3/2"], "`--shard`: `3/2` is no shard\n"),
        (vec!["fleet", empty, "--shard", "3/2"], "help: write 1/4 for the first of four"),
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

#[test]
fn a_note_names_the_fix() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("web.json");
    answers(&file, NAMES.len(), 0.2);
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("spec_cpu_quota", "spec_cpu_shares")).unwrap();
    let note = json(&["fleet", file.to_str().unwrap(), "--json"])["containers"][0]["note"].clone();
    let note = note.as_str().unwrap();
    assert!(note.starts_with("it was throttled"), "{note}");
    assert!(note.contains("; query container_spec_cpu_quota"), "{note}");
}

/// A server of pods with so many steps of 15 s at so many CPUs, never throttled at 2; its URL.
fn server(pods: &'static [(&str, u32, f64)]) -> String {
    let labels =
        |name: &str, pod: &str| format!(r#""__name__":"{name}","pod":"{pod}","container":"app""#);
    let of = move |&(pod, steps, cpus): &(&str, u32, f64)| {
        let counters = [
            ("container_cpu_usage_seconds_total", 15.0 * cpus, 0.0),
            ("container_cpu_cfs_periods_total", 150.0, 0.0),
            ("container_cpu_cfs_throttled_periods_total", 0.0, 0.0),
            ("container_spec_cpu_quota", 0.0, 200_000.0),
        ];
        let series = counters.map(|(name, step, from)| {
            let value = |n: u32| (1_700_000_000 + 15 * n, from + f64::from(n) * step);
            series(&labels(name, pod), (0..=steps).map(value))
        });
        answer(&series)
    };
    let names = pods
        .iter()
        .map(|pod| format!("{{{}}}", labels("container_cpu_usage_seconds_total", pod.0)));
    let found: Vec<String> = names.collect();
    let found = format!(r#"{{"status":"success","data":[{}]}}"#, found.join(","));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        loop {
            let (mut stream, _) = listener.accept().unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let lines = lines.map_while(Result::ok).take_while(|line| !line.is_empty());
            let asked = lines.collect::<String>();
            let pod = pods.iter().find(|pod| asked.contains(pod.0));
            let body = pod.map_or(found.clone(), of);
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 200 X\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            )
            .unwrap();
        }
    });
    url
}

/// Seen once, long enough, and one that has just started and is busy with that.
const PODS: [(&str, u32, f64); 3] = [("web-1", 0, 0.0), ("web-2", 40, 0.1), ("web-3", 3, 1.0)];

#[test]
fn a_pod_that_was_seen_once_is_skipped_unless_there_is_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let run = |url: &str, to: &str| {
        output(&["record", "--prometheus", url, "--all", "-o", &path(dir.path(), to), "--json"])
    };
    let shown = run(&server(&PODS), "all");
    let told: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown.status.code(), Some(0), "{told}");
    assert_eq!(told["skipped"][0]["name"], "web-1/app.parquet");
    assert!(told["failed"] == serde_json::json!([]) && told["containers"][1].is_object(), "{told}");
    let shown = run(&server(&PODS[..1]), "none");
    let told: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown.status.code(), Some(1), "{told}");
    assert_eq!(told["failed"][0]["name"], "web-1/app");
}

#[test]
fn of_the_pods_of_a_workload_none_that_has_just_started_is_recorded() {
    let url = server(&PODS);
    let dir = tempfile::tempdir().unwrap();
    let to = path(dir.path(), "web.parquet");
    let written =
        json(&["record", "--prometheus", &url, "--workload", "sts/web", "-o", &to, "--json"]);
    assert_eq!(written["usage"]["name"], "web-2/app");
    let warnings = written["usage"]["warnings"].to_string();
    assert!(warnings.contains("busiest of 3 pods"), "{warnings}");
    assert!(warnings.contains("A busier one has just started"), "{warnings}");
    assert!(warnings.contains("1 of them could not be read"), "{warnings}");
    assert!(warnings.contains("a single value"), "{warnings}");
}

#[test]
fn pods_that_are_gone_stand_last_and_offer_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let record = |until: u32, to: &str, json: &[&str]| {
        let (url, until, to) = (server(&PODS[1..]), until.to_string(), path(dir.path(), to));
        let args = ["record", "--prometheus", &url, "--all", "--until", &until, "-o", &to];
        stdout(&[&args[..], json].concat())
    };
    // web-2 was seen for 600 s, web-3 for 45 s. Two hours later neither is known to run, but web-3
    // was gone first.
    for later in [0, 7200] {
        let shown = record(1_700_000_600 + later, &format!("json{later}"), &["--json"]);
        let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
        let of = |n: usize, key: &str| shown["containers"][n][key].clone();
        assert_eq!((of(0, "name"), of(0, "gone")), ("web-2/app".into(), false.into()), "{shown}");
        assert_eq!(of(0, "unseen_ns"), u64::from(later) * 1_000_000_000);
        assert!(of(0, "spare_cpus").as_f64().is_some_and(|cpus| (cpus - 1.9).abs() < 0.01));
        assert_eq!((of(1, "gone"), of(1, "spare_cpus")), (true.into(), ().into()), "{shown}");
    }
    let text = record(1_700_000_600, "text", &[]);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "1 container, 0 throttled, at most 1.9 CPUs of limits to give back; 1 more, gone by the end, listed last",
        "last seen 0.2 h before the end",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

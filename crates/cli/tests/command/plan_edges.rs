//! What `reveille plan` refuses to plan from, and what it puts on top of the least.

use std::fs;
use std::path::Path;

use reveille_policy::BandwidthLimits;
use reveille_usage::{Charging, HostLoad, Sample, Usage};
use serde_json::json;

use super::plan::with as plan;
use super::{answer, json, output, path, refused, requests, series, stdout};

/// 4 ms of work every 20 ms, sampled for 4 s; the last sample shows this many throttled periods.
fn sampled(path: &str, nr_throttled: u64) {
    sampled_for(1000, path, nr_throttled);
}

/// The same for this many samples of 4 ms.
fn sampled_for(samples: u64, path: &str, nr_throttled: u64) {
    let sample = |n: u64| Sample {
        at_ns: 4_000_000 * (n + 1),
        runtime_ns: if n.is_multiple_of(5) { 4_000_000 } else { 0 },
        nr_periods: (n + 1) / 25,
        nr_throttled: if n + 1 == samples { nr_throttled } else { 0 },
        ..Sample::default()
    };
    let limits = BandwidthLimits { quota_ns: Some(25_000_000), ..BandwidthLimits::default() };
    let usage = Usage::from_samples(
        "web",
        (0..samples).map(sample).collect(),
        Some(limits),
        Charging::default(),
    )
    .unwrap();
    fs::write(path, usage.to_parquet().unwrap()).unwrap();
}

#[test]
fn a_group_that_other_programs_left_no_cpu_time_gets_no_limit() {
    let dir = tempfile::tempdir().unwrap();
    let file = path(dir.path(), "beside.parquet");
    sampled_for(3000, &file, 0);
    let quiet = Usage::read(Path::new(&file)).unwrap();
    let beside = |full| {
        let host_load = Some(HostLoad { others: 0.94, full, waited_ns: None });
        let usage = Usage { host_load, ..quiet.clone() };
        fs::write(&file, usage.to_parquet().unwrap()).unwrap();
    };
    let goal = ["--goal", "throttled<5%"];
    let warning = "Other programs used 94% of the host's CPU time";
    let warned = |of: &serde_json::Value| {
        of["warnings"].as_array().unwrap().iter().any(|w| w.as_str().unwrap().contains(warning))
    };
    beside(0.2);
    let some = json(&plan(&file, &[&goal[..], &["--json"]].concat()));
    assert!(warned(&some) && some["recording"]["held_back"].is_null(), "{some}");
    let emitted = output(&plan(&file, &[&goal[..], &["--emit", "k8s"]].concat()));
    assert!(emitted.status.success(), "{emitted:?}");
    assert!(String::from_utf8_lossy(&emitted.stderr).contains(warning), "{emitted:?}");
    beside(1.0);
    let all = json(&plan(&file, &[&goal[..], &["--json"]].concat()));
    assert!(warned(&all) && all["recording"]["held_back"] == "programs", "{all}");
    let told = stdout(&plan(&file, &goal)).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("got too little CPU time to tell what it needs"), "{told}");
    assert!(told.contains(warning) && !told.contains("cgroup v2"), "{told}");
    refused(
        &plan(&file, &[&goal[..], &["--emit", "k8s"]].concat()),
        &["other programs kept CPU time from the group", "when the host has idle time"],
    );
    let shown = json(&["show", &file, "--json"]);
    assert!(warned(&shown) && shown["host_load"]["others"] == 0.94, "{shown}");
    assert!(stdout(&["show", &file]).contains("warning: Other programs used 94%"));
    let usage = Usage { throttled_around: Some(0.5), ..quiet };
    fs::write(&file, usage.to_parquet().unwrap()).unwrap();
    let told = stdout(&plan(&file, &goal)).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        told.contains("Do not set that: without the limit around it, web may use more"),
        "{told}"
    );
    refused(
        &plan(&file, &[&goal[..], &["--emit", "k8s"]].concat()),
        &["a group around this one was throttled", "lift the limit around it, record again"],
    );
    let fleet = json(&["fleet", &file, "--goal", "throttled<5%", "--json"]);
    let note = fleet["containers"][0]["note"].as_str().unwrap();
    assert!(note.contains("a group around it was throttled"), "{fleet}");
}

#[test]
fn a_short_recording_has_nothing_to_spare() {
    let dir = tempfile::tempdir().unwrap();
    let [short, long] = [(1000, "short.parquet"), (3000, "long.parquet")].map(|(samples, name)| {
        let file = path(dir.path(), name);
        sampled_for(samples, &file, 0);
        let limits = BandwidthLimits { quota_ns: Some(50_000_000), ..BandwidthLimits::default() };
        let usage = Usage { limits: Some(limits), ..Usage::read(Path::new(&file)).unwrap() };
        fs::write(&file, usage.to_parquet().unwrap()).unwrap();
        let fleet = json(&["fleet", &file, "--goal", "throttled<5%", "--json"]);
        fleet["containers"][0].clone()
    });
    assert!(short["needed_cpus"].as_f64() < Some(0.4) && short["spare_cpus"].is_null(), "{short}");
    let note = short["note"].as_str().unwrap();
    assert!(note.ends_with("and 100 are needed. Record for at least 10 s"), "{note}");
    assert!(long["spare_cpus"].as_f64() > Some(0.1), "{long}");
}

/// Averages of half a CPU over 1 s.
fn averages(path: &str, more: &str) {
    let of = |name: &str, per_step: f64| {
        let values = (0..9).map(|n| (n, per_step * f64::from(n)));
        series(&format!(r#""__name__":"{name}""#), values)
    };
    let mut all = vec![of("container_cpu_usage_seconds_total", 0.5)];
    if !more.is_empty() {
        all.push(of(more, 2.0));
    }
    fs::write(path, answer(&all)).unwrap();
}

#[test]
fn a_throttled_group_whose_demand_cannot_be_inferred_is_not_planned_for() {
    let dir = tempfile::tempdir().unwrap();
    let (free, held) = (path(dir.path(), "free.parquet"), path(dir.path(), "held.parquet"));
    sampled(&free, 0);
    sampled(&held, 3);
    let counted = path(dir.path(), "counted.json");
    averages(&counted, "container_cpu_cfs_throttled_periods_total");
    let goal = ["--goal", "throttled<5%"];
    let limits = "help: query container_spec_cpu_quota and container_spec_cpu_period too";
    for (file, what, help) in [
        (&held, "in 3 of 40 periods", "help: lift the limit and record for 60 s"),
        (&counted, "its limits are not in it", limits),
    ] {
        refused(&plan(file, &goal), &[what, "throttled", help]);
    }
    assert!(!json(&plan(&free, &[&goal[..], &["--json"]].concat()))["recommended"].is_null());
    let given = [&goal[..], &["--today", "quota=50ms"]].concat();
    let help = "help: query container_cpu_cfs_periods_total";
    refused(&plan(&counted, &given), &["its periods were not counted", help]);
    // A neighbour is as it is.
    let beside = [&goal[..], &["--neighbours", &held, "--json"]].concat();
    let planned = json(&plan(&free, &beside));
    let warnings = planned["warnings"].to_string();
    assert!(warnings.contains("web was throttled in 3 of 40 periods"), "{warnings}");
}

#[test]
fn averages_that_are_flat_say_what_cannot_be_known() {
    let dir = tempfile::tempdir().unwrap();
    let (flat, counted) = (path(dir.path(), "flat.json"), path(dir.path(), "counted.json"));
    averages(&flat, "");
    let shown = stdout(&["usage", "show", &flat]).replace("\n  ", " ");
    for words in ["flat at 0.50 CPUs in 8 of 8 steps", "cannot be known", "record for 60 s"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    averages(&counted, "container_cpu_cfs_throttled_periods_total");
    assert!(!stdout(&["usage", "show", &counted]).contains("flat at"));
    let planned = stdout(&plan(&flat, &["--goal", "throttled<5%"])).replace("\n         ", " ");
    assert!(planned.contains("flat at 0.50 CPUs") && planned.contains("averages tell no latency"));
    assert!(planned.contains("averages cannot tell what") && !planned.contains(" less than today"));
    let words = planned.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("the real limit has to be higher than that"), "{planned}");
    // What --emit and --apply refuse is not offered.
    assert!(!planned.contains("cpu.max; ") && !planned.contains("--apply"), "{planned}");
    let page = path(dir.path(), "plan.html");
    stdout(&plan(&flat, &["--goal", "throttled<5%", "--html", &page]));
    assert!(!fs::read_to_string(&page).unwrap().contains("To apply it"));
    let emitted = plan(&flat, &["--goal", "throttled<5%", "--emit", "k8s"]);
    refused(&emitted, &["hide every burst", "record for 60 s"]);
}

#[test]
fn a_page_does_not_replace_a_recording() {
    let dir = tempfile::tempdir().unwrap();
    let free = path(dir.path(), "free.parquet");
    sampled(&free, 0);
    let before = fs::read(&free).unwrap();
    refused(&plan(&free, &["--goal", "throttled<5%", "--html", &free]), &["is no HTML page"]);
    assert_eq!(fs::read(&free).unwrap(), before);
}

#[test]
fn advice_has_headroom_in_its_quota_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let file = path(dir.path(), "free.parquet");
    sampled_for(3000, &file, 0);
    let goal = ["--goal", "throttled<5%"];
    let planned = |more: &[&str]| json(&plan(&file, &[&goal[..], more, &["--json"]].concat()));
    let (usual, none) = (planned(&[]), planned(&["--headroom", "0"]));
    let of = |plan: &serde_json::Value, which: &str| {
        let limits = &plan["recommended"][which];
        ["quota_ns", "period_ns", "burst_ns"].map(|key| limits[key].as_u64().unwrap())
    };
    let ([quota, ..], least) = (of(&usual, "limits"), of(&none, "limits"));
    assert!(quota > least[0], "{quota} {least:?}");
    assert_eq!(usual["model"]["headroom"], 0.15);
    let grows = |plan: &serde_json::Value| plan["recommended"]["growth"].as_f64().unwrap();
    assert!(grows(&usual) > 0.12 && grows(&none) < grows(&usual), "{usual}");
    let both = stdout(&plan(&file, &[&goal[..], &["--growth", "30%"]].concat()));
    let words = "with 30% more requests (--growth) and 15% more work in every request (--headroom)";
    assert!(both.replace("\n           ", " ").contains(words), "{both}");
    let more = planned(&["--growth", "30%"]);
    assert!(of(&more, "limits")[0] > quota, "{more}");
    let page = path(dir.path(), "plan.html");
    let said = "with 15% more work in every request";
    let screen = stdout(&plan(&file, &[&goal[..], &["--html", &page]].concat()));
    assert!(screen.replace("\n           ", " ").contains(said), "{screen}");
    assert!(fs::read_to_string(&page).unwrap().contains(said));
    for target in ["cgroup2", "cgroup1", "k8s", "koordinator", "systemd", "oci"] {
        let emitted = output(&plan(&file, &[&goal[..], &["--emit", target]].concat()));
        assert!(String::from_utf8_lossy(&emitted.stderr).contains(said), "{target}");
        let lines = String::from_utf8(emitted.stdout).unwrap();
        // JSON has no comments.
        assert_eq!(lines.contains(said), target != "oci", "{target}: {lines}");
        assert!(target != "cgroup2" || lines.contains(&format!("{}", quota / 1000)), "{lines}");
    }
    for wrong in ["-1", "nan", "500"] {
        refused(&plan(&file, &[&goal[..], &["--headroom", wrong]].concat()), &[]);
    }
    // What neighbours' quotas leave is all that there is: too little for the head-room.
    let cpus = least[0] as f64 / least[1] as f64;
    let left = format!("{:.3}", cpus * 0.5 + quota as f64 / least[1] as f64 * 0.5);
    let refused = output(&plan(&file, &[&goal[..], &["--quota-sum", &left]].concat()));
    let errors = String::from_utf8_lossy(&refused.stderr);
    let planned = String::from_utf8_lossy(&refused.stdout);
    assert!(errors.contains("head-room") || planned.contains("--headroom"), "{errors}{planned}");
}

#[test]
fn a_quota_that_use_sets_is_called_so() {
    let dir = tempfile::tempdir().unwrap();
    let every = |name: &str, ms: u64, span_ms: u64| {
        let file = path(dir.path(), name);
        let rows = (0..span_ms / ms).map(|n| format!("{},{}\n", ms * n, 200 * ms));
        fs::write(&file, format!("at_ms,cpu_us\n{}", rows.collect::<String>())).unwrap();
        file
    };
    let (clock, batches) = (every("clock.csv", 10, 20_000), every("batches.csv", 300, 40_000));
    let planned = |file, goal, more: &[_]| stdout(&plan(file, &[&["--goal", goal], more].concat()));
    let said = "The goals would hold with less quota, but that work would then use over 90% of it";
    for (file, goal, headroom, reserved) in [
        (&clock, "p99=20ms", "15", Some("reserves 0.256 CPUs")),
        (&clock, "p99=20ms", "0", Some("reserves 0.223 CPUs")),
        (&batches, "max=120ms", "15", None),
    ] {
        let more = ["--headroom", headroom];
        let screen = planned(file, goal, &more).replace("\n           ", " ");
        assert_eq!(screen.contains(said), reserved.is_some(), "{screen}");
        assert!(screen.contains(reserved.unwrap_or("reserves 0.")), "{screen}");
        let emit = [&["--goal", goal], &more[..], &["--emit", "cgroup2"]].concat();
        let emitted = String::from_utf8(output(&plan(file, &emit)).stdout).unwrap();
        assert_eq!(emitted.contains(said), reserved.is_some(), "{emitted}");
        let plan: serde_json::Value =
            serde_json::from_str(&planned(file, goal, &[&more[..], &["--json"]].concat())).unwrap();
        assert_eq!(plan["recommended"]["set_by_use"], reserved.is_some(), "{plan}");
    }
}

/// Two pieces of 150 ms at once: 2 CPUs without a pause.
#[test]
fn a_quota_above_all_cpus_is_nothing_to_apply() {
    let dir = tempfile::tempdir().unwrap();
    let file = requests(dir.path().join("pair.csv"), 2, 150, 410, 100);
    let file = file.to_str().unwrap();
    let goal = ["--goal", "throttled<0.01%"];
    let planned = json(&plan(file, &[&goal[..], &["--json"]].concat()));
    let best = &planned["recommended"];
    assert!(best["limits"]["quota_ns"].is_null() && best["reserved_cpus"].is_null(), "{best}");
    assert_eq!((&best["meets_goals"], &best["set_by_use"]), (&json!(true), &json!(null)));
    for other in planned["alternatives"].as_array().unwrap() {
        assert!(other["shown"]["reserved_cpus"].as_f64().unwrap() <= 2.0, "{other}");
    }
    let screen = stdout(&plan(file, &goal)).replace("\n           ", " ");
    assert!(screen.contains("leave it without one"), "{screen}");
    assert!(!screen.contains(">cpu.max") && !screen.contains("--apply"), "{screen}");
    for target in ["cgroup2", "k8s", "systemd"] {
        let emit = plan(file, &[&goal[..], &["--emit", target]].concat());
        refused(&emit, &["there is no limit to set", "help: leave the group without a limit"]);
    }
    // A quota that is set is to be removed.
    let limited = [&goal[..], &["--today", "quota=150ms", "--emit", "k8s"]].concat();
    let emitted = output(&plan(file, &limited)).stdout;
    assert!(String::from_utf8(emitted).unwrap().contains("no limits.cpu"));
    stdout(&["import", file, "-o", &path(dir.path(), "pair.parquet")]);
    let fleet = ["fleet", dir.path().to_str().unwrap(), "--cpus", "2", "--json"];
    let pair = &json(&[&fleet[..], &goal].concat())["containers"][0];
    assert!(pair["needed_cpus"].is_null(), "{pair}");
    assert!(pair["note"].as_str().unwrap().starts_with("no quota up to all CPUs"), "{pair}");
}

#[test]
fn only_what_the_platform_can_write_is_recommended() {
    let dir = tempfile::tempdir().unwrap();
    let file = path(dir.path(), "free.parquet");
    sampled(&file, 0);
    let planned = |more: &[&str]| {
        let goal = ["--goal", "max<60ms", "--json"];
        json(&plan(&file, &[&goal[..], more].concat()))
    };
    let limits = |plan: &serde_json::Value| {
        let of = |key: &str| plan["recommended"]["limits"][key].as_u64().unwrap();
        (of("quota_ns"), of("period_ns"), of("burst_ns"))
    };
    let ms = 1_000_000;
    let usual = planned(&[]);
    let (quota, period, burst) = limits(&usual);
    assert_eq!((period, burst, quota % 100_000), (100 * ms, 0, 0), "millicores of 100 ms");
    let (quota, period, burst) = limits(&planned(&["--for", "systemd"]));
    assert_eq!((burst, quota % (period / 100)), (0, 0), "whole percent");
    // The cheapest of all stands beside what may be recommended.
    let any = planned(&["--for", "cgroup2"]);
    let cpus = |of: &serde_json::Value| of["reserved_cpus"].as_f64().unwrap();
    let all = |plan: &serde_json::Value| plan["alternatives"].as_array().unwrap().clone();
    assert!(all(&any).iter().all(|other| other["change"] != "cheapest"), "{any}");
    assert!(cpus(&any["recommended"]) <= cpus(&usual["recommended"]) + 1e-9);
    if let Some(cheapest) = all(&usual).iter().find(|other| other["change"] == "cheapest") {
        assert!(cpus(&cheapest["shown"]) <= cpus(&usual["recommended"]), "{usual}");
    }
    let (_, period, burst) = limits(&planned(&["--for", "cgroup2", "--period", "30ms"]));
    assert_eq!(period, 30 * ms);
    assert!(burst <= 30 * ms);
    assert_eq!(limits(&planned(&["--for", "cgroup2", "--no-burst"])).2, 0);
    let short = planned(&["--for", "cgroup2", "--max-worst-case", "300ms"]);
    let bound = short["recommended"]["worst_case"]["bound_ns"].as_u64().unwrap();
    assert!(bound <= 300 * ms, "{short}");
    for wrong in [["--for", "nomad"], ["--period", "1us"], ["--growth", "500"]] {
        refused(&plan(&file, &[&["--goal", "max<60ms"][..], &wrong].concat()), &[]);
    }
}

/// 200 pieces of work: enough for p90 and not for p99.
#[test]
fn a_quantile_of_too_few_pieces_of_work_is_no_number() {
    let dir = tempfile::tempdir().unwrap();
    let file = path(dir.path(), "free.parquet");
    sampled(&file, 0);
    let planned = json(&plan(&file, &["--goal", "p99=15ms", "--json"]));
    let effect = &planned["recommended"]["effect"];
    assert!(effect["p99_ns"]["median"].is_null() && effect["goals"][0]["median"].is_null());
    assert!(effect["p90_ns"]["median"].is_number(), "{effect}");
    assert_eq!(planned["too_few"], serde_json::json!(["p99", "p99.9"]));
    assert!(planned["map"].is_null());
    let screen = stdout(&plan(&file, &["--goal", "p99=15ms"]));
    let row = screen.lines().find(|line| line.starts_with("p99 ms")).unwrap();
    assert!(row.contains("too few") && !row.contains('…'), "{screen}");
    let apart = "(samples do not tell threads apart)";
    let show = stdout(&["usage", "show", &file]);
    assert!(
        show.contains(apart) && screen.replace("\n           ", " ").contains(apart),
        "{screen}"
    );
    assert!(show.contains("p95 too few  p99 too few"), "{show}");
}

/// Counters of a real group (Linux 6.18, 2 CPUs) under 40 ms per 100 ms, every 15 s: Poisson
/// arrivals and exponential work of 8 ms on 2 threads, whose p99 was 199.5 ms.
const USED_S: [f64; 13] = [
    0.0, 4.226, 8.39, 12.009, 16.407, 20.407, 24.56, 29.156, 33.027, 37.267, 41.295, 45.457, 49.99,
];
const THROTTLED: [f64; 13] =
    [0.0, 50.0, 97.0, 127.0, 185.0, 226.0, 274.0, 348.0, 387.0, 443.0, 493.0, 545.0, 613.0];
const THROTTLED_S: [f64; 13] =
    [0.0, 2.151, 3.598, 4.511, 6.618, 7.986, 9.612, 13.421, 15.223, 17.906, 19.736, 22.828, 27.63];

/// As a kubelet's answer, the pod's own series beside the container's.
fn kubelet(path: &str, throttled: f64) {
    kubelet_for(path, throttled, 13, None);
}

/// If the container `restarts`, it does so in the middle before that reading.
fn kubelet_for(path: &str, throttled: f64, readings: usize, restarts: Option<usize>) {
    let since = |value: &dyn Fn(usize) -> f64, n: usize| match restarts.filter(|&at| n >= at) {
        None => value(n),
        Some(at) => value(n) - (value(at - 1) + value(at)) / 2.0,
    };
    let of = |name: &str, labels: &str, value: &dyn Fn(usize) -> f64| {
        let values = (0..readings).map(|n| (15 * n as u32, value(n)));
        series(&format!(r#""__name__":"{name}","pod":"web-0"{labels}"#), values)
    };
    let mut all = Vec::new();
    for labels in [r#","container":"app","id":"/kubepods/p/a""#, r#","id":"/kubepods/p""#] {
        let counter = |value: &dyn Fn(usize) -> f64, name| of(name, labels, &|n| since(value, n));
        all.push(counter(&|n| USED_S[n], "container_cpu_usage_seconds_total"));
        all.push(counter(&|n| 150.0 * n as f64, "container_cpu_cfs_periods_total"));
        let times = |of: [f64; 13]| move |n: usize| of[n] * throttled;
        let name = "container_cpu_cfs_throttled_periods_total";
        all.push(counter(&times(THROTTLED), name));
        let name = "container_cpu_cfs_throttled_seconds_total";
        all.push(counter(&times(THROTTLED_S), name));
        all.push(of("container_spec_cpu_quota", labels, &|_| 40_000.0));
        all.push(of("container_spec_cpu_period", labels, &|_| 100_000.0));
    }
    fs::write(path, answer(&all)).unwrap();
}

#[test]
fn counters_of_a_minute_lower_no_limit() {
    let dir = tempfile::tempdir().unwrap();
    let file = path(dir.path(), "web.json");
    kubelet_for(&file, 1.0, 5, None);
    let planned = json(&plan(&file, &["--goal", "throttled<90%", "--json"]));
    assert_eq!(planned["recommended"]["limits"], planned["today"]["limits"], "{planned}");
    assert!(planned["warnings"].to_string().contains("cover 60 s only"), "{planned}");
    let fleet = json(&["fleet", &file, "--goal", "throttled<90%", "--json"]);
    let web = &fleet["containers"][0];
    assert_eq!((&web["needed_cpus"], &web["spare_cpus"]), (&json!(0.4), &json!(null)), "{web}");
    assert!(web["note"].as_str().unwrap().contains("so few minutes"), "{web}");
    // --today stands in for a limit that was not queried.
    let mut without: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let series = without["data"]["result"].as_array_mut().unwrap();
    let spec = |of: &serde_json::Value| of["metric"]["__name__"].to_string().contains("_spec_");
    series.retain(|series| !spec(series));
    fs::write(&file, without.to_string()).unwrap();
    let goal = ["--goal", "throttled<90%"];
    refused(&plan(&file, &goal), &["its limits are not in it", "help: query", "--today"]);
    let today = |setting| [&goal[..], &["--today", setting]].concat();
    let with = json(&plan(&file, &[&today("quota=40ms")[..], &["--json"]].concat()));
    assert_eq!(with["inferred"], planned["inferred"], "{with}");
    assert_eq!(with["recommended"]["limits"], planned["recommended"]["limits"], "{with}");
    assert!(with["warnings"].to_string().contains("taken for the limit of all of it"), "{with}");
    refused(&plan(&file, &today("quota=10ms")), &["`--today`: it used", "a limit of 0.1 CPUs"]);
}

/// Counts since a restart are those of a part of their step. And goals for throttling do not make latency
/// known.
#[test]
fn a_restart_and_a_goal_for_throttling_leave_an_estimate() {
    let dir = tempfile::tempdir().unwrap();
    let file = path(dir.path(), "web.json");
    kubelet_for(&file, 1.0, 13, Some(3));
    let screen = stdout(&plan(&file, &["--goal", "throttled<5%"])).replace("\n           ", " ");
    for words in ["], an estimate", "as far as its counters tell", "work may grow    -"] {
        assert!(screen.contains(words), "{words}: {screen}");
    }
}

/// A quota of less than a request looks sufficient if each one begins at a tick: it is charged at
/// ticks. Elsewhere in a tick it is not, and a host's ticks are where they are.
#[test]
fn clocked_work_gets_the_same_quota_wherever_ticks_fall() {
    let dir = tempfile::tempdir().unwrap();
    let file = path(dir.path(), "clock.csv");
    let quota_ms = |shift_ms: f64| {
        let mut text = "at_ms,cpu_ms,thread\n0,0.01,t\n".to_owned();
        for n in 1..150 {
            text += &format!("{},10,t\n", f64::from(n) * 500.0 + shift_ms);
        }
        fs::write(&file, text).unwrap();
        let goal = ["--goal", "p90<30ms", "--headroom", "0", "--json"];
        let quota = json(&plan(&file, &goal))["recommended"]["limits"]["quota_ns"].clone();
        quota.as_f64().unwrap() / 1e6
    };
    let quotas = [0.0, 1.0, 2.0, 3.5].map(quota_ms);
    assert!(quotas.iter().all(|quota| (9.5..11.0).contains(quota)), "{quotas:?}");
}

#[test]
fn a_thread_with_more_work_than_time_gets_no_advice() {
    let dir = tempfile::tempdir().unwrap();
    let file = path(dir.path(), "over.csv");
    let rows: String = (0..200).map(|n| format!("{},130,t\n", 100 * n)).collect();
    fs::write(&file, format!("at_ms,cpu_ms,thread\n{rows}")).unwrap();
    let refused = output(&plan(&file, &["--goal", "throttled<1%"]));
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert!(errors.contains("1 of 1 threads would need longer"), "{errors}");
    assert!(!refused.status.success(), "{errors}");
}

#[test]
fn where_no_setting_is_found_the_answer_names_what_is_in_the_way() {
    let dir = tempfile::tempdir().unwrap();
    let file = requests(dir.path().join("long.csv"), 1, 50, 200, 100);
    let file = file.to_str().unwrap();
    let planned = |more: &[&str]| {
        let of = ["plan", file, "--cpus", "1", "--machine", "zen4-7950x", "--goal", "p50=150ms"];
        let screen = stdout(&[&of[..], more].concat());
        screen.replace("\n           ", " ")
    };
    let screen = planned(&["--max-worst-case", "100ms"]);
    for words in [
        "--max-worst-case 100ms is in the way",
        "takes 57.5 ms, with 15% head-room, so at a period of 100 ms",
        "is 163 ms at best",
    ] {
        assert!(screen.contains(words), "{words}: {screen}");
    }
    assert!(!screen.contains("over 0 phases"), "{screen}");
    assert!(planned(&["--max-worst-case", "163ms"]).contains("long meets"));
    let late = planned(&["--neighbours", file, "--goal", "tardiness<1us"]);
    assert!(late.contains("`tardiness<1us` fails even with the least quota"), "{late}");
    assert!(!late.contains("P(miss)"), "{late}");
}

#[test]
fn what_is_called_larger_or_longer_is() {
    let dir = tempfile::tempdir().unwrap();
    let file = requests(dir.path().join("short.csv"), 1, 30, 100, 600);
    let more = ["--goal", "p99=80ms", "--period", "10ms", "--json"];
    let planned = json(&plan(file.to_str().unwrap(), &more));
    let best = &planned["recommended"];
    let others = planned["alternatives"].as_array().unwrap();
    for other in others {
        let figure = |of: &serde_json::Value| match other["change"].as_str().unwrap() {
            "quota" => of["reserved_cpus"].as_f64(),
            "longer_period" => of["limits"]["period_ns"].as_f64(),
            _ => None,
        };
        assert!(figure(best).is_none() || figure(&other["shown"]) > figure(best), "{other}");
    }
    assert!(!others.is_empty(), "{planned}");
}

#[test]
fn counters_of_a_throttled_container_never_advise_less() {
    let dir = tempfile::tempdir().unwrap();
    let file = path(dir.path(), "web.json");
    kubelet(&file, 1.0);
    let planned = json(&plan(&file, &["--goal", "p99=100ms", "--goal", "throttled<5%", "--json"]));
    let today = &planned["today"];
    let share = today["effect"]["throttled_share"]["median"].as_f64().unwrap();
    assert!((0.24..0.45).contains(&share), "613 of 1800 periods were throttled: {share}");
    let p99 = &today["intervals"]["p99_ns"];
    let (low, high) = (p99["low"].as_f64().unwrap(), p99["high"].as_f64().unwrap());
    // Loads by the clock and at random give these counters, so p99 is known to no better than this.
    assert!((low..high).contains(&199.5e6) && high < 5.0 * low, "{p99}");
    assert_eq!(planned["inferred"]["from"]["kind"], "counters");
    let advised = planned["recommended"]["reserved_cpus"].as_f64().unwrap();
    assert!((0.45..1.25).contains(&advised), "{advised}");
    assert_eq!(planned["recommended"]["limits"]["period_ns"], 100_000_000);

    // The inferred requests would do with less. Counters show no rare long job, so the limit stays
    // and nothing is promised.
    let easy = ["--goal", "p99=2s", "--for", "cgroup2"];
    let planned = json(&plan(&file, &[&easy[..], &["--json"]].concat()));
    assert_eq!(planned["recommended"]["limits"], planned["today"]["limits"], "{planned}");
    assert!(planned["recommended"]["growth"].is_null() && planned["alternatives"] == json!([]));
    let emitted = output(&plan(&file, &[&easy[..], &["--emit", "k8s"]].concat()));
    let said = String::from_utf8_lossy(&emitted.stderr);
    assert!(said.contains("an estimate") && !said.contains("--headroom"), "{said}");
    assert!(String::from_utf8_lossy(&emitted.stdout).contains("cpu: 400m"), "{emitted:?}");
    let screen = stdout(&plan(&file, &easy)).replace("\n           ", " ");
    for words in ["180.0 s of counters every 15 s", "keep 40 ms", "…", "rare long jobs"] {
        assert!(screen.contains(words), "{words}: {screen}");
    }
    stdout(&["import", &file, "-o", &path(dir.path(), "web.parquet")]);
    let fleet = json(&["fleet", dir.path().to_str().unwrap(), "--goal", "p99=2s", "--json"]);
    let web = &fleet["containers"][0];
    assert_eq!((&web["needed_cpus"], &web["spare_cpus"]), (&json!(0.4), &json!(null)), "{web}");
    assert!(web["note"].as_str().unwrap().contains("estimated"), "{web}");
    // Nor where the loads that are inferred have too few requests for a quantile.
    let rare = json(&["fleet", dir.path().to_str().unwrap(), "--goal", "p99.9=2s", "--json"]);
    let web = &rare["containers"][0];
    assert_eq!((&web["needed_cpus"], &web["spare_cpus"]), (&json!(0.4), &json!(null)), "{web}");
    assert!(web["note"].as_str().unwrap().contains("estimated"), "{web}");
    // Where a goal fails under any limit in some of the loads, the answer says in how many it holds.
    let hard = ["--goal", "p99=60ms"];
    let holds =
        |planned: &serde_json::Value| planned["recommended"]["holds_share"].as_f64().unwrap();
    let nearest = json(&plan(&file, &[&hard[..], &["--json"]].concat()));
    let told = format!(
        "The goals hold in {}% of the loads that fit its counters, and 95% were asked for",
        100.0 * holds(&nearest)
    );
    let screen = stdout(&plan(&file, &hard)).replace("\n           ", " ");
    assert!(holds(&nearest) < 0.95 && screen.contains(&told), "{told}: {screen}");
    assert!(screen.contains("estimated to come nearest to"), "{screen}");
    assert_eq!(nearest["recommended"]["meets_goals"], json!(false));
    assert_eq!(planned["recommended"]["meets_goals"], json!(true));
    let emitted = output(&plan(&file, &[&hard[..], &["--emit", "k8s"]].concat()));
    assert!(!emitted.status.success() && emitted.stdout.is_empty(), "{emitted:?}");
    // Counters do not refute a short goal either.
    let untold = output(&plan(&file, &["--goal", "p99=1ms"]));
    let errors = String::from_utf8_lossy(&untold.stderr);
    assert!(errors.contains("counters cannot tell whether `p99=1ms`"), "{errors}");

    // Averages of a group that was never throttled don't tell how much less quota would do.
    kubelet(&file, 0.0);
    let refused = output(&plan(&file, &["--goal", "throttled<5%"]));
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let errors = String::from_utf8_lossy(&refused.stderr);
    for words in ["not identified", "none of 1800 periods", "keep the limit"] {
        assert!(errors.contains(words), "{words}: {errors}");
    }
    // A few periods tell no more.
    kubelet(&file, 0.02);
    let refused = output(&plan(&file, &["--goal", "p99=100ms"]));
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert!(errors.contains("20 are needed"), "{errors}");
}

//! What `reveille plan` refuses to plan from, and what it puts on top of the least.

use std::fs;
use std::path::Path;

use reveille_policy::BandwidthLimits;
use reveille_usage::{Sample, Usage};

use super::{json, output, stdout};

const SMALL: [&str; 8] =
    ["--cpus", "2", "--phases", "2", "--machine", "zen4-7950x", "--base", "v6.12"];

fn plan<'a>(file: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["plan", file], &SMALL[..], more].concat()
}

fn path(dir: &Path, name: &str) -> String {
    dir.join(name).display().to_string()
}

/// 4 ms of work every 20 ms, sampled for 4 s; the last sample shows this many throttled periods.
fn sampled(path: &str, nr_throttled: u64) {
    let sample = |n: u64| Sample {
        at_ns: 4_000_000 * (n + 1),
        runtime_ns: if n.is_multiple_of(5) { 4_000_000 } else { 0 },
        nr_periods: (n + 1) / 25,
        nr_throttled: if n == 999 { nr_throttled } else { 0 },
        ..Sample::default()
    };
    let limits = BandwidthLimits { quota_ns: Some(25_000_000), ..BandwidthLimits::default() };
    let usage = Usage::from_samples("web", (0..1000).map(sample).collect(), Some(limits)).unwrap();
    fs::write(path, usage.to_parquet().unwrap()).unwrap();
}

/// Averages of half a CPU over 1 s.
fn averages(path: &str, more: &str) {
    let steps = |value: &dyn Fn(u32) -> String| {
        (0..9).map(|n| format!("[{},\"{}\"]", n, value(n))).collect::<Vec<_>>().join(",")
    };
    let series = |name: &str, values: String| {
        format!(r#"{{"metric":{{"__name__":"{name}"}},"values":[{values}]}}"#)
    };
    let used = steps(&|n| (0.5 * f64::from(n)).to_string());
    let mut all = vec![series("container_cpu_usage_seconds_total", used)];
    if !more.is_empty() {
        all.push(series(more, steps(&|n| (2 * n).to_string())));
    }
    let result = all.join(",");
    let text =
        format!(r#"{{"status":"success","data":{{"resultType":"matrix","result":[{result}]}}}}"#);
    fs::write(path, text).unwrap();
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
    for (file, what) in [(&held, "in 3 of 40 periods"), (&counted, "averages hold no single piece")]
    {
        let refused = output(&plan(file, &goal));
        let errors = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{errors}");
        assert!(refused.stdout.is_empty());
        for words in [what, "throttled", "help: lift the limit and record for 60 s"] {
            assert!(errors.contains(words), "{words}: {errors}");
        }
    }
    assert!(!json(&plan(&free, &[&goal[..], &["--json"]].concat()))["recommended"].is_null());
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
    averages(&counted, "container_cpu_cfs_periods_total");
    assert!(!stdout(&["usage", "show", &counted]).contains("flat at"));
    let planned = stdout(&plan(&flat, &["--goal", "throttled<5%"])).replace("\n         ", " ");
    assert!(planned.contains("flat at 0.50 CPUs") && planned.contains("averages tell no latency"));
}

#[test]
fn advice_has_headroom_in_its_quota_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let file = path(dir.path(), "free.parquet");
    sampled(&file, 0);
    let goal = ["--goal", "throttled<5%"];
    let planned = |more: &[&str]| json(&plan(&file, &[&goal[..], more, &["--json"]].concat()));
    let (usual, none) = (planned(&[]), planned(&["--headroom", "0"]));
    let of = |plan: &serde_json::Value, which: &str| {
        let limits = &plan["recommended"][which];
        ["quota_ns", "period_ns", "burst_ns"].map(|key| limits[key].as_u64().unwrap())
    };
    let ([quota, period, burst], least) = (of(&usual, "limits"), of(&usual, "least"));
    assert_eq!([least[1], least[2]], [period, burst]);
    assert!(quota.abs_diff(least[0] * 115 / 100) <= 1000, "{quota} {least:?}");
    assert_eq!(of(&none, "limits"), least);
    assert_eq!(of(&none, "least"), least);
    assert_eq!(usual["model"]["headroom"], 0.15);
    let page = path(dir.path(), "plan.html");
    let said = "15% head-room is on top";
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
        let refused = output(&plan(&file, &[&goal[..], &["--headroom", wrong]].concat()));
        assert_eq!(refused.status.code(), Some(2), "{wrong}");
    }
    // What neighbours' quotas leave is all that there is.
    let sum =
        planned(&["--quota-sum", &format!("{:.3}", least[0] as f64 / least[1] as f64 * 1.05)]);
    let cpus = sum["recommended"]["reserved_cpus"].as_f64().unwrap();
    assert!(cpus <= least[0] as f64 / least[1] as f64 * 1.051, "{cpus}");
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
    let show = stdout(&["usage", "show", &file]);
    assert!(show.contains("p95 too few  p99 too few"), "{show}");
}

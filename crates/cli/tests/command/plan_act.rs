//! What `reveille plan` does with its answer, on this host: lines for runtimes, a change of a
//! live group, a trial in a real one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use reveille_host::cgroup::HostGroups;
use reveille_policy::{BandwidthLimits, Groups, TaskGroup};

use crate::bench::groups_of;
use crate::{json, output, refused, reveille, stdout, words};

/// Two threads of 4 ms of work every 40 ms, for 12 s.
fn requests(directory: &Path) -> PathBuf {
    super::requests(directory.join("app.csv"), 2, 4, 40, 300)
}

const GOAL: [&str; 6] = ["--goal", "max=12ms", "--phases", "2", "--cpus", "2"];

fn plan<'a>(file: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    [&["plan", file.to_str().unwrap()], &GOAL[..], more].concat()
}

/// A group of this host, if one can be made, with its directory.
fn live_group() -> Option<(HostGroups, PathBuf)> {
    let limits = BandwidthLimits::of_us(Some(90_000), 100_000, 0);
    let groups = Groups::from(TaskGroup::new("app", limits));
    match HostGroups::create(&groups) {
        Ok(made) => {
            let procs = made.files(&groups).unwrap()[0].procs[0].clone();
            Some((made, procs.parent().unwrap().to_owned()))
        }
        Err(error) => {
            println!("skipped: {error}");
            None
        }
    }
}

/// The files that hold the limits.
fn limits_of(dir: &Path) -> Vec<String> {
    let names =
        ["cpu.max", "cpu.max.burst", "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.cfs_burst_us"];
    names.iter().filter_map(|name| fs::read_to_string(dir.join(name)).ok()).collect()
}

#[test]
fn lines_for_a_runtime_are_all_that_is_printed() {
    let directory = tempfile::tempdir().unwrap();
    let file = requests(directory.path());
    // What the lines cannot say goes to standard error.
    let oci = output(&plan(&file, &["--for", "cgroup2", "--emit", "oci"]));
    assert!(String::from_utf8_lossy(&oci.stderr).contains("runtime"), "{oci:?}");
    let oci: serde_json::Value = serde_json::from_slice(&oci.stdout).unwrap();
    let cpu = &oci["linux"]["resources"]["cpu"];
    let plan_json = json(&plan(&file, &["--for", "cgroup2", "--json"]));
    let limits = &plan_json["recommended"]["limits"];
    assert_eq!(cpu["quota"].as_u64().unwrap(), limits["quota_ns"].as_u64().unwrap() / 1000);
    assert_eq!(cpu["period"].as_u64().unwrap(), limits["period_ns"].as_u64().unwrap() / 1000);
    let lines = output(&plan(&file, &["--emit", "cgroup2", "--name", "shop"])).stdout;
    let lines = String::from_utf8(lines).unwrap();
    assert!(lines.contains("cpu.max") && lines.contains("shop"), "{lines}");
    refused(&plan(&file, &["--emit", "docker"]), &["koordinator"]);
    refused(&plan(&file, &["--emit", "k8s", "--write"]), &["--write", "cannot be used with"]);
    refused(&plan(&file, &["--verify", "--verify-for", "0s"]), &["nothing would be replayed"]);
}

#[test]
fn a_live_group_is_changed_only_when_told_to() {
    let directory = tempfile::tempdir().unwrap();
    let file = requests(directory.path());
    let Some((_made, dir)) = live_group() else { return };
    let target = format!("cgroup:{}", dir.display());
    let before = limits_of(&dir);
    let dry = json(&plan(&file, &["--apply", &target, "--json"]));
    assert_eq!(limits_of(&dir), before);
    // Its limits are those of today.
    assert_eq!(dry["today"]["limits"]["quota_ns"], 90_000_000);
    assert_eq!(dry["applied"]["written"], false);
    assert!(!dry["applied"]["writes"].as_array().unwrap().is_empty());
    let wet = json(&plan(&file, &["--apply", &target, "--write", "--json"]));
    assert_eq!(wet["applied"]["written"], true);
    let quota_us = wet["recommended"]["limits"]["quota_ns"].as_u64().unwrap() / 1000;
    let now = limits_of(&dir);
    assert!(now.iter().any(|text| text.starts_with(&quota_us.to_string())), "{now:?}");
    let again = stdout(&plan(&file, &["--apply", &target, "--write", "--today", "quota=90ms"]));
    assert!(again.contains("it is so already"), "{again}");
    assert_eq!(limits_of(&dir), now);
    // 600 requests tell no p99: the setting is shown, and not written.
    let few = ["--goal", "p99=11ms", "--apply", &target, "--today", "quota=90ms"];
    let untold = stdout(&plan(&file, &few)).replace("\n           ", " ");
    assert!(untold.contains("has too few requests to tell p99; as far as they go"), "{untold}");
    assert!(!untold.contains("The goals still hold"), "{untold}");
    refused(&plan(&file, &[&few[..], &["--write"]].concat()), &["too few requests to tell p99"]);
    assert_eq!(limits_of(&dir), now);
}

/// Files of a v2 group `kid` without a limit in `par` with one; the directories of both.
fn nested(top: &Path, par_max: &str, par_burst: &str) -> [PathBuf; 2] {
    let dirs = [top.join("par"), top.join("par/kid")];
    for (dir, max, burst) in [(&dirs[0], par_max, par_burst), (&dirs[1], "max 100000\n", "0\n")] {
        fs::create_dir_all(dir).unwrap();
        for (file, text) in [
            ("cgroup.procs", ""),
            ("cgroup.type", "domain\n"),
            ("cgroup.controllers", "cpu\n"),
            ("cpu.max", max),
            ("cpu.max.burst", burst),
        ] {
            fs::write(dir.join(file), text).unwrap();
        }
    }
    dirs
}

#[test]
fn a_recording_that_is_too_short_is_shown_and_not_acted_on() {
    let directory = tempfile::tempdir().unwrap();
    let [_, kid] = nested(directory.path(), "max 100000\n", "0\n");
    let (target, before) = (format!("cgroup:{}", kid.display()), limits_of(&kid));
    let of = |name: &str, every_ms, times| {
        super::requests(directory.path().join(name), 1, 10, every_ms, times)
    };
    let tens = [of("five.csv", 400, 5), of("two.csv", 200, 2), of("rare.csv", 1000, 60)];
    let [five, two, rare] = tens.each_ref().map(|file| file.to_str().unwrap());
    for (file, goal, problem, enough) in [
        (five, "max<150ms", "20 periods of 100 ms, and 100 are needed", "at least 40 s"),
        (five, "throttled<1%", "20 periods of 100 ms, and 100 are needed", "at least 10 s"),
        (two, "throttled<1%", "periods of 100 ms, and 100 are needed", "at least 10 s"),
        (rare, "max<150ms", "it has 60 requests, and 100 are needed", "at least 100 s"),
        (rare, "throttled<1%", "something runs in 60 of its periods", "at least 100 s"),
        (rare, "p99=150ms", "too few requests to tell p99: 60, and 1000", "at least 1000 s"),
    ] {
        let planned = ["plan", file, "--goal", goal, "--phases", "2", "--cpus", "2"];
        let with = |more: &[&'static str]| [&planned[..], more].concat();
        let apply = [&planned[..], &["--apply", &target]].concat();
        refused(&with(&["--emit", "k8s"]), &[problem, enough]);
        refused(&[&apply[..], &["--write"]].concat(), &[problem, enough]);
        assert_eq!(limits_of(&kid), before);
        // What would be written is shown, and the plan says why it is not to be.
        let dry = stdout(&apply).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(dry.contains("too short") && dry.contains("nothing is written yet"), "{dry}");
        assert!(!dry.contains("The goals still hold") && !dry.contains("or again"), "{dry}");
        let short = &json(&with(&["--json"]))["too_short"];
        assert!(short[0]["needs"].as_u64() > short[0]["has"].as_u64(), "{short}");
    }
    // 60 s hold 600 periods: enough to act on, with a word on a share that takes more to tell.
    let minute = of("minute.csv", 50, 1200);
    let minute = minute.to_str().unwrap();
    let planned =
        ["plan", minute, "--goal", "throttled<1%", "--phases", "2", "--cpus", "2", "--emit", "k8s"];
    let emitted = output(&planned);
    assert!(emitted.status.success(), "{emitted:?}");
    let said = String::from_utf8_lossy(&emitted.stderr);
    assert!(said.contains("1000 are needed for 10 throttled ones"), "{said}");
    let planned = json(&["plan", minute, "--goal", "p99=150ms", "--cpus", "2", "--json"]);
    assert_eq!(planned["too_short"], serde_json::json!([]));
}

#[test]
fn a_live_group_is_planned_within_the_limit_around_it() {
    let directory = tempfile::tempdir().unwrap();
    let file = requests(directory.path());
    let file = file.to_str().unwrap();
    let [par, kid] = nested(directory.path(), "30000 100000\n", "0\n");
    let target = format!("cgroup:{}", kid.display());
    let goal = ["plan", file, "--goal", "throttled<5%", "--phases", "2", "--cpus", "2"];
    let with = |more: &[&'static str]| [&goal[..], &["--apply", &target], more].concat();
    let planned = json(&with(&["--json"]));
    assert_eq!(planned["model"]["within"]["quota_ns"], 30_000_000);
    let told = stdout(&with(&[])).split_whitespace().collect::<Vec<_>>().join(" ");
    let words = format!("Planned within {}'s limit of quota 30000 us", par.display());
    assert!(told.contains(&words), "{words}: {told}");
    assert!(told.contains("no quota within 30 ms per 100 ms, no burst: "), "{told}");
    // Given limits win, and none is one of them.
    let given = json(&with(&["--json", "--within", "quota=80ms"]));
    assert_eq!(given["model"]["within"]["quota_ns"], 80_000_000);
    let none = json(&with(&["--json", "--within", "quota=max"]));
    assert!(none["model"]["within"].is_null(), "{none}");
    assert!(!none["warnings"].to_string().contains("Planned within"), "{none}");
    // No setting of its own helps a group whose parent has too little.
    let tight = ["plan", file, "--goal", "max<20ms", "--cpus", "2", "--apply", &target];
    fs::write(par.join("cpu.max"), "10000 100000\n").unwrap();
    let limit = "within the parent group's limit of quota 10000 us";
    refused(&tight, &[limit, "raise the parent group's limit", par.to_str().unwrap()]);
    refused(&with(&["--max-worst-case", "1s"]), &["has no bound", par.to_str().unwrap()]);
}

#[test]
fn a_killed_trial_leaves_no_group() {
    let directory = tempfile::tempdir().unwrap();
    let file = requests(directory.path());
    let trial = plan(&file, &["--verify=recommended", "--verify-repeats", "50"]);
    let mut child = reveille(&trial).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let begin = Instant::now();
    while groups_of(child.id()).is_empty() {
        if let Some(status) = child.try_wait().unwrap() {
            println!("skipped: no task group can be made ({status})");
            return;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "no group");
        sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let killed = Instant::now();
    while !groups_of(child.id()).is_empty() {
        assert!(killed.elapsed() < Duration::from_secs(5), "{:?}", groups_of(child.id()));
        sleep(Duration::from_millis(10));
    }
}

/// One request in twenty takes eight times as long, and a draw has more or fewer of them: no quota of
/// Kubernetes holds in 95% of draws.
#[test]
fn the_nearest_setting_is_shown_and_not_used() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("uneven.csv");
    let work = |n: u32| if n % 997 % 20 == 7 { 40 } else { 5 };
    let rows = (0..1500).map(|n| format!("{},{}\n", 20 * n, work(n)));
    fs::write(&file, format!("at_ms,cpu_ms\n{}", rows.collect::<String>())).unwrap();
    let file = file.to_str().unwrap();
    let planned =
        ["plan", file, "--goal", "throttled<0.01%", "--within", "quota=40ms", "--cpus", "1"];
    let shown = stdout(&planned).replace("\n           ", " ");
    assert!(shown.contains("comes nearest to"), "{shown}");
    assert!(shown.contains("of draws, and 95% were asked for"), "{shown}");
    assert!(!shown.contains("The goals still hold"), "{shown}");
    let act = [&planned[..], &["--emit", "cgroup2"]].concat();
    refused(&act, &["comes nearest to the goals and does not meet them"]);
}

#[test]
fn a_group_that_is_not_there_is_refused_before_anything_is_computed() {
    let directory = tempfile::tempdir().unwrap();
    let file = requests(directory.path());
    for (target, part) in [("cgroup:no/such/group", "no/such/group"), ("group", "cgroup:NAME")] {
        refused(&plan(&file, &["--apply", target]), &[part]);
    }
}

#[test]
fn a_setting_is_tried_in_a_real_group() {
    let directory = tempfile::tempdir().unwrap();
    let file = requests(directory.path());
    if live_group().is_none() {
        return;
    }
    let mut args = plan(&file, &["--verify", "--verify-for", "500ms", "--json"]);
    let cpus = args.iter().position(|arg| *arg == "--cpus").unwrap();
    args[cpus + 1] = "9";
    let run = output(&args);
    let said = String::from_utf8_lossy(&run.stderr);
    let fewer = std::thread::available_parallelism().unwrap().get() < 9;
    assert_eq!(said.contains("of the plan's 9 CPUs"), fewer, "{said}");
    let tried: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    let code = match tried["verification"]["verdict"].as_str().unwrap() {
        "agrees" => 0,
        "disagrees" => 1,
        "void" => 3,
        other => panic!("{other}"),
    };
    assert_eq!(run.status.code(), Some(code), "{run:?}");
    let settings = tried["verification"]["settings"].as_array().unwrap();
    assert_eq!(settings[0]["limits"], tried["recommended"]["limits"]);
    for setting in settings {
        let run = &setting["measured"][0]["figures"];
        // No piece of work is done faster than it takes, however busy the host is.
        assert!(run["p50_ns"].as_f64().is_none_or(|ns| ns >= 4e6), "{run}");
        assert!(run["cpus_used"].as_f64().unwrap() > 0.0, "{run}");
        // Too few requests for a p99.
        assert!(run["p99_ns"].is_null() && setting["predicted"]["p99_ns"]["max"].is_null());
        assert!(setting["p99_inside"].is_null() && setting["p99_off"].is_null(), "{setting}");
    }
    let control = &tried["verification"]["control"];
    assert_eq!(control["measured"].as_array().unwrap().len(), 2);
    assert!(control["p99_stretch"].is_null(), "{control}");
    let table = output(&plan(&file, &["--verify=recommended", "--verify-for", "500ms"]));
    let table = String::from_utf8(table.stdout).unwrap();
    let tried = table.split("throttled periods, %").nth(1).unwrap();
    assert!(tried.contains("too few") && tried.contains("p99 needs 1000 requests"), "{table}");
}

#[test]
fn a_kernel_is_held_against_the_closed_form() {
    let circle =
        json(&["bench", "phase", "--on", "sim", "--step", "10", "--cycles", "2", "--json"]);
    assert!(circle["simulated_off_ns"].as_f64().unwrap() < 1e5, "{circle}");
    if live_group().is_none() {
        return;
    }
    let run = output(&["bench", "phase", "--step", "80", "--cycles", "1", "--json"]);
    let errors = String::from_utf8_lossy(&run.stderr);
    if errors.contains("run nothing else beside this") {
        eprintln!("SKIPPED: the host is too busy: {errors}");
        return;
    }
    assert!(run.status.success() && errors.is_empty(), "{errors}");
    let circle: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    for point in circle["points"].as_array().unwrap() {
        // On a busy host batches are late, and in another phase: how late is its affair.
        assert!((0.0..1e9).contains(&point["measured_ns"].as_f64().unwrap()), "{point}");
    }
}

#[test]
fn settings_are_held_against_this_kernel() {
    if live_group().is_none() {
        return;
    }
    let args = "bench quota --threads 1 --use 50 --periods 20 --bursts 0,100 --for 1 --phases 3 \
                --controls 1 --json";
    let trials = json(&words(args));
    let settings = trials["loads"][0]["settings"].as_array().unwrap();
    assert_eq!(settings.len(), 2);
    for setting in settings {
        let used = setting["measured"][0]["figures"]["cpus_used"].as_f64().unwrap();
        // Half a CPU, and what a second of it may hold beyond.
        assert!(used <= 0.5 + 0.1, "{used}");
    }
    assert_eq!(trials["summaries"][0]["runs"], 2);
}

//! Files of rt-app, given as a user has them.

use std::fs;
use std::path::PathBuf;

use super::{failure, json, reveille, stdout};

/// Two periodic tasks, a producer that resumes its consumer, and what real files carry.
const PLAYER: &str = r#"{
	/* An audio player beside a decoder. */
	"tasks" : {
		"audio" : {
			"instance" : 2,
			"loop" : -1,
			"run" : 300,
			"timer" : { "ref" : "unique", "period" : 2000, "mode" : "absolute" }
		},
		"decoder" : {
			"priority" : 0,
			"phases" : {
				"light" : { "loop" : 4, "run" : 200, "resume" : "render", "sleep" : 1000 },
				"heavy" : { "loop" : 2, "run" : 900, "resume" : "render", "sleep" : 1000 },
			}
		},
		"render" : { "suspend" : "render", "runtime" : 150 }, // woken by the decoder
	},
	"global" : {
		"duration" : 6,
		"calibration" : "CPU0",
		"default_policy" : "SCHED_OTHER",
		"lock_pages" : false,
		"logdir" : "./",
		"gnuplot" : true
	}
}
"#;

/// A file in a directory of its own, which goes with the first value.
fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("player.json");
    fs::write(&path, text).unwrap();
    (directory, path)
}

fn compare<'a>(path: &'a str, metric: &'a str) -> Vec<&'a str> {
    let run = ["compare", "--machine", "quad-1s4c", "--workload", path, "--load", "1,3"];
    let policies = ["--base", "v6.2", "--with", "+SIS_SHORT", "--repeats", "2", "--json"];
    let times = ["--warmup", "10ms", "--duration", "60ms", "--metric", metric];
    run.into_iter().chain(policies).chain(times).collect()
}

#[test]
fn a_file_is_shown_compared_and_studied() {
    let (directory, path) = file(PLAYER);
    let path = path.to_str().unwrap();
    let text = stdout(&["workloads", path]);
    assert!(text.contains("tasks of an rt-app file: audio (2), decoder, render"), "{text}");
    assert_eq!(json(&["workloads", path, "--json"])["workload"]["file"], PLAYER);

    let loops = json(&compare(path, "throughput"));
    let mean = |row: usize| loops["rows"][row]["baseline"]["mean"].as_f64().unwrap();
    // 2 timers at 500 Hz, and two tasks in step with 6 rounds in 8.9 ms.
    assert!((2_250.0..2_450.0).contains(&mean(0)), "{loops}");
    assert!(mean(1) > 2.5 * mean(0), "three copies do three times as much: {loops}");

    let latency = json(&compare(path, "p50 wu_lat"));
    let p50_ns = latency["rows"][0]["baseline"]["mean"].as_f64().unwrap();
    // The 50 us of slack that ordinary tasks' timers have, and a wake-up.
    assert!((50_000.0..80_000.0).contains(&p50_ns), "{latency}");

    let study = directory.path().join("study.toml");
    let text = r#"
        name = "player"
        about = "a player"
        mechanism = "SIS_SHORT"
        machine = "quad-1s4c"
        base = "v6.2"
        variants = ["+SIS_SHORT"]
        repeats = 1
        warmup = "5ms"
        duration = "20ms"
        [[case]]
        name = "player"
        workload = "player.json"
        loads = [1]
    "#;
    fs::write(&study, text).unwrap();
    let studied = json(&["study", study.to_str().unwrap(), "--json"]);
    assert!(studied.to_string().contains("wu_lat"), "{studied}");
}

#[test]
fn a_timer_that_is_over_before_the_task_comes_to_it_is_no_latency() {
    let late = r#"{ "tasks": { "t": { "run": 3000, "timer": { "ref": "t", "period": 1000 } } } }"#;
    let (_directory, path) = file(late);
    let latency = json(&compare(path.to_str().unwrap(), "max wu_lat"));
    let max_ns = latency["rows"][0]["baseline"]["mean"].as_f64().unwrap();
    // What is left is the end of the system call.
    assert!(max_ns < 2_000.0, "{latency}");
}

#[test]
fn what_cannot_be_simulated_is_refused_with_its_place_and_fix() {
    for (from, to, words) in [
        ("\"run\" : 300", "\"cpus\" : [1], \"run\" : 300", ["tasks.audio.cpus", "affinity"]),
        ("\"runtime\" : 150", "\"policy\" : \"SCHED_FIFO\"", ["tasks.render.policy", "OTHER"]),
        ("\"run\" : 200", "\"barrier\" : \"b\"", ["tasks.decoder.phases.light.barrier", "sync"]),
        ("\"run\" : 900", "\"runn\" : 900", ["tasks.decoder.phases.heavy.runn", "`run`?"]),
        ("\"duration\" : 6", "\"duration\" 6", ["is no JSON", "mend the JSON"]),
    ] {
        assert_eq!(PLAYER.matches(from).count(), 1);
        let text = PLAYER.replace(from, to);
        let (_directory, path) = file(&text);
        let line = 1 + text[..text.find(to).unwrap()].matches('\n').count();
        let errors = failure(&mut reveille(&compare(path.to_str().unwrap(), "throughput")), 2);
        // Long paths are wrapped.
        let errors = errors.replace('\n', " ");
        for word in words.into_iter().chain(["help", &format!("player.json:{line}")]) {
            assert!(errors.contains(word), "no {word} in {errors}");
        }
    }
}

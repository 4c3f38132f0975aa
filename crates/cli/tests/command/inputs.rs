//! Files that are none, files that take long, and machines that the model is not made for.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use super::{SMALL, failure, json, output, refused, reveille, words};

#[test]
fn devices_pipes_and_directories_are_no_input() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let name = |ending: &str, kind: &str| path(&format!("{kind}{ending}"));
    for ending in [".toml", ".xml", ".json", ".csv", ".parquet"] {
        fs::create_dir(name(ending, "directory")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", name(ending, "device")).unwrap();
        let made = Command::new("mkfifo").arg(name(ending, "pipe")).status().unwrap();
        assert!(made.success());
    }
    for kind in ["directory", "device", "pipe"] {
        let what = format!("it is a {kind}; name a regular file");
        let (toml, xml, rtapp) = (name(".toml", kind), name(".xml", kind), name(".json", kind));
        refused(&["machines", &toml], &[&toml, &what]);
        refused(&["machines", &xml], &[&xml, &what]);
        refused(&["workloads", &toml], &[&toml, &what]);
        refused(&["workloads", &rtapp], &[&rtapp, &what]);
        refused(&["study", &toml], &[&toml, &what]);
        for ending in [".csv", ".json", ".parquet"] {
            let file = name(ending, kind);
            refused(&["usage", "import", &file, "-o", &path("out.parquet")], &[&file, &what]);
            refused(&["usage", "show", &file], &[&file, &what]);
            refused(&["plan", &file, "--goal", "p99=1s"], &[&file, &what]);
        }
    }
    let large = path("large.toml");
    fs::File::create(&large).unwrap().set_len(33 << 20).unwrap();
    refused(&["machines", &large], &[&large, "larger than the 32 MiB of a description"]);
    let bytes = path("bytes.toml");
    fs::write(&bytes, b"name = \"\xff\"\n").unwrap();
    refused(&["machines", &bytes], &[&bytes, "not UTF-8 text from byte 9 on", "save it as UTF-8"]);
}

#[test]
fn a_name_whose_file_is_here_proposes_its_path() {
    let dir = tempfile::tempdir().unwrap();
    let told = |line: &str| failure(reveille(&words(line)).current_dir(&dir), 2);
    let on_it = SMALL.replace("zen4-7950x", "box");
    let lines = ["machines box", "workloads box", "study box", "score --suite box", &on_it];
    for line in lines {
        assert!(!told(line).contains("./box.toml"), "{line}");
    }
    fs::write(dir.path().join("box.toml"), "").unwrap();
    for line in lines {
        assert!(told(line).contains("help: write `./box.toml` for that file; "), "{line}");
    }
}

#[test]
fn a_long_line_of_xml_is_read_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("long.xml");
    let pu = |n: u32| format!(r#"<object type="PU" os_index="{n}"/>"#);
    let pus: String = (0..80_000).map(pu).collect();
    let machine = r#"<topology><object type="Machine" cpuset="0x00000003">"#;
    fs::write(&path, format!("{machine}{pus}</object></topology>")).unwrap();
    let begun = Instant::now();
    let shown = json(&["machines", path.to_str().unwrap(), "--json"]);
    assert_eq!(shown["machine"]["topology"]["cpus"], 2);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[test]
fn a_hybrid_machine_is_taken_with_a_warning() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("phone.xml");
    let file = path.to_str().unwrap();
    let core =
        |n: u32| format!(r#"<object type="Core"><object type="PU" os_index="{n}"/></object>"#);
    let l2 = |cores: &str| format!(r#"<object type="L2Cache">{cores}</object>"#);
    let cores: String = (2..6).map(core).collect();
    let text = format!(
        r#"<topology version="2.0"><object type="Machine"><info name="Architecture" value="aarch64"/>
        <object type="Package"><object type="L3Cache">{}{}{}</object></object></object>
        <cpukind cpuset="0x0000003c"><info name="CoreType" value="little"/></cpukind>
        <cpukind cpuset="0x00000003"/></topology>"#,
        l2(&core(0)),
        l2(&core(1)),
        l2(&cores)
    );
    fs::write(&path, text).unwrap();
    let shown = output(&["machines", file, "--json"]);
    let errors = String::from_utf8(shown.stderr).unwrap();
    assert!(shown.status.success(), "{errors}");
    for words in ["2 kinds (4 little, 2 of kind 1)", "equally fast", "it is aarch64"] {
        assert!(errors.contains(words), "{words}: {errors}");
    }
    let machine: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(machine["machine"]["topology"]["cpus"], 6);
    assert_eq!(machine["machine"]["warnings"].as_array().unwrap().len(), 2);
    let args = "compare --workload context_switch1 --load 2 --base v6.2 --with +SIS_SHORT \
                --repeats 1 --warmup 1ms --duration 1ms --json --machine";
    let args = [&words(args)[..], &[file]].concat();
    let run = output(&args);
    assert!(run.status.success() && String::from_utf8_lossy(&run.stderr).contains("equally fast"));
    let compared: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(compared["machines"][0]["warnings"], machine["machine"]["warnings"]);
}

#[test]
fn a_pass_through_all_phases_is_measured() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("phases.json");
    let text = r#"{"tasks": {"t": {"phases": {
        "quiet": {"loop": 5, "run": 100, "sleep": 9900},
        "busy": {"loop": 10, "run": 9900, "sleep": 100}}}}}"#;
    fs::write(&path, text).unwrap();
    let args = "compare --machine quad-1s4c --load 1 --base v6.2 --with +SIS_SHORT --repeats 1 \
                --metric idle_pct --json --workload";
    let args = [&words(args)[..], &[path.to_str().unwrap()]].concat();
    let idle = |result: &serde_json::Value| {
        result["rows"][0]["baseline"]["mean"].as_f64().expect("a share of time")
    };
    // 5 times 10 ms with 0.1 ms of work, 10 times 10 ms with 9.9 ms, on one CPU of four.
    let whole = json(&args);
    assert!((80.0..88.0).contains(&idle(&whole)), "{}", idle(&whole));
    let short = output(&[&args[..], &["--duration", "30ms"]].concat());
    let errors = String::from_utf8(short.stderr).unwrap();
    assert!(short.status.success() && errors.contains("one pass of the workload"), "{errors}");
    assert!(errors.contains("30ms is measured") && errors.contains("150ms"), "{errors}");
    let short: serde_json::Value = serde_json::from_slice(&short.stdout).unwrap();
    assert!(!(80.0..88.0).contains(&idle(&short)), "one phase alone: {}", idle(&short));
}

/// 3 ms of virtual time have a few wakeups, too few for p99.
#[test]
fn a_quantile_of_too_few_samples_is_no_number() {
    let args = "compare --machine quad-1s4c --workload schbench --load 1 --base v6.2 --with \
                +SIS_SHORT --repeats 2 --warmup 1ms --duration 3ms --metric p99";
    let args = words(args);
    let table = String::from_utf8(output(&args).stdout).unwrap();
    let row = table.lines().find(|line| line.trim_start().starts_with("1 ")).unwrap();
    assert!(row.contains("too few") && !row.contains('±'), "{table}");
    assert!(table.contains("fewer than 10 samples beyond the quantile"), "{table}");
    // Nothing was counted: a thousand times as long at least.
    let legend = table.replace('\n', " ");
    assert!(legend.contains("measure for at least 3s (--duration)"), "{table}");
    assert!(table.lines().any(|l| l.contains("wakeup p99") && l.contains("too few")), "{table}");
    let row = &json(&[&args[..], &["--json"]].concat())["rows"][0];
    assert!(row["baseline"]["mean"].is_null() && row["change_pct"].is_null(), "{row}");
    assert!(
        row["too_few"].as_bool().unwrap() && row["explain"]["baseline"]["wakeup_p99_ns"].is_null()
    );
    let lasting = |time: &str| {
        let args = args.iter().map(|arg| if *arg == "3ms" { time } else { arg });
        json(&args.chain(["--json"]).collect::<Vec<_>>())["rows"][0].clone()
    };
    let short = lasting("200ms");
    let enough = lasting(&format!("{}ns", short["enough_ns"]));
    assert!(short["too_few"] == true && enough["change_pct"].is_number(), "{short} {enough}");
}

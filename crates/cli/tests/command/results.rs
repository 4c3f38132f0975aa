//! What a run prints and writes.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use super::{json, output, reveille, small, small_of, small_with, stdout, words};

/// The path of a study of pairs on four CPUs with this variant; `case` is the rest of its case, and
/// what follows it.
fn study(directory: &tempfile::TempDir, name: &str, variant: &str, case: &str) -> String {
    let path = directory.path().join("study.toml");
    let head = format!(
        r#"
name = "{name}"
about = "published figures of several kinds"
machine = "quad-1s4c"
base = "v6.2"
variants = ["{variant}"]
warmup = "1ms"
duration = "1ms"
repeats = 3
[[case]]
name = "pairs"
workload = "context_switch1"
"#
    );
    std::fs::write(&path, head + case).unwrap();
    path.display().to_string()
}

/// Every key, with what it leads to unless that is a number.
fn keys(value: &Value) -> String {
    let below = |key: &str, value: &Value| {
        keys(value).lines().map(|line| format!("{key}.{line}\n")).collect::<String>()
    };
    match value {
        Value::Object(all) => all.iter().map(|(key, value)| below(key, value)).collect(),
        Value::Array(all) if !all.is_empty() => all.iter().map(|v| below("item", v)).collect(),
        Value::Number(_) => "a number\n".to_owned(),
        other => format!("{other}\n"),
    }
}

#[test]
fn json_does_not_depend_on_the_number_of_threads() {
    let one = stdout(&small(&["--json", "--jobs", "1"]));
    for jobs in ["2", "4", "32"] {
        assert_eq!(one, stdout(&small(&["--json", "--jobs", jobs])), "{jobs} threads");
    }
    assert_eq!(one, stdout(&small(&["--json"])));
    assert_ne!(one, stdout(&small(&["--json", "--seed", "2"])));
}

#[test]
fn json_has_its_documented_shape() {
    let result = json(&small(&["--json"]));
    insta::assert_snapshot!(keys(&result));
    for row in result["rows"].as_array().unwrap() {
        for side in ["baseline", "candidate"] {
            assert!(row[side]["mean"].as_f64().unwrap() > 0.0);
            let explain = &row["explain"][side];
            for name in ["idle_pct", "wakeups_same_llc_per_s", "cpus_per_search", "wakeup_p99_ns"] {
                assert!(explain[name].is_number(), "{name}");
            }
        }
    }
}

#[test]
fn runs_that_a_change_does_not_touch_are_marked() {
    // This machine has no clusters.
    for (edit, same) in [("+SIS_CLUSTER", true), ("-TTWU_QUEUE", false)] {
        let row = &json(&small_of(&[edit], &["--json"]))["rows"][0];
        assert_eq!(row["identical"], same, "{edit}");
        let text = stdout(&small_of(&[edit], &[]));
        assert_eq!(text.contains(" 0.0%=  "), same, "{text}");
        assert_eq!(text.contains("=: the same runs"), same, "{text}");
    }
}

#[test]
fn csv_has_a_line_per_row() {
    let text = stdout(&small(&["--csv"]));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[0].starts_with("study,machine,"));
    assert!(lines[1].starts_with("compare,zen4-7950x,"));
}

#[test]
fn the_table_can_do_without_explanation() {
    let long = stdout(&small(&[]));
    let short = stdout(&small(&["--no-explain"]));
    assert!(long.contains("idle searches/s") && !short.contains("idle searches/s"));
    for text in [&long, &short] {
        assert!(text.contains("+SIS_SHORT -TTWU_QUEUE against v6.2"), "{text}");
        assert!(text.lines().all(|l| l.chars().count() <= 100), "{text}");
    }
}

#[test]
fn several_variants_share_a_baseline() {
    let result = json(&small(&["--with", "-SIS_UTIL", "--json"]));
    let rows = result["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    assert_eq!(rows[0]["baseline"], rows[1]["baseline"]);
    assert_eq!(rows[1]["variant"], "-SIS_UTIL");
}

#[test]
fn a_page_is_written_whole_and_leaves_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("report.html");
    std::fs::write(&path, "<!doctype html>an earlier report").unwrap();
    let table = stdout(&small(&["--html", path.to_str().unwrap()]));
    assert!(table.contains("context_switch1"));
    let page = std::fs::read_to_string(&path).unwrap();
    assert!(page.contains("<html") && page.trim_end().ends_with("</html>"));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);

    let new = directory.path().join("new.html");
    let args = small(&["--html", "new.html", "--json"]);
    let output = reveille(&args).current_dir(directory.path()).output().unwrap();
    assert!(output.status.success());
    assert!(serde_json::from_slice::<Value>(&output.stdout).is_ok());
    assert!(std::fs::read_to_string(&new).unwrap().ends_with("</html>\n"));
}

#[test]
fn a_study_file_is_run_and_scored() {
    let directory = tempfile::tempdir().unwrap();
    let case = r#"
loads = [1, 2, 4]
[[case.published]]
load = 4
change_pct = 100000
source = "nobody"
[[claim]]
kind = "peak"
case = "pairs"
load = 2
source = "nobody"
"#;
    let path = study(&directory, "small", "+SIS_SHORT", case);
    let result = json(&["study", &path, "--repeats", "2", "--json"]);
    assert_eq!(result["study"], "small");
    assert_eq!(result["score"], serde_json::json!({"hits": 0, "counted": 1}));
    assert_eq!(result["rows"][2]["verdict"], "miss");
    assert_eq!(result["rows"][2]["published_source"], "nobody");
    assert_eq!(result["claims"].as_array().unwrap().len(), 1);
    let table = stdout(&["study", &path, "--no-explain"]);
    let score = "score: 0 of 1 hit (no change: 0); big changes: sign ";
    assert!(table.lines().any(|l| l.starts_with(score)), "{table}");
}

#[test]
fn figures_of_another_machine_are_not_judged() {
    let directory = tempfile::tempdir().unwrap();
    let case = r#"
loads = [1, 2, 4]
published = [{ load = 1, change_pct = 0, source = "a mail" }]
[[claim]]
kind = "peak"
case = "pairs"
load = 2
source = "a mail"
"#;
    let path = study(&directory, "moved", "+SIS_SHORT", case);
    let page = directory.path().join("page.html");
    let on = |machine, more: &[&str]| {
        output(&[&["study", &path, "--machine", machine, "--repeats", "1"], more].concat())
    };
    let said = "figures published on quad-1s4c are not judged";
    let moved = on("zen4-7950x", &["--no-explain", "--html", page.to_str().unwrap()]);
    assert!(moved.status.success());
    let text = |bytes| String::from_utf8(bytes).unwrap();
    assert_eq!(text(moved.stderr), format!("warning: zen4-7950x: {said}\n"));
    let table = text(moved.stdout);
    assert!(table.contains(&format!("! {said}\n")) && table.contains("score: none\n"), "{table}");
    assert!(!table.contains("  hit") && !table.contains("MISS"), "{table}");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains(said) && !page.contains("badge hit") && !page.contains("badge miss"));
    let result: Value = serde_json::from_slice(&on("zen4-7950x", &["--json"]).stdout).unwrap();
    let nothing = serde_json::json!({"hits": 0, "counted": 0});
    assert_eq!([&result["score"], &result["claim_score"]], [&nothing; 2]);
    assert_eq!(result["machines"][0]["warnings"], serde_json::json!([said]));
    for judged in [&result["rows"][0], &result["claims"][0]] {
        assert_eq!(judged["verdict"], "informative");
    }
    // Its own machine by the option is no other one.
    let own: Value = serde_json::from_slice(&on("quad-1s4c", &["--json"]).stdout).unwrap();
    assert_eq!(own["score"]["counted"], 1);
    assert_eq!(own["machines"][0]["warnings"], serde_json::json!([]));
}

#[test]
fn the_score_stands_beside_that_of_no_change() {
    let directory = tempfile::tempdir().unwrap();
    // A slice without a quota changes nothing at all.
    let case = r#"
loads = [1, 2, 3, 4]
group = { quota = "max" }
source = "nobody"
published = [
    { load = 1, change_pct = 1.0 },
    { load = 2, change_pct = 12.0, std_base_pct = 10.0 },
    { load = 3, change_pct = -30.0 },
    { load = 3, side = "base", value = 1 },
    { load = 4, change_pct = 90.0, noise = "said to be noise" },
]
"#;
    let path = study(&directory, "skill", "slice=1ms", case);
    let table = stdout(&["study", &path, "--no-explain"]);
    let score =
        "score: 2 of 4 hit; changes: 2 of 3 (no change: 2); big changes: sign 0 of 2, 1 hit;";
    let line = table.replace('\n', " ");
    assert!(line.contains(&format!("{score} small: 1 of 1 quiet ")), "{table}");
    let skill = serde_json::json!({
        "changes": 3, "hits": 2, "null_hits": 2,
        "big": 2, "big_sign": 0, "big_hits": 1, "small": 1, "small_quiet": 1
    });
    assert_eq!(json(&["study", &path, "--json"])["skill"], skill);
}

#[test]
fn figures_of_every_kind_are_shown_and_scored() {
    let directory = tempfile::tempdir().unwrap();
    let case = r#"
loads = [1, 2]
metrics = ["throughput", "wakeup_p99_ns"]
source = "nobody"
published = [
    { load = 1, metric = "throughput", base = 34.757, variant = 30.7527, unit = "MB/s" },
    { load = 2, metric = "wakeup_p99_ns", side = "base", value = 1, unit = "s" },
    { load = 2, metric = "wakeup_p99_ns", side = "base", runs_above = 0, value = 9, of = 10 },
]
[[unpredicted]]
what = "a game"
figures = "60 frames"
reason = "nobody can"
source = "nobody"
"#;
    let path = study(&directory, "kinds", "+SIS_SHORT", case);
    let result = json(&["study", &path, "--json"]);
    let rows = result["rows"].as_array().unwrap();
    let kinds: Vec<&str> = rows.iter().map(|r| r["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["change", "change", "change", "side", "runs"]);
    assert_eq!(rows[0]["published_baseline"], 34.757);
    assert_eq!(rows[3]["verdict"], "miss");
    assert_eq!(rows[4]["verdict"], "hit");
    assert_eq!(result["score"]["counted"], 3);
    assert_eq!(result["unpredicted"][0]["what"], "a game");
    let table = stdout(&["study", &path]);
    for part in ["34.757 -> 30.7527 MB/s", "base 1s", "base 9 of 10", "a game: 60 frames"] {
        assert!(table.contains(part), "no `{part}` in {table}");
    }
    let shown = stdout(&["studies", &path]);
    for part in ["from 34.757 to 30.7527 MB/s", "baseline 1 s", "above 0 in 9 of 10 runs"] {
        assert!(shown.contains(part), "no `{part}` in {shown}");
    }
    let shown = json(&["studies", &path, "--json"]);
    let published = shown["study"]["cases"][0]["published"].as_array().unwrap();
    let kinds: Vec<&str> = published.iter().map(|p| p["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["pair", "side", "runs"]);
}

#[test]
fn task_groups_are_compared_by_their_settings() {
    let settings = words("--group quota=2ms,period=4ms --slice 1ms --json");
    let metrics = words("--metric throughput --metric throttled_pct");
    let args = [small_with("--with", "burst=2ms"), settings, metrics].concat();
    let result = json(&args);
    let rows = result["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    assert!(rows.iter().all(|r| r["variant"] == "burst=2ms"));
    assert_eq!(rows[1]["metric"], "throttled_pct (%)");
}

#[test]
fn a_reader_who_has_had_enough_is_no_failure() {
    for args in [vec!["machines", "spr-2s56c"], small(&[])] {
        let mut child =
            reveille(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert!(output.stderr.is_empty(), "{:?}", String::from_utf8_lossy(&output.stderr));
    }
    // As `| head -1` does it.
    let mut child = reveille(&["workloads", "schbench"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("schbench"));
    assert!(child.wait().unwrap().success());
}

#[test]
fn help_and_version_succeed() {
    for args in [vec!["--help"], vec!["--version"], vec!["compare", "--help"]] {
        let output = output(&args);
        assert!(output.status.success() && !output.stdout.is_empty(), "{args:?}");
    }
}

//! Ctrl-C and its like: the finished rows are printed, within a second.

use std::process::Child;

use serde_json::Value;

use super::{interrupted, path, requests, started, stdout, words};

/// One case that is over at once, and one that is never over.
const STUDY: &str = r#"
name = "endless"
about = "a study that has to be interrupted"
machine = "zen4-7950x"
base = "v6.2"
variants = ["+SIS_SHORT"]
repeats = 2
warmup = "0ms"
[[case]]
name = "short"
workload = "context_switch1"
loads = [1, 4]
duration = "1ms"
[[case]]
name = "endless"
workload = "context_switch1"
loads = [16, 32]
duration = "70000s"
"#;

/// Starts the study in `directory` and lets it finish its first rows.
fn start(directory: &tempfile::TempDir, more: &[&str]) -> Child {
    let path = directory.path().join("endless.toml");
    std::fs::write(&path, STUDY).unwrap();
    let mut args = vec!["study", path.to_str().unwrap()];
    args.extend(more);
    started(&args, 1500)
}

#[test]
fn json_is_whole_and_says_that_it_is_partial() {
    for name in ["INT", "TERM", "HUP"] {
        let directory = tempfile::tempdir().unwrap();
        let output = interrupted(start(&directory, &["--json", "--jobs", "2"]), name);
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(result["partial"], true);
        let rows = result["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 2, "the rows of the short case");
        assert!(rows.iter().all(|r| r["case"] == "short"));
    }
}

#[test]
fn the_table_and_the_page_say_so_too() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("report.html");
    let more = ["--html", page.to_str().unwrap()];
    let output = interrupted(start(&directory, &more), "INT");
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("PARTIAL") && table.contains("short"), "{table}");
    assert!(std::fs::read_to_string(page).unwrap().to_lowercase().contains("partial"));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
}

#[test]
fn without_a_finished_row_the_page_stays_and_that_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let page = path(directory.path(), "report.html");
    let args = "compare --machine zen4-7950x --workload context_switch1 --load 16 --base v6.2 \
                --repeats 1 --duration 70000s --html";
    let output = interrupted(started(&[&words(args)[..], &[&page]].concat(), 500), "INT");
    let said = String::from_utf8(output.stderr).unwrap();
    let expected = format!("interrupted; no row was finished; {page} was not written\n");
    assert!(said.ends_with(&expected), "{said}");
    assert!(!std::fs::exists(page).unwrap());
}

#[test]
fn a_record_of_half_of_the_studies_is_not_written() {
    let directory = tempfile::tempdir().unwrap();
    let record = directory.path().join("fidelity.md");
    std::fs::write(&record, "an earlier record").unwrap();
    let page = directory.path().join("report.html");
    let (record_path, page_path) = (record.to_str().unwrap(), page.to_str().unwrap());
    let args = ["study", "--all", "--json", "--fidelity", record_path, "--html", page_path];
    let output = interrupted(started(&args, 1500), "INT");
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let studies = result["studies"].as_array().unwrap();
    assert!(!studies.is_empty() && studies.iter().any(|s| s["partial"] == true));
    assert!(result["score"]["counted"].is_number() && result["mechanisms"].is_array());
    assert_eq!(std::fs::read_to_string(&record).unwrap(), "an earlier record");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}

/// One group that is evaluated at once, and some that take seconds each.
#[test]
fn a_fleet_shows_the_groups_that_are_finished() {
    let (directory, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let dir = directory.path();
    let import = |name: &str, times: u32| {
        let table = requests(elsewhere.path().join("table.csv"), 4, 4, 40, times);
        stdout(&["import", table.to_str().unwrap(), "-o", &path(dir, name)]);
    };
    import("a.parquet", 100);
    import("b.parquet", 20_000);
    for n in 0..9 {
        std::fs::copy(dir.join("b.parquet"), dir.join(format!("c{n}.parquet"))).unwrap();
    }
    let page = path(dir, "fleet.html");
    let fleet = ["fleet", dir.to_str().unwrap(), "--goal", "p99=50ms", "--jobs", "1"];
    let started = |more: &[&str]| started(&[&fleet[..], more].concat(), 1500);
    let output = interrupted(started(&["--json", "--html", &page]), "INT");
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let done = result["containers"].as_array().unwrap();
    assert!(result["missing"].as_u64().unwrap() as usize + done.len() == 11, "{result}");
    assert!((1..11).contains(&done.len()), "{result}");
    assert!(std::fs::read_to_string(page).unwrap().contains("PARTIAL RESULT"));
    let output = interrupted(started(&[]), "TERM");
    let (table, said) = (String::from_utf8(output.stdout), String::from_utf8(output.stderr));
    assert!(table.unwrap().replace('\n', " ").contains("recordings are missing"));
    assert!(said.unwrap().contains(" of 11 recordings are missing"));
}

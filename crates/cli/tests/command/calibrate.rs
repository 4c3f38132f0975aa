//! `reveille calibrate` refuses what it cannot write before it measures, and leaves nothing
//! behind when it is interrupted.

use std::time::{Duration, Instant};

use super::{interrupted, refused, started};

#[test]
fn refuses_bad_outputs_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let there = directory.path().join("there.toml");
    std::fs::write(&there, "somebody's work").unwrap();
    let other = directory.path().join("host.json");
    let folder = directory.path().join("no/host.toml");
    let cases = [
        (there.to_str().unwrap(), "it is there already", "--force"),
        (other.to_str().unwrap(), "named .toml", "host.toml"),
        (folder.to_str().unwrap(), "is no directory", "make it first"),
        (directory.path().to_str().unwrap(), "no file name", "name a file"),
    ];
    for (path, problem, help) in cases {
        let start = Instant::now();
        refused(&["calibrate", "-o", path], &["--output", problem, help]);
        assert!(start.elapsed() < Duration::from_secs(2), "measures for nothing");
    }
    assert_eq!(std::fs::read_to_string(&there).unwrap(), "somebody's work");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    refused(&["calibrate"], &["--output"]);
}

#[test]
fn an_interrupt_ends_it_and_all_that_it_started() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("host.toml");
    let child = started(&["calibrate", "-o", path.to_str().unwrap()], 900);
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let started = std::fs::read_to_string(children).unwrap_or_default();
    let output = interrupted(child, "INT");
    assert!(output.stdout.is_empty());
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    for pid in started.split_ascii_whitespace() {
        let command = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        assert!(!command.contains(reveille_host::CHILD_COMMAND), "{pid} still runs");
    }
}

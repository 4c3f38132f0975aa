//! Wrong input: exit code 2, nothing on standard output, and a message that names
//! the option and the fix.

use std::process::{Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{SMALL, reveille, small};

/// Runs `args`; a run that is not refused could last for ever, so it is ended.
fn output(args: &[&str]) -> Output {
    let mut child = reveille(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let end = Instant::now() + Duration::from_secs(10);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > end {
            child.kill().unwrap();
        }
        sleep(Duration::from_millis(1));
    }
    child.wait_with_output().unwrap()
}

/// Runs `args`, which must be refused with all of `words` in the message.
fn refused(args: &[&str], words: &[&str]) {
    let output = output(args);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {errors}");
    assert!(output.stdout.is_empty(), "{args:?} printed a result");
    for word in words {
        assert!(errors.contains(word), "{args:?}: no `{word}` in {errors}");
    }
    assert!(!errors.contains("RUST_BACKTRACE"), "{args:?}: {errors}");
}

/// [`SMALL`] with the value of `option` replaced.
fn with<'a>(option: &str, value: &'a str) -> Vec<&'a str> {
    let mut args = SMALL.to_vec();
    let at = args.iter().position(|a| *a == option).expect("an option of SMALL");
    args[at + 1] = value;
    args
}

#[test]
fn values_of_options() {
    let cases: &[(&str, &str, &[&str])] = &[
        ("--load", "0", &["--load", "a load of 0", "at least 1"]),
        ("--load", "-4", &["--load", "a load of -4", "at least 1"]),
        ("--load", "", &["--load", "no load", "such as 56"]),
        ("--load", "56,abc", &["--load", "`abc`", "separated by commas"]),
        ("--load", "56,,112", &["--load", "no load", "separated by commas"]),
        ("--load", "5,7,5", &["--load", "load 5 is given twice", "remove one"]),
        ("--load", "99999999999999999999", &["--load", "whole numbers"]),
        ("--load", "999999999", &["--load", "more than 1000000", "fewer"]),
        ("--machine", "zen4-7590x", &["--machine", "did you mean `zen4-7950x`?"]),
        ("--machine", "missing.toml", &["--machine", "missing.toml", "preset"]),
        ("--machine", "", &["--machine", "Machines: host"]),
        ("--workload", "context_switch", &["--workload", "did you mean `context_switch1`?"]),
        ("--base", "v6.1", &["--base", "did you mean `v6.12`?"]),
        ("--with", "+SIS_SHROT", &["--with", "did you mean `SIS_SHORT`?"]),
        ("--with", "SIS_SHORT", &["--with", "no sign", "+SIS_SHORT"]),
        ("--with", "+SIS_UTIL", &["--with", "changes nothing", "leave it out"]),
        ("--with", "", &["--with", "such as `+SIS_SHORT`"]),
        ("--repeats", "0", &["--repeats", "use 1 to 1000"]),
        ("--repeats", "1001", &["--repeats", "use 1 to 1000"]),
        ("--repeats", "two", &["--repeats", "invalid"]),
        ("--warmup", "5", &["--warmup", "no unit", "such as `30ms`"]),
        ("--warmup", "70369s", &["--duration", "at most 70368s"]),
        ("--duration", "0ms", &["--duration", "nothing is measured", "such as `30ms`"]),
        ("--duration", "1e9s", &["--duration", "no unit", "such as `30ms`"]),
        ("--duration", "999999999s", &["--duration", "longer than", "at most 70368s"]),
    ];
    for (option, value, words) in cases {
        refused(&with(option, value), words);
    }
}

#[test]
fn further_options() {
    refused(&small(&["--with", "-TTWU_QUEUE +SIS_SHORT"]), &["--with", "same policy", "remove"]);
    refused(&small(&["--param", "workers=4"]), &["--param", "`workers`", "leave it out"]);
    refused(&small(&["--param", "workers"]), &["--param", "no value", "name=value"]);
    refused(&small(&["--metric", "p99"]), &["--metric", "`p99`", "throughput"]);
    refused(&small(&["--jobs", "0"]), &["--jobs", "1..=1024"]);
    refused(&small(&["--json", "--csv"]), &["--json", "--csv"]);
    refused(&small(&["--jsno"]), &["--jsno", "--json"]);
    refused(&["compare", "--machine", "quad-1s4c"], &["--workload", "--load", "--base"]);
    refused(&[], &["Usage"]);
    refused(&["study"], &["NAME|FILE.toml"]);
    refused(&["study", "sis-short", "--all"], &["--all", "cannot be used"]);
    refused(&["study", "sis-short", "--fidelity", "x.md"], &["--fidelity", "cannot be used"]);
    refused(&["study", "--all", "--fidelity", "no/such/x.md"], &["--fidelity", "no directory"]);
    refused(&["study", "--all", "--fidelity", "/"], &["--fidelity", "no file name"]);
    refused(&small(&["--with", "burst=1ms"]), &["--with", "there is none", "`group`"]);
    refused(&small(&["--group", "quota=1us"]), &["--group", "less than 1 ms"]);
    refused(&small(&["--group", "qouta=1ms"]), &["--group", "did you mean `quota`?"]);
    refused(&small(&["--group", "quota"]), &["--group", "no value"]);
    refused(&small(&["--slice", "0ms"]), &["--slice", "5ms"]);
    let schbench = |param| {
        let mut args = with("--workload", "schbench");
        args.extend(["--param", param]);
        args
    };
    refused(&schbench("wrokers=4"), &["--param", "did you mean `workers`?"]);
    refused(&schbench("workers=many"), &["--param", "`workers`", "many"]);
}

#[test]
fn a_page_that_cannot_be_written_is_refused_before_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path().to_str().unwrap();
    let inside_nothing = format!("{directory}/none/report.html");
    for path in ["", "/", directory, "/dev/null", inside_nothing.as_str()] {
        // A run of this length would outlast the test.
        let mut args = with("--duration", "9999s");
        args.extend(["--html", path]);
        refused(&args, &["--html"]);
    }
    assert_eq!(std::fs::read_dir(directory).unwrap().count(), 0);
}

#[test]
fn names_of_lists_and_studies() {
    refused(&["study", "sis-shrot"], &["did you mean `sis-short`?"]);
    refused(&["study", "none.toml"], &["cannot read none.toml", "reveille studies"]);
    refused(&["study", "sis-short", "--repeats", "0"], &["--repeats", "use 1 to 1000"]);
    refused(&["studies", "sis-shrot"], &["did you mean `sis-short`?"]);
    refused(&["machines", "spr-2s56"], &["did you mean `spr-2s56c`?"]);
    refused(&["workloads", "tcp-rr"], &["did you mean `tcp_rr`?"]);
    refused(&["policies", "+SIS_SHROT"], &["did you mean `SIS_SHORT`?"]);
}

#[test]
fn a_study_file_is_shown_with_the_mistake_marked() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("wrong.toml");
    let text = "name = \"wrong\"\nabout = \"a\"\nmachine = \"quad-1s4c\"\nbase = \"v6.2\"\n\
                variants = [\"+SIS_SHORT\"]\nrepaets = 3\n";
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap();
    let place = format!("{path}:6");
    refused(&["study", path], &[&place, "`repaets`", "did you mean `repeats`?", "repaets = 3"]);
}

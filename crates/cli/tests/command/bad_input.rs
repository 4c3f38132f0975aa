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

/// The message with which `args` are refused.
fn refused(args: &[&str]) -> String {
    let output = output(args);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {errors}");
    assert!(output.stdout.is_empty(), "{args:?} printed a result");
    assert!(!errors.contains("RUST_BACKTRACE"), "{args:?}: {errors}");
    errors
}

/// The messages with which all of `cases` are refused; `name` of each case precedes its message.
fn all_refused<'a>(cases: impl IntoIterator<Item = (String, Vec<&'a str>)>) -> String {
    let cases = cases.into_iter();
    cases.map(|(name, args)| format!("{name}\n{}\n", refused(&args))).collect()
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
    let cases = [
        ("--load", "0"),
        ("--load", "-4"),
        ("--load", ""),
        ("--load", "56,abc"),
        ("--load", "56,,112"),
        ("--load", "5,7,5"),
        ("--load", "99999999999999999999"),
        ("--load", "999999999"),
        ("--machine", "zen4-7590x"),
        ("--machine", "missing.toml"),
        ("--machine", ""),
        ("--workload", "context_switch"),
        ("--base", "v6.1"),
        ("--with", "+SIS_SHROT"),
        ("--with", "SIS_SHORT"),
        ("--with", "+SIS_UTIL"),
        ("--with", ""),
        ("--repeats", "0"),
        ("--repeats", "1001"),
        ("--repeats", "two"),
        ("--warmup", "5"),
        ("--warmup", "70369s"),
        ("--duration", "0ms"),
        ("--duration", "1e9s"),
        ("--duration", "999999999s"),
    ];
    let named = |(option, value)| (format!("{option}={value}"), with(option, value));
    insta::assert_snapshot!(all_refused(cases.map(named)));
}

#[test]
fn further_options() {
    let after_small: [&[&str]; 12] = [
        &["--with", "-TTWU_QUEUE +SIS_SHORT"],
        &["--param", "workers=4"],
        &["--param", "workers"],
        &["--metric", "p99"],
        &["--jobs", "0"],
        &["--json", "--csv"],
        &["--jsno"],
        &["--with", "burst=1ms"],
        &["--group", "quota=1us"],
        &["--group", "qouta=1ms"],
        &["--group", "quota"],
        &["--slice", "0ms"],
    ];
    let alone: [&[&str]; 7] = [
        &["compare", "--machine", "quad-1s4c"],
        &[],
        &["study"],
        &["study", "sis-short", "--all"],
        &["study", "sis-short", "--fidelity", "x.md"],
        &["study", "--all", "--fidelity", "no/such/x.md"],
        &["study", "--all", "--fidelity", "/"],
    ];
    let schbench = ["wrokers=4", "workers=many"].map(|param| {
        let mut args = with("--workload", "schbench");
        args.extend(["--param", param]);
        (format!("schbench {param}"), args)
    });
    let after_small = after_small.map(|more| (more.join(" "), small(more)));
    let alone = alone.map(|args| (format!("reveille {}", args.join(" ")), args.to_vec()));
    insta::assert_snapshot!(all_refused(after_small.into_iter().chain(alone).chain(schbench)));
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
        assert!(refused(&args).contains("--html"));
    }
    assert_eq!(std::fs::read_dir(directory).unwrap().count(), 0);
}

#[test]
fn names_of_lists_and_studies() {
    let cases: [&[&str]; 7] = [
        &["study", "sis-shrot"],
        &["study", "none.toml"],
        &["study", "sis-short", "--repeats", "0"],
        &["studies", "sis-shrot"],
        &["machines", "spr-2s56"],
        &["workloads", "tcp-rr"],
        &["policies", "+SIS_SHROT"],
    ];
    insta::assert_snapshot!(all_refused(cases.map(|args| (args.join(" "), args.to_vec()))));
}

#[test]
fn a_study_file_is_shown_with_the_mistake_marked() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("wrong.toml");
    let text = "name = \"wrong\"\nabout = \"a\"\nmachine = \"quad-1s4c\"\nbase = \"v6.2\"\n\
                variants = [\"+SIS_SHORT\"]\nrepaets = 3\n";
    std::fs::write(&path, text).unwrap();
    let shown = refused(&["study", path.to_str().unwrap()]);
    insta::assert_snapshot!(shown.replace(directory.path().to_str().unwrap(), "DIR"));
}

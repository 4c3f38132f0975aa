//! Wrong input: exit code 2, nothing on standard output, and a message that names
//! the option and the fix.

use super::{failure, refusals, reveille, small, small_with as with, words};

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
        ("--with", "+SIS_PROP"),
        ("--with", "SIS_SHORT"),
        ("--with", "+SIS_UTIL"),
        ("--with", ""),
        ("--repeats", "0"),
        ("--repeats", "1001"),
        ("--repeats", "two"),
        ("--warmup", "5"),
        ("--repeats", "-1"),
        ("--warmup", "-1ms"),
        ("--warmup", "70369s"),
        ("--duration", "0ms"),
        ("--duration", "1e9s"),
        ("--duration", "999999999s"),
    ];
    insta::assert_snapshot!(refusals(cases.map(|(option, value)| with(option, value))));
}

#[test]
fn further_options() {
    let after_small = [
        "--with -TTWU_QUEUE,+SIS_SHORT",
        "--param workers=4",
        "--param workers",
        "--metric p99",
        "--jobs 0",
        "--jobs -1",
        "--seed -1",
        "--seed 99999999999999999999",
        "--json --csv",
        "--jsno",
        "--with burst=1ms",
        "--group quota=10ms --with quota=50ms,quota=20ms",
        "--group quota=1us",
        "--group qouta=1ms",
        "--group quota",
        "--group quota=50ms,burst=100ms",
        "--group name=a,tasks=child --group name=b,tasks=parent+child",
        "--group name=a --group name=b",
        "--slice 0ms",
    ];
    let alone = [
        "compare --machine quad-1s4c",
        "",
        "study",
        "study sis-short --all",
        "study sis-short --fidelity x.md",
        "study --all --fidelity no/such/x.md",
        "study --all --fidelity /",
        "study sis-shrot",
        "study none.toml",
        "study sis-short --repeats 0",
        "plan x.csv --slice-us -1",
        "plan x.csv --headroom -1",
        "plan x.csv --headroom 0.15",
        "plan x.csv --period 5",
        "bench phase --step -1",
        "studies sis-shrot",
        "machines spr-2s56",
        "workloads tcp-rr",
        "policies +SIS_SHROT",
        "policies v6.6",
    ];
    let schbench = ["wrokers=4", "workers=many"]
        .map(|param| [with("--workload", "schbench"), vec!["--param", param]].concat());
    let cases = after_small.map(|more| small(&words(more))).into_iter().chain(alone.map(words));
    insta::assert_snapshot!(refusals(cases.chain(schbench)));
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
        assert!(failure(&mut reveille(&args), 2).contains("--html"));
    }
    assert_eq!(std::fs::read_dir(directory).unwrap().count(), 0);
}

#[test]
fn a_study_file_is_shown_with_the_mistake_marked() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("wrong.toml");
    let text = "name = \"wrong\"\nabout = \"a\"\nmachine = \"quad-1s4c\"\nbase = \"v6.2\"\n\
                variants = [\"+SIS_SHORT\"]\nrepaets = 3\n";
    std::fs::write(&path, text).unwrap();
    let shown = refusals([vec!["study", path.to_str().unwrap()]]);
    insta::assert_snapshot!(shown.replace(directory.path().to_str().unwrap(), "DIR"));
}

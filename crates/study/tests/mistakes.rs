//! Every mistake in a study file is refused with its line, its key and a fix.

use miette::Diagnostic;
use reveille_study::{StudyError, parse};

/// Small, whole and right: mistakes are made in copies of it.
const GOOD: &str = r#"name = "small"
about = "a study for tests"
machine = "zen4-7950x"
base = "v6.2"
variants = ["+SIS_SHORT", "-TTWU_QUEUE"]
seed = 7
repeats = 2
warmup = "1ms"
duration = "2ms"

[[case]]
name = "pairs"
workload = "context_switch1"
loads = [4, 8, 16]
source = "somebody, somewhere, 2023"

[[case.published]]
load = 8
variant = "+SIS_SHORT"
change_pct = 5.5
std_base_pct = 1.0
std_variant_pct = 2.0

[[case]]
name = "wakes"
workload = "schbench"
loads = [1, 2]
params = { workers = 16 }
metric = "p99"
repeats = 3

[[claim]]
kind = "peak"
case = "pairs"
load = 8
source = "somebody, somewhere, 2023"
"#;

#[test]
fn what_is_right_is_read_as_it_stands() {
    let study = parse("small.toml", GOOD).unwrap();
    assert_eq!((study.name.as_str(), study.seed), ("small", 7));
    assert_eq!(study.variants.len(), 2);
    assert_eq!(study.cases[0].repeats, 2);
    assert_eq!(study.cases[1].repeats, 3);
    assert_eq!(study.cases[0].warmup_ns, 1_000_000);
    assert_eq!(study.cases[1].duration_ns, 2_000_000);
    let published = &study.cases[0].points[1].published[0];
    assert_eq!((published.variant, published.change_pct), (0, 5.5));
    assert_eq!(published.source, "somebody, somewhere, 2023");
    assert!(study.cases[1].metric.name.starts_with("p99 "));
    assert_eq!(study.peaks[0].load, 8);
}

/// (text of [`GOOD`], text in its place, line of the mistake, key, words of the
/// message, words of the help)
type Mistake = (&'static str, &'static str, usize, &'static str, &'static str, &'static str);

const MISTAKES: &[Mistake] = &[
    ("seed = 7", "sede = 7", 6, "sede", "unknown field", "did you mean `seed`?"),
    ("loads = [4", "load = [4", 14, "load", "unknown field", "did you mean `loads`?"),
    ("std_base_pct", "std_bas_pct", 21, "std_bas_pct", "unknown field", "`std_base_pct`?"),
    ("base = \"v6.2\"\n", "", 1, "base", "missing field", "add `base`"),
    ("name = \"small\"", "name = \" \"", 1, "name", "is empty", "fill it in"),
    ("zen4-7950x", "zen4-7590x", 3, "machine", "no machine is called", "Machines: host"),
    ("v6.2", "v6.1", 4, "base", "no baseline `v6.1`", "did you mean `v6.2`?"),
    ("[\"+SIS_SHORT\"", "[\"+SIS_SHROT\"", 5, "variants", "no feature `SIS_SHROT`", "`SIS_SHORT`?"),
    ("[\"+SIS_SHORT\"", "[\"SIS_SHORT\"", 5, "variants", "has no sign", "write `+SIS_SHORT`"),
    ("\"-TTWU_QUEUE\"", "\"+SIS_SHORT\"", 5, "variants", "given twice", "remove one"),
    ("\"-TTWU_QUEUE\"", "\"+TTWU_QUEUE\"", 5, "variants", "changes nothing", "leave it out"),
    ("[\"+SIS_SHORT\", \"-TTWU_QUEUE\"]", "[]", 5, "variants", "no variant", "name one"),
    ("seed = 7", "seed = -7", 6, "seed", "is negative", "use 0"),
    ("seed = 7", "seed = \"7\"", 6, "seed", "invalid type", "studies/ show"),
    ("repeats = 2", "repeats = 0", 7, "repeats", "0 repeats", "use 1 to 1000"),
    ("repeats = 3", "repeats = 1001", 30, "repeats", "1001 repeats", "use 1 to 1000"),
    ("\"1ms\"", "\"1 min\"", 8, "warmup", "no unit that is known", "such as `30ms`"),
    ("\"2ms\"", "\"0ms\"", 9, "duration", "nothing is measured", "such as `30ms`"),
    ("\"2ms\"", "\"-2ms\"", 9, "duration", "is no duration", "such as `30ms`"),
    ("\"2ms\"", "\"200000s\"", 9, "duration", "longer than a run can be", "at most 140737s"),
    ("\"2ms\"", "\"99999999999s\"", 9, "duration", "is too long", "at most 140737s"),
    ("\"1ms\"", "\"18446744073s\"", 9, "duration", "longer than a run can be", "at most"),
    ("context_switch1", "context_switch2", 13, "workload", "`context_switch1`?", "tcp_rr"),
    ("[4, 8, 16]", "[]", 14, "loads", "no load", "name at least one"),
    ("[4, 8, 16]", "[4, 8, 0]", 14, "loads", "load of 0", "remove this one"),
    ("[4, 8, 16]", "[4, 8, -1]", 14, "loads", "load of -1", "remove this one"),
    ("[4, 8, 16]", "[4, 8, 4]", 14, "loads", "load 4 is given twice", "remove one"),
    ("[4, 8, 16]", "[4, 8, 99999999]", 14, "loads", "more than 1000000", "fewer"),
    ("load = 8\nvariant", "load = 9\nvariant", 18, "load", "load 9 is not run", "`loads`"),
    ("variant = \"+SIS_SHORT\"", "variant = \"-SIS_UTIL\"", 19, "variant", "not run", "+SIS_SHORT"),
    ("variant = \"+SIS_SHORT\"\n", "", 17, "variant", "several variants", "add `variant`"),
    ("change_pct = 5.5", "change_pct = nan", 20, "change_pct", "no change", "above -100"),
    ("change_pct = 5.5", "change_pct = inf", 20, "change_pct", "no change", "above -100"),
    ("change_pct = 5.5", "change_pct = -100.0", 20, "change_pct", "no change", "above -100"),
    ("std_base_pct = 1.0", "std_base_pct = -1.0", 21, "std_base_pct", "no standard", "positive"),
    ("std_base_pct = 1.0", "std_base_pct = nan", 21, "std_base_pct", "no standard", "positive"),
    (
        "source = \"somebody, somewhere, 2023\"\n\n[[case.p",
        "[[case.p",
        15,
        "source",
        "needs one",
        "who published it",
    ),
    ("name = \"wakes\"", "name = \"pairs\"", 25, "name", "two cases", "another name"),
    ("workers = 16", "wrokers = 16", 28, "wrokers", "no parameter", "did you mean `workers`?"),
    ("workers = 16", "workers = \"many\"", 28, "workers", "", ""),
    ("workers = 16", "workers = [16]", 28, "workers", "not a value", "a string or a number"),
    ("workers = 16", "workers = inf", 28, "workers", "not a value", "a string or a number"),
    ("metric = \"p99\"", "metric = \"p98\"", 29, "metric", "no metric", "p99"),
    ("kind = \"peak\"", "kind = \"paek\"", 33, "kind", "unknown variant", "`peak`?"),
    ("case = \"pairs\"", "case = \"pears\"", 34, "case", "no case `pears`", "`pairs`?"),
    ("case = \"pairs\"", "case = \"wakes\"", 34, "case", "better the lower", "throughput"),
    ("load = 8\nsource", "load = 7\nsource", 35, "load", "load 7 is not run", "`loads`"),
    ("load = 8\nsource", "load = 16\nsource", 35, "load", "between two", "a higher load"),
    ("seed = 7", "seed = 7\nseed = 8", 7, "seed", "duplicate key", ""),
    ("seed = 7", "seed = ", 6, "seed", "", "studies/ show"),
];

#[test]
fn each_mistake_names_its_line_its_key_and_a_fix() {
    for (right, wrong, line, key, message, help) in MISTAKES {
        assert!(GOOD.contains(right), "{right}");
        let text = GOOD.replacen(right, wrong, 1);
        let error = parse("small.toml", &text).expect_err(wrong);
        let said = error.to_string();
        let helped = error.help().map(|h| h.to_string()).unwrap_or_default();
        assert!(error.is_input(), "{wrong}: {said}");
        assert!(error.source_code().is_some() && error.labels().is_some(), "{wrong}: {said}");
        assert!(said.starts_with(&format!("small.toml:{line}: `{key}`: ")), "{wrong}: {said}");
        assert!(said.contains(message), "{wrong}: {said}");
        assert!(!helped.is_empty() && helped.contains(help), "{wrong}: {said}; help: {helped}");
    }
}

#[test]
fn a_study_without_cases_runs_nothing() {
    let text = GOOD.split("[[case]]").next().unwrap();
    let error = parse("small.toml", text).unwrap_err().to_string();
    assert!(error.starts_with("small.toml:1: `case`: there is none"), "{error}");
}

#[test]
fn an_impossible_machine_is_shown_in_its_own_file_beside_the_study() {
    let directory = tempfile::tempdir().unwrap();
    let machine = r#"name = "odd"
about = "a machine without cores"
source = "nobody"
cost = "generic-x86"

[topology]
sockets = 1
llcs_per_socket = 1
cores_per_llc = 0
threads = 2
"#;
    std::fs::write(directory.path().join("odd.toml"), machine).unwrap();
    let path = directory.path().join("study.toml");
    std::fs::write(&path, GOOD.replace("zen4-7950x", "odd.toml")).unwrap();
    let error = reveille_study::load(path.to_str().unwrap()).unwrap_err();
    assert!(matches!(error, StudyError::Machine(_)), "{error}");
    assert!(error.to_string().contains("odd.toml:9: `cores_per_llc`"), "{error}");
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let missing = reveille_study::load("no/such/study.toml").unwrap_err();
    assert!(missing.to_string().contains("cannot read no/such/study.toml"), "{missing}");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bytes.toml");
    std::fs::write(&path, [0xff, 0xfe, 0x00]).unwrap();
    let bytes = reveille_study::load(path.to_str().unwrap()).unwrap_err();
    assert!(bytes.is_input() && bytes.to_string().contains("bytes.toml"), "{bytes}");
}

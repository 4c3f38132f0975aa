//! Every mistake in a study file is refused with its line, its key and a fix.

use std::fmt::Write;

use miette::Diagnostic;
use reveille_study::{Direction, PublishedFigure, Side, StatementKind, StudyError, parse};

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
source = "linux-kernel, 2023-03-15"

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
source = "linux-kernel, 2023-03-15"
"#;

#[test]
fn what_is_right_is_read_as_it_stands() {
    let study = parse("small.toml", GOOD).unwrap();
    assert_eq!((study.name.as_str(), study.seed), ("small", 7));
    assert_eq!(study.variants(), ["+SIS_SHORT", "-TTWU_QUEUE"]);
    assert_eq!(study.cases[0].repeats, 2);
    assert_eq!(study.cases[1].repeats, 3);
    assert_eq!(study.cases[0].warmup_ns, 1_000_000);
    assert_eq!(study.cases[1].duration_ns, 2_000_000);
    let published = &study.cases[0].points[1].published[0];
    assert_eq!(published.variant, 0);
    assert_eq!(published.figure, PublishedFigure::Change { change_pct: 5.5 });
    assert_eq!(published.source, "linux-kernel, 2023-03-15");
    assert!(study.cases[1].metrics[0].metric.name.starts_with("p99 "));
    assert_eq!(study.statements[0].kind, StatementKind::Peak { load: 8 });
}

/// One of everything that a study can say beyond [`GOOD`].
const RICH: &str = r#"name = "rich"
about = "a study for tests"
mechanism = "burst"
machine = "zen4-7950x"
base = "v6.2"
variants = ["+SIS_SHORT"]

[[case]]
name = "latency"
workload = "schbench"
machine = "quad-1s4c"
base = "v5.13"
variants = ["burst=40ms", "period=200ms,quota=80ms", "-TTWU_QUEUE", "slice=1ms"]
group = { quota = "40ms", period = "100ms", phase = "97.3ms" }
metrics = ["p50", "p99", "throttled_pct", "lock_wait_pct"]
loads = [1, 2, 4]
source = "somebody"
published = [
    { load = 1, metric = "p99", base = 4680, variant = 99.0, with = "burst=40ms", std_base = 46.8, unit = "us" },
    { load = 1, metric = "p99", side = "base", value = 4.68, unit = "ms" },
    { load = 1, metric = "p99", side = "variant", variant = "-TTWU_QUEUE", value = 99000 },
    { load = 2, metric = "p50", stat = "std", base = 0.78, variant = 0.097, with = "burst=40ms" },
    { load = 2, metric = "p99", side = "base", runs_above = "10ms", value = 6, of = 10 },
    { load = 2, metric = "throttled_pct", side = "base", runs_above = 0, value = 8, of = 10 },
    { load = 4, metric = "lock_wait_pct", variant = "-TTWU_QUEUE", change_pct = 3 },
]

[[case]]
name = "pairs"
workload = "context_switch1"
loads = [4, 8, 16]
groups = [
    { name = "all", quota = "max" },
    { name = "app", parent = "all", quota = "20ms" },
]
variants = ["app.burst=20ms"]
metrics = ["throughput", "app.nr_throttled"]

[[claim]]
kind = "onset"
case = "pairs"
from = 4
to = 8
above_pct = 5
source = "somebody"

[[claim]]
kind = "fall"
case = "latency"
metric = "p99"
variant = "burst=40ms"
load = 1
factor = 20
source = "somebody"

[[claim]]
kind = "between"
case = "latency"
metric = "p50"
side = "base"
load = 1
min = 10
max = 50
unit = "us"
source = "somebody"

[[claim]]
kind = "steadier"
case = "pairs"
from = 8
factor = 3
source = "somebody"

[[unpredicted]]
what = "a kernel compile"
figures = "no change"
reason = "what it does between wakeups is not known"
source = "somebody"
"#;

#[test]
fn a_rich_study_is_read_as_it_stands() {
    let study = parse("rich.toml", RICH).unwrap();
    let names: Vec<&str> = study.machines.iter().map(|m| m.name.as_str()).collect();
    assert_eq!(names, ["zen4-7950x", "quad-1s4c"]);
    assert_eq!(study.mechanism.as_deref(), Some("burst"));
    assert_eq!(study.unpredicted[0].what, "a kernel compile");
    let [latency, pairs] = &study.cases[..] else { panic!("two cases") };
    assert_eq!((latency.machine, latency.base.base.as_str()), (1, "v5.13"));
    assert_eq!((pairs.machine, pairs.base.base.as_str()), (0, "v6.2"));
    assert_eq!(latency.groups.groups[0].phase_ns, Some(97_300_000));
    let limits = |variant: usize| latency.variants[variant].groups.groups[0].limits;
    assert_eq!(limits(0).burst_ns, 40_000_000);
    assert_eq!((limits(1).period_ns, limits(1).quota_ns), (200_000_000, Some(80_000_000)));
    assert_eq!(latency.variants[1].name, "period=200ms quota=80ms");
    assert_eq!(limits(2), latency.groups.groups[0].limits);
    assert_eq!(latency.variants[3].groups.slice_ns, 1_000_000);
    let directions: Vec<Direction> = latency.metrics.iter().map(|m| m.metric.direction).collect();
    assert_eq!(directions, [Direction::Lower; 4]);
    let first = &latency.points[0].published;
    assert_eq!(first.len(), 3);
    assert_eq!(first[0].std_base_pct, Some(1.0));
    // 4680 / 99: times are inverted.
    assert!((first[0].change_pct(Direction::Lower).unwrap() - 4627.27).abs() < 0.01);
    let side = PublishedFigure::Side {
        side: Side::Base,
        value: 4.68,
        unit: Some("ms".into()),
        own: 4.68e6,
    };
    assert_eq!(first[1].figure, side);
    assert_eq!(first[2].variant, 2);
    let runs = PublishedFigure::RunsAbove {
        side: Side::Base,
        above: 1e7,
        above_text: "10ms".into(),
        runs: 6,
        of: 10,
    };
    assert_eq!(latency.points[1].published[1].figure, runs);
    assert_eq!(pairs.groups.groups[1].parent, Some(0));
    assert_eq!(pairs.groups.groups[0].limits.quota_ns, None);
    let between = StatementKind::Between {
        variant: 0,
        side: Side::Base,
        load: 1,
        min: Some(10_000.0),
        max: Some(50_000.0),
    };
    assert_eq!(study.statements[2].kind, between);
}

/// Text of [`GOOD`], and the text in its place.
const MISTAKES: &[(&str, &str)] = &[
    ("seed = 7", "sede = 7"),
    ("loads = [4", "load = [4"),
    ("std_base_pct", "std_bas_pct"),
    ("base = \"v6.2\"\n", ""),
    ("name = \"small\"", "name = \" \""),
    ("zen4-7950x", "zen4-7590x"),
    ("v6.2", "v6.1"),
    ("[\"+SIS_SHORT\"", "[\"+SIS_SHROT\""),
    ("[\"+SIS_SHORT\"", "[\"SIS_SHORT\""),
    ("\"-TTWU_QUEUE\"", "\"+SIS_SHORT\""),
    ("\"-TTWU_QUEUE\"", "\"+TTWU_QUEUE\""),
    ("[\"+SIS_SHORT\", \"-TTWU_QUEUE\"]", "[]"),
    ("seed = 7", "seed = -7"),
    ("seed = 7", "seed = \"7\""),
    ("repeats = 2", "repeats = 0"),
    ("repeats = 3", "repeats = 1001"),
    ("\"1ms\"", "\"1 min\""),
    ("\"2ms\"", "\"0ms\""),
    ("\"2ms\"", "\"-2ms\""),
    ("\"2ms\"", "\"200000s\""),
    ("\"2ms\"", "\"99999999999s\""),
    ("\"1ms\"", "\"18446744073s\""),
    ("context_switch1", "context_switch2"),
    ("[4, 8, 16]", "[]"),
    ("[4, 8, 16]", "[4, 8, 0]"),
    ("[4, 8, 16]", "[4, 8, -1]"),
    ("[4, 8, 16]", "[4, 8, 4]"),
    ("[4, 8, 16]", "[4, 8, 99999999]"),
    ("load = 8\nvariant", "load = 9\nvariant"),
    ("variant = \"+SIS_SHORT\"", "variant = \"-SIS_UTIL\""),
    ("variant = \"+SIS_SHORT\"\n", ""),
    ("change_pct = 5.5", "change_pct = nan"),
    ("change_pct = 5.5", "change_pct = inf"),
    ("change_pct = 5.5", "change_pct = -100.0"),
    ("variant = \"+SIS_SHORT\"\nchange_pct = 5.5", "base = 9\nvariant = 8\nunit = \"sec\""),
    ("variant = \"+SIS_SHORT\"\nchange_pct = 5.5", "base = 9\nvariant = 8\nunit = \"min\""),
    ("variant = \"+SIS_SHORT\"\nchange_pct = 5.5", "base = 9\nvariant = 8\nunit = \"us/op\""),
    (
        "change_pct = 5.5\nstd_base_pct = 1.0\nstd_variant_pct = 2.0",
        "side = \"base\"\nvalue = 9\nunit = \"sec\"",
    ),
    (
        "change_pct = 5.5\nstd_base_pct = 1.0\nstd_variant_pct = 2.0",
        "side = \"base\"\nvalue = 9\ntimes = 1000\nunit = \"s\"",
    ),
    ("std_base_pct = 1.0", "std_base_pct = -1.0"),
    ("std_base_pct = 1.0", "std_base_pct = nan"),
    ("source = \"linux-kernel, 2023-03-15\"\n\n[[case.p", "[[case.p"),
    ("name = \"wakes\"", "name = \"pairs\""),
    ("workers = 16", "wrokers = 16"),
    ("workers = 16", "workers = \"many\""),
    ("workers = 16", "workers = [16]"),
    ("workers = 16", "workers = inf"),
    ("metric = \"p99\"", "metric = \"p98\""),
    ("kind = \"peak\"", "kind = \"paek\""),
    ("case = \"pairs\"", "case = \"pears\""),
    ("case = \"pairs\"", "case = \"wakes\""),
    ("load = 8\nsource", "load = 7\nsource"),
    ("load = 8\nsource", "load = 16\nsource"),
    ("seed = 7", "seed = 7\nseed = 8"),
    ("seed = 7", "seed = "),
];

/// Text of [`RICH`], and the text in its place.
const RICH_MISTAKES: &[(&str, &str)] = &[
    ("mechanism = \"burst\"", "mechanism = \"\""),
    ("quad-1s4c", "quad-1s4d"),
    ("v5.13", "v5.12"),
    ("\"burst=40ms\", \"per", "\"burst=40\", \"per"),
    ("\"burst=40ms\", \"per", "\"burst=41ms\", \"per"),
    ("\"burst=40ms\", \"per", "\"burst=0ms\", \"per"),
    ("\"burst=40ms\", \"per", "\"app.burst=1ms\", \"per"),
    ("\"slice=1ms\"", "\"burst=40ms\""),
    ("app.burst=20ms", "burst=20ms"),
    ("quota = \"40ms\"", "quta = \"40ms\""),
    ("quota = \"40ms\"", "quota = \"40\""),
    ("quota = \"40ms\"", "quota = \"4us\""),
    ("period = \"100ms\"", "period = \"3s\""),
    ("group = {", "groups = []\ngroup = {"),
    ("parent = \"all\"", "parent = \"al\""),
    ("name = \"app\"", "name = \"all\""),
    ("name = \"app\"", "name = \"a b\""),
    ("parent = \"all\"", "tasks = [\"wroker\"]"),
    ("parent = \"all\", ", ""),
    ("\"p50\", \"p99\",", "\"p50\", \"p50\","),
    ("metrics = [\"p50\"", "metric = \"p50\"\nmetrics = [\"p50\""),
    ("app.nr_throttled", "nr_throttled"),
    ("load = 1, metric = \"p99\", base", "load = 1, base"),
    ("metric = \"p99\", base", "metric = \"p98\", base"),
    (", with = \"burst=40ms\", std_base", ", std_base"),
    ("with = \"burst=40ms\", std_base", "with = \"burst=1ms\", std_base"),
    ("variant = 99.0", "variant = 0"),
    ("base = 4680", "base = -4680"),
    ("base = 4680", "base = nan"),
    ("std_base = 46.8", "std_base = -1"),
    ("std_base = 46.8", "std_base_pct = 1, std_base = 46.8"),
    ("variant = 99.0, ", ""),
    ("base = 4680", "change_pct = 1, base = 4680"),
    ("side = \"base\", value = 4.68", "side = \"bas\", value = 4.68"),
    ("value = 4.68, ", ""),
    ("value = 4.68", "value = -4.68"),
    ("unit = \"ms\" },", "unit = \"%\" },"),
    ("unit = \"ms\" },", "unit = \"%\", work = 9 },"),
    ("unit = \"ms\" },", "times = 0 },"),
    ("unit = \"ms\" },", "times = 2, work = 9 },"),
    ("value = 99000", "work = 9, value = 99000"),
    ("value = 99000", "of = 3, value = 99000"),
    ("unit = \"us\" },", "unit = \"usec\" },"),
    ("unit = \"us\" },", "unit = \"MB/s\" },"),
    ("unit = \"ms\" },", "unit = \"1/s\", times = 9 },"),
    ("load = 4, metric = \"lock_wait_pct\"", "load = 4, noise = true, metric = \"lock_wait_pct\""),
    ("stat = \"std\"", "stat = \"mean\""),
    ("runs_above = \"10ms\"", "runs_above = \"10\""),
    ("runs_above = \"10ms\"", "runs_above = []"),
    ("value = 6, of = 10", "value = 16, of = 10"),
    ("value = 6, of = 10", "value = 6"),
    ("value = 6, of = 10", "value = 0, of = 0"),
    (
        "{ load = 1, metric = \"p99\", side = \"variant\", variant = \"-TTWU_QUEUE\", value = 99000 }",
        "{ load = 1, metric = \"p99\", side = \"base\", value = 99000 }",
    ),
    ("kind = \"onset\"", "kind = \"offset\""),
    ("from = 4\n", ""),
    ("to = 8", "to = 9"),
    ("from = 4\nto = 8", "from = 8\nto = 4"),
    ("above_pct = 5", "above_pct = nan"),
    ("above_pct = 5", "above_pct = 5\nfactor = 2"),
    ("variant = \"burst=40ms\"\n", ""),
    ("factor = 20", "factor = 0"),
    ("min = 10\nmax = 50\n", ""),
    ("min = 10\nmax = 50\n", "min = 10\nmax = 5\n"),
    ("unit = \"us\"\nsource", "unit = \"m\"\nsource"),
    ("reason = \"what", "resaon = \"what"),
    ("figures = \"no change\"", "figures = \" \""),
];

/// What is said of `whole` with each mistake in it.
fn said(file: &str, whole: &str, mistakes: &[(&str, &str)]) -> String {
    let mut said = String::new();
    for (right, wrong) in mistakes {
        assert!(whole.contains(right), "{right}");
        let error = parse(file, &whole.replacen(right, wrong, 1)).expect_err(wrong);
        assert!(error.is_input(), "{wrong}: {error}");
        assert!(error.source_code().is_some() && error.labels().is_some(), "{wrong}: {error}");
        let help = error.help().expect("every mistake has a fix");
        let _ = writeln!(said, "{wrong:?}\n  {error}\n  help: {help}");
    }
    said
}

#[test]
fn each_mistake_names_its_line_its_key_and_a_fix() {
    insta::assert_snapshot!(said("small.toml", GOOD, MISTAKES));
}

#[test]
fn each_mistake_in_a_rich_study_names_its_key_and_a_fix() {
    insta::assert_snapshot!(said("rich.toml", RICH, RICH_MISTAKES));
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
    assert!(matches!(error, StudyError::Input(_)), "{error}");
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

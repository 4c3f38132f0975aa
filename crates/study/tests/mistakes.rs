//! Every mistake in a study file is refused with its line, its key and a fix.

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
    assert_eq!(study.variants(), ["+SIS_SHORT", "-TTWU_QUEUE"]);
    assert_eq!(study.cases[0].repeats, 2);
    assert_eq!(study.cases[1].repeats, 3);
    assert_eq!(study.cases[0].warmup_ns, 1_000_000);
    assert_eq!(study.cases[1].duration_ns, 2_000_000);
    let published = &study.cases[0].points[1].published[0];
    assert_eq!(published.variant, 0);
    assert_eq!(published.figure, PublishedFigure::Change { change_pct: 5.5 });
    assert_eq!(published.source, "somebody, somewhere, 2023");
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
    ("v6.2", "v6.1", 4, "base", "did you mean `v6.12`?", "reveille policies"),
    (
        "[\"+SIS_SHORT\"",
        "[\"+SIS_SHROT\"",
        5,
        "variants",
        "did you mean `SIS_SHORT`?",
        "reveille policies",
    ),
    ("[\"+SIS_SHORT\"", "[\"SIS_SHORT\"", 5, "variants", "has no sign", "write `+SIS_SHORT`"),
    ("\"-TTWU_QUEUE\"", "\"+SIS_SHORT\"", 5, "variants", "given twice", "remove one"),
    ("\"-TTWU_QUEUE\"", "\"+TTWU_QUEUE\"", 5, "variants", "changes nothing", "leave it out"),
    ("[\"+SIS_SHORT\", \"-TTWU_QUEUE\"]", "[]", 19, "variant", "is not run", "use one"),
    ("seed = 7", "seed = -7", 6, "seed", "is negative", "use 0"),
    ("seed = 7", "seed = \"7\"", 6, "seed", "invalid type", "studies/ show"),
    ("repeats = 2", "repeats = 0", 7, "repeats", "0 repeats", "use 1 to 1000"),
    ("repeats = 3", "repeats = 1001", 30, "repeats", "1001 repeats", "use 1 to 1000"),
    ("\"1ms\"", "\"1 min\"", 8, "warmup", "no unit that is known", "such as `30ms`"),
    ("\"2ms\"", "\"0ms\"", 9, "duration", "nothing is measured", "such as `30ms`"),
    ("\"2ms\"", "\"-2ms\"", 9, "duration", "is no duration", "such as `30ms`"),
    ("\"2ms\"", "\"200000s\"", 9, "duration", "longer than a run can be", "at most 70368s"),
    ("\"2ms\"", "\"99999999999s\"", 9, "duration", "is too long", "at most 70368s"),
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
    ("workers = 16", "wrokers = 16", 28, "wrokers", "did you mean `workers`?", "known here: "),
    ("workers = 16", "workers = \"many\"", 28, "workers", "", ""),
    ("workers = 16", "workers = [16]", 28, "workers", "not a value", "a string or a number"),
    ("workers = 16", "workers = inf", 28, "workers", "not a value", "a string or a number"),
    ("metric = \"p99\"", "metric = \"p98\"", 29, "metric", "no metric", "p99"),
    ("kind = \"peak\"", "kind = \"paek\"", 33, "kind", "unknown variant", "`peak`?"),
    ("case = \"pairs\"", "case = \"pears\"", 34, "case", "did you mean `pairs`?", "`wakes`"),
    ("case = \"pairs\"", "case = \"wakes\"", 34, "case", "better the lower", "throughput"),
    ("load = 8\nsource", "load = 7\nsource", 35, "load", "load 7 is not run", "`loads`"),
    ("load = 8\nsource", "load = 16\nsource", 35, "load", "between two", "a higher load"),
    ("seed = 7", "seed = 7\nseed = 8", 7, "seed", "duplicate key", ""),
    ("seed = 7", "seed = ", 6, "seed", "", "studies/ show"),
];

/// (text of [`RICH`], text in its place, key, words of the message, words of the help)
type RichMistake = (&'static str, &'static str, &'static str, &'static str, &'static str);

const RICH_MISTAKES: &[RichMistake] = &[
    ("mechanism = \"burst\"", "mechanism = \"\"", "mechanism", "is empty", "fill it in"),
    ("quad-1s4c", "quad-1s4d", "machine", "no machine", "quad-1s4c"),
    ("v5.13", "v5.12", "base", "no baseline", "reveille policies"),
    ("\"burst=40ms\", \"per", "\"burst=40\", \"per", "variants", "no unit", "such as"),
    ("\"burst=40ms\", \"per", "\"burst=41ms\", \"per", "variants", "more than", "quota"),
    ("\"burst=40ms\", \"per", "\"burst=0ms\", \"per", "variants", "changes nothing", "leave"),
    ("\"burst=40ms\", \"per", "\"app.burst=1ms\", \"per", "variants", "no task group", "group"),
    ("\"slice=1ms\"", "\"burst=40ms\"", "variants", "given twice", "remove"),
    ("app.burst=20ms", "burst=20ms", "variants", "any of all, app", "all.burst=20ms"),
    ("quota = \"40ms\"", "quta = \"40ms\"", "quta", "unknown field", "`quota`?"),
    ("quota = \"40ms\"", "quota = \"40\"", "quota", "no unit", "such as"),
    ("quota = \"40ms\"", "quota = \"4us\"", "group", "less than 1 ms", "raise it"),
    ("period = \"100ms\"", "period = \"3s\"", "group", "period", "1 ms to 1 s"),
    ("group = {", "groups = []\ngroup = {", "groups", "beside `group`", "keep one"),
    ("parent = \"all\"", "parent = \"al\"", "parent", "did you mean `all`?", "known here"),
    ("name = \"app\"", "name = \"all\"", "name", "two groups", "another"),
    ("name = \"app\"", "name = \"a b\"", "name", "no name", "letters"),
    ("parent = \"all\"", "tasks = [\"wroker\"]", "tasks", "no kind of task", ""),
    ("\"p50\", \"p99\",", "\"p50\", \"p50\",", "metrics", "given twice", "remove"),
    ("metrics = [\"p50\"", "metric = \"p50\"\nmetrics = [\"p50\"", "metrics", "beside", "keep"),
    ("app.nr_throttled", "nr_throttled", "metrics", "no metric", "app.nr_throttled"),
    ("load = 1, metric = \"p99\", base", "load = 1, base", "metric", "several", "add `metric`"),
    ("metric = \"p99\", base", "metric = \"p98\", base", "metric", "no metric", "p99"),
    (", with = \"burst=40ms\", std_base", ", std_base", "with", "several variants", "add `with`"),
    ("with = \"burst=40ms\", std_base", "with = \"burst=1ms\", std_base", "with", "not run", "of"),
    ("variant = 99.0", "variant = 0", "variant", "no figure", "above 0"),
    ("base = 4680", "base = -4680", "base", "no figure", "above 0"),
    ("base = 4680", "base = nan", "base", "no figure", "above 0"),
    ("std_base = 46.8", "std_base = -1", "std_base", "no standard", "positive"),
    (
        "std_base = 46.8",
        "std_base_pct = 1, std_base = 46.8",
        "std_base",
        "beside `std_base_pct`",
        "keep one",
    ),
    ("variant = 99.0, ", "", "published", "no kind", "give `change_pct`"),
    ("base = 4680", "change_pct = 1, base = 4680", "base", "no meaning", "change_pct"),
    (
        "side = \"base\", value = 4.68",
        "side = \"bas\", value = 4.68",
        "side",
        "did you mean `base`?",
        "`variant`",
    ),
    ("value = 4.68, ", "", "value", "is missing", "add `value`"),
    ("value = 4.68", "value = -4.68", "value", "no figure", "positive"),
    ("unit = \"ms\" },", "unit = \"%\" },", "unit", "cannot be turned", "use ns"),
    ("unit = \"ms\" },", "unit = \"%\", work = 9 },", "unit", "no unit of time", "use ns"),
    ("unit = \"ms\" },", "times = 0 },", "times", "no figure", "above 0"),
    ("unit = \"ms\" },", "times = 2, work = 9 },", "work", "beside `times`", "keep one"),
    ("value = 99000", "work = 9, value = 99000", "unit", "is missing", "add `unit`"),
    ("value = 99000", "of = 3, value = 99000", "of", "no meaning", "side"),
    ("stat = \"std\"", "stat = \"mean\"", "stat", "no statistic", "std"),
    ("runs_above = \"10ms\"", "runs_above = \"10\"", "runs_above", "no unit", "such as"),
    ("runs_above = \"10ms\"", "runs_above = []", "runs_above", "no bound", "10ms"),
    ("value = 6, of = 10", "value = 16, of = 10", "value", "cannot be", "up to 10"),
    ("value = 6, of = 10", "value = 6", "of", "is missing", "add `of`"),
    ("value = 6, of = 10", "value = 0, of = 0", "of", "no number of runs", "how many"),
    (
        "{ load = 1, metric = \"p99\", side = \"variant\", variant = \"-TTWU_QUEUE\", value = 99000 }",
        "{ load = 1, metric = \"p99\", side = \"base\", value = 99000 }",
        "load",
        "two published figures",
        "keep one",
    ),
    ("kind = \"onset\"", "kind = \"offset\"", "kind", "unknown variant", "`onset`?"),
    ("from = 4\n", "", "from", "is missing", "add `from`"),
    ("to = 8", "to = 9", "to", "load 9 is not run", "`loads`"),
    ("from = 4\nto = 8", "from = 8\nto = 4", "to", "below `from`", "exchange"),
    ("above_pct = 5", "above_pct = nan", "above_pct", "no figure", "positive"),
    ("above_pct = 5", "above_pct = 5\nfactor = 2", "factor", "kind `onset`", "above_pct"),
    ("variant = \"burst=40ms\"\n", "", "variant", "several variants", "add `variant`"),
    ("factor = 20", "factor = 0", "factor", "no figure", "above 0"),
    ("min = 10\nmax = 50\n", "", "min", "is missing", "`max` or both"),
    ("min = 10\nmax = 50\n", "min = 10\nmax = 5\n", "max", "below `min`", "exchange"),
    ("unit = \"us\"\nsource", "unit = \"m\"\nsource", "unit", "cannot be turned", "use ns"),
    ("reason = \"what", "resaon = \"what", "resaon", "unknown field", "`reason`?"),
    ("figures = \"no change\"", "figures = \" \"", "figures", "is empty", "fill it in"),
];

#[test]
fn each_mistake_in_a_rich_study_names_its_key_and_a_fix() {
    for (right, wrong, key, message, help) in RICH_MISTAKES {
        assert!(RICH.contains(right), "{right}");
        let text = RICH.replacen(right, wrong, 1);
        let error = parse("rich.toml", &text).expect_err(wrong);
        let said = error.to_string();
        let helped = error.help().map(|h| h.to_string()).unwrap_or_default();
        assert!(error.source_code().is_some() && error.labels().is_some(), "{wrong}: {said}");
        let place = said.strip_prefix("rich.toml:").and_then(|s| s.split_once(": "));
        let (line, rest) = place.expect("file, line and key");
        assert!(line.parse::<usize>().is_ok_and(|n| n > 0), "{wrong}: {said}");
        assert!(rest.starts_with(&format!("`{key}`: ")), "{wrong}: {said}");
        assert!(said.contains(message), "{wrong}: {said}");
        assert!(!helped.is_empty() && helped.contains(help), "{wrong}: {said}; help: {helped}");
    }
}

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

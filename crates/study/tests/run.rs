//! Running a study: the same result on any number of threads, whole rows after an
//! interruption, and every run accounted for.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use reveille_study::{Comparison, Parts, RowKind, Study, Verdict, compare, parse, run, run_all};

/// Three loads, three repeats, nothing to compare.
fn parts() -> Parts<'static> {
    Parts {
        machine: "quad-1s4c",
        workload: "context_switch1",
        load: "1,2,8",
        base: "v6.2",
        repeats: 3,
        seed: 7,
        warmup: Some("1ms"),
        duration: Some("1ms"),
        ..Parts::default()
    }
}

/// Three loads, two variants, three repeats: 27 short runs.
fn study() -> Study {
    let with = ["+SIS_SHORT".to_owned(), "-TTWU_QUEUE".to_owned()];
    compare(&Parts { with: &with, ..parts() }).unwrap()
}

fn run_on(study: &Study, jobs: usize) -> Comparison {
    run(study, jobs, &AtomicBool::new(false), &|_, _| {}).unwrap()
}

#[test]
fn the_seed_shows_and_both_sides_share_it() {
    let mut study = study();
    let first = run_on(&study, 2);
    study.seed += 1;
    let second = run_on(&study, 2);
    let samples = |c: &Comparison| {
        c.rows.iter().map(|r| r.detail.baseline.samples.clone()).collect::<Vec<_>>()
    };
    assert_ne!(samples(&first), samples(&second));
    // Rows of two variants at one load have one baseline.
    assert_eq!(first.rows[0].detail.baseline.samples, first.rows[1].detail.baseline.samples);
}

#[test]
fn rows_come_load_by_load_with_every_number_filled_in() {
    let study = study();
    let comparison = run_on(&study, 2);
    let order: Vec<(u64, &str)> =
        comparison.rows.iter().map(|r| (r.load, r.variant.as_str())).collect();
    let edits = ["+SIS_SHORT", "-TTWU_QUEUE"];
    let expected: Vec<(u64, &str)> =
        [1, 2, 8].into_iter().flat_map(|load| edits.map(|e| (load, e))).collect();
    assert_eq!(order, expected);
    assert!(!comparison.partial);
    for row in &comparison.rows {
        assert_eq!(row.detail.candidate.samples.len(), 3);
        assert_eq!(row.detail.candidate.cpus.len(), 4);
        assert!(row.baseline.mean > 0.0 && row.p_value.is_some(), "{row:?}");
        assert!(row.verdict.is_none() && row.published_source.is_none());
        let last = row.detail.baseline.latency_cdf.last().unwrap();
        assert!((last.1 - 1.0).abs() < 1e-12);
    }
}

#[test]
fn progress_counts_every_run() {
    let seen = Mutex::new(Vec::new());
    let stop = AtomicBool::new(false);
    run(&study(), 2, &stop, &|done, total| seen.lock().unwrap().push((done, total))).unwrap();
    let mut seen = seen.into_inner().unwrap();
    seen.sort_unstable();
    assert_eq!(seen, (0..=27).map(|done| (done, 27)).collect::<Vec<_>>());
}

#[test]
fn an_interruption_keeps_the_first_rows() {
    let study = study();
    let whole = run_on(&study, 1);
    let stop = AtomicBool::new(false);
    // The first load's nine runs and one more.
    let tell = |done, _| stop.store(done >= 10, Ordering::Relaxed);
    let part = run(&study, 1, &stop, &tell).unwrap();
    assert!(part.partial);
    assert_eq!(part.rows.len(), 2);
    assert_eq!(format!("{:?}", part.rows), format!("{:?}", &whole.rows[..2]));
    let nothing = run(&study, 4, &AtomicBool::new(true), &|_, _| {}).unwrap();
    assert!(nothing.partial && nothing.rows.is_empty());
}

#[test]
fn published_figures_are_scored_and_claims_need_the_whole_curve() {
    let text = r#"
name = "scored"
about = "three published figures: one right, one wrong, one noisy"
machine = "quad-1s4c"
base = "v6.2"
variants = ["-WA_WEIGHT"]
repeats = 2
warmup = "1ms"
duration = "1ms"
[[case]]
name = "pairs"
workload = "context_switch1"
loads = [1, 2, 4]
source = "nobody"
published = [
    { load = 1, change_pct = 0, std_base_pct = 25 },
    { load = 2, change_pct = 900 },
    { load = 4, change_pct = 900, noise = "said to be noise" },
]
[[claim]]
kind = "peak"
case = "pairs"
load = 2
source = "nobody"
"#;
    let study = parse("scored.toml", text).unwrap();
    let whole = run_on(&study, 2);
    let verdicts: Vec<_> = whole.rows.iter().map(|r| r.verdict).collect();
    assert_eq!(verdicts[1..], [Some(Verdict::Miss), Some(Verdict::Informative)]);
    assert_eq!(whole.score.counted, 2);
    assert_eq!(whole.score.hits, usize::from(verdicts[0] == Some(Verdict::Hit)));
    assert_eq!(whole.claims.len(), 1);
    assert_eq!(whole.claims[0].published, Some(2.0));

    let stop = AtomicBool::new(false);
    let tell = |done, _| stop.store(done >= 5, Ordering::Relaxed);
    let part = run(&study, 1, &stop, &tell).unwrap();
    assert!(part.claims.is_empty() && part.rows.len() == 1);
}

/// Figures of every kind, of two metrics and two machines.
const KINDS: &str = r#"
name = "kinds"
about = "figures of every kind"
mechanism = "queues"
machine = "quad-1s4c"
base = "v6.2"
variants = ["-WA_WEIGHT"]
repeats = 3
warmup = "1ms"
duration = "2ms"
[[case]]
name = "pairs"
workload = "context_switch1"
metrics = ["throughput", "wakeup_p99_ns", "idle_pct"]
loads = [1, 2, 4]
source = "nobody"
published = [
    { load = 2, metric = "throughput", base = 100, variant = 100.0, unit = "MB/s", std_base = 25 },
    { load = 1, metric = "wakeup_p99_ns", side = "base", value = 1, unit = "ms" },
    { load = 2, metric = "wakeup_p99_ns", change_pct = 0, noise = "noise" },
    { load = 2, metric = "wakeup_p99_ns", side = "variant", value = 1000 },
    { load = 4, metric = "wakeup_p99_ns", stat = "std", base = 0.78, variant = 0.097 },
    { load = 4, metric = "wakeup_p99_ns", side = "base", runs_above = 0, value = 10, of = 10 },
    { load = 4, metric = "wakeup_p99_ns", side = "base", runs_above = "1s", value = 0, of = 10 },
]
[[case]]
name = "elsewhere"
machine = "zen4-7950x"
base = "v5.13"
workload = "context_switch1"
variants = ["-TTWU_QUEUE"]
loads = [1]
[[claim]]
kind = "between"
case = "pairs"
side = "base"
load = 1
min = 1
source = "nobody"
[[claim]]
kind = "fall"
case = "pairs"
metric = "wakeup_p99_ns"
load = 2
factor = 1000
source = "nobody"
"#;

#[test]
fn figures_of_every_kind_are_rows_of_their_own() {
    let study = parse("kinds.toml", KINDS).unwrap();
    let c = run_on(&study, 2);
    let rows: Vec<_> = c.rows.iter().map(|r| (r.load, &*r.metric.name, r.kind)).collect();
    let throughput = &*study.cases[0].metrics[0].metric.name;
    let p99 = "wakeup_p99_ns";
    let expected = [
        (1, throughput, RowKind::Change),
        (1, p99, RowKind::Side),
        (1, "idle_pct", RowKind::Change),
        (2, throughput, RowKind::Change),
        (2, p99, RowKind::Change),
        (2, p99, RowKind::Side),
        (2, "idle_pct", RowKind::Change),
        (4, throughput, RowKind::Change),
        (4, p99, RowKind::Change),
        (4, "std of wakeup_p99_ns", RowKind::Std),
        (4, "runs with wakeup_p99_ns above 0", RowKind::Runs),
        (4, "runs with wakeup_p99_ns above 1s", RowKind::Runs),
        (4, "idle_pct", RowKind::Change),
        (1, throughput, RowKind::Change),
    ];
    assert_eq!(rows, expected);
    let pair = &c.rows[3];
    assert_eq!((pair.published_baseline, pair.published_candidate), (Some(100.0), Some(100.0)));
    assert_eq!(pair.published_unit.as_deref(), Some("MB/s"));
    assert_eq!(pair.published_change_pct, Some(0.0));
    // No change, and a published spread of 25%, agree with anything near.
    assert_eq!(pair.verdict, Some(Verdict::Hit));
    let (side, noise, std) = (&c.rows[1], &c.rows[4], &c.rows[9]);
    let exact = side.baseline.mean / 1e6;
    assert!((side.ratio.unwrap() - exact).abs() < 1e-12, "{side:?}");
    let within = (0.5..=2.0).contains(&exact);
    assert_eq!(side.verdict, Some(if within { Verdict::Hit } else { Verdict::Miss }));
    assert_eq!(noise.verdict, Some(Verdict::Informative));
    assert_eq!(std.verdict, Some(Verdict::Informative));
    // Every run is above nothing, and none takes a second.
    assert_eq!((c.rows[10].baseline.mean, c.rows[10].verdict), (3.0, Some(Verdict::Hit)));
    assert_eq!((c.rows[11].baseline.mean, c.rows[11].verdict), (0.0, Some(Verdict::Hit)));
    let last = c.rows.last().unwrap();
    assert_eq!((last.machine.as_str(), last.base.as_str()), ("zen4-7950x", "v5.13"));
    assert_eq!(c.machines.len(), 2);
    let claims: Vec<Verdict> = c.claims.iter().map(|c| c.verdict).collect();
    assert_eq!(claims, [Verdict::Hit, Verdict::Miss]);
    assert_eq!((c.claim_score.hits, c.claim_score.counted), (1, 2));
}

#[test]
fn one_run_serves_all_metrics() {
    let several = run_on(&parse("kinds.toml", KINDS).unwrap(), 2);
    let text = KINDS.split("published = [").next().unwrap().replace(
        "metrics = [\"throughput\", \"wakeup_p99_ns\", \"idle_pct\"]",
        "metric = \"wakeup_p99_ns\"",
    );
    let alone = run_on(&parse("alone.toml", &text).unwrap(), 2);
    let p99 = several.rows.iter().filter(|r| r.metric.name == "wakeup_p99_ns" && r.load == 1);
    let p99: Vec<_> = p99.map(|r| r.detail.baseline.samples.clone()).collect();
    assert_eq!(p99, [alone.rows[0].detail.baseline.samples.clone()]);
}

#[test]
fn studies_together_give_what_each_gives_alone() {
    let studies = [study(), parse("kinds.toml", KINDS).unwrap()];
    let alone: Vec<String> = studies.iter().map(|s| format!("{:?}", run_on(s, 1))).collect();
    for jobs in [1, 3] {
        let never = AtomicBool::new(false);
        let together = run_all(&studies, jobs, &never, &|_, _| {}).unwrap();
        let together: Vec<String> = together.iter().map(|c| format!("{c:?}")).collect();
        assert_eq!(together, alone, "{jobs} threads");
    }
    let none = run_all(&studies, 2, &AtomicBool::new(true), &|_, _| {}).unwrap();
    assert!(none.iter().all(|c| c.partial && c.rows.is_empty()));
}

#[test]
fn settings_of_groups_reach_the_runs() {
    let groups = ["quota=2ms,period=4ms,phase=1ms".to_owned()];
    let with = ["burst=2ms".to_owned(), "+SIS_SHORT,quota=4ms".to_owned()];
    let study = compare(&Parts {
        load: "1",
        with: &with,
        metric: &["throughput".to_owned(), "throttled_pct".to_owned()],
        group: &groups,
        slice: Some("1ms"),
        repeats: 1,
        ..parts()
    })
    .unwrap();
    let case = &study.cases[0];
    assert_eq!(
        (case.groups.groups[0].limits.quota_ns, case.groups.slice_ns),
        (Some(2_000_000), 1_000_000)
    );
    assert_eq!(case.variants[0].groups.groups[0].limits.burst_ns, 2_000_000);
    assert_eq!(case.variants[0].policy.features, case.base.features);
    assert_eq!(case.variants[1].name, "+SIS_SHORT quota=4ms");
    assert_eq!(run_on(&study, 1).rows.len(), 4);
}

/// Of a pair 25% too much is a miss, of two pairs a hit; printed in thousands, and as the
/// time for a million.
#[test]
fn a_baseline_alone_is_held_against_its_machine() {
    let text = |per_s: [f64; 2]| {
        let [one, two] = [per_s[0] / 1.25 / 1e3, 1e6 / (per_s[1] / 1.25)];
        format!(
            "name = \"alone\"\nabout = \"a\"\nmachine = \"quad-1s4c\"\nbase = \"v6.2\"\n\
             variants = []\nbaselines = true\nrepeats = 2\nwarmup = \"1ms\"\nduration = \"2ms\"\n\
             [[case]]\nname = \"pairs\"\nworkload = \"context_switch1\"\nloads = [1, 2]\n\
             source = \"nobody\"\npublished = [\n\
             {{ load = 1, side = \"base\", value = {one}, unit = \"k/s\", times = 1000 }},\n\
             {{ load = 2, side = \"base\", value = {two}, unit = \"s\", work = 1000000 }},\n]\n"
        )
    };
    let run = |per_s| run_on(&parse("alone.toml", &text(per_s)).unwrap(), 1);
    let first = run([1e6, 1e6]);
    let per_s = [0, 1].map(|i| first.rows[i].baseline.mean);
    let rows = run(per_s).rows;
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|r| r.variant.is_empty() && r.baseline == r.candidate));
    assert!(rows.iter().all(|r| (r.ratio.unwrap() - 1.25).abs() < 1e-9));
    assert_eq!(rows[0].verdict, Some(Verdict::Miss));
    assert_eq!(rows[1].verdict, Some(Verdict::Hit));
}

/// Repeats are cut by the limit at other phases of its period. The tables that say what sizes are worth where
/// repeats disagree have no limits.
#[test]
fn a_size_under_a_limit_stays_as_simulated() {
    let groups = ["quota=9ms,period=4ms".to_owned()];
    let with = ["quota=10ms".to_owned()];
    let study = compare(&Parts {
        load: "6",
        with: &with,
        group: &groups,
        slice: Some("1ms"),
        duration: Some("6ms"),
        ..parts()
    })
    .unwrap();
    let row = &run_on(&study, 2).rows[0];
    let (change, simulated) = (row.change_pct, row.uncorrected_change_pct);
    assert!(row.modes.is_none() && row.p_value.unwrap() > 0.01, "{row:?}");
    assert!(simulated > 2.0 && simulated < 100.0, "{simulated} would not be corrected");
    assert_eq!(change.to_bits(), simulated.to_bits());
}

//! Running a study: the same result on any number of threads, whole rows after an
//! interruption, and every run accounted for.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use reveille_study::{Comparison, Parts, Study, Verdict, compare, parse, run};

/// Three loads, two variants, three repeats: 27 short runs.
fn study() -> Study {
    let variants = ["+SIS_SHORT".to_owned(), "-TTWU_QUEUE".to_owned()];
    compare(&Parts {
        machine: "quad-1s4c",
        workload: "context_switch1",
        load: "1,2,8",
        base: "v6.2",
        with: &variants,
        param: &[],
        metric: &[],
        group: &[],
        slice: None,
        repeats: 3,
        seed: 7,
        warmup: "1ms",
        duration: "1ms",
    })
    .unwrap()
}

fn run_on(study: &Study, jobs: usize) -> Comparison {
    run(study, jobs, &AtomicBool::new(false), &|_, _| {}).unwrap()
}

#[test]
fn the_number_of_threads_does_not_show() {
    let study = study();
    let one = format!("{:?}", run_on(&study, 1));
    for jobs in [2, 4, 32] {
        assert_eq!(format!("{:?}", run_on(&study, jobs)), one, "{jobs} threads");
    }
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

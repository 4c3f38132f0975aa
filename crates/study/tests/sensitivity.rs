//! Sensitivity and fit on a machine of two CPUs, where one constant decides a row.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use reveille_machine::{Machine, parse_toml};
use reveille_study::{
    FitOptions, Fragility, RowPlace, Sensitivity, SensitivityOptions, Side, Standing, Study,
    StudyError, Verdict, fit, fragility, parse, sensitivity,
};

const MACHINE: &str = r#"
name = "pair"
about = "two CPUs"
source = "a test"
cost = "generic-x86"
topology = { sockets = 1, llcs_per_socket = 1, cores_per_llc = 2, threads = 1 }
"#;

/// One pair on two CPUs makes some 211000 hops a second, each with an idle CPU to be
/// woken: a switch from idle that costs more than the shipped 0.3 us puts the rate below
/// half of the first figure, one that costs less lifts it above half of the second.
fn study() -> Study {
    let text = r#"
name = "probe"
about = "one pair on two CPUs"
machine = "quad-1s4c"
base = "v6.2"
variants = ["+SIS_SHORT"]
repeats = 1
warmup = "1ms"
duration = "4ms"
[[case]]
name = "pair"
workload = "context_switch1"
loads = [1, 2]
source = "a test"
published = [
    { load = 1, side = "base", value = 415000 },
    { load = 1, side = "variant", value = 440000 },
    { load = 2, change_pct = 3.0, noise = "run to run" },
]
[[case]]
name = "silent"
workload = "context_switch1"
loads = [1]
"#;
    let mut study = parse("probe.toml", text).unwrap();
    study.machines[0] = machine();
    study
}

fn machine() -> Machine {
    parse_toml("pair.toml", MACHINE).unwrap()
}

fn options(constants: &[&str], points: u32) -> SensitivityOptions {
    let constants = constants.iter().map(|c| (*c).to_owned()).collect();
    SensitivityOptions { constants, cases: Vec::new(), points }
}

fn run(options: &SensitivityOptions, jobs: usize) -> Result<Sensitivity, StudyError> {
    sensitivity(&study(), options, jobs, &AtomicBool::new(false), &|_, _| {})
}

#[test]
fn the_constant_that_decides_a_row_is_named_and_others_are_not() {
    let keys = ["switch_idle_ns", "tcp_send_ns", "idle.C1.exit_ns"];
    let result = run(&options(&keys, 5), 2).unwrap();
    assert_eq!((result.rows.len(), result.score.counted, result.score.hits), (2, 2, 1));
    assert_eq!(result.without_influence, ["tcp_send_ns"]);
    let idle = result.constants.iter().find(|c| c.key == "switch_idle_ns").unwrap();
    assert_eq!(idle.samples.len(), 5);
    assert_eq!(idle.samples[0].values, [150.0]);
    assert_eq!(idle.samples[4].values, [1200.0]);
    let first = &idle.changed[0];
    assert_eq!((first.row, first.hit_at.first(), first.miss_at.last()), (0, Some(&0), Some(&4)));
    assert_eq!(result.rows[0].standing, Standing::Fragile);
    assert!(result.rows[0].because_of.contains(&"switch_idle_ns".to_owned()));
    assert_eq!(result.rows[1].verdict, Verdict::Miss);
    assert!(idle.reach > 0.1 && idle.reach == idle.reach_low.max(idle.reach_high));
    assert!(!result.partial);
}

#[test]
fn a_study_at_its_shipped_values_is_what_a_run_shows() {
    let result = run(&options(&["noise"], 2), 2).unwrap();
    let whole = reveille_study::run(&study(), 2, &AtomicBool::new(false), &|_, _| {}).unwrap();
    let ratios = whole.rows.iter().filter(|r| r.load == 1 && r.verdict.is_some());
    assert_eq!(
        result.rows.iter().map(|r| r.ratio).collect::<Vec<_>>(),
        ratios.map(|r| r.ratio).collect::<Vec<_>>()
    );
}

#[test]
fn an_interruption_leaves_whole_constants() {
    let stop = AtomicBool::new(false);
    let seen = Mutex::new(Vec::new());
    // Shipped values and both ends of three constants: two sides of one load each.
    let tell = |done, total| {
        seen.lock().unwrap().push((done, total));
        stop.store(done >= 10, Ordering::Relaxed);
    };
    let options = options(&["ttwu_ns", "enqueue_ns", "switch_idle_ns"], 2);
    let result = sensitivity(&study(), &options, 1, &stop, &tell).unwrap();
    assert!(result.partial);
    assert_eq!(result.rows.len(), 2);
    let mut names: Vec<&str> = result.constants.iter().map(|c| c.key.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["enqueue_ns", "ttwu_ns"]);
    let stopped = AtomicBool::new(true);
    let nothing = sensitivity(&study(), &options, 2, &stopped, &|_, _| {}).unwrap();
    assert!(nothing.partial && nothing.rows.is_empty() && nothing.constants.is_empty());
}

fn fragile(jobs: usize) -> Fragility {
    // Long enough to be worth shortening.
    let mut study = study();
    study.cases[0].duration_ns *= 16;
    fragility(&[study], jobs, &AtomicBool::new(false), &|_, _| {}).unwrap()
}

#[test]
fn a_row_on_the_edge_of_its_verdict_is_fragile() {
    let found = fragile(2);
    assert!(!found.partial && found.rows.len() == 2 && found.constants > 40);
    assert!(found.rows.iter().all(|r| r.length < 1.0), "{:?}", found.rows);
    let whole = reveille_study::run(&study(), 2, &AtomicBool::new(false), &|_, _| {}).unwrap();
    for (row, side) in found.rows.iter().zip([Side::Base, Side::Variant]) {
        assert_eq!((row.place.side, row.place.load), (Some(side), 1));
        let same = |r: &&reveille_study::Row| RowPlace::of("probe", r) == row.place;
        let [shown] = whole.rows.iter().filter(same).collect::<Vec<_>>()[..] else {
            panic!("a place is that of one row: {row:?}");
        };
        assert_eq!(shown.verdict, Some(row.verdict));
        assert!(found.is_fragile(row) && row.turned < found.draws, "{row:?}");
    }
    assert_eq!(format!("{:?}", fragile(1)), format!("{found:?}"));
}

#[test]
fn an_interrupted_search_for_fragile_rows_says_so() {
    let stop = AtomicBool::new(true);
    let found = fragility(&[study()], 2, &stop, &|_, _| {}).unwrap();
    assert!(found.partial && found.rows.is_empty());
    let stop = AtomicBool::new(false);
    let tell = |done, _| stop.store(done >= 5, Ordering::Relaxed);
    assert!(fragility(&[study()], 1, &stop, &tell).unwrap().partial);
}

fn fitted(jobs: usize) -> reveille_study::Fit {
    let options = FitOptions { rounds: 2, points: 3 };
    fit(&machine(), &[study()], options, jobs, &AtomicBool::new(false), &|_, _| {}).unwrap()
}

#[test]
fn a_fit_moves_fitted_constants_only_and_gains_by_every_step() {
    let fit = fitted(2);
    assert!(fit.constants.len() <= reveille_machine::MAX_FITTED);
    assert!(fit.after.total < fit.before.total, "{:?} {:?}", fit.before, fit.after);
    assert_eq!((fit.before.hits, fit.after.hits), (1, 2));
    assert!(!fit.steps.is_empty() && !fit.partial);
    let mut before = fit.before.total;
    for step in &fit.steps {
        assert!(step.objective < before, "{step:?}");
        before = step.objective;
    }
    let (shipped, moved) = (machine(), fit.moved.as_ref().unwrap());
    for (a, b) in shipped.tunables().iter().zip(moved.tunables()) {
        assert!(a.value == b.value || a.origin.is_fitted(), "{}", a.key);
        assert!(b.low <= b.value && b.value <= b.high);
    }
    let unmoved = fit.constants.iter().filter(|c| !c.influence);
    assert!(unmoved.into_iter().all(|c| c.value == c.shipped));
    assert_eq!(format!("{:?}", fitted(1)), format!("{fit:?}"));
}

//! Running a study on a host, and against one: order of runs, refusals, failures,
//! interruption, and the rows of both worlds. The host is a fake that notes what it is
//! asked, and simulates.

mod notes;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use notes::Notes;
use reveille_host::HostError;
use reveille_measure::{HostContext, RunResult, RunSpec};
use reveille_policy::Policy;
use reveille_study::{
    Agreement, AgreementKind, HostRunner, HostSide, Stage, Study, StudyError, Verdict, agree,
    measure, parse, run,
};
use reveille_workload::Program;

/// What a run was asked: tasks, quota in ms, CPUs, seed.
type Asked = (usize, Option<u64>, Vec<u32>, u64);

#[derive(Default)]
struct Fake {
    asked: Mutex<Vec<Asked>>,
    /// Refuses sides on CPUs.
    no_cpus: bool,
    /// Ends with an error, or as after a stop, once this many runs are done.
    fails_after: Option<(usize, HostError)>,
    /// Multiplies the operations by this factor.
    factor: Option<u64>,
}

impl HostRunner for Fake {
    fn check(&self, side: &HostSide<'_>) -> Result<(), HostError> {
        if self.no_cpus && !side.cpus.is_empty() {
            return Err(HostError::input("it has one CPU", "leave the CPUs out"));
        }
        Ok(())
    }

    fn run(
        &self,
        side: &HostSide<'_>,
        program: &Program,
        spec: &RunSpec,
        stop: &AtomicBool,
    ) -> Result<RunResult, HostError> {
        let mut asked = self.asked.lock().unwrap();
        if let Some((after, error)) = &self.fails_after
            && asked.len() == *after
        {
            return Err(error.clone());
        }
        let quota = side.groups.groups.first().and_then(|g| g.limits.quota_ns);
        let quota_ms = quota.map(|ns| ns / 1_000_000);
        asked.push((program.tasks.len(), quota_ms, side.cpus.to_vec(), spec.seed));
        let machine = reveille_machine::load("quad-1s4c").unwrap();
        let policy = Policy::baseline("v6.12").unwrap();
        let result = reveille_sim::run(&machine, program, &policy, side.groups, spec, stop);
        let mut result = result.map_err(|_| HostError::Interrupted)?;
        result.operations *= self.factor.unwrap_or(1);
        Ok(result)
    }

    fn observe(&self, work: &mut dyn FnMut()) -> HostContext {
        work();
        HostContext { kernel: "6.18.1-fake".into(), cpus: 4, ..HostContext::default() }
    }
}

/// Two cases: two loads on all CPUs or on one, and a quota with and without burst.
fn study() -> Study {
    let text = r#"
name = "both"
about = "a short study in both worlds"
machine = "quad-1s4c"
base = "v6.12"
variants = ["cpus=0"]
on = "sim,host"
repeats = 3
warmup = "1ms"
duration = "2ms"
[[case]]
name = "pairs"
workload = "context_switch1"
loads = [1, 2]
[[case]]
name = "limited"
workload = "schbench_classic"
params = { workers = 3, cputime = "80ms", rps = 10 }
group = { quota = "100ms", period = "100ms", burst = "0ms" }
variants = ["burst=100ms"]
metrics = ["p99", "throttled_pct", "nr_throttled"]
loads = [1]
repeats = 4
warmup = "0ms"
duration = "2s"
"#;
    parse("both.toml", text).unwrap()
}

fn go() -> AtomicBool {
    AtomicBool::new(false)
}

fn agreed(study: &Study, fake: &Fake) -> Agreement {
    agree(study, 2, fake, &go(), &|_, _, _| {}).unwrap()
}

#[test]
fn runs_take_turns_over_the_whole_study() {
    let fake = Fake::default();
    let comparison = measure(&study(), &fake, &go(), &|_, _| {}).unwrap();
    let asked = fake.asked.into_inner().unwrap();
    let what: Vec<(usize, usize)> = asked.iter().map(|a| (a.0, a.2.len())).collect();
    // One pass: both sides of each load, then of the next; at last what has one repeat more.
    let pass = [(2, 0), (2, 1), (4, 0), (4, 1), (4, 0), (4, 0)];
    let all: Vec<_> = [&pass[..], &pass[..], &pass[..], &pass[4..]].concat();
    assert_eq!(what, all);
    // Sides of a pair share their seed, repeats do not.
    assert_eq!(asked[0].3, asked[1].3);
    assert_ne!(asked[0].3, asked[6].3);
    assert_eq!(asked[1].2, [0]);
    assert_eq!(asked[4].1, Some(100));
    assert!(!comparison.partial);
    assert_eq!(comparison.base, "Linux 6.18.1-fake");
    assert!(comparison.rows.iter().all(|r| r.base == comparison.base));
    assert_eq!(comparison.rows.len(), 2 + 3);
    assert_eq!(comparison.host.unwrap().cpus, 4);
}

#[test]
fn affinity_restricts_the_simulated_machine() {
    let comparison = run(&study(), 2, &go(), &|_, _| {}).unwrap();
    let row = &comparison.rows[0];
    assert_eq!((row.variant.as_str(), row.detail.candidate.cpus.len()), ("cpus=0", 1));
    assert_eq!(row.detail.baseline.cpus.len(), 4);
    // Two tasks on one CPU never wake each other elsewhere.
    assert_eq!(row.explain.candidate.wakeups_same_llc_per_s, 0.0);
    assert!(row.explain.candidate.wakeups_same_cpu_per_s > 0.0);
    assert!(comparison.host.is_none());
}

#[test]
fn predictions_stand_beside_measurements() {
    let stages = Mutex::new(Vec::new());
    let fake = Fake::default();
    let tell = |stage, done, _| {
        if done == 0 {
            stages.lock().unwrap().push(stage);
        }
    };
    let a = agree(&study(), 2, &fake, &go(), &tell).unwrap();
    assert_eq!(stages.into_inner().unwrap(), [Stage::Predicting, Stage::Measuring]);
    let of = |kind| a.rows.iter().filter(move |r| r.kind == kind);
    // Two loads on two sides, and three metrics on two sides.
    assert_eq!(of(AgreementKind::Value).count(), 4 + 6);
    // p99, throttled_pct and nr_throttled on two sides.
    assert_eq!(of(AgreementKind::Runs).count(), 6);
    assert_eq!(of(AgreementKind::Change).count(), 2);
    assert!(!a.partial && a.rows.iter().all(|r| !r.reason.is_empty()));
    for row in of(AgreementKind::Value).filter(|r| r.case == "pairs") {
        assert_eq!((row.predicted.samples.len(), row.measured.samples.len()), (3, 3));
    }
    for row in of(AgreementKind::Runs) {
        let (p, m) = (row.predicted_runs.unwrap(), row.measured_runs.unwrap());
        assert_eq!((p.of, m.of), (100, 4), "every phase is predicted");
    }
    // The fake ran the same model with the same seeds, all CPUs included.
    let same = of(AgreementKind::Value).filter(|r| r.case == "pairs" && r.variant.is_none());
    for row in same {
        assert_eq!(row.predicted.samples, row.measured.samples);
        assert!(row.verdict != Verdict::Miss, "{row:?}");
    }
    let verdicts = a.rows.iter().filter(|r| r.verdict != Verdict::Informative);
    assert_eq!(a.score.counted, verdicts.count());
    assert!(a.score.counted > 0);
    // The baseline has no variant's name, and a variant no null.
    assert_eq!(a.rows[0].variant, None);
    assert!(a.rows.iter().any(|r| r.variant.as_deref() == Some("burst=100ms")));
}

#[test]
fn what_differs_by_more_than_the_rule_allows_is_a_miss() {
    let fake = Fake { factor: Some(5), ..Fake::default() };
    let a = agreed(&study(), &fake);
    let pairs = |r: &&reveille_study::AgreementRow| {
        r.case == "pairs" && r.kind == AgreementKind::Value && r.variant.is_none()
    };
    let rows: Vec<_> = a.rows.iter().filter(pairs).collect();
    assert_eq!(rows.len(), 2);
    for row in rows {
        assert_eq!(row.verdict, Verdict::Miss, "{row:?}");
        assert!((row.ratio.unwrap() - 0.2).abs() < 1e-9 || row.ratio.is_none());
    }
}

#[test]
fn a_side_that_the_host_cannot_do_is_refused_before_anything_runs() {
    let fake = Fake { no_cpus: true, ..Fake::default() };
    let error = agree(&study(), 2, &fake, &go(), &|_, _, _| panic!("it runs")).unwrap_err();
    let text = error.to_string();
    assert!(error.is_input() && text.contains("`pairs`") && text.contains("`cpus=0`"), "{text}");
    let measured = measure(&study(), &fake, &go(), &|_, _| panic!("it runs"));
    assert!(matches!(measured, Err(StudyError::NotHere { .. })));
    assert!(fake.asked.into_inner().unwrap().is_empty());
}

#[test]
fn a_phase_alone_is_nothing_that_a_kernel_can_be_told() {
    let mut study = study();
    let case = &mut study.cases[1];
    case.variants[0].groups = case.groups.clone();
    case.variants[0].groups.groups[0].phase_ns = Some(1_000_000);
    let error = measure(&study, &Fake::default(), &go(), &|_, _| {}).unwrap_err();
    assert!(error.to_string().contains("phase"), "{error}");
}

#[test]
fn a_run_without_a_result_ends_the_study_and_says_which() {
    let died = HostError::Died { who: "a worker".into(), how: "was killed by signal 9".into() };
    let fake = Fake { fails_after: Some((3, died)), ..Fake::default() };
    let error = measure(&study(), &fake, &go(), &|_, _| {}).unwrap_err();
    let text = error.to_string();
    assert!(!error.is_input(), "{text}");
    for word in ["`pairs`", "load 2", "cpus=0", "a worker was killed by signal 9"] {
        assert!(text.contains(word), "{text}");
    }
}

#[test]
fn what_was_measured_before_a_stop_is_kept() {
    // One whole pass of six runs, and of the next both sides of one load and one of the other.
    let fake = Fake { fails_after: Some((9, HostError::Interrupted)), ..Fake::default() };
    let a = agreed(&study(), &fake);
    assert!(a.partial);
    let repeats = |case: &str, load| {
        let row = a.rows.iter().find(|r| r.case == case && r.load == load).unwrap();
        row.measured.samples.len()
    };
    assert_eq!(repeats("pairs", 1), 2);
    assert_eq!(repeats("pairs", 2), 1, "one side of the second repeat is not enough");
    assert_eq!(repeats("limited", 1), 1);
    let fake = Fake { fails_after: Some((1, HostError::Interrupted)), ..Fake::default() };
    let none = agreed(&study(), &fake);
    assert!(none.partial && none.rows.is_empty() && none.score.counted == 0);
}

#[test]
fn a_stop_while_predicting_measures_nothing() {
    let (stop, fake) = (go(), Fake::default());
    let tell = |stage, done, _| {
        if stage == Stage::Predicting && done == 1 {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let a = agree(&study(), 1, &fake, &stop, &tell).unwrap();
    assert!(a.partial && a.rows.is_empty());
    assert!(fake.asked.into_inner().unwrap().is_empty());
}

#[test]
fn features_that_differ_from_the_baseline_are_what_a_kernel_is_told() {
    let mut study = study();
    let base = Policy::baseline("v6.12").unwrap().with("-WA_IDLE").unwrap();
    study.cases.truncate(1);
    let case = &mut study.cases[0];
    case.variants[0].policy = base.with("+WA_IDLE -TTWU_QUEUE").unwrap();
    case.base = Policy { base: "v6.12 -WA_IDLE".into(), edits: String::new(), ..base };
    let host = Notes::default();
    measure(&study, &host, &go(), &|_, _| {}).unwrap();
    let off = |name: &str| (name.to_owned(), false);
    let switches: Vec<_> = host.told().into_iter().map(|(_, switches)| switches).collect();
    assert_eq!(switches, [vec![off("WA_IDLE")], vec![off("TTWU_QUEUE")]]);
}

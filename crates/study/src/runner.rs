//! Runs studies: every case × load × policy × repeat, spread over threads, and folds
//! the runs into comparisons.
//!
//! The result does not depend on how many threads there are: each run's seed
//! comes from its place in the study, and what a run leaves behind is either kept
//! by index or summed in whole numbers.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use rayon::iter::{ParallelBridge, ParallelIterator};
use reveille_measure::{CpuTime, Explain, Latency, RunResult, RunSpec};
use reveille_sim::SimError;

use crate::comparison::MachineUsed;
use crate::rows::{self, Finished};
use crate::{Case, Comparison, Point, Study, StudyError, verdict};

/// Runs a study on `jobs` threads (at least one).
///
/// `progress` is called from any thread with the number of finished runs and the
/// number of all runs. Once `stop` is set, no run is begun and those under way
/// end; the comparison then holds the rows whose runs are all finished and says
/// that it is partial.
///
/// Both sides of a row use the same seeds, run by run.
///
/// # Errors
/// [`StudyError::Run`] if the simulator cannot finish a run, which is the
/// workload's fault; [`StudyError::Threads`] if the system refuses threads.
pub fn run(
    study: &Study,
    jobs: usize,
    stop: &AtomicBool,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Comparison, StudyError> {
    let queue = |_: &Slot<'_>| 0;
    let mut comparisons = run_in_order(&[study], queue, jobs, stop, progress)?;
    Ok(comparisons.remove(0))
}

/// Runs several studies as [`run`] runs one, all runs together, so that no thread
/// waits for the last run of a study. Long runs are begun first.
///
/// # Errors
/// As [`run`].
pub fn run_all(
    studies: &[Study],
    jobs: usize,
    stop: &AtomicBool,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<Comparison>, StudyError> {
    let studies: Vec<&Study> = studies.iter().collect();
    run_in_order(&studies, |slot| slot.shortness(), jobs, stop, progress)
}

/// Runs are begun by rising `order` of their slots, and else as they stand in studies.
fn run_in_order(
    studies: &[&Study],
    order: impl Fn(&Slot<'_>) -> u64,
    jobs: usize,
    stop: &AtomicBool,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<Comparison>, StudyError> {
    let slots: Vec<Slot<'_>> =
        studies.iter().enumerate().flat_map(|(i, study)| matrix(i, study)).collect();
    let runs: Vec<Run> = slots.iter().enumerate().flat_map(|(i, p)| p.runs(i)).collect();
    let mut queue: Vec<(usize, &Run)> = runs.iter().enumerate().collect();
    queue.sort_by_key(|(_, run)| order(&slots[run.slot]));
    let jobs = jobs.clamp(1, runs.len().max(1));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build();
    let pool = pool.map_err(|e| StudyError::Threads { jobs, reason: e.to_string() })?;
    let failures = Failures::default();
    let done = AtomicUsize::new(0);
    progress(0, runs.len());
    // A bridge hands out runs in order, one by one: after an interruption the
    // first rows are whole.
    let queue = queue.into_iter().par_bridge();
    pool.install(|| {
        queue.for_each(|(i, run)| {
            if stop.load(Ordering::Relaxed) || failures.before(i) {
                return;
            }
            match slots[run.slot].simulate(run, stop) {
                Ok(()) => progress(1 + done.fetch_add(1, Ordering::Relaxed), runs.len()),
                Err(SimError::Interrupted) => {}
                Err(error) => failures.add(i, error),
            }
        });
    });
    if let Some((i, error)) = failures.first() {
        let run = &runs[i];
        let slot = &slots[run.slot];
        return Err(StudyError::Run {
            case: slot.case.name.clone(),
            load: slot.point.load,
            policy: slot.case.side_name(run.side).to_owned(),
            error,
        });
    }
    let of_study = |i: usize| slots.iter().filter(move |s| s.study_index == i);
    let fold = |(i, study): (usize, &&Study)| fold(study, &of_study(i).collect::<Vec<_>>());
    Ok(studies.iter().enumerate().map(fold).collect())
}

/// One run of the matrix.
struct Run {
    /// Index into the matrix.
    slot: usize,
    /// From 0.
    repeat: usize,
    /// 0 is the baseline; variant i is i + 1.
    side: usize,
}

/// One load of one case, and what its runs have left behind so far.
struct Slot<'a> {
    study_index: usize,
    study: &'a Study,
    case_index: usize,
    case: &'a Case,
    point: &'a Point,
    sides: Vec<SideRuns>,
}

/// All repeats under one policy.
struct SideRuns {
    /// Metrics and explanation, by repeat.
    runs: Vec<OnceLock<(Vec<f64>, Explain)>>,
    /// The rest of all repeats together.
    pooled: Mutex<Pooled>,
}

/// Sums over repeats; whole numbers, so the order does not show.
#[derive(Default)]
struct Pooled {
    wakeup_latency: Latency,
    cpus: Vec<CpuTime>,
}

/// Every load of every case, in the order of the study.
fn matrix(study_index: usize, study: &Study) -> Vec<Slot<'_>> {
    let mut slots = Vec::new();
    for (case_index, case) in study.cases.iter().enumerate() {
        for point in &case.points {
            let sides = (0..=case.variants.len()).map(|_| SideRuns::new(case)).collect();
            slots.push(Slot { study_index, study, case_index, case, point, sides });
        }
    }
    slots
}

/// The seed of a run. The side has no part in it: a pair of runs differs in its
/// policy and in nothing else.
fn seed(study_seed: u64, case: usize, load: u64, repeat: usize) -> u64 {
    [case as u64, load, repeat as u64].into_iter().fold(mix(study_seed), |s, x| mix(s ^ mix(x)))
}

/// One step of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl Slot<'_> {
    /// The runs of this slot, which is the matrix's `slot`.
    fn runs(&self, slot: usize) -> impl Iterator<Item = Run> + use<> {
        let sides = self.sides.len();
        let repeats = self.case.repeats as usize;
        (0..repeats).flat_map(move |repeat| (0..sides).map(move |side| Run { slot, repeat, side }))
    }

    /// Falls as a run of this slot takes longer: real time grows with virtual time and
    /// with the number of tasks.
    fn shortness(&self) -> u64 {
        let virtual_us = (self.case.warmup_ns + self.case.duration_ns) / 1000;
        u64::MAX - virtual_us.saturating_mul(self.point.program.tasks.len() as u64)
    }

    fn simulate(&self, run: &Run, stop: &AtomicBool) -> Result<(), SimError> {
        let (study, case) = (self.study, self.case);
        let spec = RunSpec {
            seed: seed(study.seed, self.case_index, self.point.load, run.repeat),
            warmup_ns: case.warmup_ns,
            duration_ns: case.duration_ns,
        };
        let (policy, groups) = case.setup(run.side);
        let machine = &study.machines[case.machine];
        let program = &self.point.program;
        let result = reveille_sim::run(machine, program, policy, groups, &spec, stop)?;
        self.sides[run.side].add(run.repeat, case, &result);
        Ok(())
    }
}

impl SideRuns {
    fn new(case: &Case) -> SideRuns {
        SideRuns {
            runs: (0..case.repeats).map(|_| OnceLock::new()).collect(),
            pooled: Mutex::default(),
        }
    }

    fn add(&self, repeat: usize, case: &Case, result: &RunResult) {
        let mut pooled = self.pooled.lock().expect("no other run panics while it adds");
        pooled.wakeup_latency.merge(&result.wakeup_latency);
        pooled.cpus.resize(result.cpus.len(), CpuTime::default());
        for (sum, cpu) in pooled.cpus.iter_mut().zip(&result.cpus) {
            sum.busy_ns += cpu.busy_ns;
            sum.idle_ns += cpu.idle_ns;
            sum.cost_ns += cpu.cost_ns;
        }
        let explain = result.explain();
        let samples = case.metrics.iter().map(|m| m.sample(result, &explain)).collect();
        self.runs[repeat].set((samples, explain)).expect("each repeat is run once");
    }

    /// What all repeats amount to, once all are finished.
    fn finished(&self, case: &Case) -> Option<Finished> {
        let runs: Option<Vec<_>> = self.runs.iter().map(OnceLock::get).collect();
        let runs = runs?;
        let of_metric = |m: usize| runs.iter().map(|(samples, _)| samples[m]).collect();
        let explained: Vec<Explain> = runs.iter().map(|(_, e)| e.clone()).collect();
        let pooled = self.pooled.lock().expect("all runs are over");
        Some(Finished {
            samples: (0..case.metrics.len()).map(of_metric).collect(),
            explain: Explain::mean(&explained),
            latency_cdf: pooled.wakeup_latency.cdf(),
            cpus: pooled.cpus.clone(),
        })
    }
}

/// The failed run that stands first in the study, whichever thread met it.
#[derive(Default)]
struct Failures(Mutex<Option<(usize, SimError)>>);

impl Failures {
    fn first(self) -> Option<(usize, SimError)> {
        self.0.into_inner().expect("all runs are over")
    }

    /// Has an earlier run than `i` failed?
    fn before(&self, i: usize) -> bool {
        let first = self.0.lock().expect("nothing panics under this lock");
        first.as_ref().is_some_and(|(f, _)| *f < i)
    }

    fn add(&self, i: usize, error: SimError) {
        let mut first = self.0.lock().expect("nothing panics under this lock");
        if first.as_ref().is_none_or(|(f, _)| i < *f) {
            *first = Some((i, error));
        }
    }
}

/// What the finished runs of a study amount to.
fn fold(study: &Study, slots: &[&Slot<'_>]) -> Comparison {
    let finished: Vec<Vec<Option<Finished>>> = slots
        .iter()
        .map(|slot| slot.sides.iter().map(|side| side.finished(slot.case)).collect())
        .collect();
    let mut rows = Vec::new();
    let mut partial = false;
    for (slot, sides) in slots.iter().zip(&finished) {
        let machine = &study.machines[slot.case.machine].name;
        for index in 0..slot.case.variants.len() {
            match (&sides[0], &sides[index + 1]) {
                (Some(base), Some(candidate)) => {
                    rows.extend(rows::rows(machine, slot.case, slot.point, index, base, candidate))
                }
                _ => partial = true,
            }
        }
    }
    let claims = study.statements.iter().filter_map(|statement| {
        let first = slots.iter().position(|s| s.case_index == statement.case)?;
        let samples = |at: usize, side: usize| {
            let side = finished[first + at][side].as_ref()?;
            Some(side.samples[statement.metric].as_slice())
        };
        statement.claim(study, &samples)
    });
    let claims: Vec<_> = claims.collect();
    let machines = study.machines.iter().map(|machine| MachineUsed {
        name: machine.name.clone(),
        topology: machine.topology.describe(),
        cost_model: machine.cost_model.clone(),
    });
    let machines: Vec<MachineUsed> = machines.collect();
    Comparison {
        study: study.name.clone(),
        mechanism: study.mechanism.clone(),
        machine: machines[0].name.clone(),
        topology: machines[0].topology.clone(),
        cost_model: machines[0].cost_model.clone(),
        machines,
        base: study.base.base.clone(),
        score: verdict::score(&rows),
        claim_score: verdict::count(claims.iter().map(|c| c.verdict)),
        partial,
        rows,
        claims,
        unpredicted: study.unpredicted.clone(),
    }
}

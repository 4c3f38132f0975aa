//! Simulates studies: every case × load × policy × repeat, spread over threads, and folds
//! the runs into comparisons.
//!
//! The result does not depend on how many threads there are: each run's seed
//! comes from its place in the study, and so does what it leaves behind.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rayon::iter::{ParallelBridge, ParallelIterator};
use reveille_policy::Policy;
use reveille_sim::SimError;

use crate::judge::comparison::Comparison;
use crate::judge::score;
use crate::judge::skill::Skill;
use crate::model::error::{Result, StudyError};
use crate::model::scheduler::Scheduler;
use crate::model::study::{Case, Study};
use crate::run::fold::comparison;
use crate::run::interference::JointRuns;
use crate::run::matrix::{Run, Slot, matrix};

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
) -> Result<Comparison> {
    let queue = |_: &Slot<'_>| 0;
    let mut comparisons = run_in_order(&[study], queue, jobs, stop, progress)?;
    Ok(comparisons.remove(0))
}

/// Runs several studies as [`run`] runs one, all runs together, so that no thread
/// waits for the last run of a study. Long runs are begun first.
pub fn run_all(
    studies: &[Study],
    jobs: usize,
    stop: &AtomicBool,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<Comparison>> {
    let studies: Vec<&Study> = studies.iter().collect();
    run_in_order(&studies, |slot| slot.shortness(), jobs, stop, progress)
}

/// Runs start by ascending `order` of their slots; ties in the order of the studies.
fn run_in_order(
    studies: &[&Study],
    order: impl Fn(&Slot<'_>) -> u64,
    jobs: usize,
    stop: &AtomicBool,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<Comparison>> {
    let slots: Vec<Slot<'_>> =
        studies.iter().enumerate().flat_map(|(i, study)| matrix(i, study)).collect();
    let joint = JointRuns::new(studies);
    let joint_runs = joint.len();
    run_slots(&slots, order, jobs, stop, &|done, all| progress(done, all + joint_runs))?;
    let of_slots: usize = slots.iter().map(Slot::n_runs).sum();
    let done = AtomicUsize::new(of_slots);
    let pool = pool(jobs.clamp(1, joint_runs.max(1)))?;
    pool.install(|| {
        joint.run(stop, &|| {
            progress(1 + done.fetch_add(1, Ordering::Relaxed), of_slots + joint_runs);
        });
    });
    let of_study = |i: usize| slots.iter().filter(move |s| s.study_index == i);
    let fold = |(i, study): (usize, &&Study)| {
        let mut comparison = comparison(study, &of_study(i).collect::<Vec<_>>(), None);
        let (rows, partial) = joint.rows(i);
        comparison.rows.extend(rows);
        comparison.partial |= partial;
        comparison.score = score::score(&comparison.rows);
        comparison.skill = Skill::of(&comparison.rows);
        comparison
    };
    Ok(studies.iter().enumerate().map(fold).collect())
}

/// Simulates every run of the slots, on `jobs` threads.
pub(crate) fn run_slots(
    slots: &[Slot<'_>],
    order: impl Fn(&Slot<'_>) -> u64,
    jobs: usize,
    stop: &AtomicBool,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<()> {
    slots.iter().try_for_each(|slot| predictable(slot.case))?;
    let n_runs = slots.iter().map(Slot::n_runs).sum();
    // The sides of a repeat one after the other: some turn out to need no run of their own.
    let runs = slots.iter().enumerate().flat_map(|(i, slot)| slot.runs(i));
    let runs: Vec<Run> = runs.filter(|run| run.side == 0).collect();
    let mut queue: Vec<(usize, &Run)> = runs.iter().enumerate().collect();
    queue.sort_by_key(|(_, run)| order(&slots[run.slot]));
    let jobs = jobs.clamp(1, runs.len().max(1));
    let pool = pool(jobs)?;
    let failures = Failures::default();
    let done = AtomicUsize::new(0);
    progress(0, n_runs);
    // A bridge hands out runs in order, one by one: after an interruption the
    // first rows are whole.
    let queue = queue.into_iter().par_bridge();
    pool.install(|| {
        queue.for_each(|(i, run)| {
            if stop.load(Ordering::Relaxed) || failures.before(i) {
                return;
            }
            let finished = || progress(1 + done.fetch_add(1, Ordering::Relaxed), n_runs);
            let slot = &slots[run.slot];
            match simulate(slot, run, &mut (0..slot.sides()).collect(), stop, &finished) {
                Ok(()) | Err((_, SimError::Interrupted)) => {}
                Err((side, error)) => failures.add(i, side, error),
            }
        });
    });
    if let Some((i, side, error)) = failures.first() {
        let slot = &slots[runs[i].slot];
        return Err(StudyError::Run {
            case: slot.case.name.clone(),
            load: slot.point.load,
            policy: slot.case.side_name(side).to_owned(),
            error,
        });
    }
    Ok(())
}

fn pool(jobs: usize) -> Result<rayon::ThreadPool> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build();
    pool.map_err(|e| StudyError::Threads { jobs, reason: e.to_string() })
}

/// Refuses a case with a side whose scheduler has no model.
pub fn predictable(case: &Case) -> Result<()> {
    for side in 0..=case.variants.len() {
        if let Scheduler::Other(scheduler) = case.scheduler(side) {
            return Err(StudyError::Unpredictable {
                case: case.name.clone(),
                policy: case.side_name(side).to_owned(),
                scheduler: scheduler.clone(),
            });
        }
    }
    Ok(())
}

/// Runs the sides of a repeat that are `left`; several as one, as far as they decide the same.
/// Calls `finished` for each and takes it off. On an error, also the side.
pub(crate) fn simulate(
    slot: &Slot<'_>,
    first: &Run,
    left: &mut Vec<usize>,
    stop: &AtomicBool,
    finished: &dyn Fn(),
) -> Result<(), (usize, SimError)> {
    let case = slot.case;
    while let Some(&side) = left.first() {
        let groups = case.setup(side).1;
        let machine = case.machine_of(&slot.study.machines, side);
        let alike =
            |&other: &usize| case.setup(other).1 == groups && case.cpus(other) == case.cpus(side);
        let together: Vec<usize> = left.iter().copied().filter(alike).collect();
        let policies: Vec<&Policy> = together.iter().map(|&s| case.setup(s).0).collect();
        let (program, spec) = (&slot.point.program, slot.spec(first));
        let run = reveille_sim::run_together(&machine, program, &policies, groups, &spec, stop);
        let shared = run.map_err(|(index, error)| (together[index], error))?;
        for (policies, result) in shared {
            for side in policies.into_iter().map(|index| together[index]) {
                slot.add(&Run { side, ..*first }, &result);
                left.retain(|&other| other != side);
                finished();
            }
        }
    }
    Ok(())
}

/// The failed run that stands first in the study, whichever thread met it, with its side.
#[derive(Default)]
struct Failures(Mutex<Option<(usize, usize, SimError)>>);

impl Failures {
    fn first(self) -> Option<(usize, usize, SimError)> {
        self.0.into_inner().expect("all runs are over")
    }

    /// Has an earlier run than `i` failed?
    fn before(&self, i: usize) -> bool {
        let first = self.0.lock().expect("nothing panics under this lock");
        first.as_ref().is_some_and(|(f, ..)| *f < i)
    }

    fn add(&self, i: usize, side: usize, error: SimError) {
        let mut first = self.0.lock().expect("nothing panics under this lock");
        if first.as_ref().is_none_or(|(f, ..)| i < *f) {
            *first = Some((i, side, error));
        }
    }
}

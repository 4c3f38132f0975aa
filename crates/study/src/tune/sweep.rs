//! Reruns studies with changed machine constants, for sensitivity analysis and for fitting. Only
//! loads with a published figure that counts are run.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread;

use reveille_machine::Machine;

use crate::judge::comparison::Comparison;
use crate::judge::row::{Detail, Row};
use crate::judge::statistics::Figure;
use crate::judge::verdict::{self, Verdict};
use crate::model::error::{Result, StudyError};
use crate::model::study::{Case, Study};
use crate::run::runner;

/// Machines that take the place of those of the same name.
pub(crate) type Trial = Vec<Machine>;

/// The rows of a trial that count, by study; `None` if it was interrupted.
pub(crate) type Outcome = Option<Vec<Vec<Row>>>;

/// How many worker threads there are, what stops them, and whom to tell.
pub(crate) struct Pool<'a> {
    pub(crate) jobs: usize,
    pub(crate) stop: &'a AtomicBool,
    /// Told the number of finished runs and of all that are known to be needed.
    pub(crate) progress: &'a (dyn Fn(usize, usize) + Sync),
}

/// Studies reduced to what counts.
pub(crate) struct Sweep {
    studies: Vec<Study>,
    done: AtomicUsize,
}

/// One load of one case of one study in one trial.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    pub(crate) trial: usize,
    pub(crate) study: usize,
    pub(crate) case: usize,
    pub(crate) point: usize,
    /// Its runs take the study's warm-up and duration divided by this.
    pub(crate) shorter: u64,
}

impl Sweep {
    /// Keeps of `studies` the loads with a published figure that counts, in cases for
    /// which `keep` holds.
    pub(crate) fn new(studies: &[Study], keep: impl Fn(&Study, &Case) -> bool) -> Sweep {
        let reduced = |study: &Study| {
            let mut reduced = study.clone();
            reduced.statements.clear();
            // Machines have no part in it.
            reduced.interference.clear();
            for case in &mut reduced.cases {
                let kept = keep(study, case);
                case.points.retain(|p| kept && p.published.iter().any(verdict::counts));
            }
            reduced
        };
        Sweep { studies: studies.iter().map(reduced).collect(), done: AtomicUsize::new(0) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.studies.iter().all(|s| s.cases.iter().all(|c| c.points.is_empty()))
    }

    /// The machines that are run on, each once, in the order of studies and cases.
    pub(crate) fn machines(&self) -> Vec<&Machine> {
        let mut machines: Vec<&Machine> = Vec::new();
        for study in &self.studies {
            for case in study.cases.iter().filter(|c| !c.points.is_empty()) {
                let machine = &study.machines[case.machine];
                if machines.iter().all(|m| m.name != machine.name) {
                    machines.push(machine);
                }
            }
        }
        machines
    }

    pub(crate) fn runs(&self) -> usize {
        self.parts(0).map(|part| self.part_runs(part)).sum()
    }

    pub(crate) fn finished(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }

    /// Every load at its whole length.
    pub(crate) fn parts(&self, trial: usize) -> impl Iterator<Item = Part> + '_ {
        self.studies.iter().enumerate().flat_map(move |(study, s)| {
            s.cases.iter().enumerate().flat_map(move |(case, c)| {
                (0..c.points.len()).map(move |point| Part { trial, study, case, point, shorter: 1 })
            })
        })
    }

    pub(crate) fn part_runs(&self, part: Part) -> usize {
        let case = &self.studies[part.study].cases[part.case];
        case.repeats as usize * (1 + case.variants.len())
    }

    /// Runs every trial, the runs of all of them in one pool. `later` runs are
    /// announced with the progress and belong to a later call. The outcome does not
    /// depend on the number of jobs.
    pub(crate) fn run(
        &self,
        trials: &[Trial],
        later: usize,
        pool: &Pool<'_>,
    ) -> Result<Vec<Outcome>> {
        let parts: Vec<Part> = (0..trials.len()).flat_map(|t| self.parts(t)).collect();
        let results = self.run_parts(&parts, trials, later, pool)?;
        let nothing = || Some(vec![Vec::new(); self.studies.len()]);
        let mut outcomes: Vec<Outcome> = trials.iter().map(|_| nothing()).collect();
        for (part, rows) in parts.iter().zip(results) {
            let outcome = &mut outcomes[part.trial];
            match (outcome.as_mut(), rows) {
                (Some(all), Some(rows)) => all[part.study].extend(rows),
                _ => *outcome = None,
            }
        }
        Ok(outcomes)
    }

    /// The rows that count of each of these parts; `None` of one that was interrupted.
    pub(crate) fn run_parts(
        &self,
        parts: &[Part],
        trials: &[Trial],
        later: usize,
        pool: &Pool<'_>,
    ) -> Result<Vec<Option<Vec<Row>>>> {
        let runs: usize = parts.iter().map(|p| self.part_runs(*p)).sum();
        let total = self.done.load(Ordering::Relaxed) + runs + later;
        let tell = |done| (pool.progress)(done, total);
        tell(self.done.load(Ordering::Relaxed));
        let queue = Queue {
            next: AtomicUsize::new(0),
            results: parts.iter().map(|_| OnceLock::new()).collect(),
            failure: Mutex::new(None),
        };
        let outlines: Vec<Study> = self.studies.iter().map(outline).collect();
        let work = || {
            queue.work(pool.stop, |i| {
                let part = parts[i];
                let study = self.part(&outlines[part.study], part, &trials[part.trial]);
                let finished = |done: usize, _| {
                    if done > 0 {
                        tell(1 + self.done.fetch_add(1, Ordering::Relaxed));
                    }
                };
                runner::run(&study, 1, pool.stop, &finished)
            });
        };
        let jobs = pool.jobs.clamp(1, parts.len().max(1));
        thread::scope(|scope| {
            let start = |_| thread::Builder::new().spawn_scoped(scope, work).map(drop);
            (0..jobs).try_for_each(start)
        })
        .map_err(|e| StudyError::Threads { jobs, reason: e.to_string() })?;
        if let Some((_, error)) = queue.failure.into_inner().expect("all runs are over") {
            return Err(error);
        }
        Ok(queue.results.into_iter().map(OnceLock::into_inner).collect())
    }

    /// The study of one part: its case keeps its place, on which its seeds depend.
    fn part(&self, outline: &Study, part: Part, trial: &Trial) -> Study {
        let mut study = outline.clone();
        let point = &self.studies[part.study].cases[part.case].points[part.point];
        let case = &mut study.cases[part.case];
        case.points.push(point.clone());
        case.warmup_ns /= part.shorter;
        case.duration_ns /= part.shorter;
        for machine in &mut study.machines {
            if let Some(moved) = trial.iter().find(|m| m.name == machine.name) {
                machine.clone_from(moved);
            }
        }
        study
    }
}

/// The study without any load.
fn outline(study: &Study) -> Study {
    let mut outline = Study { cases: Vec::new(), ..study.clone() };
    outline.cases = study.cases.iter().map(|c| Case { points: Vec::new(), ..c.clone() }).collect();
    outline
}

/// Parts of the work, handed out in order.
struct Queue {
    next: AtomicUsize,
    results: Vec<OnceLock<Vec<Row>>>,
    /// The failed part that stands first, whichever thread met it.
    failure: Mutex<Option<(usize, StudyError)>>,
}

impl Queue {
    /// Takes parts until there are none, the run is stopped, or an earlier one failed.
    fn work(&self, stop: &AtomicBool, run: impl Fn(usize) -> Result<Comparison>) {
        loop {
            let i = self.next.fetch_add(1, Ordering::Relaxed);
            if i >= self.results.len() || stop.load(Ordering::Relaxed) || self.failed_before(i) {
                return;
            }
            match run(i) {
                Ok(comparison) if comparison.partial => return,
                Ok(comparison) => {
                    let set = self.results[i].set(counted(comparison));
                    set.expect("each part is run once");
                }
                Err(error) => self.fail(i, error),
            }
        }
    }

    fn failed_before(&self, i: usize) -> bool {
        let first = self.failure.lock().expect("nothing panics under this lock");
        first.as_ref().is_some_and(|(f, _)| *f < i)
    }

    fn fail(&self, i: usize, error: StudyError) {
        let mut first = self.failure.lock().expect("nothing panics under this lock");
        if first.as_ref().is_none_or(|(f, _)| i < *f) {
            *first = Some((i, error));
        }
    }
}

/// The rows that count, without what only plots need.
fn counted(comparison: Comparison) -> Vec<Row> {
    let rows = comparison.rows.into_iter();
    let rows = rows.filter(|r| matches!(r.verdict, Some(Verdict::Hit | Verdict::Miss)));
    rows.map(|row| Row { detail: Detail::default(), ..row }).collect()
}

/// Are figures and everything that explains them the same in all rows?
pub(crate) fn same<'a>(
    a: impl IntoIterator<Item = &'a Row>,
    b: impl IntoIterator<Item = &'a Row>,
) -> bool {
    // Bits, for a spread that is not a number is the same as another.
    let bits = |f: Figure| [f.mean, f.rel_std].map(f64::to_bits);
    let of = |r: &'a Row| (bits(r.baseline), bits(r.candidate), &r.explain);
    a.into_iter().map(of).eq(b.into_iter().map(of))
}

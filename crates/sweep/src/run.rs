//! Runs the cells of a sweep on several threads. What is finished goes to the journal at once.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use reveille_machine::Machine;
use reveille_measure::Shard;
use reveille_place::Mistake;
use reveille_study::{self as study, Runs, Study, StudyError, run_sides};
use reveille_workload::Workload;

use crate::design::{Cell, CellId, Design, Point};
use crate::error::SweepError;
use crate::journal::{Journal, Known, MetricRuns, Outcome, Outcomes};

pub struct Sweep {
    pub design: Design,
    pub(crate) machines: Vec<Machine>,
    pub(crate) workloads: Vec<LoadedWorkload>,
    /// By machine, base and workload, in this order of significance.
    pub(crate) templates: Vec<Template>,
}

pub(crate) struct LoadedWorkload {
    pub(crate) workload: Workload,
    pub(crate) params: std::collections::BTreeMap<String, String>,
}

/// Which side of a study an edit is, or why it is none.
pub(crate) type Side = Result<usize, String>;

/// A comparison of all edits that lacks machine, load and seed.
pub(crate) struct Template {
    pub(crate) study: Study,
    /// By edit.
    pub(crate) sides: Vec<Side>,
}

/// Told the number of finished cells and of all.
pub type Progress<'a> = &'a (dyn Fn(usize, usize) + Sync);

impl Sweep {
    /// The machines, as the spec names them.
    pub fn machines(&self) -> &[Machine] {
        &self.machines
    }

    /// Runs the cells of a shard that the journal does not have. `None` once `stop` is set, or
    /// the outcomes of the whole shard.
    ///
    /// # Errors
    /// The journal cannot be written; threads cannot be started. A cell that fails is an outcome.
    pub fn run(
        &self,
        shard: Shard,
        (journal, known): (&Journal, Known),
        jobs: usize,
        stop: &AtomicBool,
        progress: Progress<'_>,
    ) -> Result<Option<Outcomes>, SweepError> {
        let points = self.design.points();
        let dealt = points.iter().enumerate().filter(|(rank, _)| shard.has(*rank));
        let points: Vec<&(String, Point)> = dealt.map(|(_, point)| point).collect();
        let total = points.len() * self.design.edits.len();
        let suspects: HashSet<CellId> = known.suspects.into_iter().collect();
        let work = Work {
            sweep: self,
            journal,
            stop,
            failure: Mutex::new(None),
            told: AtomicUsize::new(known.outcomes.len()),
            outcomes: Mutex::new(known.outcomes),
            progress: &|done| progress(done, total),
        };
        progress(work.told.load(Ordering::Relaxed), total);
        // What may have ended the process runs alone, so that it is known if it does so again.
        for (id, point) in &points {
            let suspect = |edit: &usize| suspects.contains(&self.design.cell_id(id, *edit));
            let edits: Vec<usize> = (0..self.design.edits.len()).filter(suspect).collect();
            work.point(id, point, &edits, true);
        }
        let (next, all) = (AtomicUsize::new(0), (0..self.design.edits.len()).collect::<Vec<_>>());
        let worker = || {
            while let Some((id, point)) = points.get(next.fetch_add(1, Ordering::Relaxed)) {
                work.point(id, point, &all, false);
            }
        };
        thread::scope(|scope| {
            let start = |_| thread::Builder::new().spawn_scoped(scope, worker).map(drop);
            (0..jobs.clamp(1, points.len().max(1))).try_for_each(start)
        })
        .map_err(|e| StudyError::Threads { jobs, reason: e.to_string() })?;
        if let Some(error) = work.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        let outcomes = work.outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok((outcomes.len() >= total).then_some(outcomes))
    }

    /// The comparison of a point, and which side of it each edit is.
    fn study(&self, point: &Point) -> Result<(Study, &[Side]), Mistake> {
        let (bases, workloads) = (self.design.bases.len(), self.workloads.len());
        let index = (point.machine * bases + point.base) * workloads + point.workload;
        let template = &self.templates[index];
        let mut study = template.study.clone();
        let mut machine = self.machines[point.machine].clone();
        for (constant, value) in self.design.constants.iter().zip(&point.constants) {
            let set = machine.set(&constant.key, *value);
            set.map_err(|error| Mistake::new(error.to_string(), ""))?;
        }
        study.machines = vec![machine];
        study.seed = self.design.seeds[point.seed];
        let LoadedWorkload { workload, params } = &self.workloads[point.workload];
        let load = self.design.load(point);
        let program = workload.build(load, params).map_err(|error| Mistake::of(&error, ""))?;
        for case in &mut study.cases {
            let point = study::Point { load, program: program.clone(), published: Vec::new() };
            case.points = vec![point];
        }
        Ok((study, &template.sides))
    }
}

struct Work<'a> {
    sweep: &'a Sweep,
    journal: &'a Journal,
    stop: &'a AtomicBool,
    outcomes: Mutex<Outcomes>,
    told: AtomicUsize,
    failure: Mutex<Option<SweepError>>,
    progress: &'a (dyn Fn(usize) + Sync),
}

impl Work<'_> {
    /// Runs the cells of a point, under those of `edits` that are left.
    fn point(&self, id: &str, point: &Point, edits: &[usize], alone: bool) {
        let ids = edits.iter().map(|&edit| (self.sweep.design.cell_id(id, edit), edit));
        let left: Vec<(CellId, usize)> = {
            let outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
            ids.filter(|(id, _)| !outcomes.contains_key(id)).collect()
        };
        if left.is_empty() || self.stop.load(Ordering::Relaxed) {
            return;
        }
        if let Err(error) = self.cells(point, left, alone) {
            self.stop.store(true, Ordering::Relaxed);
            let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            failure.get_or_insert(error);
        }
    }

    fn cells(
        &self,
        point: &Point,
        left: Vec<(CellId, usize)>,
        alone: bool,
    ) -> Result<(), SweepError> {
        let (study, sides) = match self.sweep.study(point) {
            Ok(found) => found,
            Err(mistake) => {
                let failed = |(id, _)| (id, Outcome::Failed(mistake.problem.clone()));
                return self.keep(left.into_iter().map(failed).collect());
            }
        };
        let (mut refused, mut built_in, mut files) = (Vec::new(), Vec::new(), Vec::new());
        for (id, edit) in left {
            match &sides[edit] {
                Err(reason) => refused.push((id, Outcome::Failed(reason.clone()))),
                Ok(side) if self.sweep.design.edits[edit].file.is_none() => {
                    built_in.push((id, *side));
                }
                Ok(side) => files.push((id, *side)),
            }
        }
        self.keep(refused)?;
        // Those that decide the same share one run.
        self.sides(&study, built_in)?;
        for (id, side) in files {
            if self.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            self.journal.begun(&id, alone)?;
            self.sides(&study, vec![(id, side)])?;
        }
        Ok(())
    }

    fn sides(&self, study: &Study, cells: Vec<(CellId, usize)>) -> Result<(), SweepError> {
        let sides: Vec<usize> = cells.iter().map(|(_, side)| *side).collect();
        let Some(ran) = run_sides(study, &sides, self.stop)? else { return Ok(()) };
        let finished = cells.into_iter().zip(ran).map(|((id, _), ran)| {
            let outcome = match ran {
                Ok(runs) => Outcome::Ran(runs.into_iter().map(kept).collect()),
                Err(error) => Outcome::Failed(error.to_string()),
            };
            (id, outcome)
        });
        self.keep(finished.collect())
    }

    fn keep(&self, cells: Vec<(CellId, Outcome)>) -> Result<(), SweepError> {
        if cells.is_empty() {
            return Ok(());
        }
        self.journal.finished(&cells)?;
        let n = cells.len();
        self.outcomes.lock().unwrap_or_else(PoisonError::into_inner).extend(cells);
        (self.progress)(n + self.told.fetch_add(n, Ordering::Relaxed));
        Ok(())
    }
}

fn kept(Runs { samples, enough_ns, migrations_per_wakeup }: Runs) -> MetricRuns {
    let finite = |x: &f64| x.is_finite();
    let samples = samples.into_iter().map(|x| Some(x).filter(finite)).collect();
    let migrations_per_wakeup = migrations_per_wakeup.filter(finite);
    MetricRuns { samples, enough_ns, migrations_per_wakeup }
}

/// The cells of a shard, with their ids.
pub(crate) fn cells<'a>(
    design: &'a Design,
    points: &'a [(String, Point)],
    shard: Shard,
) -> impl Iterator<Item = (CellId, &'a str, Cell<'a>)> {
    let dealt = points.iter().enumerate().filter(move |(rank, _)| shard.has(*rank));
    dealt.flat_map(move |(_, (id, point))| {
        let cell = move |edit| (design.cell_id(id, edit), id.as_str(), Cell { point, edit });
        (0..design.edits.len()).map(cell)
    })
}

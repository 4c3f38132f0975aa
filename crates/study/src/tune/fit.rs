//! Fits a machine's unmeasured constants to everything published for it, moving one at a time to
//! the lowest objective. There is no way to fit one row.

use std::sync::atomic::AtomicBool;

use reveille_machine::{Machine, Tunable};
use reveille_place::Mistake;
use serde::Serialize;

use crate::judge::row::Row;
use crate::judge::verdict::Verdict;
use crate::model::error::{Result, StudyError};
use crate::model::study::Study;
use crate::tune::objective::{Objective, objective};
use crate::tune::sensitivity::MAX_POINTS;
use crate::tune::sweep::{self, Pool, Sweep, Trial};

pub const DEFAULT_ROUNDS: u32 = 3;
pub const MAX_ROUNDS: u32 = 20;
/// A step must gain this much, so that rounding of sums decides nothing.
const LEAST_GAIN: f64 = 1e-9;

#[derive(Clone, Copy, Debug)]
pub struct FitOptions {
    /// Rounds over all constants, at most; 1 to [`MAX_ROUNDS`].
    pub rounds: u32,
    /// Positions tried across each range, both ends included; 2 to [`MAX_POINTS`].
    pub points: u32,
}

#[derive(Clone, Debug, Serialize)]
pub struct Fit {
    pub machine: String,
    /// Names of the studies with rows that count on it.
    pub studies: Vec<String>,
    /// What may be moved: the numbers whose origin is `fitted`.
    pub constants: Vec<FittedConstant>,
    /// At the shipped values.
    pub before: Objective,
    pub after: Objective,
    /// Every move that was kept, in order.
    pub steps: Vec<FitStep>,
    /// Every row that counts.
    pub rows: Vec<FitRow>,
    /// True if no move of one constant to another position would gain anything.
    pub converged: bool,
    /// True if it was interrupted; values are the best until then.
    pub partial: bool,
    #[serde(skip)]
    pub moved: Option<Machine>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FittedConstant {
    pub key: String,
    /// `ns`, `count` or `ratio`.
    pub unit: &'static str,
    pub low: f64,
    pub high: f64,
    pub shipped: f64,
    pub value: f64,
    /// False if every run was the same at both ends of its range.
    pub influence: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FitStep {
    /// From 1.
    pub round: u32,
    pub key: String,
    pub from: f64,
    pub to: f64,
    /// After the step.
    pub objective: f64,
    /// Rows that hit after the step.
    pub hits: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FitRow {
    pub study: String,
    pub case: String,
    /// Load in the workload's own unit.
    pub load: u64,
    pub variant: String,
    pub metric: String,
    /// Predicted by published at the shipped values; null if there is no such number.
    pub ratio_before: Option<f64>,
    pub ratio_after: Option<f64>,
    /// Verdict at the shipped values.
    pub verdict_before: Verdict,
    pub verdict_after: Verdict,
}

/// Fits the constants of `machine` whose origin is `fitted` to every row of `studies`
/// that counts and runs on a machine of that name: constant after constant is put to
/// that of a fixed set of positions across its range at which the objective is lowest,
/// until a round changes nothing.
///
/// `progress` is told the number of finished runs and of all that may be needed. Once
/// `stop` is set, the moves kept so far are returned and the result says that it is
/// partial.
///
/// # Errors
/// [`InputError::Option`](reveille_place::InputError::Option) for numbers outside their bounds, a machine without fitted
/// constants, or one on which nothing counts; else as [`run`](crate::run).
pub fn fit(
    machine: &Machine,
    studies: &[Study],
    options: FitOptions,
    jobs: usize,
    stop: &AtomicBool,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Fit> {
    within("--rounds", options.rounds, 1, MAX_ROUNDS)?;
    within("--points", options.points, 2, MAX_POINTS)?;
    let is_fitted = |t: &Tunable| t.origin.is_fitted() && t.low < t.high;
    let constants: Vec<Tunable> = machine.tunables().into_iter().filter(is_fitted).collect();
    if constants.is_empty() {
        let text = format!("no constant of {} is fitted", machine.name);
        let help = "others have a source and stay as they are; name another machine";
        return Err(StudyError::option("--machine", Mistake::new(text, help)));
    }
    let sweep =
        Sweep::new(studies, |study, case| study.machines[case.machine].name == machine.name);
    if sweep.is_empty() {
        let text = format!("nothing that counts was published for {}", machine.name);
        let help = "`reveille studies NAME` shows the machine of a study";
        return Err(StudyError::option("--machine", Mistake::new(text, help)));
    }
    let pool = Pool { jobs, stop, progress };
    let descent = Descent::start(machine, constants, &sweep, options, &pool)?;
    let names: Vec<&str> = studies.iter().map(|s| s.name.as_str()).collect();
    Ok(descent.fit(&names))
}

fn within(option: &'static str, value: u32, low: u32, high: u32) -> Result<()> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    let problem =
        Mistake::new(format!("{value} is too few or too many"), format!("use {low} to {high}"));
    Err(StudyError::option(option, problem))
}

struct Descent {
    constants: Vec<Tunable>,
    influence: Vec<bool>,
    name: String,
    machine: Machine,
    before: Option<Vec<Vec<Row>>>,
    now: Vec<Vec<Row>>,
    steps: Vec<FitStep>,
    converged: bool,
    partial: bool,
}

impl Descent {
    fn start(
        machine: &Machine,
        constants: Vec<Tunable>,
        sweep: &Sweep,
        options: FitOptions,
        pool: &Pool<'_>,
    ) -> Result<Descent> {
        let mut descent = Descent {
            influence: vec![true; constants.len()],
            constants,
            name: machine.name.clone(),
            machine: machine.clone(),
            before: None,
            now: Vec::new(),
            steps: Vec::new(),
            converged: false,
            partial: false,
        };
        let round = descent.constants.len() * options.points as usize * sweep.runs();
        let shipped = sweep.run(&[vec![machine.clone()]], round, pool)?.remove(0);
        let Some(shipped) = shipped else {
            descent.partial = true;
            return Ok(descent);
        };
        descent.now.clone_from(&shipped);
        descent.before = Some(shipped);
        // Constants in a row that stayed where they are.
        let mut unmoved = 0;
        for round in 1..=options.rounds {
            for i in 0..descent.constants.len() {
                if unmoved >= descent.constants.len() {
                    descent.converged = true;
                    return Ok(descent);
                }
                let later = (descent.constants.len() - i - 1) * options.points as usize;
                let later = later * sweep.runs();
                match descent.step(i, round, options.points, sweep, later, pool)? {
                    None => {
                        descent.partial = true;
                        return Ok(descent);
                    }
                    Some(true) => unmoved = 1,
                    Some(false) => unmoved += 1,
                }
            }
        }
        descent.converged = unmoved >= descent.constants.len();
        Ok(descent)
    }

    /// Puts one constant where the objective is lowest; is that another place? `None`
    /// if interrupted.
    fn step(
        &mut self,
        i: usize,
        round: u32,
        points: u32,
        sweep: &Sweep,
        later: usize,
        pool: &Pool<'_>,
    ) -> Result<Option<bool>> {
        if !self.influence[i] {
            return Ok(Some(false));
        }
        let key = self.constants[i].key.clone();
        let from = self.value(&self.machine, i);
        let tunable = self.machine.tunables().into_iter().find(|t| t.key == key);
        let tunable = tunable.expect("a machine keeps its numbers");
        let mut values: Vec<f64> =
            (0..points).map(|p| tunable.at(f64::from(p) / f64::from(points - 1))).collect();
        values.push(self.constants[i].value);
        let (mut ends, mut inner): (Vec<f64>, Vec<f64>) =
            values.into_iter().partition(|v| *v == tunable.low || *v == tunable.high);
        for list in [&mut ends, &mut inner] {
            list.retain(|v| *v != from);
            list.sort_by(f64::total_cmp);
            list.dedup();
        }
        let mut tried: Vec<(f64, Vec<Vec<Row>>)> = Vec::new();
        for values in [ends, inner] {
            // What changes nothing at both ends is not looked at further.
            let same = |(_, rows): &(f64, Vec<Vec<Row>>)| {
                sweep::same(rows.iter().flatten(), self.now.iter().flatten())
            };
            if round == 1 && !tried.is_empty() && tried.iter().all(same) {
                self.influence[i] = false;
                return Ok(Some(false));
            }
            let machines = values.iter().map(|v| self.with(&key, *v));
            let trials: Vec<Trial> = machines.map(|m| vec![m]).collect();
            for (value, rows) in values.iter().zip(sweep.run(&trials, later, pool)?) {
                let Some(rows) = rows else { return Ok(None) };
                tried.push((*value, rows));
            }
        }
        let mut best = self.objective(&self.machine, &self.now);
        let mut found = None;
        for (value, rows) in tried {
            let machine = self.with(&key, value);
            let objective = self.objective(&machine, &rows);
            if objective.total < best.total - LEAST_GAIN {
                best = objective;
                found = Some((value, machine, rows));
            }
        }
        let Some((to, machine, rows)) = found else { return Ok(Some(false)) };
        (self.machine, self.now) = (machine, rows);
        let (objective, hits) = (best.total, best.hits);
        self.steps.push(FitStep { round, key, from, to, objective, hits });
        Ok(Some(true))
    }

    fn with(&self, key: &str, value: f64) -> Machine {
        let mut machine = self.machine.clone();
        // The shipped value of an idle state may lie beyond a neighbour that has moved.
        let _ = machine.set(key, value);
        machine
    }

    fn value(&self, machine: &Machine, i: usize) -> f64 {
        let tunables = machine.tunables();
        let found = tunables.iter().find(|t| t.key == self.constants[i].key);
        found.map_or(self.constants[i].value, |t| t.value)
    }

    fn objective(&self, machine: &Machine, rows: &[Vec<Row>]) -> Objective {
        let moved = self.constants.iter().enumerate().map(|(i, shipped)| {
            (self.value(machine, i) - shipped.value) / (shipped.high - shipped.low)
        });
        objective(&rows.iter().flatten().collect::<Vec<_>>(), &moved.collect::<Vec<f64>>())
    }

    fn fit(self, studies: &[&str]) -> Fit {
        let constants = self.constants.iter().enumerate().map(|(i, t)| FittedConstant {
            key: t.key.clone(),
            unit: t.unit(),
            low: t.low,
            high: t.high,
            shipped: t.value,
            value: self.value(&self.machine, i),
            influence: self.influence[i],
        });
        let before = self.before.clone().unwrap_or_default();
        let mut used = Vec::new();
        let mut rows = Vec::new();
        for ((study, before), after) in studies.iter().zip(&before).zip(&self.now) {
            rows.extend(before.iter().zip(after).map(|(b, a)| fit_row(study, b, a)));
            if !before.is_empty() {
                used.push((*study).to_owned());
            }
        }
        let still = vec![0.0; self.constants.len()];
        Fit {
            constants: constants.collect(),
            before: objective(&before.iter().flatten().collect::<Vec<_>>(), &still),
            after: self.objective(&self.machine, &self.now),
            machine: self.name.clone(),
            studies: used,
            steps: self.steps,
            rows,
            converged: self.converged,
            partial: self.partial,
            moved: Some(self.machine),
        }
    }
}

fn fit_row(study: &str, before: &Row, after: &Row) -> FitRow {
    FitRow {
        study: study.to_owned(),
        case: before.case.clone(),
        load: before.load,
        variant: before.variant.clone(),
        metric: before.metric.to_string(),
        ratio_before: before.ratio,
        ratio_after: after.ratio,
        verdict_before: before.verdict.unwrap_or(Verdict::Informative),
        verdict_after: after.verdict.unwrap_or(Verdict::Informative),
    }
}

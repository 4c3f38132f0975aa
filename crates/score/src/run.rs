//! Runs a candidate over a suite: the cheap cells, and unless they reject it, the rest.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Instant;

use reveille_place::InputError;
use reveille_sim::SimError;
use reveille_study::{Comparison, Parts, Study, StudyError};

use crate::cell::{Candidate, Cell, Status};
use crate::judge::{Score, judge};
use crate::suite::{Suite, SuiteCase};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stages {
    /// The cheap ones, and the rest unless those fail a guardrail.
    Cascade,
    /// The cheap ones.
    First,
    /// All of them, whatever the cheap ones say.
    All,
}

#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub stages: Stages,
    /// Simulations at a time.
    pub jobs: usize,
    /// When to stop, if ever.
    pub deadline: Option<Instant>,
}

/// Scores a candidate against `base`, or the suite's own. `progress` is told the number of
/// finished runs and of all. Once `stop` is set or the deadline has passed, runs under way end,
/// and the score is of the cells that have all their repeats.
///
/// # Errors
/// A mistake in the suite with its place, in the base or the edits with their option, or a run
/// that fails for another reason than the candidate's file.
pub fn score(
    suite: &Suite,
    base: Option<&str>,
    candidate: &Candidate,
    options: &Options,
    stop: &AtomicBool,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Score, StudyError> {
    let base = base.unwrap_or(&suite.base);
    let (first, rest): (Vec<&SuiteCase>, Vec<&SuiteCase>) =
        suite.cases.iter().partition(|case| *case.stage.get_ref() == 1);
    let mut stages = match options.stages {
        Stages::Cascade => vec![first, rest],
        Stages::First => vec![first],
        Stages::All => vec![suite.cases.iter().collect()],
    };
    stages.retain(|cases| !cases.is_empty());
    // Every mistake is found before the first run.
    let built = stages.into_iter().map(|cases| {
        let studies = cases.iter().map(|case| study(suite, case, base, candidate));
        Ok((cases.clone(), studies.collect::<Result<Vec<Study>, StudyError>>()?))
    });
    let stages = built.collect::<Result<Vec<_>, StudyError>>()?;
    let score = |cells: Vec<Cell>, not_run, end: Option<Status>| {
        judge(suite, base, candidate, cells, not_run, end)
    };
    let (mut cells, mut not_run) = (Vec::new(), Vec::new());
    let n_stages = stages.len();
    for (i, (cases, studies)) in stages.into_iter().enumerate() {
        let (ran, in_time) = match run(&studies, options, stop, progress) {
            Err(StudyError::Run { error: error @ SimError::Policy { .. }, case, load, .. }) => {
                let reason = format!("{case} at load {load}: {error}; {}", error.help());
                let status = Status::PolicyFailed;
                return Ok(Score::failed(suite, base, &candidate.name(), status, reason));
            }
            ran => ran?,
        };
        for ((case, study), comparison) in cases.iter().zip(&studies).zip(&ran) {
            for point in &study.cases[0].points {
                match comparison.rows.iter().find(|row| row.load == point.load) {
                    Some(row) => cells.push(Cell::new(case, row)),
                    None => not_run.push(case.label(point.load)),
                }
            }
        }
        if !not_run.is_empty() {
            let end = if in_time { Status::Interrupted } else { Status::TimeLimit };
            return Ok(score(cells, not_run, Some(end)));
        }
        if i + 1 < n_stages {
            let early = score(cells.clone(), Vec::new(), None);
            if early.status == Status::GuardrailFailed {
                return Ok(score(cells, Vec::new(), Some(Status::Rejected)));
            }
        }
    }
    Ok(score(cells, not_run, None))
}

/// Runs studies until they or the time ends; was it in time?
fn run(
    studies: &[Study],
    options: &Options,
    stop: &AtomicBool,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<(Vec<Comparison>, bool), StudyError> {
    let in_time = AtomicBool::new(true);
    let ran = thread::scope(|scope| {
        let (done, wait) = channel::<()>();
        if let Some(deadline) = options.deadline {
            let in_time = &in_time;
            let end = move || {
                in_time.store(false, Ordering::Relaxed);
                stop.store(true, Ordering::Relaxed);
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                end(); // now, not when the host gives the thread its turn
            } else {
                scope.spawn(move || {
                    if wait.recv_timeout(left) == Err(RecvTimeoutError::Timeout) {
                        end();
                    }
                });
            }
        }
        let ran = reveille_study::run_all(studies, options.jobs, stop, progress);
        drop(done);
        ran
    })?;
    Ok((ran, in_time.into_inner()))
}

impl SuiteCase {
    /// `tcp_rr 8 on zen4-7950x`, as [`Cell::label`].
    pub(crate) fn label(&self, load: u64) -> String {
        format!("{} {load} on {}", self.workload(), self.machine())
    }
}

fn study(
    suite: &Suite,
    case: &SuiteCase,
    base: &str,
    candidate: &Candidate,
) -> Result<Study, StudyError> {
    let loads: Vec<String> = case.loads.get_ref().iter().map(u64::to_string).collect();
    let params: Vec<String> = case.params.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let metric: Vec<String> = case.metric.iter().map(|m| m.get_ref().clone()).collect();
    let (mut with, mut files) = (Vec::new(), Vec::new());
    match candidate {
        Candidate::Base => {}
        Candidate::Edits(edits) => with.push(edits.clone()),
        Candidate::File(file, edits) => files.push((file.clone(), edits.clone())),
    }
    let study = reveille_study::compare(&Parts {
        machine: case.machine(),
        workload: case.workload(),
        load: &loads.join(","),
        base,
        with: &with,
        files: &files,
        param: &params,
        metric: &metric,
        repeats: case.repeats.as_ref().map_or(reveille_study::DEFAULT_REPEATS, |r| *r.get_ref()),
        seed: suite.seed,
        warmup: case.warmup.as_deref(),
        duration: case.duration.as_deref(),
        ..Parts::default()
    });
    study.map_err(|error| placed(suite, case, error))
}

/// A mistake in what the suite says stands in the suite; what the user said is an option.
fn placed(suite: &Suite, case: &SuiteCase, error: StudyError) -> StudyError {
    let StudyError::Input(InputError::Option { option, mistake }) = error else { return error };
    let metric = case.metric.as_ref().map(toml::Spanned::span);
    let (span, key) = match option {
        "--with" => return InputError::Option { option: "EDITS", mistake }.into(),
        "--policy" => return InputError::Option { option: "FILE.c,EDITS", mistake }.into(),
        "--base" => return InputError::Option { option, mistake }.into(),
        "--machine" => (case.machine.span(), "machine"),
        "--workload" => (case.workload.span(), "workload"),
        "--load" => (case.loads.span(), "loads"),
        "--metric" => (metric.unwrap_or(case.workload.span()), "metric"),
        "--param" => (case.workload.span(), "params"),
        other => (case.workload.span(), other.trim_start_matches('-')),
    };
    suite.source.error(&span, Some(key), mistake)
}

//! The native module of the Python package: simulations in this process, and tables that Arrow
//! readers take. `python/src/reveille` is the face that users see.

mod errors;
mod recording;
mod table;
mod watch;

use std::time::{Duration, Instant};

use pyo3::prelude::*;
use reveille_score::{Candidate, Options, Stages, Suite};
use reveille_study::{On, Parts, duration_ns};

use crate::errors::raised;
use crate::watch::{Progress, watched};

/// Compares policies; returns what `reveille compare --json` prints.
#[pyfunction]
#[pyo3(signature = (*, machine, workload, load, base, variants, param, metric, group, slice=None,
    repeats=reveille_study::DEFAULT_REPEATS, seed=reveille_study::DEFAULT_SEED, warmup=None,
    duration=None, jobs=None, progress=None))]
#[expect(clippy::too_many_arguments, reason = "Python names each")]
fn compare(
    py: Python<'_>,
    machine: &str,
    workload: &str,
    load: &str,
    base: &str,
    variants: Vec<String>,
    param: Vec<String>,
    metric: Vec<String>,
    group: Vec<String>,
    slice: Option<&str>,
    repeats: u32,
    seed: u64,
    warmup: Option<&str>,
    duration: Option<&str>,
    jobs: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let study = reveille_study::compare(&Parts {
        machine,
        workload,
        load,
        base,
        with: &variants,
        files: &[],
        param: &param,
        metric: &metric,
        group: &group,
        slice,
        on: On::Sim,
        repeats,
        seed,
        warmup,
        duration,
    });
    let study = study.map_err(|error| raised(py, &error))?;
    let compared = watched(py, progress, |stop, tell: &Progress<'_>| {
        reveille_study::run(&study, jobs_or_all(jobs), stop, tell)
    })?;
    compared.map(|c| reveille_report::json_text(&c)).map_err(|error| raised(py, &error))
}

/// Runs a study; returns what `reveille study --json` prints.
#[pyfunction]
#[pyo3(signature = (spec, *, repeats=None, seed=None, machine=None, jobs=None, progress=None))]
fn study(
    py: Python<'_>,
    spec: &str,
    repeats: Option<u32>,
    seed: Option<u64>,
    machine: Option<&str>,
    jobs: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let edited = || {
        let mut study = reveille_study::load(spec)?;
        if let Some(repeats) = repeats {
            study = study.with_repeats(repeats)?;
        }
        if let Some(machine) = machine {
            study = study.on_machine(reveille_study::machine(machine)?)?;
        }
        study.seed = seed.unwrap_or(study.seed);
        Ok(study)
    };
    let study = edited().map_err(|error| raised(py, &error))?;
    let compared = watched(py, progress, |stop, tell: &Progress<'_>| {
        reveille_study::run(&study, jobs_or_all(jobs), stop, tell)
    })?;
    compared.map(|c| reveille_report::json_text(&c)).map_err(|error| raised(py, &error))
}

/// Scores edits of a baseline; returns what `reveille score --json` prints.
#[pyfunction]
#[pyo3(signature = (edits, *, base=None, suite="default", holdout=false, stage=None,
    time_limit=None, artifact_bytes=reveille_score::DEFAULT_ARTIFACT_BYTES, seed=None, jobs=None,
    progress=None))]
#[expect(clippy::too_many_arguments, reason = "Python names each")]
fn score(
    py: Python<'_>,
    edits: &str,
    base: Option<&str>,
    suite: &str,
    holdout: bool,
    stage: Option<u8>,
    time_limit: Option<&str>,
    artifact_bytes: usize,
    seed: Option<u64>,
    jobs: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let limit = time_limit.map(duration_ns).transpose();
    let limit =
        limit.map_err(|error| errors::wrong_option(py, "time_limit", &error.to_string()))?;
    let deadline = limit.map(|ns| Instant::now() + Duration::from_nanos(ns));
    let stages = match stage {
        None => Stages::Cascade,
        Some(1) => Stages::First,
        Some(2) => Stages::All,
        Some(_) => return Err(errors::wrong_option(py, "stage", "there are stages 1 and 2")),
    };
    let loaded = Suite::load(suite).and_then(|suite| match holdout {
        true => suite.load_holdout(),
        false => Ok(suite),
    });
    let mut suite = loaded.map_err(|error| raised(py, &error))?;
    suite.seed = seed.unwrap_or(suite.seed);
    let candidate = match edits {
        "" => Candidate::Base,
        edits => Candidate::Edits(edits.to_owned()),
    };
    let options = Options { stages, jobs: jobs_or_all(jobs), deadline };
    let scored = watched(py, progress, |stop, tell: &Progress<'_>| {
        reveille_score::score(&suite, base, &candidate, &options, stop, tell)
    })?;
    let mut score = scored.map_err(|error| raised(py, &error))?;
    score.limit_artifacts(artifact_bytes);
    Ok(reveille_report::json_text(&score))
}

fn jobs_or_all(jobs: Option<usize>) -> usize {
    jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()))
}

#[pymodule]
fn _reveille(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", reveille_report::VERSION)?;
    module.add_class::<table::Table>()?;
    module.add_class::<recording::Recording>()?;
    module.add_function(wrap_pyfunction!(compare, module)?)?;
    module.add_function(wrap_pyfunction!(study, module)?)?;
    module.add_function(wrap_pyfunction!(score, module)?)
}

//! The rules that a study must keep, wherever it comes from. A rule says what is
//! wrong and how to mend it; its caller knows the place: a line of a file, or an
//! option of the command line.

use std::collections::BTreeMap;

use miette::Diagnostic;
use reveille_measure::{DurationError, Ns, duration_ns};
use reveille_place::Mistake;
use reveille_sim::MAX_RUN_NS;
use reveille_workload::{Workload, WorkloadError};

use crate::model::on::On;
use crate::model::study::Point;

/// Position of the first duplicate in a list.
pub(crate) fn duplicate<T: PartialEq>(items: &[T]) -> Option<usize> {
    (1..items.len()).find(|&i| items[..i].contains(&items[i]))
}

pub(crate) fn seed(seed: i64) -> Result<u64, Mistake> {
    u64::try_from(seed)
        .map_err(|_| Mistake::new(format!("{seed} is negative"), "use 0 or a positive number"))
}

pub(crate) fn load(load: i64) -> Result<u64, Mistake> {
    u64::try_from(load).ok().filter(|n| *n > 0).ok_or_else(|| {
        Mistake::new(
            format!("a load of {load} runs nothing"),
            "a load is at least 1; remove this one",
        )
    })
}

pub(crate) fn loads(loads: &[u64]) -> Result<(), (usize, Mistake)> {
    if loads.is_empty() {
        let problem = Mistake::new("no load is given", "name at least one, such as 56");
        return Err((0, problem));
    }
    match duplicate(loads) {
        Some(i) => {
            let text = format!("load {} is given twice", loads[i]);
            Err((i, Mistake::new(text, "remove one of them")))
        }
        None => Ok(()),
    }
}

pub(crate) fn time(text: &str) -> Result<Ns, Mistake> {
    duration_ns(text).map_err(|error| {
        let help = match &error {
            DurationError::TooLong(_) => longest(),
            _ => error.help().to_owned(),
        };
        Mistake::new(error.to_string(), help)
    })
}

pub(crate) fn measured(warmup_ns: Ns, duration_ns: Ns) -> Result<Ns, Mistake> {
    if duration_ns == 0 {
        return Err(Mistake::new("nothing is measured in no time", "use some ms, such as `30ms`"));
    }
    if warmup_ns.checked_add(duration_ns).is_none_or(|sum| sum > MAX_RUN_NS) {
        let text = "warm-up and duration together are longer than a run can be";
        return Err(Mistake::new(text, longest()));
    }
    Ok(duration_ns)
}

fn longest() -> String {
    let seconds = MAX_RUN_NS / 1_000_000_000;
    format!("a run lasts at most {seconds}s of virtual time, warm-up included; 30ms is usual")
}

pub(crate) fn on(text: &str) -> Result<On, Mistake> {
    text.parse().map_err(|text: String| Mistake::new(text, "`sim` is usual, and the default"))
}

/// Is `name` a parameter of the workload?
pub(crate) fn param(workload: &Workload, name: &str) -> Result<(), Mistake> {
    if workload.params.iter().any(|p| p.name == name) {
        return Ok(());
    }
    let known = workload.params.iter().map(|p| p.name.as_str());
    Err(Mistake::unknown(&format!("parameter of {}", workload.name), name, known))
}

/// A TOML value as the text of a parameter.
///
/// # Errors
/// A value that no parameter has, such as a list.
pub fn param_text(value: &toml::Value) -> Result<String, Mistake> {
    match value {
        toml::Value::String(text) => Ok(text.clone()),
        toml::Value::Integer(_) | toml::Value::Boolean(_) => Ok(value.to_string()),
        toml::Value::Float(number) if number.is_finite() => Ok(number.to_string()),
        _ => {
            let help = "write a string or a number, such as 16 or \"30ms\"";
            Err(Mistake::new("is not a value that a parameter can have", help))
        }
    }
}

/// Why a workload cannot be built, by what is at fault.
pub(crate) enum BuildError {
    /// The load at this position.
    Load(usize, Mistake),
    /// The parameter of this name.
    Param(String, Mistake),
    /// The workload's own file.
    Workload(Box<WorkloadError>),
}

/// The workload at every load.
pub(crate) fn points(
    workload: &Workload,
    loads: &[u64],
    params: &BTreeMap<String, String>,
) -> Result<Vec<Point>, BuildError> {
    let build = |(i, &load): (usize, &u64)| match workload.build(load, params) {
        Ok(program) => Ok(Point { load, program, published: Vec::new() }),
        Err(WorkloadError::Param { param, mistake, .. }) => Err(BuildError::Param(param, mistake)),
        Err(error) if error.source_code().is_some() => Err(BuildError::Workload(Box::new(error))),
        Err(error) => {
            let help = format!("`reveille workloads {}` shows what it takes", workload.name);
            Err(BuildError::Load(i, Mistake::of(&error, &help)))
        }
    };
    loads.iter().enumerate().map(build).collect()
}

//! A comparison given on the command line: the same [`Study`] as from a file,
//! with one case and nothing published.

use std::collections::BTreeMap;

use miette::Diagnostic;
use reveille_machine::Machine;
use reveille_place::Mistake;
use reveille_policy::{Groups, Policy, PolicyFile};
use reveille_workload::{Program, Workload};

use crate::model::error::{Result, StudyError};
use crate::model::measure::{self, Measure};
use crate::model::on::On;
use crate::model::scheduler::Scheduler;
use crate::model::study::{Case, Study, Variant, checked_repeats, default_times};
use crate::read::check::{self, BuildError};
use crate::read::{settings, variant};

#[derive(Clone, Debug, Default)]
pub struct Parts<'a> {
    /// Preset, `host`, or path of a machine.
    pub machine: &'a str,
    /// Name or path of a workload.
    pub workload: &'a str,
    /// Loads, separated by commas.
    pub load: &'a str,
    /// Baseline: `v6.2`.
    pub base: &'a str,
    /// Variants: edits such as `+SIS_SHORT,-TTWU_QUEUE` or `burst=100ms`, or another kernel;
    /// none for the baseline alone.
    pub with: &'a [String],
    /// Policy files, each for a variant with edits besides, as in `with`.
    pub files: &'a [(PolicyFile, String)],
    /// Parameters of the workload: `name=value`.
    pub param: &'a [String],
    /// Names of metrics; the workload's first if none is given.
    pub metric: &'a [String],
    /// Task groups, parents first: `quota=100ms,period=100ms`.
    pub group: &'a [String],
    /// What a CPU draws from its group's quota at a time; 5 ms if not given.
    pub slice: Option<&'a str>,
    pub on: On,
    /// Runs of each load under each policy.
    pub repeats: u32,
    pub seed: u64,
    /// Time before measuring starts, virtual or real; as is usual there if not given.
    pub warmup: Option<&'a str>,
    /// Time measured; likewise.
    pub duration: Option<&'a str>,
}

/// The machine that `--machine` names.
///
/// # Errors
/// [`InputError::Option`](reveille_place::InputError::Option), or the place in its file.
pub fn machine(spec: &str) -> Result<Machine> {
    reveille_machine::load(spec).map_err(|error| {
        if error.source_code().is_some() {
            return error.into();
        }
        let help = "`reveille machines` lists them";
        StudyError::option("--machine", Mistake::of(&error, help))
    })
}

/// The kernel's scheduler that `--base` names: `v6.12`, `v6.4 -TTWU_QUEUE`, or `host`.
pub fn kernel(base: &str) -> Result<Policy> {
    variant::kernel_base(base).map_err(|problem| StudyError::option("--base", problem))
}

/// Puts a study together that is named `compare`.
///
/// # Errors
/// [`InputError::Option`](reveille_place::InputError::Option) naming the option, what is wrong with it and the fix; a
/// mistake in a machine or workload file has its own place.
pub fn compare(parts: &Parts<'_>) -> Result<Study> {
    let workload = reveille_workload::load(parts.workload).map_err(|error| {
        if error.source_code().is_some() {
            return StudyError::Workload(Box::new(error));
        }
        let help = "`reveille workloads` lists them";
        StudyError::option("--workload", Mistake::of(&error, help))
    })?;
    compare_on(machine(parts.machine)?, &workload, parts)
}

/// [`compare`] where machine and workload are loaded already: their names in `parts` are not
/// looked up.
pub fn compare_on(machine: Machine, workload: &Workload, parts: &Parts<'_>) -> Result<Study> {
    let (base, scheduler) =
        variant::base(parts.base).map_err(|p| StudyError::option("--base", p))?;
    let case = case(parts, &machine, workload, (base.clone(), scheduler))?;
    Ok(Study {
        name: "compare".to_owned(),
        about: format!("{} on {}", case.name, machine.name),
        mechanism: None,
        machines: vec![machine],
        base: Some(base),
        on: parts.on,
        seed: parts.seed,
        cases: vec![case],
        interference: Vec::new(),
        statements: Vec::new(),
        unpredicted: Vec::new(),
    })
}

fn case(
    parts: &Parts<'_>,
    machine: &Machine,
    workload: &Workload,
    (base, scheduler): (Policy, Scheduler),
) -> Result<Case> {
    let loads = loads(parts.load).map_err(|p| StudyError::option("--load", p))?;
    let params = params(workload, parts.param).map_err(|p| StudyError::option("--param", p))?;
    let points = check::points(workload, &loads, &params).map_err(|error| match error {
        BuildError::Load(_, problem) => StudyError::option("--load", problem),
        BuildError::Param(name, Mistake { problem, help }) => {
            StudyError::option("--param", Mistake::new(format!("`{name}`: {problem}"), help))
        }
        BuildError::Workload(error) => StudyError::Workload(error),
    })?;
    let groups = groups(parts, &points[0].program)?;
    let variants = variants((&base, &scheduler), &groups, machine, parts)?;
    let metrics = metrics(workload, &groups, parts.metric);
    let repeats = checked_repeats(i64::from(parts.repeats));
    let (usual_warmup, usual_duration) = default_times(parts.on);
    let warmup_ns = check::time(parts.warmup.unwrap_or(usual_warmup));
    let warmup_ns = warmup_ns.map_err(|p| StudyError::option("--warmup", p))?;
    let duration_ns = match parts.duration {
        Some(text) => check::time(text),
        None => check::time(usual_duration).map(|usual| usual.max(workload.pass_ns)),
    };
    let duration_ns = duration_ns.and_then(|ns| check::measured(warmup_ns, ns));
    Ok(Case {
        name: workload.name.clone(),
        workload: workload.name.clone(),
        machine: 0,
        base,
        scheduler,
        groups,
        variants,
        metrics: metrics.map_err(|p| StudyError::option("--metric", p))?,
        points,
        repeats: repeats.map_err(|p| StudyError::option("--repeats", p))?,
        warmup_ns,
        duration_ns: duration_ns.map_err(|p| StudyError::option("--duration", p))?,
        pass_ns: workload.pass_ns,
        baselines: false,
        published_on: None,
    })
}

fn groups(parts: &Parts<'_>, program: &Program) -> Result<Groups> {
    let mut groups = Groups::default();
    for text in parts.group {
        let group = settings::parse(&groups.groups, program, text);
        groups.groups.push(group.map_err(|p| StudyError::option("--group", p))?);
    }
    if let Some(slice) = parts.slice {
        let slice = settings::slice(&groups, slice);
        groups.slice_ns = slice.map_err(|p| StudyError::option("--slice", p))?;
    }
    Ok(groups)
}

fn variants(
    base: (&Policy, &Scheduler),
    groups: &Groups,
    machine: &Machine,
    parts: &Parts<'_>,
) -> Result<Vec<Variant>> {
    let mut variants = Vec::new();
    let files = parts.files.iter().map(|(file, edits)| ("--policy", edits, Some(file)));
    for (option, edits, file) in parts.with.iter().map(|e| ("--with", e, None)).chain(files) {
        let variant = variant::with_file(base, groups, edits, file, &variants).and_then(|v| {
            v.runs_on(machine)?;
            Ok(v)
        });
        variants.push(variant.map_err(|problem| StudyError::option(option, problem))?);
    }
    Ok(variants)
}

fn metrics(
    workload: &Workload,
    groups: &Groups,
    names: &[String],
) -> Result<Vec<Measure>, Mistake> {
    if names.is_empty() {
        return Ok(vec![measure::find(workload, groups, None)?]);
    }
    let mut metrics: Vec<Measure> = Vec::new();
    for name in names {
        let metric = measure::find(workload, groups, Some(name))?;
        if metrics.iter().any(|m| m.metric == metric.metric) {
            let problem = format!("`{}` is given twice", metric.metric);
            return Err(Mistake::new(problem, "remove one of them"));
        }
        metrics.push(metric);
    }
    Ok(metrics)
}

fn loads(text: &str) -> Result<Vec<u64>, Mistake> {
    let parse = |item: &str| {
        let number = item.trim().parse().map_err(|_| {
            let text = format!("`{}` in `{text}` is no load", item.trim());
            Mistake::new(text, "write whole numbers separated by commas, such as `56,112`")
        });
        number.and_then(check::load)
    };
    let items = text.split(',').filter(|_| !text.trim().is_empty());
    let loads = items.map(parse).collect::<Result<Vec<u64>, Mistake>>()?;
    check::loads(&loads).map_err(|(_, problem)| problem)?;
    Ok(loads)
}

fn params(workload: &Workload, given: &[String]) -> Result<BTreeMap<String, String>, Mistake> {
    let mut params = BTreeMap::new();
    for text in given {
        let (name, value) = text.split_once('=').ok_or_else(|| {
            let problem = format!("`{text}` has no value");
            Mistake::new(problem, "write name=value, such as `workers=24`")
        })?;
        let name = name.trim();
        check::param(workload, name)?;
        if params.insert(name.to_owned(), value.trim().to_owned()).is_some() {
            let problem = format!("`{name}` is given twice");
            return Err(Mistake::new(problem, "remove one of them"));
        }
    }
    Ok(params)
}

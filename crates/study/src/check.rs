//! The rules that a study must keep, wherever it comes from. A rule says what is
//! wrong and how to mend it; its caller knows the place: a line of a file, or an
//! option of the command line.

use std::collections::BTreeMap;

use miette::Diagnostic;
use reveille_host::kernel_version;
use reveille_machine::{Machine, cpu_list, parse_cpu_list};
use reveille_place::Mistake;
use reveille_policy::{BASELINES, Baseline, Groups, Policy};
use reveille_sim::MAX_RUN_NS;
use reveille_workload::{Workload, WorkloadError};

use crate::scheduler::{self, Scheduler};
use crate::study::{MAX_REPEATS, Point, Variant};
use crate::{DurationError, Ns, On, duration_ns, settings};

/// The name of this host where that of a machine or a baseline can stand.
pub(crate) const HOST: &str = "host";

/// The first item that stands in the list twice: its second position.
pub(crate) fn duplicate<T: PartialEq>(items: &[T]) -> Option<usize> {
    (1..items.len()).find(|&i| items[..i].contains(&items[i]))
}

pub(crate) fn repeats(repeats: i64) -> Result<u32, Mistake> {
    u32::try_from(repeats).ok().filter(|n| (1..=MAX_REPEATS).contains(n)).ok_or_else(|| {
        Mistake::new(
            format!("{repeats} repeats are not possible"),
            format!("use 1 to {MAX_REPEATS}; 5 give a mean with its spread"),
        )
    })
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
        let help = match error {
            DurationError::TooLong(_) => longest(),
            DurationError::Fraction(_) => "use a smaller unit, down to ns".to_owned(),
            _ => "write a number and ns, us, ms or s, such as `30ms`".to_owned(),
        };
        Mistake::new(error.to_string(), help)
    })
}

/// The measured time of a run, given its warm-up.
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

/// A baseline: a kernel's name, and after it edits if any (`v6.4 -TTWU_QUEUE`).
/// `host` is that of the running kernel. Behind `scx:` it is scx_reveille's.
pub(crate) fn base(text: &str) -> Result<(Policy, Scheduler), Mistake> {
    let Some(text) = scheduler::prefixed(text) else {
        return Ok((kernel_base(text)?, Scheduler::Kernel));
    };
    let (name, edits) = text.trim().split_once([' ', ',']).unwrap_or((text.trim(), ""));
    let base = edited_base(scheduler::baseline(name)?, edits)?;
    scheduler::meaningful(&base)?;
    Ok((Policy { base: scheduler::named(&base.base), ..base }, Scheduler::Reveille))
}

/// [`base`] of the kernel's own scheduler.
pub(crate) fn kernel_base(text: &str) -> Result<Policy, Mistake> {
    let (name, edits) = text.trim().split_once([' ', ',']).unwrap_or((text, ""));
    let name = if name == HOST { host_baseline(kernel_version())? } else { name };
    let base = Policy::baseline(name).map_err(|_| {
        let known = BASELINES.iter().map(|b| b.name).chain([HOST]);
        let help = "`reveille policies` lists them; `host` is that of this kernel";
        Mistake::unknown("baseline", name, known).mended_by(help)
    })?;
    edited_base(base, edits)
}

/// A baseline with edits that are part of its name.
fn edited_base(base: Policy, edits: &str) -> Result<Policy, Mistake> {
    if edits.trim().is_empty() {
        return Ok(base);
    }
    let edited = base.with(edits)?;
    Ok(Policy { base: format!("{} {}", base.base, edited.edits), edits: String::new(), ..edited })
}

/// Where a study runs.
pub(crate) fn on(text: &str) -> Result<On, Mistake> {
    text.parse().map_err(|text: String| Mistake::new(text, "`sim` is usual, and the default"))
}

/// The nearest baseline that is not newer than a kernel.
fn host_baseline(release: (u32, u32)) -> Result<&'static str, Mistake> {
    Baseline::of_release(release).map(|b| b.name).ok_or_else(|| {
        let (major, minor) = release;
        let text = format!("Linux {major}.{minor} of this host is older than every baseline");
        Mistake::new(text, format!("name one, such as `{}`", BASELINES[0].name))
    })
}

/// CPUs as the kernel writes them, but for semicolons: commas separate edits.
fn cpus(text: &str) -> Result<Vec<u32>, Mistake> {
    let fix = "write `cpus=0-1` or `cpus=0-3;8`";
    let cpus = parse_cpu_list(&text.replace(';', ","));
    let cpus = cpus.map_err(|error| Mistake::new(format!("`cpus={text}`: {error}"), fix))?;
    if cpus.is_empty() {
        return Err(Mistake::new(format!("`cpus={text}` names no CPU"), fix));
    }
    Ok(cpus)
}

/// A machine has the CPUs of a variant, and more; one that has a single CPU can have no
/// more, and studies of any host must load there too.
pub(crate) fn runs_on(variant: &Variant, machine: &Machine) -> Result<(), Mistake> {
    if variant.cpus.is_empty() {
        return Ok(());
    }
    let text = format!("`cpus={}`", cpu_list(&variant.cpus).replace(',', ";"));
    let part = machine.restricted(&variant.cpus).map_err(|error| {
        Mistake::new(format!("{text}: {error}"), "name some of the CPUs that it has")
    })?;
    let cpus = machine.topology.n_cpus();
    if cpus > 1 && part.topology.n_cpus() == cpus {
        let problem = format!("{text} changes nothing: {} has no other CPU", machine.name);
        return Err(Mistake::new(problem, "leave it out"));
    }
    Ok(())
}

/// Does an item of a variant name a kernel, rather than an edit?
fn names_kernel(item: &str) -> bool {
    let release = item.strip_prefix('v').unwrap_or_default();
    item == HOST || release.starts_with(|c: char| c.is_ascii_digit())
}

/// A variant of a baseline and its groups; `earlier` are those that the case has.
/// Its text holds edits of features (`+SIS_SHORT`), of settings (`burst=100ms`), and
/// the CPUs to run on (`cpus=0-1`). A kernel before them (`v6.12 +SIS_SHORT`) is what is
/// edited, in place of the baseline; `scx:` loads a scheduler (see `scheduler`). Without it
/// a variant has the scheduler of its baseline.
pub(crate) fn variant(
    (base, of_base): (&Policy, &Scheduler),
    groups: &Groups,
    text: &str,
    earlier: &[Variant],
) -> Result<Variant, Mistake> {
    let loaded = scheduler::prefixed(text);
    let items = loaded.unwrap_or(text).split([' ', ',']).filter(|item| !item.is_empty());
    let items: Vec<&str> = items.collect();
    let (scheduler, policy, edits) = match loaded {
        Some(_) => scheduler::of_variant(base, &items)?,
        None if items.first().is_some_and(|item| names_kernel(item)) => {
            (of_base.clone(), kernel_base(items[0])?, &items[1..])
        }
        None => (of_base.clone(), base.clone(), items.as_slice()),
    };
    let mut head = items[..items.len() - edits.len()].to_vec();
    let (settings, features): (Vec<&str>, Vec<&str>) =
        edits.iter().copied().partition(|item| item.contains('='));
    let (places, settings): (Vec<&str>, Vec<&str>) =
        settings.into_iter().partition(|item| item.starts_with("cpus="));
    let cpus = match places.as_slice() {
        [] => Vec::new(),
        [one] => cpus(&one["cpus=".len()..])?,
        [_, again, ..] => {
            let problem = format!("`{again}` names CPUs for a second time");
            return Err(Mistake::new(problem, "write one list, such as `cpus=0-3;8`"));
        }
    };
    let kernel = policy.base.clone();
    if loaded.is_none() && !head.is_empty() {
        head = vec![&kernel];
    }
    let nothing_else =
        settings.is_empty() && places.is_empty() && head.is_empty() && loaded.is_none();
    let policy = if features.is_empty() && !nothing_else {
        policy
    } else {
        policy.with(&features.join(" "))?
    };
    if scheduler == Scheduler::Reveille {
        scheduler::meaningful(&policy)?;
    }
    let name = [head.clone(), features, settings.clone(), places].concat().join(" ");
    let name = loaded.map_or_else(|| name.clone(), |_| scheduler::named(&name));
    let edited = settings::edited(groups, &settings)?;
    let variant = Variant { name, policy, groups: edited, cpus, scheduler };
    let is_base = variant.policy.features == base.features
        && variant.groups == *groups
        && variant.cpus.is_empty()
        && variant.scheduler == *of_base;
    if is_base && loaded.is_some() {
        let text = format!("`{}` changes nothing: the baseline is so", variant.name);
        return Err(Mistake::new(text, "leave it out"));
    }
    if is_base && !head.is_empty() {
        let problem = format!("`{}` has the features of {}", variant.name, base.base);
        return Err(Mistake::new(problem, "compare with another kernel: `reveille policies`"));
    }
    match earlier.iter().find(|v| v.does_as(&variant)) {
        Some(same) if same.name == variant.name => {
            let text = format!("the variant `{}` is given twice", same.name);
            Err(Mistake::new(text, "remove one of them"))
        }
        Some(same) => {
            let text = format!("`{}` is the same policy as `{}`", variant.name, same.name);
            Err(Mistake::new(text, "remove one of them"))
        }
        None => Ok(variant),
    }
}

/// Is `name` a parameter of the workload?
pub(crate) fn param(workload: &Workload, name: &str) -> Result<(), Mistake> {
    if workload.params.iter().any(|p| p.name == name) {
        return Ok(());
    }
    let known = workload.params.iter().map(|p| p.name.as_str());
    Err(Mistake::unknown(&format!("parameter of {}", workload.name), name, known))
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

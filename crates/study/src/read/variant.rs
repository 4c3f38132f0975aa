//! Baselines and variants as text: `v6.4 -TTWU_QUEUE`, `+SIS_SHORT burst=100ms`,
//! `scx:scx_bpfland`. A study file and the command line write them alike.
//!
//! `scx:[BASELINE|default] [EDITS]` is scx_reveille with that policy, edits being made to the
//! baseline named or else to the comparison's; `scx:scx_NAME` is another program that loads a
//! scheduler, of which nothing can be predicted.

use reveille_host::kernel_version;
use reveille_host::sched_ext::SCX_REVEILLE;
use reveille_machine::parse_cpu_list;
use reveille_place::Mistake;
use reveille_policy::{
    BASELINES, Baseline, Groups, Policy, PolicyFile, SCX_DEFAULT_BASE, scx_without_meaning,
};

use crate::model::scheduler::{self, PREFIX, Scheduler};
use crate::model::study::Variant;
use crate::read::settings;

/// The name of this host where that of a machine or a baseline can stand.
const HOST: &str = "host";
/// The name of scx_reveille's own baseline, where that of a kernel can stand.
const DEFAULT: &str = "default";

/// A baseline: a kernel's name, and after it edits if any (`v6.4 -TTWU_QUEUE`).
/// `host` is that of the running kernel. Behind `scx:` it is scx_reveille's.
pub(crate) fn base(text: &str) -> Result<(Policy, Scheduler), Mistake> {
    let Some(text) = scheduler::prefixed(text) else {
        return Ok((kernel_base(text)?, Scheduler::Kernel));
    };
    let (name, edits) = text.trim().split_once([' ', ',']).unwrap_or((text.trim(), ""));
    let base = edited_base(scx_baseline(name)?, edits)?;
    meaningful(&base)?;
    Ok((Policy { base: scheduler::named(&base.base), ..base }, Scheduler::Reveille))
}

/// [`base`] of the kernel's own scheduler.
pub(crate) fn kernel_base(text: &str) -> Result<Policy, Mistake> {
    let (name, edits) = text.trim().split_once([' ', ',']).unwrap_or((text, ""));
    let name = if name == HOST { host_baseline(kernel_version())? } else { name };
    let base = Policy::baseline(name).map_err(|_| {
        let known = BASELINES.iter().map(|b| b.name).chain([HOST]);
        let unknown = Baseline::unknown("baseline", name, known);
        let help = format!("{}; `host` is that of this kernel", unknown.help);
        unknown.mended_by(help)
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

/// The baseline nearest to a kernel.
fn host_baseline(release: (u32, u32)) -> Result<&'static str, Mistake> {
    Baseline::of_release(release).map(|b| b.name).ok_or_else(|| {
        let (major, minor) = release;
        let text = format!("Linux {major}.{minor} of this host is older than every baseline");
        Mistake::new(text, format!("name one, such as `{}`", BASELINES[0].name))
    })
}

/// A variant of a baseline and its groups; `earlier` are those that the case has.
/// Its text holds edits of features (`+SIS_SHORT`), of settings (`burst=100ms`), and
/// the CPUs to run on (`cpus=0-1`). A kernel before them (`v6.12 +SIS_SHORT`) is what is
/// edited, in place of the baseline; `scx:` loads a scheduler (see above). Without it
/// a variant has the scheduler of its baseline.
pub(crate) fn variant(
    base: (&Policy, &Scheduler),
    groups: &Groups,
    text: &str,
    earlier: &[Variant],
) -> Result<Variant, Mistake> {
    with_file(base, groups, text, None, earlier)
}

/// A variant whose CPU selection is a policy file's; `text` has edits besides, if there are any.
pub(crate) fn with_file(
    (base, of_base): (&Policy, &Scheduler),
    groups: &Groups,
    text: &str,
    file: Option<&PolicyFile>,
    earlier: &[Variant],
) -> Result<Variant, Mistake> {
    let loaded = scheduler::prefixed(text);
    if file.is_some() && (loaded.is_some() || *of_base != Scheduler::Kernel) {
        let problem = format!("no file decides in a scheduler that `{PREFIX}` loads");
        return Err(Mistake::new(problem, "name a kernel's baseline, such as `--base v6.4`"));
    }
    let items = loaded.unwrap_or(text).split([' ', ',']).filter(|item| !item.is_empty());
    let items: Vec<&str> = items.collect();
    let (scheduler, policy, edits) = match loaded {
        Some(_) => of_scx(base, &items)?,
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
    let nothing_else = nothing_else && file.is_none();
    let mut policy = if features.is_empty() && !nothing_else {
        policy
    } else {
        match scheduler {
            Scheduler::Reveille => policy.with_for_scx(&features.join(" "))?,
            _ => policy.with(&features.join(" "))?,
        }
    };
    if scheduler == Scheduler::Reveille {
        meaningful(&policy)?;
    }
    policy.file = file.cloned();
    let name = [
        file.map(PolicyFile::name).into_iter().collect(),
        head.clone(),
        features,
        settings.clone(),
        places,
    ]
    .concat()
    .join(" ");
    let name = loaded.map_or_else(|| name.clone(), |_| scheduler::named(&name));
    let edited = settings::edited(groups, &settings)?;
    let variant = Variant { name, policy, groups: edited, cpus, scheduler };
    let is_base = variant.policy.differs_only_in(0, base)
        && file.is_none()
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

/// Does an item of a variant name a kernel, rather than an edit?
fn names_kernel(item: &str) -> bool {
    let release = item.strip_prefix('v').unwrap_or_default();
    item == HOST || release.starts_with(|c: char| c.is_ascii_digit())
}

/// What `scx:` is followed by in a variant: who schedules and the policy that edits are made
/// to, which is `base` if none is named; and the rest of the items.
fn of_scx<'a, 'i>(
    base: &Policy,
    items: &'a [&'i str],
) -> Result<(Scheduler, Policy, &'a [&'i str]), Mistake> {
    match items.split_first() {
        Some((&name, rest)) if !name.starts_with(['+', '-']) && !name.contains('=') => {
            if name.starts_with("scx_") {
                return Ok((other(name, rest)?, base.clone(), rest));
            }
            Ok((Scheduler::Reveille, scx_baseline(name)?, rest))
        }
        _ => Ok((Scheduler::Reveille, base.clone(), items)),
    }
}

/// A baseline after `scx:`.
fn scx_baseline(name: &str) -> Result<Policy, Mistake> {
    if name.starts_with("scx_") {
        let problem = format!("`{name}` is a scheduler, and a baseline is a policy");
        let help = format!("compare with it as a variant: `--with {PREFIX}{name}`");
        return Err(Mistake::new(problem, help));
    }
    kernel_base(if name == DEFAULT { SCX_DEFAULT_BASE } else { name })
}

fn other(name: &str, rest: &[&str]) -> Result<Scheduler, Mistake> {
    let known = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if !name.chars().all(known) {
        let problem = format!("`{name}` is no name of a program");
        return Err(Mistake::new(problem, "write it without a path, such as `scx:scx_bpfland`"));
    }
    if name == SCX_REVEILLE {
        let help = format!("`{PREFIX}` alone is it; `{PREFIX}{DEFAULT}` has its own baseline");
        return Err(Mistake::new(format!("`{name}` need not be named"), help));
    }
    if let Some(edit) = rest.iter().find(|item| !item.contains('=')) {
        let problem = format!("`{edit}` is no edit that can be made to {name}");
        return Err(Mistake::new(problem, format!("leave it out, or leave out {name}")));
    }
    Ok(Scheduler::Other(name.to_owned()))
}

/// Refuses a policy with edits that mean nothing to scx_reveille.
fn meaningful(policy: &Policy) -> Result<(), Mistake> {
    let Ok(stock) = Policy::baseline(scheduler::kernel_of(policy)) else { return Ok(()) };
    match scx_without_meaning(policy.features ^ stock.features) {
        None => Ok(()),
        Some(found) => Err(Mistake::new(
            format!("{} means nothing to {SCX_REVEILLE}: {}", found.feature, found.why),
            format!("leave it out, or predict it without `{PREFIX}`"),
        )),
    }
}

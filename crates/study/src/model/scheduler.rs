//! Who schedules the tasks of a side where runs are real, and how a variant or a baseline
//! names it: `scx:` loads a sched_ext scheduler for the side's runs.

use reveille_host::features::Switch;
use reveille_host::sched_ext::{Loader, SCX_REVEILLE};
use reveille_policy::{FEATURES, Policy};

/// What a side that a sched_ext scheduler runs begins with.
pub(crate) const PREFIX: &str = "scx:";

/// Who schedules the tasks of a side where runs are real.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scheduler {
    /// The kernel's own, with the features that it has.
    #[default]
    Kernel,
    /// scx_reveille, with the side's policy.
    Reveille,
    /// Another sched_ext scheduler, by its program: `scx_bpfland`. Nothing is known of it.
    Other(String),
}

impl Scheduler {
    /// The loader of the scheduler that runs a policy; `None` for the kernel's own.
    pub(crate) fn loader(&self, policy: &Policy) -> Option<Loader> {
        let (program, args) = match self {
            Scheduler::Kernel => return None,
            Scheduler::Other(program) => (program.as_str(), Vec::new()),
            Scheduler::Reveille => {
                let edits: Vec<String> = edits(policy).iter().map(signed).collect();
                let base = ["--base".to_owned(), kernel_of(policy).to_owned()];
                let with = ["--with".to_owned(), edits.join(",")];
                let with = with.into_iter().filter(|_| !edits.is_empty());
                (SCX_REVEILLE, base.into_iter().chain(with).collect())
            }
        };
        Some(Loader { program: program.to_owned(), args })
    }
}

/// Takes `scx:` off a baseline or a variant; `None` if it does not begin with it.
pub(crate) fn prefixed(text: &str) -> Option<&str> {
    text.trim_start().strip_prefix(PREFIX)
}

/// The name of a baseline under scx_reveille.
pub(crate) fn named(base: &str) -> String {
    format!("{PREFIX}{base}")
}

/// Name of the kernel that a policy begins with: `v6.4` of `scx:v6.4 -WA_IDLE`.
pub(crate) fn kernel_of(policy: &Policy) -> &str {
    let base = prefixed(&policy.base).unwrap_or(&policy.base);
    base.split(' ').next().unwrap_or_default()
}

/// Features in which a policy differs from the kernel that it begins with.
pub(crate) fn edits(policy: &Policy) -> Vec<Switch> {
    let Ok(stock) = Policy::baseline(kernel_of(policy)) else { return Vec::new() };
    let differ = policy.features ^ stock.features;
    let of = |bit: u64| policy.features & bit != 0;
    let features = FEATURES.iter().filter(|f| differ & f.bit != 0);
    features.map(|f| (f.name.to_owned(), of(f.bit))).collect()
}

fn signed((name, on): &Switch) -> String {
    format!("{}{name}", if *on { '+' } else { '-' })
}

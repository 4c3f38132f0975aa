//! Runs studies on this host in real time, one run at a time. A pass takes each
//! load of each case under each of its sides once, and passes follow each other, so that
//! a drift of the host hits all alike (A B A B, never A A B B).

use std::sync::atomic::{AtomicBool, Ordering};

use reveille_host::HostError;
use reveille_host::features::Switch;
use reveille_host::sched_ext::Loader;
use reveille_measure::{HostContext, RunResult, RunSpec};
use reveille_place::Mistake;
use reveille_policy::Groups;
use reveille_workload::Program;

use crate::judge::comparison::Comparison;
use crate::model::error::{Result, StudyError};
use crate::model::scheduler::{self, Scheduler};
use crate::model::study::{Case, Study};
use crate::run::fold::comparison;
use crate::run::matrix::{Run, Slot, matrix};

/// One side of a case, as a kernel can be told.
#[derive(Clone, Debug, PartialEq)]
pub struct HostSide<'a> {
    pub groups: &'a Groups,
    /// CPUs to run on, by the kernel's numbers; all of them if there are none.
    pub cpus: &'a [u32],
    /// Scheduler features in which the side differs from the kernel that it begins with, if
    /// the kernel's own scheduler runs it.
    pub switches: Vec<Switch>,
    /// The sched_ext scheduler to load for it, if any.
    pub loader: Option<Loader>,
}

pub trait HostRunner: Sync {
    /// Refuses what this host cannot do, before anything runs.
    fn check(&self, side: &HostSide<'_>) -> Result<(), HostError>;

    /// Runs a program once.
    ///
    /// # Errors
    /// [`HostError::Interrupted`] after a stop, and why else there is no result.
    fn run(
        &self,
        side: &HostSide<'_>,
        program: &Program,
        spec: &RunSpec,
        stop: &AtomicBool,
    ) -> Result<RunResult, HostError>;

    /// Does all the work, and says on what host, and what disturbed it.
    fn observe(&self, work: &mut dyn FnMut()) -> HostContext;
}

/// Measures a study on this host, which may be any: the machine that it names is not asked.
/// `progress` is told the number of finished runs and of all. Once `stop` is set, the run
/// under way ends; the comparison then holds the repeats that all sides of a load have.
///
/// # Errors
/// [`StudyError::NotHere`] before anything runs, for a variant that this host cannot do;
/// [`StudyError::HostRun`] for a run without a result.
pub fn measure(
    study: &Study,
    host: &dyn HostRunner,
    stop: &AtomicBool,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Comparison> {
    check_host(study, host)?;
    let slots = matrix(0, study);
    let context = run_in_turns(&slots, host, stop, progress)?;
    let kernel = format!("Linux {}", context.kernel);
    let mut comparison = comparison(study, &slots.iter().collect::<Vec<_>>(), Some(context));
    // A baseline is a model's: what ran was this kernel, or what was loaded into it.
    let ran = |base: &str| match scheduler::prefixed(base) {
        Some(_) => format!("{base}, {kernel}"),
        None => kernel.clone(),
    };
    comparison.base = ran(&comparison.base);
    for row in &mut comparison.rows {
        row.base = ran(&row.base);
    }
    Ok(comparison)
}

/// Refuses a study with a side that this host cannot do; nothing runs.
///
/// # Errors
/// [`StudyError::NotHere`] with the case, the side, and what can be done here.
pub fn check_host(study: &Study, host: &dyn HostRunner) -> Result<()> {
    if let Some(case) = study.interference.first() {
        let text = format!("the groups of `{}` are numbers, not tasks", case.name);
        let problem = Mistake::new(text, "leave it out: the study is predicted");
        return Err(StudyError::option("--on", problem));
    }
    for case in &study.cases {
        for side in 0..=case.variants.len() {
            let refused = |error| StudyError::NotHere {
                case: case.name.clone(),
                policy: match side {
                    0 => format!("the baseline `{}`", case.side_name(side)),
                    _ => format!("`{}`", case.side_name(side)),
                },
                error: Box::new(error),
            };
            if side > 0 && only_phases_differ(case, side) {
                let problem = "the phase of a period cannot be set on a kernel";
                let help = "leave it out: repeats begin at any phase";
                return Err(refused(HostError::input(problem, help)));
            }
            let (policy, scheduler) = (case.setup(side).0, case.scheduler(side));
            let kernels = [policy, &case.base].map(scheduler::kernel_of);
            if *scheduler == Scheduler::Kernel && kernels[0] != kernels[1] && side > 0 {
                let problem = "a host runs one kernel";
                let help = format!(
                    "predict it: `--on sim`; or load its placement: `scx:{}`",
                    case.side_name(side)
                );
                return Err(refused(HostError::input(problem, help)));
            }
            host.check(&host_side(case, side)).map_err(refused)?;
        }
    }
    Ok(())
}

/// Is a variant the baseline but for what no kernel can be told?
fn only_phases_differ(case: &Case, side: usize) -> bool {
    let mut groups = case.setup(side).1.clone();
    let pairs = groups.groups.iter_mut().zip(&case.groups.groups);
    pairs.for_each(|(group, base)| group.phase_ns = base.phase_ns);
    let (policy, _) = case.setup(side);
    groups == case.groups
        && policy.differs_only_in(0, &case.base)
        && case.cpus(side).is_empty()
        && case.scheduler(side) == case.scheduler(0)
}

fn host_side(case: &Case, side: usize) -> HostSide<'_> {
    let (policy, groups) = case.setup(side);
    let loader = case.scheduler(side).loader(policy);
    let switches = if loader.is_none() { scheduler::edits(policy) } else { Vec::new() };
    HostSide { groups, cpus: case.cpus(side), switches, loader }
}

/// Runs everything; what was finished before a stop is kept.
pub(crate) fn run_in_turns(
    slots: &[Slot<'_>],
    host: &dyn HostRunner,
    stop: &AtomicBool,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<HostContext> {
    let runs = turns(slots);
    let mut outcome = Ok(());
    let context = host.observe(&mut || {
        progress(0, runs.len());
        for (done, run) in runs.iter().enumerate() {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let slot = &slots[run.slot];
            let side = host_side(slot.case, run.side);
            match host.run(&side, &slot.point.program, &slot.spec(run), stop) {
                Ok(result) => slot.add(run, &result),
                Err(HostError::Interrupted) => return,
                Err(error) => {
                    outcome = Err(StudyError::HostRun {
                        case: slot.case.name.clone(),
                        load: slot.point.load,
                        policy: slot.case.side_name(run.side).to_owned(),
                        error: Box::new(error),
                    });
                    return;
                }
            }
            progress(done + 1, runs.len());
        }
    });
    outcome.map(|()| context)
}

/// All runs, pass by pass.
fn turns(slots: &[Slot<'_>]) -> Vec<Run> {
    let mut runs: Vec<Run> = slots.iter().enumerate().flat_map(|(i, s)| s.runs(i)).collect();
    // Stable: within a pass they keep the study's order.
    runs.sort_by_key(|run| run.repeat);
    runs
}

//! A validated study: every name is resolved and every number checked, so running it needs no
//! further checks.

use std::borrow::Cow;

use reveille_machine::{Machine, cpu_list};
use reveille_measure::Ns;
use reveille_place::Mistake;
use reveille_policy::{Groups, Policy};
use reveille_workload::Program;

use crate::model::error::{Result, StudyError};
use crate::model::interference::InterferenceCase;
use crate::model::measure::Measure;
use crate::model::on::On;
use crate::model::published::{Published, Unpredicted};
use crate::model::scheduler::Scheduler;
use crate::model::statement::Statement;

pub const DEFAULT_REPEATS: u32 = 5;
/// Most repeats: by then a mean is known to 3% of one standard deviation.
pub const MAX_REPEATS: u32 = 1000;
pub const DEFAULT_SEED: u64 = 1;
/// Virtual time before measuring starts, unless stated.
pub const DEFAULT_WARMUP: &str = "60ms";
/// Virtual time measured, unless stated.
pub const DEFAULT_DURATION: &str = "30ms";
/// Time before measuring starts where runs are real, unless stated.
pub const DEFAULT_HOST_WARMUP: &str = "200ms";
/// Time measured where runs are real, unless stated.
pub const DEFAULT_HOST_DURATION: &str = "1s";

pub(crate) fn default_times(on: On) -> (&'static str, &'static str) {
    match on {
        On::Sim => (DEFAULT_WARMUP, DEFAULT_DURATION),
        On::Host | On::Both => (DEFAULT_HOST_WARMUP, DEFAULT_HOST_DURATION),
    }
}

pub(crate) fn checked_repeats(repeats: i64) -> Result<u32, Mistake> {
    u32::try_from(repeats).ok().filter(|n| (1..=MAX_REPEATS).contains(n)).ok_or_else(|| {
        Mistake::new(
            format!("{repeats} repeats are not possible"),
            format!("use 1 to {MAX_REPEATS}; 5 give a mean with its spread"),
        )
    })
}

/// A study that is ready to [`run`](crate::run).
#[derive(Clone, Debug)]
pub struct Study {
    pub name: String,
    /// What it is, in a sentence.
    pub about: String,
    /// What its figures are about, such as `SIS_SHORT`; scores are summed by it.
    pub mechanism: Option<String>,
    /// Every machine that a case runs on, each once; the first is the study's own. None if
    /// there is no case with a workload.
    pub machines: Vec<Machine>,
    /// The study's own baseline; a case may have another. `None` if there is no case with
    /// a workload.
    pub base: Option<Policy>,
    pub on: On,
    /// All randomness of all runs comes from it.
    pub seed: u64,
    /// Cases with a workload; there is at least one of these or of the next, and all
    /// names differ.
    pub cases: Vec<Case>,
    /// Cases of groups that share CPUs by chance.
    pub interference: Vec<InterferenceCase>,
    pub statements: Vec<Statement>,
    pub unpredicted: Vec<Unpredicted>,
}

/// One workload over a range of loads.
#[derive(Clone, Debug)]
pub struct Case {
    pub name: String,
    pub workload: String,
    /// Index into [`Study::machines`].
    pub machine: usize,
    /// What variants are compared with.
    pub base: Policy,
    /// Who schedules the baseline's tasks where runs are real.
    pub scheduler: Scheduler,
    pub groups: Groups,
    /// No two are the same; none for figures of the baseline alone.
    pub variants: Vec<Variant>,
    /// What runs are judged by; at least one, names differ.
    pub metrics: Vec<Measure>,
    /// At least one, in the order of the file; loads differ.
    pub points: Vec<Point>,
    /// Runs of each load under each policy; at least one.
    pub repeats: u32,
    /// Virtual time before measuring starts.
    pub warmup_ns: Ns,
    /// Virtual time measured; not 0.
    pub duration_ns: Ns,
    /// One pass through the phases of the workload, which is measured unless a shorter time was
    /// asked for; 0 without phases.
    pub pass_ns: Ns,
    /// Are figures of one side held within the tolerance of baselines?
    pub baselines: bool,
    /// The machine that its published figures are for, if the case was moved to another: they are
    /// shown then, and not judged.
    pub published_on: Option<String>,
}

/// What a baseline is compared with: other features, other settings of its task
/// groups, or both.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The edits, separated by blanks: `+SIS_SHORT burst=100ms`.
    pub name: String,
    pub policy: Policy,
    pub groups: Groups,
    /// CPUs to run on, by their numbers on the machine; all of them if there are none.
    pub cpus: Vec<u32>,
    /// Who schedules its tasks where runs are real.
    pub scheduler: Scheduler,
}

impl Variant {
    /// Do runs of both differ in nothing?
    pub(crate) fn does_as(&self, other: &Variant) -> bool {
        self.policy.differs_only_in(0, &other.policy)
            && self.policy.file == other.policy.file
            && self.groups == other.groups
            && self.cpus == other.cpus
            && self.scheduler == other.scheduler
    }

    /// Refuses a machine that lacks one of the variant's CPUs or has no other. A machine of one
    /// CPU is accepted: studies of any host must load there too.
    pub(crate) fn runs_on(&self, machine: &Machine) -> Result<(), Mistake> {
        if self.cpus.is_empty() {
            return Ok(());
        }
        let text = format!("`cpus={}`", cpu_list(&self.cpus).replace(',', ";"));
        let part = machine.restricted(&self.cpus).map_err(|error| {
            Mistake::new(format!("{text}: {error}"), "name some of the CPUs that it has")
        })?;
        let cpus = machine.topology.n_cpus();
        if cpus > 1 && part.topology.n_cpus() == cpus {
            let problem = format!("{text} changes nothing: {} has no other CPU", machine.name);
            return Err(Mistake::new(problem, "leave it out"));
        }
        Ok(())
    }
}

#[derive(Clone, Debug)]
pub struct Point {
    /// In the workload's own unit; not 0.
    pub load: u64,
    pub program: Program,
    /// At most one of each kind for each variant, metric and side.
    pub published: Vec<Published>,
}

impl Study {
    /// The machine that cases run on unless they name another.
    pub fn machine(&self) -> Option<&Machine> {
        self.machines.first()
    }

    /// Names of the variants of all cases, each once.
    pub fn variants(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        let of_cases = self.cases.iter().flat_map(|c| &c.variants).map(|v| &v.name);
        let of_bursts = self.interference.iter().flat_map(|c| &c.variants).map(|v| &v.name);
        for name in of_cases.chain(of_bursts) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names
    }

    /// Overrides the number of repeats of every case.
    ///
    /// # Errors
    /// [`InputError::Option`](reveille_place::InputError::Option) unless 1 to [`MAX_REPEATS`].
    pub fn with_repeats(mut self, repeats: u32) -> Result<Study> {
        let checked = checked_repeats(i64::from(repeats));
        let repeats = checked.map_err(|p: Mistake| StudyError::option("--repeats", p))?;
        for case in &mut self.cases {
            case.repeats = repeats;
        }
        self.interference.iter_mut().for_each(|case| case.repeats = repeats);
        Ok(self)
    }

    /// Moves all cases to one machine. What was published for another is not judged then.
    ///
    /// # Errors
    /// [`InputError::Option`](reveille_place::InputError::Option) if a variant names CPUs that the machine does not have, or
    /// nothing in the study runs on a machine.
    pub fn on_machine(mut self, machine: Machine) -> Result<Study> {
        if self.cases.is_empty() {
            let text = "nothing in the study runs on a machine: its groups share a fluid";
            let problem = Mistake::new(text, "leave it out, and any --on");
            return Err(StudyError::option("--machine", problem));
        }
        for variant in self.cases.iter().flat_map(|c| &c.variants) {
            let runs = variant.runs_on(&machine);
            runs.map_err(|problem| StudyError::option("--machine", problem))?;
        }
        for case in &mut self.cases {
            let own = &self.machines[case.machine].name;
            if *own != machine.name && case.published_on.is_none() {
                case.published_on = Some(own.clone());
            }
            case.machine = 0;
        }
        self.machines = vec![machine];
        Ok(self)
    }

    /// Which published figures are not judged, if any, and why.
    pub fn not_judged(&self) -> Option<String> {
        let claimed = |at: usize| self.statements.iter().any(|s| s.case == at);
        let published = |c: &Case| c.points.iter().any(|p| !p.published.is_empty());
        let moved = self.cases.iter().enumerate().filter(|(at, c)| published(c) || claimed(*at));
        let mut on: Vec<&str> = moved.filter_map(|(_, c)| c.published_on.as_deref()).collect();
        on.sort_unstable();
        on.dedup();
        (!on.is_empty()).then(|| format!("figures published on {} are not judged", on.join(", ")))
    }
}

impl Case {
    /// Policy and task groups of a side: 0 is the baseline, variant i is i + 1.
    pub(crate) fn setup(&self, side: usize) -> (&Policy, &Groups) {
        match side.checked_sub(1) {
            None => (&self.base, &self.groups),
            Some(i) => (&self.variants[i].policy, &self.variants[i].groups),
        }
    }

    /// Who schedules a side's tasks where runs are real.
    pub(crate) fn scheduler(&self, side: usize) -> &Scheduler {
        side.checked_sub(1).map_or(&self.scheduler, |i| &self.variants[i].scheduler)
    }

    /// CPUs that a side runs on, by their numbers on the machine; all if there are none.
    pub(crate) fn cpus(&self, side: usize) -> &[u32] {
        side.checked_sub(1).map_or(&[], |i| &self.variants[i].cpus)
    }

    /// The case's machine as far as a side uses it.
    pub(crate) fn machine_of<'a>(&self, machines: &'a [Machine], side: usize) -> Cow<'a, Machine> {
        let machine = &machines[self.machine];
        match self.cpus(side) {
            [] => Cow::Borrowed(machine),
            cpus => Cow::Owned(machine.restricted(cpus).expect("its CPUs were checked")),
        }
    }

    /// The baseline's name or the variant's edits.
    pub(crate) fn side_name(&self, side: usize) -> &str {
        side.checked_sub(1).map_or(&self.base.base, |i| &self.variants[i].name)
    }
}

//! What a plan is asked for, and the simulator set up for it.

use std::sync::atomic::AtomicBool;

use reveille_machine::Machine;
use reveille_policy::{BandwidthLimits, Policy};
use reveille_usage::Usage;

use crate::goal::Goal;
use crate::inferred::Inferred;
use crate::platform::Allowed;
use crate::replay::{Stage, cpus_like};
use crate::{Ns, PlanError, Result};

/// A group on the same CPUs.
#[derive(Clone, Debug)]
pub struct Neighbour {
    pub usage: Usage,
    /// Its limits; by default the recorded ones, if any.
    pub limits: Option<BandwidthLimits>,
}

/// Input of [`plan`](crate::plan()).
#[derive(Clone, Debug)]
pub struct Request<'a> {
    pub usage: &'a Usage,
    /// Equally likely recordings, for a group whose demand is [inferred](crate::recovered).
    pub as_likely: &'a [Usage],
    /// How the demand was inferred.
    pub inferred: Option<&'a Inferred>,
    /// All goals must hold.
    pub goals: Vec<Goal>,
    pub neighbours: Vec<Neighbour>,
    /// Today's setting; by default the recorded limits.
    pub today: Option<BandwidthLimits>,
    /// Source of costs, tick and idle states.
    pub machine: &'a Machine,
    /// Number of CPUs that the group may run on.
    pub cpus: u32,
    /// Kernel to simulate.
    pub policy: Policy,
    /// CPU time that a CPU draws from the quota at once.
    pub slice_ns: Ns,
    /// Limit of the parent group.
    pub within: Option<BandwidthLimits>,
    /// Upper bound on the summed quotas of group and neighbours, in CPUs; by default all CPUs if
    /// there are neighbours, else none.
    pub quota_sum_cpus: Option<f64>,
    /// Phases at which each setting shown is simulated.
    pub phases: u32,
    /// Share of draws in which the goals must hold.
    pub confidence: f64,
    /// More work in every request under which the goals must hold, as a share.
    pub headroom: f64,
    /// More requests under which the goals must also hold, as a share.
    pub growth: f64,
    pub allowed: Allowed,
    pub seed: u64,
    /// Simulate every setting of the grid, even those below one that clearly fails.
    pub exhaustive: bool,
}

impl<'a> Request<'a> {
    /// With the defaults of `reveille plan`, on as many CPUs as the machine has, and without goals.
    pub fn new(usage: &'a Usage, machine: &'a Machine, policy: Policy) -> Request<'a> {
        Request {
            usage,
            as_likely: &[],
            inferred: None,
            goals: Vec::new(),
            neighbours: Vec::new(),
            today: None,
            machine,
            cpus: machine.topology.n_cpus() as u32,
            policy,
            slice_ns: 5_000_000,
            within: None,
            quota_sum_cpus: None,
            phases: 20,
            confidence: 0.95,
            headroom: 0.15,
            growth: 0.0,
            allowed: Allowed::default(),
            seed: 1,
            exhaustive: false,
        }
    }
}

impl Request<'_> {
    /// Is a latency goal answered from counters?
    pub(crate) fn estimates(&self) -> bool {
        self.goals.iter().any(|goal| self.is_estimated(goal))
    }

    /// Is this quota at most all CPUs? A larger one limits nothing.
    pub(crate) fn fits(&self, millicpus: u64) -> bool {
        millicpus <= 1000 * u64::from(self.cpus)
    }

    /// Is this a latency goal, answered from counters?
    pub(crate) fn is_estimated(&self, goal: &Goal) -> bool {
        self.inferred.is_some_and(|inferred| inferred.estimates(goal))
    }

    /// The limit in force, below which nothing is advised from an estimate or from counters of a few
    /// minutes; else `None`. What was inferred from one limit says nothing of a smaller one.
    pub(crate) fn floor(&self) -> Option<BandwidthLimits> {
        let limits = [self.today, self.usage.limits].into_iter().flatten();
        let limits = limits.filter(|limits| limits.quota_ns.is_some());
        let few = self.inferred.is_some_and(|inferred| inferred.too_short().is_some());
        let limits = limits.filter(|_| few || self.estimates());
        let cpus = |limits: &BandwidthLimits| limits.cpus().unwrap_or(0.0);
        limits.max_by(|a, b| cpus(a).total_cmp(&cpus(b)))
    }

    /// The simulator's settings.
    pub(crate) fn stage<'a>(
        &'a self,
        stop: &'a AtomicBool,
        tell: &'a (dyn Fn() + Sync),
    ) -> Result<Stage<'a>> {
        let neighbour_limits = self.neighbours.iter().map(|n| n.limits.or(n.usage.limits));
        let machine = cpus_like(self.machine, self.cpus)?;
        Ok(Stage {
            within: self.within,
            neighbours: neighbour_limits.collect(),
            goals: &self.goals,
            latency_times: self.inferred.map_or(1.0, |inferred| inferred.from.latency_times()),
            ..Stage::new(machine, self.policy.clone(), (self.slice_ns, self.seed), stop, tell)
        })
    }
}

pub(crate) fn pool(jobs: usize) -> Result<rayon::ThreadPool> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs.max(1)).build();
    pool.map_err(|e| PlanError::Threads { jobs, reason: e.to_string() })
}

//! A plan's content as plain values: reports format them, `--json` prints them.
//!
//! Times are nanoseconds in floating point. Infinity (`null` in JSON) means not completed in the
//! simulated time; NaN (also `null`) is a quantile of too few requests, listed in
//! [`Plan::too_few`].

use reveille_place::Mistake;
use reveille_policy::BandwidthLimits;
use reveille_usage::{HeldBack, Origin};
use serde::Serialize;

use crate::Ns;
use crate::figures::{CdfPoint, Figures, Interval, Range};
use crate::goal::{Goal, Subject, quantile_name};
use crate::inferred::Inferred;
use crate::observed::Observed;
use crate::platform::Allowed;
use crate::short::{TooShort, at_least};

/// The longest request, running alone, that arrives when the bank is empty.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WorstCase {
    /// CPU time of the longest request in the recording.
    pub work_ns: Ns,
    /// Latency at the worst moment simulated.
    pub simulated_ns: f64,
    /// Upper bound by docs/plan.md's closed form; `None` without a quota.
    pub bound_ns: Option<Ns>,
}

/// What a setting does to a neighbour, over phases.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NeighbourEffect {
    /// Name of its recording.
    pub name: String,
    /// Share of its periods with a late request: one completed more than a tick later than without
    /// this group.
    pub missed_share: Range,
    /// Share of its periods with a request late against this group with a burst of 0.
    pub missed_by_burst_share: Range,
    /// Mean lateness over all its requests, against a host without this group.
    pub mean_tardiness_ns: Range,
    /// Worst lateness against a host without this group.
    pub worst_tardiness_ns: Range,
    /// Worst lateness against this group with a burst of 0.
    pub worst_tardiness_by_burst_ns: Range,
    pub p99_without_ns: Range,
    pub p99_ns: Range,
}

/// How often two groups exceed their quotas in a period.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    pub groups: [String; 2],
    /// Share of periods in which each asks for no more than its quota.
    pub within: [f64; 2],
    /// Share of periods in which both do, if independent: the product.
    pub both_within: f64,
    /// Share of periods in which both did in the recordings.
    pub both_within_seen: f64,
    /// Share of periods in which both ask for more, if independent.
    pub both_beyond: f64,
    /// Share of periods in which both asked for more in the recordings.
    pub both_beyond_seen: f64,
}

/// Groups on one host by demand per period, with CPU time as a fluid: consequences of their limits,
/// and a simulation of many random periods.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClosedForm {
    /// The longest of the groups' periods, to which all figures refer.
    pub period_ns: Ns,
    /// Sum of the quotas in CPUs; groups without a quota are left out.
    pub reserved_cpus: f64,
    /// Mean demand of all groups in CPUs.
    pub mean_cpus: f64,
    /// Each group's mean demand is below its quota, and their sum below the number of CPUs.
    pub stable: bool,
    /// If the quotas fit the CPUs: upper bound on the CPU time owed to a group at the end of a
    /// period, the sum of the bursts.
    pub tardiness_bound_ns: Option<Ns>,
    /// Simulated with independent random periods: share of periods in which the CPUs cannot serve
    /// what all quotas and bursts allow.
    pub overcommitted_share: f64,
    /// The largest CPU time owed in that simulation.
    pub worst_owed_ns: Ns,
    /// Every two groups.
    pub pairs: Vec<Pair>,
}

/// A setting with all figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shown {
    /// The setting, including head-room.
    pub limits: BandwidthLimits,
    /// Was the quota set by the share of it that may be used, because the goals would hold with
    /// less? `None` for today's setting, and without a quota.
    pub set_by_use: Option<bool>,
    /// Growth of every request's work at which a goal first fails at some phase, as a share, at
    /// most 3; `None` with neighbours or a parent's limit.
    pub growth: Option<f64>,
    /// Quota divided by period; `None` without a quota.
    pub reserved_cpus: Option<f64>,
    /// Figures for the recording itself, over phases.
    pub effect: Figures<Range>,
    /// Number of phases in `effect`.
    pub phases: u32,
    /// Figures over draws: phases and resampled recordings.
    pub intervals: Figures<Interval>,
    /// Share of draws in which all goals hold: the lower of those of the recording as it is and of
    /// those resampled.
    pub holds_share: f64,
    /// Does `holds_share` reach the requested confidence, leaving out draws in which the goals fail
    /// without any limit too?
    pub meets_goals: bool,
    /// Latency of the longest request at the worst moment.
    pub worst_case: Option<WorstCase>,
    /// Latency distribution over all phases, in about 100 points.
    pub latency: Vec<CdfPoint>,
    pub neighbours: Vec<NeighbourEffect>,
    /// This group and its neighbours by their demand per period.
    pub closed_form: Option<ClosedForm>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// A burst, with today's period.
    Burst,
    /// A longer period, no burst.
    LongerPeriod,
    /// A larger quota, with today's period and burst.
    Quota,
    /// The cheapest setting, where it may not be recommended.
    Cheapest,
}

/// Another setting that meets the goals.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Alternative {
    pub change: Change,
    pub shown: Shown,
}

/// p99 over period and burst at one reservation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Map {
    /// Quota divided by period, in CPUs, for every cell.
    pub cpus: f64,
    pub periods_ns: Vec<Ns>,
    /// Burst divided by quota, for each column.
    pub burst_shares: Vec<f64>,
    /// p99 at the median of a few phases; `None` where the kernel refuses the setting.
    pub p99_ns: Vec<Vec<Option<f64>>>,
}

/// The recording that the plan was made from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recording {
    pub name: String,
    /// How it was recorded.
    pub origin: Origin,
    pub span_ns: Ns,
    /// Threads that have work.
    pub threads: u32,
    pub demands: usize,
    /// Mean demand in CPUs.
    pub mean_cpus: f64,
    /// CPU time of the longest request.
    pub longest_ns: Ns,
    /// Limits in force during the recording.
    pub limits: Option<BandwidthLimits>,
    /// What kept so much CPU time from it that its use tells no limit.
    pub held_back: Option<HeldBack>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NeighbourGiven {
    pub recording: Recording,
    /// Its limits in the simulation.
    pub limits: Option<BandwidthLimits>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Model {
    /// Machine that supplies costs and tick.
    pub machine: String,
    /// Number of CPUs, without SMT.
    pub cpus: u32,
    /// Tick rate per second (CONFIG_HZ).
    pub hz: u32,
    /// Kernel baseline.
    pub base: String,
    /// CPU time that a CPU draws from the quota at once.
    pub slice_ns: Ns,
    /// Limit of the parent group.
    pub within: Option<BandwidthLimits>,
    /// Upper bound on the summed quotas, in CPUs.
    pub quota_sum_cpus: Option<f64>,
    /// Share of draws in which the goals must hold.
    pub confidence: f64,
    /// More work in every request under which the goals hold, as a share.
    pub headroom: f64,
    /// More requests under which the goals also hold, as a share.
    pub growth: f64,
    /// Largest share of a quota that mean demand may use, with that growth.
    pub most_used: f64,
    /// Settings that may be recommended.
    pub allowed: Allowed,
    /// Draws of phase and recording per setting.
    pub draws: u32,
    pub seed: u64,
}

/// Statistics of the search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Counts {
    /// Settings of the grid that a kernel accepts.
    pub settings: u32,
    /// Settings evaluated, by the lean replay or the simulator.
    pub simulated: u32,
    /// Settings skipped, because a smaller quota holds or a larger one fails.
    pub pruned: u32,
    /// Simulator runs, over all steps.
    pub runs: u64,
    /// Simulated time of all runs.
    pub simulated_ns: u64,
}

/// Result for one number of threads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OfThreads {
    /// Threads that may run at once.
    pub threads: u32,
    /// Today's limits with this number.
    pub today: Option<Brief>,
    /// The cheapest limits that meet the goals with this number.
    pub recommended: Option<Brief>,
    /// Why there are no recommended limits.
    pub problem: Option<String>,
}

/// Limits with their main figures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Brief {
    pub limits: BandwidthLimits,
    /// p99 of latency, median over phases; null if the recording is too short for it.
    pub p99_ns: f64,
    /// Share of throttled periods, median over phases.
    pub throttled_share: f64,
    /// Share of draws in which the goals hold.
    pub holds_share: f64,
}

/// The complete answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    pub recording: Recording,
    /// How a throttled group's demand was inferred; `None` if it was recorded.
    pub inferred: Option<Inferred>,
    pub goals: Vec<Goal>,
    /// Other groups on the same CPUs.
    pub neighbours: Vec<NeighbourGiven>,
    pub model: Model,
    /// Today's setting, if known.
    pub today: Option<Shown>,
    /// Recorded latency beside today's; `None` if there is none, or it had other limits.
    pub observed: Option<Observed>,
    /// One entry per number of threads, if several were requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<OfThreads>,
    /// The cheapest setting whose goals hold; `None` if there is none.
    pub recommended: Option<Shown>,
    /// Why there is none, if one thing is to blame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<String>,
    /// Quantiles, such as `p99`, for which the recording has too few requests; they have no figure.
    pub too_few: Vec<String>,
    /// Why the recording is too short to act on the plan; empty if it is long enough.
    pub too_short: Vec<TooShort>,
    /// Other settings whose goals hold.
    pub alternatives: Vec<Alternative>,
    /// p99 over period and burst at the recommended reservation.
    pub map: Option<Map>,
    /// Statistics of the search.
    pub counts: Counts,
    /// Caveats on the plan, as whole sentences.
    pub warnings: Vec<String>,
}

impl Plan {
    /// Is a latency goal answered from counters, which hold no request? The answer is an estimate
    /// then, and advises no less than the limit in force.
    pub fn estimates(&self) -> bool {
        let inferred = self.inferred.as_ref();
        inferred.is_some_and(|inferred| self.goals.iter().any(|goal| inferred.estimates(goal)))
    }

    /// Was the demand inferred from counters?
    pub fn of_counters(&self) -> bool {
        self.inferred.as_ref().is_some_and(Inferred::of_counters)
    }

    /// Is the demand that of averages, spread evenly, which hide every burst?
    pub fn spreads_averages(&self) -> bool {
        self.inferred.is_none() && matches!(self.recording.origin, Origin::Averaged { .. })
    }

    /// Is no quota recommended, and none known to be set? Then there is nothing to apply.
    pub fn stays_unlimited(&self) -> bool {
        let limited = |shown: &Shown| shown.limits.quota_ns.is_some();
        self.recommended.as_ref().is_some_and(|shown| !limited(shown))
            && !self.today.as_ref().is_some_and(limited)
    }

    /// Is its setting no advice, since of the use that the recording shows no limit can be told?
    pub fn tells_no_limit(&self) -> bool {
        self.spreads_averages() || self.recording.held_back.is_some()
    }

    /// The setting to apply, if there is one.
    pub fn to_apply(&self) -> Option<&Shown> {
        let short = !self.too_short.is_empty();
        let applies = !self.tells_no_limit() && !self.stays_unlimited() && !short;
        self.recommended.as_ref().filter(|_| applies)
    }

    /// A quantile that a goal limits and the recording has too few requests for.
    pub fn untold(&self) -> Option<&str> {
        let limited = |name: &&String| {
            self.goals.iter().any(|goal| match goal.subject {
                Subject::Latency(quantile) => quantile_name(quantile) == **name,
                _ => false,
            })
        };
        self.too_few.iter().find(limited).map(String::as_str)
    }

    /// Why the recording is too short to act on this plan, and the length that would do.
    pub fn too_short(&self) -> Option<Mistake> {
        let problem = self.too_short.first()?.to_string();
        let lengths = self.too_short.iter().map(|short| short.enough_ns);
        let longest = lengths.collect::<Option<Vec<Ns>>>().and_then(|all| all.into_iter().max());
        let long = longest.map_or("longer".into(), at_least);
        let easier = self.too_short.iter().any(|short| short.quantile.is_some());
        let easier = if easier { ", or set a goal for p50 or p90" } else { "" };
        let help = format!(
            "record for {long}{easier}; without --emit, and with --apply but without --write, you \
             see what would be set"
        );
        Some(Mistake::new(problem, help))
    }
}

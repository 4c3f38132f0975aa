//! What a plan says, as plain values: reports show them, `--json` prints them as they are.
//!
//! Times are nanoseconds in floating point; infinite (`null` in JSON) stands for work that
//! was not done in the time simulated, NaN (`null` too) for a quantile of too few pieces of work,
//! which [`Plan::too_few`] names.

use reveille_measure::enough_for;
use reveille_policy::BandwidthLimits;
use serde::Serialize;

use crate::{Allowed, Goal, Inferred, Ns, Observed, OfThreads, Subject};

/// Values over phases of the period, of which nobody knows the one that a kernel will have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Range {
    /// In the best phase.
    pub min: f64,
    /// Half of the phases have less.
    pub median: f64,
    /// In the worst phase.
    pub max: f64,
}

impl Range {
    /// Nothing can be said.
    pub const UNKNOWN: Range = Range { min: f64::NAN, median: f64::NAN, max: f64::NAN };
}

/// 90% of the draws (a phase and a resampled recording each) lie within, both ends included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Interval {
    /// 5% lie below.
    pub low: f64,
    /// 5% lie above.
    pub high: f64,
}

impl Interval {
    /// Nothing can be said.
    pub const UNKNOWN: Interval = Interval { low: f64::NAN, high: f64::NAN };
}

/// The figures of a setting, each as a [`Range`] or an [`Interval`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figures<T> {
    /// Median latency of a piece of work: from its arrival until it is done.
    pub p50_ns: T,
    /// 90% quantile of the same.
    pub p90_ns: T,
    /// 99% quantile of the same.
    pub p99_ns: T,
    /// 99.9% quantile of the same.
    pub p999_ns: T,
    /// The longest of them.
    pub max_ns: T,
    /// Throttled periods as a share of those with something to do (`cpu.stat`).
    pub throttled_share: T,
    /// Time for which queues were throttled, summed over CPUs, by the time that passed.
    pub lost_share: T,
    /// CPUs used.
    pub cpus_used: T,
    /// What each goal is about, in the order of [`Plan::goals`].
    pub goals: Vec<T>,
}

impl<T: Copy> Figures<T> {
    /// Puts `none` in the place of quantiles that so many pieces of work are too few for.
    pub(crate) fn leave_out(&mut self, pieces: u64, goals: &[Goal], none: T) {
        let own = [
            (&mut self.p50_ns, 0.5),
            (&mut self.p90_ns, 0.9),
            (&mut self.p99_ns, 0.99),
            (&mut self.p999_ns, 0.999),
        ];
        let of_goals = self.goals.iter_mut().zip(goals).filter_map(|(figure, goal)| {
            let Subject::Latency(quantile) = goal.subject else { return None };
            Some((figure, quantile))
        });
        for (figure, quantile) in own.into_iter().chain(of_goals) {
            if !enough_for(pieces, quantile) {
                *figure = none;
            }
        }
    }
}

/// What becomes of the longest piece of work, alone, if it comes when the bank is empty.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WorstCase {
    /// CPU time of the longest piece of work in the recording.
    pub work_ns: Ns,
    /// How long it takes in the worst of the moments simulated.
    pub simulated_ns: f64,
    /// No more than this, by the closed form of docs/plan.md; nothing without a quota.
    pub bound_ns: Option<Ns>,
}

/// One point of a distribution function.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CdfPoint {
    /// This long or shorter takes
    pub latency_ns: f64,
    /// this share of the work.
    pub share: f64,
}

/// What a setting does to a neighbour, over phases.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NeighbourEffect {
    /// Name of its recording.
    pub name: String,
    /// Share of its periods in which some of its work is late: done more than a tick later
    /// than without this group.
    pub missed_share: Range,
    /// The same, but later than with this group and a burst of 0.
    pub missed_by_burst_share: Range,
    /// Lateness against a host without this group, averaged over all of its work.
    pub mean_tardiness_ns: Range,
    /// The worst of it.
    pub worst_tardiness_ns: Range,
    /// The worst against this group with a burst of 0.
    pub worst_tardiness_by_burst_ns: Range,
    /// Its 99% quantile of latency without this group.
    pub p99_without_ns: Range,
    /// The same with this group.
    pub p99_ns: Range,
}

/// How often two groups want more than their quota in a period.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// The two groups.
    pub groups: [String; 2],
    /// How often each asks for no more than its quota.
    pub within: [f64; 2],
    /// How often both do, if they are independent: the product.
    pub both_within: f64,
    /// How often both did in the recordings, period by period.
    pub both_within_seen: f64,
    /// How often both ask for more, if they are independent.
    pub both_beyond: f64,
    /// How often both did in the recordings.
    pub both_beyond_seen: f64,
}

/// Groups on one host by their demand per period, as though CPU time were a fluid: what
/// follows from their limits, and what many periods of chance make of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClosedForm {
    /// The longest of the groups' periods, in which all is counted.
    pub period_ns: Ns,
    /// CPUs that the quotas reserve together; groups without a quota are left out.
    pub reserved_cpus: f64,
    /// CPUs that all ask for on average.
    pub mean_cpus: f64,
    /// Every group asks for less than its quota on average, and all for less than the CPUs.
    pub stable: bool,
    /// If the quotas fit the CPUs: no more CPU time than this is owed to anybody at the end
    /// of a period, the sum of the bursts.
    pub tardiness_bound_ns: Option<Ns>,
    /// Simulated, each period of each group drawn by chance: share of periods in which not
    /// everybody can have what his quota and burst allow.
    pub overcommitted_share: f64,
    /// The most that was owed in it.
    pub worst_owed_ns: Ns,
    /// Groups by two.
    pub pairs: Vec<Pair>,
}

/// A setting with all that is known of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shown {
    /// The setting, head-room included.
    pub limits: BandwidthLimits,
    /// By how much the work of every request can grow before a goal fails at some phase, as a
    /// share, at most 3; nothing beside neighbours and within other groups' limits.
    pub growth: Option<f64>,
    /// Quota by period; nothing without a quota.
    pub reserved_cpus: Option<f64>,
    /// Effects of the recording as it is, over phases.
    pub effect: Figures<Range>,
    /// Number of those phases.
    pub phases: u32,
    /// Effects over draws: phases and resampled recordings.
    pub intervals: Figures<Interval>,
    /// Share of the draws in which all goals hold.
    pub holds_share: f64,
    /// Does that reach the confidence asked for?
    pub meets_goals: bool,
    /// The longest piece of work.
    pub worst_case: Option<WorstCase>,
    /// Distribution of latency over all phases, some 100 points.
    pub latency: Vec<CdfPoint>,
    /// What it does to each neighbour.
    pub neighbours: Vec<NeighbourEffect>,
    /// This group and its neighbours by their demand per period.
    pub closed_form: Option<ClosedForm>,
}

/// What an alternative changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// A burst, at the period of today.
    Burst,
    /// A longer period without a burst.
    LongerPeriod,
    /// A larger quota, with period and burst of today.
    Quota,
    /// The cheapest of all, which may not be recommended.
    Cheapest,
}

/// Another setting that meets the goals.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Alternative {
    /// What it changes.
    pub change: Change,
    /// The setting.
    pub shown: Shown,
}

/// p99 over period and burst at one reservation of CPU.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Map {
    /// Quota by period of all of them.
    pub cpus: f64,
    /// One row each.
    pub periods_ns: Vec<Ns>,
    /// One column each: burst by quota.
    pub burst_shares: Vec<f64>,
    /// In a median phase; nothing where the kernel refuses the setting.
    pub p99_ns: Vec<Vec<Option<f64>>>,
}

/// What the plan was made from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recording {
    /// Its name.
    pub name: String,
    /// How it came about.
    pub origin: reveille_usage::Origin,
    /// Its length.
    pub span_ns: Ns,
    /// Threads with work.
    pub threads: u32,
    /// Pieces of work.
    pub demands: usize,
    /// CPUs asked for on average.
    pub mean_cpus: f64,
    /// CPU time of the longest piece.
    pub longest_ns: Ns,
    /// Limits in force while it was recorded.
    pub limits: Option<BandwidthLimits>,
}

/// A neighbour as it was given.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NeighbourGiven {
    /// Its recording.
    pub recording: Recording,
    /// Its limits in the simulation.
    pub limits: Option<BandwidthLimits>,
}

/// Where and how it was simulated.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Model {
    /// Whose costs and tick were taken.
    pub machine: String,
    /// CPUs, without SMT.
    pub cpus: u32,
    /// Ticks per second.
    pub hz: u32,
    /// The kernel's baseline.
    pub base: String,
    /// What a CPU draws at a time.
    pub slice_ns: Ns,
    /// A limit around the group.
    pub within: Option<BandwidthLimits>,
    /// CPUs that all quotas may reserve together.
    pub quota_sum_cpus: Option<f64>,
    /// Share of the draws in which the goals must hold.
    pub confidence: f64,
    /// The goals hold with so much more work in every request, as a share,
    pub headroom: f64,
    /// and with so many more requests, as a share.
    pub growth: f64,
    /// What may be recommended.
    pub allowed: Allowed,
    /// Number of draws.
    pub draws: u32,
    /// Seed of all randomness.
    pub seed: u64,
}

/// What the search did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Counts {
    /// Settings of the grid that a kernel accepts.
    pub settings: u32,
    /// Those of them that were looked at, in the lean replay or in the simulator.
    pub simulated: u32,
    /// Those left out, since a smaller quota holds or a larger one fails.
    pub pruned: u32,
    /// Runs of the simulator, over all steps.
    pub runs: u64,
    /// Virtual time of all runs.
    pub simulated_ns: u64,
}

/// The whole answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// What it was made from.
    pub recording: Recording,
    /// How the demand of a throttled group was inferred; nothing if it was recorded.
    pub inferred: Option<Inferred>,
    /// The goals, as they were asked for.
    pub goals: Vec<Goal>,
    /// Others on the same CPUs.
    pub neighbours: Vec<NeighbourGiven>,
    /// Where and how it was simulated.
    pub model: Model,
    /// Today's setting, if it is known.
    pub today: Option<Shown>,
    /// Latency that was recorded, beside today's; nothing if none was, or under other limits.
    pub observed: Option<Observed>,
    /// By the number of threads that may run at once, if several were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<OfThreads>,
    /// The cheapest setting whose goals hold; nothing if no setting was found.
    pub recommended: Option<Shown>,
    /// Quantiles that the recording has too few pieces of work for, such as `p99`: no figure is
    /// given of them.
    pub too_few: Vec<String>,
    /// Others whose goals hold.
    pub alternatives: Vec<Alternative>,
    /// p99 over period and burst at the CPU of the recommended setting.
    pub map: Option<Map>,
    /// What the search did.
    pub counts: Counts,
    /// What whoever follows the plan has to know, as whole sentences.
    pub warnings: Vec<String>,
}

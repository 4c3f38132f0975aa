//! Cases of groups that share CPUs by chance: no workload and no machine, but demand,
//! quota and burst, simulated period by period ([`reveille_fluid`]). What such
//! a case is, its runs, and the rows that they amount to.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::iter::{ParallelBridge, ParallelIterator};
use reveille_fluid::{Demand, GroupDemand, Interference, InterferenceError, joint};

use crate::comparison::MachineUsed;
use crate::matrix::seed;
use crate::row::{Detail, Explanation, Row, RowKind, SideDetail};
use crate::{Direction, Metric, Side, Study, statistics, verdict};

/// The name that rows have in place of a machine's.
pub const FLUID: &str = "fluid";

/// What variants are compared with.
pub const NO_BURST: &str = "burst=0%";

/// Periods of a run, unless stated.
pub const DEFAULT_PERIODS: u64 = 1_000_000;

/// Equal groups that share CPUs.
#[derive(Clone, Debug)]
pub struct InterferenceCase {
    /// As rows name it.
    pub name: String,
    /// Distribution of demand.
    pub demand: DemandKind,
    /// How many groups there are; each has the same share of the CPUs as its quota.
    pub groups: usize,
    /// What they share.
    pub cpus: f64,
    /// What loads are.
    pub load_is: LoadIs,
    /// At least one, in the order of the file.
    pub loads: Vec<u64>,
    /// At least one; bursts differ and are not 0.
    pub variants: Vec<BurstVariant>,
    /// At least one.
    pub metrics: Vec<&'static JointMeasure>,
    /// Periods of a run; at least 1.
    pub periods: u64,
    /// Runs of each load under each burst; at least one.
    pub repeats: u32,
    /// At most one for each load, variant and metric.
    pub published: Vec<JointPublished>,
}

/// How demand is distributed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DemandKind {
    /// Exponentially.
    Exponential,
    /// A Poisson number of requests of this share of the quota.
    Poisson {
        /// One request over the quota.
        step: f64,
    },
    /// Pareto with this power.
    Pareto {
        /// Above 1.
        alpha: f64,
    },
}

/// What a load says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadIs {
    /// Mean demand in percent of the quota.
    Use,
    /// The quantile of demand, in percent, that the quota is.
    Quantile,
}

/// A burst that a case is simulated with.
#[derive(Clone, Debug, PartialEq)]
pub struct BurstVariant {
    /// As written: `burst=100%`, `burst=max`.
    pub name: String,
    /// Burst over quota; infinite for `max`.
    pub burst: f64,
}

/// A published figure of an interference case.
#[derive(Clone, Debug)]
pub struct JointPublished {
    /// Index into the loads.
    pub load: usize,
    /// Index into the variants.
    pub variant: usize,
    /// Index into the metrics.
    pub metric: usize,
    /// Which side it is of.
    pub side: Side,
    /// As printed.
    pub value: f64,
    /// Where it was published.
    pub source: String,
}

/// What a joint simulation is judged by.
#[derive(Debug)]
pub struct JointMeasure {
    /// As a study file names it.
    pub key: &'static str,
    /// As rows name it.
    name: &'static str,
    unit: &'static str,
    /// Which way is better for the groups.
    direction: Direction,
    /// The figure if nobody is disturbed, from which differences are judged.
    rest: f64,
    /// A difference that is as good as none.
    pub(crate) floor: f64,
    value: fn(&Interference) -> f64,
}

/// All that a joint simulation can be judged by.
pub const JOINT_MEASURES: &[JointMeasure] = &[
    periods("wcet", "E[WCET]", 1.0, |i| i.wcet),
    share("p_wcet", "P(WCET>1)", Direction::Lower, |i| i.missed),
    share("overcommitted", "overcommitted", Direction::Lower, |i| i.overcommitted),
    share("all_within", "all within quota", Direction::Neither, |i| i.all_within),
    share("all_beyond", "all beyond quota", Direction::Neither, |i| i.all_beyond),
    share("late", "a group late", Direction::Lower, |i| i.late),
    periods("mean_tardiness", "mean tardiness", 0.0, |i| i.mean_tardiness),
    periods("worst_tardiness", "worst tardiness", 0.0, |i| i.worst_tardiness),
];

const fn periods(
    key: &'static str,
    name: &'static str,
    rest: f64,
    value: fn(&Interference) -> f64,
) -> JointMeasure {
    JointMeasure {
        key,
        name,
        unit: "periods",
        direction: Direction::Lower,
        rest,
        floor: 0.01,
        value,
    }
}

const fn share(
    key: &'static str,
    name: &'static str,
    direction: Direction,
    value: fn(&Interference) -> f64,
) -> JointMeasure {
    // A percentage is made of it where it is taken.
    JointMeasure { key, name, unit: SHARE, direction, rest: 0.0, floor: 1.0, value }
}

const SHARE: &str = "% of periods";

impl JointMeasure {
    /// What it is of.
    pub fn metric(&self) -> Metric {
        Metric::new(self.name, self.unit, self.direction)
    }

    fn sample(&self, result: &Interference) -> f64 {
        let factor = if self.unit == SHARE { 100.0 } else { 1.0 };
        factor * (self.value)(result)
    }
}

impl InterferenceCase {
    /// The groups at a load; side 0 has no burst, variant i is i + 1.
    pub(crate) fn groups_at(&self, load: u64, side: usize) -> Vec<GroupDemand> {
        let quota = self.cpus / self.groups as f64;
        let share = load as f64 / 100.0;
        let demand = match self.load_is {
            LoadIs::Use => self.demand.with_mean(share * quota, quota),
            LoadIs::Quantile => {
                // Distributions scale with their mean.
                let unit = self.demand.with_mean(quota, quota);
                self.demand.with_mean(quota * quota / unit.quantile(share), quota)
            }
        };
        let burst = side.checked_sub(1).map_or(0.0, |i| self.variants[i].burst);
        vec![GroupDemand { demand, quota, burst: burst * quota }; self.groups]
    }

    /// Can every load be simulated?
    pub(crate) fn check(&self) -> Result<(), (u64, InterferenceError)> {
        self.loads.iter().try_for_each(|load| {
            let tried = joint(&self.groups_at(*load, 1), self.cpus, 1, 0);
            tried.map(|_| ()).map_err(|error| (*load, error))
        })
    }

    fn sides(&self) -> usize {
        1 + self.variants.len()
    }
}

impl DemandKind {
    fn with_mean(self, mean: f64, quota: f64) -> Demand {
        match self {
            DemandKind::Exponential => Demand::Exponential { mean },
            DemandKind::Poisson { step } => Demand::Poisson { mean, step: step * quota },
            DemandKind::Pareto { alpha } => Demand::Pareto { mean, alpha },
        }
    }
}

/// What stands in a comparison where a machine would.
pub(crate) fn fluid() -> MachineUsed {
    MachineUsed {
        name: FLUID.to_owned(),
        topology: "CPU time as a fluid, shared equally, period by period".to_owned(),
        cost_model: "none: nothing costs time".to_owned(),
        warnings: Vec::new(),
    }
}

/// The joint simulations of several studies, and what they have left so far.
pub(crate) struct JointRuns<'a> {
    slots: Vec<JointSlot<'a>>,
}

/// All runs of one load of one case under one side.
struct JointSlot<'a> {
    study: usize,
    study_seed: u64,
    /// Position of the case behind those with workloads, on which seeds depend.
    case_index: usize,
    case: &'a InterferenceCase,
    load: u64,
    side: usize,
    /// By repeat and metric.
    samples: Vec<OnceLock<Vec<f64>>>,
}

impl<'a> JointRuns<'a> {
    pub(crate) fn new(studies: &[&'a Study]) -> JointRuns<'a> {
        let mut slots = Vec::new();
        for (i, study) in studies.iter().enumerate() {
            for (c, case) in study.interference.iter().enumerate() {
                let sides = case.loads.iter().flat_map(|l| (0..case.sides()).map(move |s| (*l, s)));
                slots.extend(sides.map(|(load, side)| JointSlot {
                    study: i,
                    study_seed: study.seed,
                    case_index: study.cases.len() + c,
                    case,
                    load,
                    side,
                    samples: (0..case.repeats).map(|_| OnceLock::new()).collect(),
                }));
            }
        }
        JointRuns { slots }
    }

    /// How many simulations there are.
    pub(crate) fn len(&self) -> usize {
        self.slots.iter().map(|s| s.samples.len()).sum()
    }

    /// Runs all in the current pool of threads, until `stop` is set; tells every end.
    pub(crate) fn run(&self, stop: &AtomicBool, ended: &(dyn Fn() + Sync)) {
        let runs = self.slots.iter().flat_map(|s| (0..s.samples.len()).map(move |r| (s, r)));
        runs.par_bridge().for_each(|(slot, repeat)| {
            if !stop.load(Ordering::Relaxed) {
                slot.run(repeat);
                ended();
            }
        });
    }

    /// The rows of a study, and whether some are missing.
    pub(crate) fn rows(&self, study: usize) -> (Vec<Row>, bool) {
        let slots: Vec<&JointSlot<'_>> = self.slots.iter().filter(|s| s.study == study).collect();
        let (mut rows, mut partial) = (Vec::new(), false);
        let mut rest = slots.as_slice();
        while let Some(first) = rest.first() {
            let (sides, others) = rest.split_at(first.case.sides());
            rest = others;
            if sides.iter().any(|s| s.samples.iter().any(|r| r.get().is_none())) {
                partial = true;
                continue;
            }
            for variant in 0..first.case.variants.len() {
                rows.extend(
                    (0..first.case.metrics.len()).map(|m| row(sides[0], sides[variant + 1], m)),
                );
            }
        }
        (rows, partial)
    }
}

impl JointSlot<'_> {
    fn run(&self, repeat: usize) {
        let case = self.case;
        let groups = case.groups_at(self.load, self.side);
        // All sides meet the same demands.
        let seed = seed(self.study_seed, self.case_index, self.load, repeat);
        let result = joint(&groups, case.cpus, case.periods, seed).expect("loads were checked");
        let samples = case.metrics.iter().map(|m| m.sample(&result)).collect();
        self.samples[repeat].set(samples).expect("each repeat is run once");
    }

    fn of_metric(&self, m: usize) -> Vec<f64> {
        self.samples.iter().filter_map(|s| Some(s.get()?[m])).collect()
    }
}

/// The row of one metric of one load under one burst.
fn row(base: &JointSlot<'_>, candidate: &JointSlot<'_>, m: usize) -> Row {
    let (case, measure) = (base.case, base.case.metrics[m]);
    let samples = [base.of_metric(m), candidate.of_metric(m)];
    let [baseline, figure] = [&samples[0], &samples[1]].map(|s| statistics::figure(s));
    let repeats = samples[0].len();
    let p_value = statistics::welch_p(&samples[0], &samples[1]);
    let [base_detail, candidate_detail] =
        samples.map(|samples| SideDetail { samples, ..SideDetail::default() });
    let mut row = Row {
        case: case.name.clone(),
        machine: FLUID.to_owned(),
        base: NO_BURST.to_owned(),
        load: base.load,
        variant: case.variants[candidate.side - 1].name.clone(),
        repeats,
        metric: measure.metric(),
        kind: RowKind::Interference,
        baseline,
        candidate: figure,
        change_pct: statistics::change_pct(measure.direction, baseline.mean, figure.mean),
        modes: None,
        p_value,
        significant: p_value.is_some_and(|p| p < 0.05),
        too_few: false,
        published_change_pct: None,
        published_baseline: None,
        published_candidate: None,
        published_unit: None,
        published_of: None,
        published_source: None,
        ratio: None,
        noise: None,
        verdict: None,
        half_width: f64::NAN,
        ratios: Vec::new(),
        explain: Explanation::default(),
        detail: Detail { baseline: base_detail, candidate: candidate_detail },
    };
    let published = case.published.iter().find(|p| {
        case.loads[p.load] == base.load && p.variant + 1 == candidate.side && p.metric == m
    });
    if let Some(published) = published {
        hold(&mut row, measure, published);
    }
    row
}

/// Holds a row against what was published for it.
fn hold(row: &mut Row, measure: &JointMeasure, published: &JointPublished) {
    let predicted = match published.side {
        Side::Base => {
            row.published_baseline = Some(published.value);
            row.baseline.mean
        }
        Side::Variant => {
            row.published_candidate = Some(published.value);
            row.candidate.mean
        }
    };
    row.published_source = Some(published.source.clone());
    let (value, predicted) = (published.value - measure.rest, predicted - measure.rest);
    let ratio = verdict::ratio(predicted, value);
    row.ratio = ratio.is_finite().then_some(ratio);
    row.ratios = vec![(ratio, 1.0)];
    row.half_width = verdict::INTERFERENCE_SHARE.ln_1p();
    row.verdict = Some(verdict::judge_interference(value, predicted, measure.floor));
}

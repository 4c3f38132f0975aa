//! Cases of groups that share CPUs with random demand: no workload and no machine, but demand,
//! quota and burst, simulated period by period ([`reveille_fluid`]).

use reveille_fluid::{Demand, GroupDemand, Interference, InterferenceError, joint};
use reveille_measure::{Direction, Metric};

use crate::model::published::Side;

/// The name that rows have in place of a machine's.
pub const FLUID: &str = "fluid";

/// What variants are compared with.
pub const NO_BURST: &str = "burst=0%";

/// Periods of a run, unless stated.
pub const DEFAULT_PERIODS: u64 = 1_000_000;

/// Equal groups that share CPUs.
#[derive(Clone, Debug)]
pub struct InterferenceCase {
    pub name: String,
    pub demand: DemandKind,
    /// How many groups there are; each has the same share of the CPUs as its quota.
    pub groups: usize,
    pub cpus: f64,
    pub load_is: LoadIs,
    /// At least one, in the order of the file.
    pub loads: Vec<u64>,
    /// At least one; bursts differ and are not 0.
    pub variants: Vec<BurstVariant>,
    pub metrics: Vec<&'static JointMeasure>,
    /// Periods of a run; at least 1.
    pub periods: u64,
    /// Runs of each load under each burst; at least one.
    pub repeats: u32,
    /// At most one for each load, variant and metric.
    pub published: Vec<JointPublished>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DemandKind {
    Exponential,
    /// A Poisson number of requests of this share of the quota.
    Poisson {
        /// One request over the quota.
        step: f64,
    },
    Pareto {
        /// Above 1.
        alpha: f64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadIs {
    /// Mean demand in percent of the quota.
    Use,
    /// The quantile of demand, in percent, that the quota is.
    Quantile,
}

#[derive(Clone, Debug, PartialEq)]
pub struct BurstVariant {
    /// As written: `burst=100%`, `burst=max`.
    pub name: String,
    /// Burst over quota; infinite for `max`.
    pub burst: f64,
}

#[derive(Clone, Debug)]
pub struct JointPublished {
    /// Index into the loads.
    pub load: usize,
    /// Index into the variants.
    pub variant: usize,
    /// Index into the metrics.
    pub metric: usize,
    pub side: Side,
    /// As printed.
    pub value: f64,
    pub source: String,
}

/// What a joint simulation is judged by.
#[derive(Debug)]
pub struct JointMeasure {
    /// As a study file names it.
    pub key: &'static str,
    name: &'static str,
    pub(crate) unit: &'static str,
    /// Which way is better for the groups.
    pub(crate) direction: Direction,
    /// Value without any disturbance, from which differences are judged.
    pub(crate) rest: f64,
    /// A difference that is as good as none.
    pub(crate) floor: f64,
    value: fn(&Interference) -> f64,
}

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

pub(crate) const SHARE: &str = "% of periods";

impl JointMeasure {
    pub fn metric(&self) -> Metric {
        Metric::new(self.name, self.unit, self.direction)
    }

    pub(crate) fn sample(&self, result: &Interference) -> f64 {
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

    pub(crate) fn sides(&self) -> usize {
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

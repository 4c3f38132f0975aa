//! A machine: topology, costs, idle states, and for every number where it comes
//! from and how far it could be wrong.

use serde::Serialize;

use crate::cost::{CostError, CostModel};
use crate::topology::Topology;

/// Timer frequency of a machine that does not state one: the kernel's default.
pub const DEFAULT_HZ: u32 = 250;

/// Most constants of a machine, inherited ones included, that may be
/// [`Origin::Fitted`]: with more free numbers a model can be bent to any result.
pub const MAX_FITTED: usize = 8;

/// A measured value and its spread.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// On what, how, and by which arithmetic.
    pub how: String,
    /// A tenth of the samples lies below, in the constant's unit.
    pub p10: f64,
    /// A tenth of the samples lies above.
    pub p90: f64,
    /// How many samples there are, at least 1.
    pub samples: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    /// A public source: commit, mail, manual, repository.
    Cited(String),
    /// Worked out from something cited: from what, and how.
    Estimated(String),
    /// Measured on the machine itself; the value is the median.
    Measured(Measured),
    /// Not measured: the reason for the value, and what it was fitted to.
    Fitted(String),
}

impl Origin {
    pub fn text(&self) -> &str {
        match self {
            Origin::Cited(text) | Origin::Estimated(text) | Origin::Fitted(text) => text,
            Origin::Measured(measured) => &measured.how,
        }
    }

    /// `cited`, `estimated`, `measured` or `fitted`.
    pub fn kind(&self) -> &'static str {
        match self {
            Origin::Cited(_) => "cited",
            Origin::Estimated(_) => "estimated",
            Origin::Measured(_) => "measured",
            Origin::Fitted(_) => "fitted",
        }
    }

    pub fn is_fitted(&self) -> bool {
        matches!(self, Origin::Fitted(_))
    }
}

/// One constant of a machine, with its evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    pub key: &'static str,
    pub value: f64,
    /// `ns`, `count` or `ratio`.
    pub unit: &'static str,
    pub low: f64,
    pub high: f64,
    pub origin: Origin,
    /// What is charged, and when.
    pub meaning: &'static str,
    /// Taken over from the base cost model, not stated by the machine itself.
    pub inherited: bool,
}

/// A state that an idle CPU can wait in, lightest first. As JSON, its figures without their origin.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IdleState {
    /// Name, as in sysfs: `POLL`, `C1`, `C1E`, …
    pub name: String,
    /// From the wake-up signal to the first instruction after the idle instruction.
    pub exit_ns: u32,
    pub exit_low_ns: u32,
    pub exit_high_ns: u32,
    /// Shortest idle time for which the state is worth entering.
    pub residency_ns: u32,
    /// The CPU sees need-resched without an interrupt (POLL, and MWAIT states,
    /// which monitor that line); false for HLT and I/O port states.
    pub polling: bool,
    #[serde(skip)]
    pub origin: Origin,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Short name: `spr-2s56c`.
    pub name: String,
    /// What it is, in a sentence.
    pub about: String,
    pub source: String,
    pub topology: Topology,
    pub cost: CostModel,
    pub cost_model: String,
    /// Idle states, lightest first.
    pub idle: Vec<IdleState>,
    /// Timer frequency of the kernel: 100, 250, 300 or 1000.
    pub hz: u32,
    /// Every constant of `cost` with its evidence, in the order of [`CostModel::FIELDS`].
    pub constants: Vec<Constant>,
    /// Hardware features that are not modelled, as clauses; empty for machine files.
    pub warnings: Vec<String>,
}

impl Machine {
    pub fn constant(&self, key: &str) -> Option<&Constant> {
        self.constants.iter().find(|c| c.key == key)
    }

    /// Sets a constant within its plausible range, in `cost` and in `constants`:
    /// to see how a result depends on it. `idle.C1.exit_ns` is the exit latency of
    /// the idle state C1; see [`Machine::tunables`].
    ///
    /// # Errors
    /// No such constant, or a value that it cannot take or that lies outside its
    /// range.
    pub fn set(&mut self, key: &str, value: f64) -> Result<(), CostError> {
        if key.starts_with("idle.") {
            return self.set_exit(key, value);
        }
        let field = CostModel::field(key)?;
        field.check(value)?;
        for c in self.constants.iter_mut().filter(|c| c.key == key) {
            if value < c.low || value > c.high {
                return Err(CostError::Range {
                    key: c.key.to_owned(),
                    value,
                    low: c.low,
                    high: c.high,
                });
            }
            c.value = value;
        }
        self.cost.set(key, value)
    }

    /// The unmeasured constants and idle exit latencies.
    pub fn fitted(&self) -> Vec<&str> {
        let constants = self.constants.iter().filter(|c| c.origin.is_fitted()).map(|c| c.key);
        let idle = self.idle.iter().filter(|s| s.origin.is_fitted()).map(|s| s.name.as_str());
        constants.chain(idle).collect()
    }
}

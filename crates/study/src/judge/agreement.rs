//! Predictions beside measurements. Like [`Comparison`](crate::Comparison), it holds everything
//! that views show; its serialised form is the stable JSON interface.

use reveille_measure::{HostContext, Metric};
use serde::Serialize;

use crate::judge::modes::Spread;
use crate::judge::score::Score;
use crate::judge::verdict::Verdict;
use crate::judge::verdict::measured::{Rule, Runs};

/// How far predictions and measurements of one study agree.
#[derive(Clone, Debug, Serialize)]
pub struct Agreement {
    /// Name of the study, or `compare` for one given on the command line.
    pub study: String,
    pub machine: String,
    pub topology: String,
    pub cost_model: String,
    /// Where the machine's costs come from.
    pub machine_source: String,
    pub base: String,
    pub seed: u64,
    pub host: HostContext,
    /// By case, load, side and metric, in the order of the study.
    pub rows: Vec<AgreementRow>,
    pub score: Score,
    /// True if the run was interrupted and rows, or repeats of them, are missing.
    pub partial: bool,
}

/// One figure in both worlds.
#[derive(Clone, Debug, Serialize)]
pub struct AgreementRow {
    /// Workload, or the name that the study gives this case.
    pub case: String,
    /// Load in the workload's own unit.
    pub load: u64,
    /// The variant's edits; null for the baseline.
    pub variant: Option<String>,
    /// What is compared, with its unit: `throughput (operations/s)`.
    #[serde(flatten, serialize_with = "Metric::with_direction")]
    pub metric: Metric,
    pub kind: AgreementKind,
    pub predicted: Spread,
    pub measured: Spread,
    /// Predicted by measured median; null where either has several modes, or none a value.
    pub ratio: Option<f64>,
    /// The bound that runs are counted above; null for other kinds.
    pub bound: Option<f64>,
    pub predicted_runs: Option<Runs>,
    pub measured_runs: Option<Runs>,
    /// Predicted change of means in percent, + is better; null for other kinds.
    pub predicted_change_pct: Option<f64>,
    pub measured_change_pct: Option<f64>,
    pub rule: Rule,
    pub verdict: Verdict,
    pub reason: String,
}

impl AgreementRow {
    /// Is a figure that it would show a quantile of too few samples?
    pub fn has_too_few(&self) -> bool {
        self.kind != AgreementKind::Runs && (self.predicted.too_few || self.measured.too_few)
    }
}

/// What a row compares between prediction and measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AgreementKind {
    /// The figure of one side.
    Value,
    /// How many repeats of one side are above a bound.
    Runs,
    Change,
}

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
    /// Name of the machine that predictions were made for.
    pub machine: String,
    /// Its topology in words.
    pub topology: String,
    /// Name of the cost model that it uses.
    pub cost_model: String,
    /// Where the machine's costs come from.
    pub machine_source: String,
    /// Kernel baseline that predictions were made with.
    pub base: String,
    /// Seed of all runs.
    pub seed: u64,
    /// Host that was measured.
    pub host: HostContext,
    /// By case, load, side and metric, in the order of the study.
    pub rows: Vec<AgreementRow>,
    /// Hits among the rows that count.
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
    /// What is compared.
    pub kind: AgreementKind,
    /// Repeats of the prediction.
    pub predicted: Spread,
    /// Repeats of the measurement.
    pub measured: Spread,
    /// Predicted by measured median; null where either has several modes, or none a value.
    pub ratio: Option<f64>,
    /// The bound that runs are counted above; null for other kinds.
    pub bound: Option<f64>,
    /// Predicted runs above it; null for other kinds.
    pub predicted_runs: Option<Runs>,
    /// Measured runs above it; null for other kinds.
    pub measured_runs: Option<Runs>,
    /// Predicted change of means in percent, + is better; null for other kinds.
    pub predicted_change_pct: Option<f64>,
    /// Measured change of means in percent, + is better; null for other kinds.
    pub measured_change_pct: Option<f64>,
    /// The part of the rule that applies.
    pub rule: Rule,
    /// Do the two agree?
    pub verdict: Verdict,
    /// Why, in words.
    pub reason: String,
}

/// What a row compares between prediction and measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AgreementKind {
    /// The figure of one side.
    Value,
    /// How many repeats of one side are above a bound.
    Runs,
    /// The change from the baseline to a variant.
    Change,
}

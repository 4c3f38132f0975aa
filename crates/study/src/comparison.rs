//! The value that a study produces. Terminal table, HTML page, JSON and CSV are
//! views of it; what is serialised here is the stable JSON interface.

use reveille_measure::{CpuTime, Explain, Ns};
use serde::Serialize;

/// The outcome of one study: every case × load × variant against the baseline.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Name of the study, or `compare` for one given on the command line.
    pub study: String,
    /// Name of the machine.
    pub machine: String,
    /// Topology of the machine in words.
    pub topology: String,
    /// Name of the cost model that the machine uses.
    pub cost_model: String,
    /// Baseline policy, such as `v6.2`.
    pub base: String,
    /// One row per case, load, variant and metric, in the order of the study file.
    pub rows: Vec<Row>,
    /// Statements about a whole curve, such as where throughput peaks.
    pub claims: Vec<Claim>,
    /// Hits among the rows that count.
    pub score: Score,
    /// True if the run was interrupted and rows are missing.
    pub partial: bool,
}

/// Mean over repeats with its spread.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Mean over repeats, in the metric's own unit.
    pub mean: f64,
    /// Standard deviation over repeats divided by the mean (0.02 is 2%).
    pub rel_std: f64,
}

/// One compared figure.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Workload, or the name that the study gives this case.
    pub case: String,
    /// Load in the workload's own unit (pairs, clients, message threads).
    pub load: u64,
    /// The variant, such as `+SIS_SHORT`.
    pub variant: String,
    /// What is compared, with its unit: `throughput (operations/s)`, `p99 (ns)`.
    pub metric: String,
    /// Under the baseline.
    pub baseline: Figure,
    /// Under the variant.
    pub candidate: Figure,
    /// Change in percent; positive is better, whatever the metric.
    pub change_pct: f64,
    /// Two-sided p-value of Welch's t-test; null with fewer than two repeats.
    pub p_value: Option<f64>,
    /// p-value below 0.05.
    pub significant: bool,
    /// The published change in percent, positive is better; null if none.
    pub published_change_pct: Option<f64>,
    /// Where the published change stands; null if none.
    pub published_source: Option<String>,
    /// Null if nothing was published.
    pub verdict: Option<Verdict>,
    /// The numbers behind the row.
    pub explain: Explanation,
    /// What the plots draw; not part of the JSON.
    #[serde(skip)]
    pub detail: Detail,
}

/// The same explaining numbers for both sides.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Explanation {
    /// Mean over the baseline's repeats.
    pub baseline: Explain,
    /// Mean over the candidate's repeats.
    pub candidate: Explain,
}

/// Does a prediction agree with the published figure? See [`crate::verdict`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Within the tolerance of the scoring rule.
    Hit,
    /// Outside it.
    Miss,
    /// Shown, but too noisy at the source to count.
    Informative,
}

/// Hits among the counted rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Score {
    /// Rows that agree.
    pub hits: usize,
    /// Rows that have a published figure and count.
    pub counted: usize,
}

/// A published statement about a curve, held against the predicted curve.
#[derive(Clone, Debug, Serialize)]
pub struct Claim {
    /// What is claimed, in words.
    pub claim: String,
    /// The published value.
    pub published: f64,
    /// The predicted value.
    pub predicted: f64,
    /// Whether the two agree.
    pub verdict: Verdict,
    /// Where it was published.
    pub source: String,
}

/// What a row's plots need.
#[derive(Clone, Debug, Default)]
pub struct Detail {
    /// Under the baseline.
    pub baseline: SideDetail,
    /// Under the variant.
    pub candidate: SideDetail,
}

/// One side of a row, for plots.
#[derive(Clone, Debug, Default)]
pub struct SideDetail {
    /// The metric's value in every repeat.
    pub samples: Vec<f64>,
    /// Wakeup latency: (ns, share of wake-ups at or below it), all repeats together.
    pub latency_cdf: Vec<(Ns, f64)>,
    /// How each CPU spent its time, summed over repeats, by CPU number.
    pub cpus: Vec<CpuTime>,
}

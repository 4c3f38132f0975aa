//! The value that a study produces. Terminal table, HTML page, JSON and CSV are
//! views of it; what is serialised here is the stable JSON interface.

use reveille_measure::{CpuTime, Explain, HostContext, Ns};
use serde::{Deserialize, Serialize};

use crate::modes::{ModeChange, RowModes};
use crate::{Metric, Skill};

/// The outcome of one study: every case × load × variant against the baseline.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Name of the study, or `compare` for one given on the command line.
    pub study: String,
    /// What its figures are about, such as `SIS_SHORT`; null if it does not say.
    pub mechanism: Option<String>,
    /// Name of the study's own machine.
    pub machine: String,
    /// Topology of that machine in words.
    pub topology: String,
    /// Name of the cost model that the machine uses.
    pub cost_model: String,
    /// Every machine that rows name, the study's own first.
    pub machines: Vec<MachineUsed>,
    /// The study's own baseline policy, such as `v6.2`.
    pub base: String,
    /// All randomness of all runs comes from it.
    pub seed: u64,
    /// At least one row per case, load, variant and metric, in the order of the study
    /// file; several where several figures are published for one.
    pub rows: Vec<Row>,
    /// Statements about a whole curve, such as where throughput peaks.
    pub claims: Vec<Claim>,
    /// Hits among the claims; no part of the score.
    pub claim_score: Score,
    /// What was published as well and cannot be predicted.
    pub unpredicted: Vec<Unpredicted>,
    /// Hits among the rows that count.
    pub score: Score,
    /// The same beside "nothing ever changes".
    pub skill: Skill,
    /// True if the run was interrupted and rows, or repeats of them, are missing.
    pub partial: bool,
    /// The host that the figures were measured on; absent if they are predicted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<HostContext>,
}

/// A machine that rows were run on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MachineUsed {
    /// As rows name it.
    pub name: String,
    /// Its topology in words.
    pub topology: String,
    /// Name of the cost model that it uses.
    pub cost_model: String,
    /// What the model leaves out of it.
    pub warnings: Vec<String>,
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
    /// Name of the machine.
    pub machine: String,
    /// Baseline policy, such as `v6.2`.
    pub base: String,
    /// Load in the workload's own unit (pairs, clients, message threads).
    pub load: u64,
    /// The variant, such as `+SIS_SHORT`.
    pub variant: String,
    /// Finished runs of each side.
    pub repeats: usize,
    /// What is compared, with its unit: `throughput (operations/s)`, `p99 (ns)`.
    #[serde(flatten, serialize_with = "Metric::with_direction")]
    pub metric: Metric,
    /// What is held against a published figure.
    pub kind: RowKind,
    /// Under the baseline.
    pub baseline: Figure,
    /// Under the variant.
    pub candidate: Figure,
    /// Change in percent; positive is better. Plain where no direction is better.
    pub change_pct: f64,
    /// The states that repeats fall into, where a side has more than one: then the means
    /// and their change stand for no run. Null otherwise.
    pub modes: Option<RowModes>,
    /// Two-sided p-value of Welch's t-test; null with fewer than two repeats.
    pub p_value: Option<f64>,
    /// p-value below 0.05.
    pub significant: bool,
    /// A quantile that some repeat has too few samples for: fewer than ten beyond it. Without a
    /// published figure to be held against, its figures are null then.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub too_few: bool,
    /// The published change in percent, positive is better; null if none.
    pub published_change_pct: Option<f64>,
    /// The published figure of the baseline, as printed; null if none.
    pub published_baseline: Option<f64>,
    /// The published figure of the variant, as printed; null if none.
    pub published_candidate: Option<f64>,
    /// Unit of the two as printed; null if none is stated.
    pub published_unit: Option<String>,
    /// How many runs the published number of runs is among; null for other kinds.
    pub published_of: Option<u32>,
    /// Where the published figure stands; null if none.
    pub published_source: Option<String>,
    /// Predicted by published: of the ratios of both sides (higher is better), or of
    /// the figures where one side is held against its own. 1 is exact; null if nothing
    /// was published or there is no such number, as where repeats fall into several states.
    pub ratio: Option<f64>,
    /// How the source itself calls the figure noise; null if it does not.
    pub noise: Option<String>,
    /// Null if nothing was published.
    pub verdict: Option<Verdict>,
    /// See [`crate::verdict::half_width`]; NaN if nothing was published. Not part of
    /// the JSON.
    #[serde(skip)]
    pub half_width: f64,
    /// Predicted by published in each state, with its share; one of share 1 where there is
    /// one state, none if nothing was published. Not part of the JSON.
    #[serde(skip)]
    pub ratios: Vec<(f64, f64)>,
    /// The numbers behind the row.
    pub explain: Explanation,
    /// What the plots draw; not part of the JSON.
    #[serde(skip)]
    pub detail: Detail,
}

impl Row {
    /// The predicted changes, with their shares: one, unless a side has several modes.
    pub fn changes(&self) -> Vec<ModeChange> {
        match &self.modes {
            Some(modes) => modes.changes.clone(),
            None => vec![ModeChange { change_pct: self.change_pct, share: 1.0 }],
        }
    }
}

/// What a row holds against a published figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RowKind {
    /// The change between both sides; also if nothing was published.
    Change,
    /// The size of one side.
    Side,
    /// The standard deviation over repeats of both sides.
    Std,
    /// How many repeats of one side are above a bound.
    Runs,
    /// What groups that share CPUs do to each other; also if nothing was published.
    Interference,
}

/// The same explaining numbers for both sides.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Explanation {
    /// Mean over the baseline's repeats.
    pub baseline: Explain,
    /// Mean over the candidate's repeats.
    pub candidate: Explain,
}

/// Does a prediction agree with the published figure? See [`crate::verdict`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Rows (or claims) that agree.
    pub hits: usize,
    /// Rows (or claims) that have a published figure and count.
    pub counted: usize,
}

impl Score {
    /// Hits in percent of what counts; `None` if nothing does.
    pub fn pct(self) -> Option<f64> {
        (self.counted > 0).then(|| 100.0 * self.hits as f64 / self.counted as f64)
    }
}

/// A published statement about a curve, held against the predicted curve.
#[derive(Clone, Debug, Serialize)]
pub struct Claim {
    /// `peak`, `onset`, `fall`, `between` or `steadier`.
    pub kind: &'static str,
    /// What is claimed, in words.
    pub claim: String,
    /// The published value, where it is one number.
    pub published: Option<f64>,
    /// The least predicted value that agrees; null if there is no such bound.
    pub low: Option<f64>,
    /// The largest predicted value that agrees; null if there is no such bound.
    pub high: Option<f64>,
    /// The predicted value; null if the curve has none.
    pub predicted: Option<f64>,
    /// Whether the two agree.
    pub verdict: Verdict,
    /// Where it was published.
    pub source: String,
}

/// Something published that no run of the study is held against.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unpredicted {
    /// What was measured.
    pub what: String,
    /// The figures as printed.
    pub figures: String,
    /// Why they cannot be predicted.
    pub reason: String,
    /// Where they were published.
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

//! A row of a comparison: one figure under the baseline and under the variant, and what was
//! published for it.

use reveille_measure::{CpuTime, Explain, Metric, Ns};
use serde::Serialize;

use crate::judge::modes::{ModeChange, RowModes};
use crate::judge::statistics::{Figure, change_pct};
use crate::judge::track_record::{TrackRecord, migrations_per_wakeup, predicted_pct};
use crate::judge::verdict::Verdict;

#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Workload, or the name that the study gives this case.
    pub case: String,
    pub machine: String,
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
    pub baseline: Figure,
    pub candidate: Figure,
    /// Change in percent; positive is better. Plain where no direction is better.
    pub change_pct: f64,
    /// That of the runs. `change_pct` differs where simulated migrations or repeats that disagree
    /// leave its size unknown: [what is predicted then](crate::TrackRecord).
    pub uncorrected_change_pct: f64,
    /// The states that repeats fall into, where a side has more than one: then the means
    /// and their change stand for no run. Null otherwise.
    pub modes: Option<RowModes>,
    /// Two-sided p-value of Welch's t-test; null with fewer than two repeats.
    pub p_value: Option<f64>,
    /// p-value below 0.05.
    pub significant: bool,
    /// Are the simulated runs of both sides the same in all that is observed? Then nothing in them met what
    /// the variant alters.
    pub identical: bool,
    /// A quantile that some repeat has too few samples for: fewer than ten beyond it. Without a
    /// published figure to be held against, its figures are null then.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub too_few: bool,
    /// A duration that has enough of them, at the rate of the repeat with fewest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enough_ns: Option<Ns>,
    /// How predictions like this one fared; null if this is a measurement or of one repeat, or no
    /// change has a better direction.
    pub track_record: Option<TrackRecord>,
    /// The published change in percent, positive is better; null if none.
    pub published_change_pct: Option<f64>,
    /// The published figure of the baseline, as printed; null if none.
    pub published_baseline: Option<f64>,
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
    /// How far a hit may be away, see [`crate::verdict::half_width`]; NaN if nothing was published.
    #[serde(rename = "tolerance")]
    pub half_width: f64,
    /// Predicted by published in each state, with its share; one of share 1 where there is
    /// one state, none if nothing was published. Not part of the JSON.
    #[serde(skip)]
    pub ratios: Vec<(f64, f64)>,
    pub explain: Explanation,
    /// What the plots draw; not part of the JSON.
    #[serde(skip)]
    pub detail: Detail,
}

impl Row {
    /// Both figures and their change, with nothing published and all else empty.
    pub(crate) fn of(metric: Metric, kind: RowKind, baseline: Figure, candidate: Figure) -> Row {
        let change = change_pct(metric.direction, baseline.mean, candidate.mean);
        Row {
            case: String::new(),
            machine: String::new(),
            base: String::new(),
            load: 0,
            variant: String::new(),
            repeats: 0,
            kind,
            baseline,
            candidate,
            change_pct: change,
            uncorrected_change_pct: change,
            metric,
            modes: None,
            p_value: None,
            significant: false,
            identical: false,
            too_few: false,
            enough_ns: None,
            track_record: None,
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
            detail: Detail::default(),
        }
    }

    /// Is the predicted change another than that of the runs?
    pub fn is_corrected(&self) -> bool {
        (self.change_pct - self.uncorrected_change_pct).abs() > 0.0
    }

    /// The best prediction where its runs changed by so much, however that is averaged.
    pub fn predicted_pct(&self, simulated_pct: f64) -> f64 {
        if self.track_record.is_none() || self.modes.is_some() {
            return simulated_pct;
        }
        let sides = [&self.explain.baseline, &self.explain.candidate];
        predicted_pct(simulated_pct, self.p_value, sides.map(migrations_per_wakeup))
    }

    /// The predicted changes, with their shares: one, unless a side has several modes.
    pub fn changes(&self) -> Vec<ModeChange> {
        match &self.modes {
            Some(modes) => modes.changes.clone(),
            None => vec![ModeChange { change_pct: self.change_pct, share: 1.0 }],
        }
    }
}

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

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Explanation {
    pub baseline: Explain,
    pub candidate: Explain,
}

#[derive(Clone, Debug, Default)]
pub struct Detail {
    pub baseline: SideDetail,
    pub candidate: SideDetail,
}

#[derive(Clone, Debug, Default)]
pub struct SideDetail {
    pub samples: Vec<f64>,
    /// Wakeup latency: (ns, share of wake-ups at or below it), all repeats together.
    pub latency_cdf: Vec<(Ns, f64)>,
    /// How each CPU spent its time, summed over repeats, by CPU number.
    pub cpus: Vec<CpuTime>,
}

//! What is scored, what is known of one cell and of a guardrail, and how a scoring ended.

use reveille_measure::{Explain, Metric, enough_for};
use reveille_policy::PolicyFile;
use reveille_study::Row;
use serde::Serialize;

use crate::gain::Gain;
use crate::suite::SuiteCase;

#[derive(Clone, Debug)]
pub enum Candidate {
    /// The baseline itself, which scores 1.
    Base,
    /// Edits of the baseline: `+SIS_SHORT`; or another kernel: `v7.2`.
    Edits(String),
    /// A policy file, and edits besides.
    File(PolicyFile, String),
}

impl Candidate {
    /// The file or the edits; empty for the baseline.
    pub fn name(&self) -> String {
        match self {
            Candidate::Base => String::new(),
            Candidate::Edits(edits) => edits.clone(),
            Candidate::File(file, edits) if edits.is_empty() => file.name().to_owned(),
            Candidate::File(file, edits) => format!("{},{edits}", file.name()),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Every guardrail holds.
    Passed,
    /// Some guardrail does not.
    GuardrailFailed,
    /// Some does not in the cheap cells; the others did not run.
    Rejected,
    /// The policy file does not compile.
    NotCompiled,
    /// The policy file crashes, loops, or chooses what is not there.
    PolicyFailed,
    /// The time limit ended it; some cells did not run.
    TimeLimit,
    /// A signal ended it; some cells did not run.
    Interrupted,
}

#[derive(Clone, Debug, Serialize)]
pub struct Guarded {
    pub name: String,
    /// What passes.
    pub about: String,
    pub passed: bool,
    pub cells: usize,
    /// What fails, where, and by how much.
    pub failures: Vec<String>,
}

/// One workload at one load on one machine.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// 1 is cheap and runs first.
    pub stage: u8,
    pub workload: String,
    pub machine: String,
    /// In the workload's unit.
    pub load: u64,
    #[serde(flatten, serialize_with = "Metric::with_direction")]
    pub metric: Metric,
    /// Mean over repeats; NaN if a run recorded nothing.
    pub baseline: f64,
    /// The same of the candidate.
    pub candidate: f64,
    #[serde(flatten)]
    pub(crate) gain: Gain,
    /// That of the runs. `gain` differs where its size means nothing, as `compare` has it.
    uncorrected_gain: f64,
    /// Names of the guardrails that judge it.
    pub guardrails: Vec<String>,
    #[serde(skip)]
    pub(crate) sides: [Side; 2],
}

#[derive(Clone, Debug)]
pub(crate) struct Side {
    pub(crate) explain: Explain,
    wakeup_p999_ns: f64,
}

impl Cell {
    pub(crate) fn new(case: &SuiteCase, row: &Row) -> Cell {
        let (base, candidate) = (&row.detail.baseline, &row.detail.candidate);
        let side = |explain: &Explain, cdf: &[(u64, f64)]| {
            let samples = explain.latencies.unwrap_or(0).saturating_mul(row.repeats as u64);
            let at = cdf.iter().find(|(_, share)| *share >= 0.999);
            let enough = at.filter(|_| enough_for(samples, 0.999));
            let wakeup_p999_ns = enough.map_or(f64::NAN, |(ns, _)| *ns as f64);
            Side { explain: explain.clone(), wakeup_p999_ns }
        };
        let runs = Gain::of_cell(row.metric.direction, &base.samples, &candidate.samples);
        let simulated_pct = 100.0 * (runs.gain - 1.0);
        let predicted_pct = row.predicted_pct(simulated_pct);
        let gain = match predicted_pct == simulated_pct {
            true => runs,
            false => runs.corrected(1.0 + predicted_pct / 100.0),
        };
        Cell {
            stage: *case.stage.get_ref(),
            workload: row.case.clone(),
            machine: row.machine.clone(),
            load: row.load,
            metric: row.metric.clone(),
            baseline: reveille_measure::statistics::mean(&base.samples),
            candidate: reveille_measure::statistics::mean(&candidate.samples),
            gain,
            uncorrected_gain: runs.gain,
            guardrails: case.guardrails.iter().map(|g| g.get_ref().clone()).collect(),
            sides: [
                side(&row.explain.baseline, &base.latency_cdf),
                side(&row.explain.candidate, &candidate.latency_cdf),
            ],
        }
    }

    /// `tcp_rr 8 on zen4-7950x`.
    pub fn label(&self) -> String {
        format!("{} {} on {}", self.workload, self.load, self.machine)
    }

    /// Candidate by baseline, higher is better.
    pub fn gain(&self) -> f64 {
        self.gain.gain
    }

    /// `-1.4%~ (-1.9% to -0.9%), simulated -40.1%`.
    pub(crate) fn gain_text(&self) -> String {
        let [gain, low, high] = self.gain.parts().map(percent);
        match self.gain.gain == self.uncorrected_gain {
            true => format!("{gain} ({low} to {high})"),
            false => {
                let simulated = percent(self.uncorrected_gain);
                format!("{gain}~ ({low} to {high}), simulated {simulated}")
            }
        }
    }

    pub fn interval(&self) -> (f64, f64) {
        (self.gain.low, self.gain.high)
    }
}

impl Side {
    pub(crate) fn figure(&self, name: &str) -> f64 {
        let e = &self.explain;
        match name {
            "wakeup_p999_ns" => self.wakeup_p999_ns,
            "stacked_pct" if e.ttwu_count_per_s == 0.0 => 0.0,
            "stacked_pct" => 100.0 * e.stacked_wakeups_per_s / e.ttwu_count_per_s,
            name => e.figures().find(|(n, _)| *n == name).map_or(f64::NAN, |(_, value)| value),
        }
    }
}

pub(crate) fn percent(ratio: f64) -> String {
    format!("{:+.1}%", 100.0 * (ratio - 1.0))
}

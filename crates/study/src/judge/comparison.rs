//! The result of a study. Terminal table, HTML page, JSON and CSV are views of it; its serialised
//! form is the stable JSON interface.

use reveille_measure::HostContext;
use serde::Serialize;

use crate::judge::claim::Claim;
use crate::judge::row::Row;
use crate::judge::score::Score;
use crate::judge::skill::Skill;
use crate::model::published::Unpredicted;

/// The outcome of one study: every case × load × variant against the baseline.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Name of the study, or `compare` for one given on the command line.
    pub study: String,
    /// What its figures are about, such as `SIS_SHORT`; null if it does not say.
    pub mechanism: Option<String>,
    pub machine: String,
    pub topology: String,
    pub cost_model: String,
    /// Every machine that rows name, the study's own first.
    pub machines: Vec<MachineUsed>,
    pub base: String,
    pub seed: u64,
    /// At least one row per case, load, variant and metric, in the order of the study
    /// file; several where several figures are published for one.
    pub rows: Vec<Row>,
    /// Statements about a whole curve, such as where throughput peaks.
    pub claims: Vec<Claim>,
    /// Hits among the claims; no part of the score.
    pub claim_score: Score,
    pub unpredicted: Vec<Unpredicted>,
    pub score: Score,
    pub skill: Skill,
    /// Which published figures are not judged and why; in JSON a warning of the machine.
    #[serde(skip)]
    pub not_judged: Option<String>,
    /// True if the run was interrupted and rows, or repeats of them, are missing.
    pub partial: bool,
    /// The host that the figures were measured on; absent if they are predicted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<HostContext>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MachineUsed {
    pub name: String,
    pub topology: String,
    pub cost_model: String,
    /// What the model leaves out of it, and which published figures are not judged on it.
    pub warnings: Vec<String>,
}

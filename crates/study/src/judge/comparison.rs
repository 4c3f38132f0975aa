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
    /// Seed of all runs.
    pub seed: u64,
    /// At least one row per case, load, variant and metric, in the order of the study
    /// file; several where several figures are published for one.
    pub rows: Vec<Row>,
    /// Statements about a whole curve, such as where throughput peaks.
    pub claims: Vec<Claim>,
    /// Hits among the claims; no part of the score.
    pub claim_score: Score,
    /// Published figures that cannot be predicted.
    pub unpredicted: Vec<Unpredicted>,
    /// Hits among the rows that count.
    pub score: Score,
    /// Skill against predicting no change.
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

//! Why a run has no result.

use reveille_measure::{Ns, duration_text};
use reveille_policy::BandwidthError;

/// Why a run has no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SimError {
    /// `stop` was set.
    #[error("interrupted")]
    Interrupted,
    /// Every task waits for another: nothing can happen any more.
    #[error("deadlock at {}: all {tasks} tasks wait for each other", duration_text(*at_ns as f64))]
    Deadlock { at_ns: Ns, tasks: usize },
    /// The kernel would refuse a group's limits.
    #[error("group `{group}`: {error}")]
    Limits { group: String, error: BandwidthError },
    /// A policy file's decision is invalid.
    #[error("at {} of virtual time the file {problem}", duration_text(*at_ns as f64))]
    Policy { at_ns: Ns, problem: String, help: String },
    /// A group's parent does not precede it.
    #[error("group `{group}` lies in group number {parent}, which must come before it")]
    GroupOrder { group: String, parent: usize },
}

impl SimError {
    /// What mends it.
    pub fn help(&self) -> String {
        match self {
            SimError::Interrupted => "run it again".to_owned(),
            SimError::Deadlock { .. } => "something must `send`, `post`, `request` or `unlock` \
                 for every `recv`, `wait`, `serve` or `lock`"
                .to_owned(),
            SimError::Limits { error, .. } => error.mistake().help,
            SimError::Policy { help, .. } => help.clone(),
            SimError::GroupOrder { .. } => "put the parent first".to_owned(),
        }
    }
}

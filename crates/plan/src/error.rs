//! Why there is no plan: what was asked for cannot be had, or the run failed.

use miette::Diagnostic;
use reveille_host::HostError;
use reveille_place::{FileError, Mistake};
use reveille_sim::SimError;
use thiserror::Error;

/// Why there is no plan.
#[derive(Debug, Error, Diagnostic)]
pub enum PlanError {
    /// An option is wrong.
    #[error("`{option}`: {mistake}")]
    #[diagnostic(help("{}", mistake.help))]
    Option {
        /// The option, such as `--goal`.
        option: &'static str,
        /// What is wrong, and the fix.
        mistake: Mistake,
    },
    /// No setting reaches a goal.
    #[error("`--goal {goal}` cannot be reached: {mistake}")]
    #[diagnostic(help("{}", mistake.help))]
    Impossible {
        /// The goal as it was given.
        goal: String,
        /// Why not, and the fix.
        mistake: Mistake,
    },
    /// The recording cannot be planned with.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Recording(#[from] Box<FileError>),
    /// `stop` was set.
    #[error("interrupted")]
    Interrupted,
    /// The simulator could not finish a run.
    #[error("the simulation failed: {0}")]
    Sim(SimError),
    /// A run on the host failed, or could not be had.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Host(#[from] HostError),
    /// No threads.
    #[error("cannot start {jobs} threads: {reason}")]
    #[diagnostic(help("use fewer: --jobs 1"))]
    Threads {
        /// How many were asked for.
        jobs: usize,
        /// What the system said.
        reason: String,
    },
}

impl From<SimError> for PlanError {
    fn from(error: SimError) -> PlanError {
        match error {
            SimError::Interrupted => PlanError::Interrupted,
            other => PlanError::Sim(other),
        }
    }
}

impl PlanError {
    /// A mistake of `option`.
    pub fn option(option: &'static str, mistake: Mistake) -> PlanError {
        PlanError::Option { option, mistake }
    }

    /// Is it what was asked for that is wrong, rather than what happened?
    pub fn is_input(&self) -> bool {
        match self {
            PlanError::Interrupted | PlanError::Sim(_) | PlanError::Threads { .. } => false,
            PlanError::Host(error) => error.is_input(),
            _ => true,
        }
    }
}

//! Why there is no plan: impossible requests and failed runs.

use miette::Diagnostic;
use reveille_host::HostError;
use reveille_place::{InputError, Mistake};
use reveille_sim::SimError;
use thiserror::Error;

/// Why there is no plan.
#[derive(Debug, Error, Diagnostic)]
pub enum PlanError {
    /// An option is wrong, or the recording does not support a plan.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Input(#[from] InputError),
    #[error("`--goal {goal}` cannot be reached: {mistake}")]
    #[diagnostic(help("{}", mistake.help))]
    Impossible {
        /// The goal as the user wrote it.
        goal: String,
        /// Why not, and the fix.
        mistake: Mistake,
    },
    #[error("interrupted")]
    Interrupted,
    #[error("the simulation failed: {0}")]
    Sim(SimError),
    /// A run on the host failed or could not start.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Host(#[from] HostError),
    #[error("cannot start {jobs} threads: {reason}")]
    #[diagnostic(help("use fewer: --jobs 1"))]
    Threads {
        /// How many were asked for.
        jobs: usize,
        /// The system's message.
        reason: String,
    },
}

pub(crate) type Result<T, E = PlanError> = std::result::Result<T, E>;

impl From<SimError> for PlanError {
    fn from(error: SimError) -> PlanError {
        match error {
            SimError::Interrupted => PlanError::Interrupted,
            other => PlanError::Sim(other),
        }
    }
}

impl PlanError {
    pub fn option(option: &'static str, mistake: Mistake) -> PlanError {
        InputError::Option { option, mistake }.into()
    }

    /// Is the input wrong, as opposed to a run that failed?
    pub fn is_input(&self) -> bool {
        match self {
            PlanError::Interrupted | PlanError::Sim(_) | PlanError::Threads { .. } => false,
            PlanError::Host(error) => error.is_input(),
            _ => true,
        }
    }
}

//! Why a server gave no answer.

use miette::Diagnostic;
use reveille_place::Mistake;
use reveille_usage::UsageError;
use thiserror::Error;

/// Why there is no recording.
#[derive(Debug, Error, Diagnostic)]
pub enum ServerError {
    /// What was asked for, or how, is wrong.
    #[error("`{option}`: {mistake}")]
    #[diagnostic(help("{}", mistake.help))]
    Option {
        /// The option, such as `--workload`.
        option: &'static str,
        /// What is wrong, and the fix.
        mistake: Mistake,
    },
    /// The server cannot be reached, or refuses.
    #[error("{url}: {mistake}")]
    #[diagnostic(help("{}", mistake.help))]
    Server {
        /// Where it was asked, without the query.
        url: String,
        /// What it said, and the fix.
        mistake: Mistake,
    },
    /// Its answers are no recording.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Usage(#[from] UsageError),
    /// Stopped by the user.
    #[error("interrupted")]
    Interrupted,
}

impl ServerError {
    /// A mistake of `option`.
    pub fn option(
        option: &'static str,
        problem: impl Into<String>,
        help: impl Into<String>,
    ) -> ServerError {
        ServerError::Option { option, mistake: Mistake::new(problem, help) }
    }

    /// Is it what was asked for that is wrong, rather than what happened?
    pub fn is_input(&self) -> bool {
        matches!(self, ServerError::Option { .. } | ServerError::Usage(_))
    }
}

//! Why a server gave no answer.

use miette::Diagnostic;
use reveille_place::{InputError, Mistake};
use thiserror::Error;

#[derive(Debug, Error, Diagnostic)]
pub enum ServerError {
    /// An option is wrong, or the answers are no recording.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Input(#[from] InputError),
    /// The server cannot be reached, or refuses.
    #[error("{url}: {mistake}")]
    #[diagnostic(help("{}", mistake.help))]
    Server {
        /// Where it was asked, without the query.
        url: String,
        /// What it said, and the fix.
        mistake: Mistake,
    },
    /// A container that was seen for too short a time, such as one that has just started.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Short(InputError),
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
        InputError::Option { option, mistake: Mistake::new(problem, help) }.into()
    }

    /// Is it what was asked for that is wrong, rather than what happened?
    pub fn is_input(&self) -> bool {
        matches!(self, ServerError::Input(_) | ServerError::Short(_))
    }
}

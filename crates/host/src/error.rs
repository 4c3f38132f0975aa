//! Why something could not be measured, and what to do about it.

use std::io;

use miette::Diagnostic;
use reveille_place::Mistake;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why a run on the host has no result. It goes from the child to its supervisor as it is.
#[derive(Clone, Debug, Error, Diagnostic, Serialize, Deserialize, PartialEq, Eq)]
pub enum HostError {
    /// Something asked for is wrong or cannot be had here.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Input(Mistake),
    /// The system refused what a run needs.
    #[error("cannot {doing}: {reason}")]
    #[diagnostic(help("{help}"))]
    System {
        /// What was tried: `start 200000 threads`.
        doing: String,
        /// What the system said.
        reason: String,
        /// What to do about it.
        help: String,
    },
    /// A process or thread of the run ended before its time.
    #[error("{who} {how}; the run has no result")]
    #[diagnostic(help("run it again; if it recurs, report it with the command line"))]
    Died {
        /// Which: `a worker`.
        who: String,
        /// How: `was killed by signal 9`.
        how: String,
    },
    /// A user's command did not succeed.
    #[error("`{command}` {how}")]
    #[diagnostic(help("--show-output shows what it says"))]
    Failed {
        /// The command as it was given.
        command: String,
        /// How it ended, and in which run.
        how: String,
    },
    /// Stopped from outside.
    #[error("interrupted")]
    Interrupted,
}

impl HostError {
    /// Something asked for is wrong.
    pub fn input(problem: impl Into<String>, help: impl Into<String>) -> HostError {
        HostError::Input(Mistake::new(problem, help))
    }

    /// The system refused something.
    pub fn system(
        doing: impl Into<String>,
        error: impl Into<io::Error>,
        help: impl Into<String>,
    ) -> HostError {
        // The same words as `strerror`, without Rust's `(os error 11)`.
        let error: io::Error = error.into();
        let text = error.to_string();
        let reason = text.split(" (os error").next().unwrap_or(&text).to_owned();
        HostError::System { doing: doing.into(), reason, help: help.into() }
    }

    /// Is the request at fault or impossible here, rather than the run?
    pub fn is_input(&self) -> bool {
        matches!(self, HostError::Input(_) | HostError::System { .. })
    }
}

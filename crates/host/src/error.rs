//! Errors of measurements, and their fixes.

use std::io;

use miette::Diagnostic;
use reveille_place::Mistake;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why a run on the host has no result. Passed from the child to its supervisor unchanged.
#[derive(Clone, Debug, Error, Diagnostic, Serialize, Deserialize, PartialEq, Eq)]
pub enum HostError {
    /// The request is wrong or impossible on this host.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Input(Mistake),
    /// The system refused something a run needs.
    #[error("cannot {doing}: {reason}")]
    #[diagnostic(help("{help}"))]
    System {
        /// What was tried: `start 200000 threads`.
        doing: String,
        reason: String,
        help: String,
    },
    #[error("{who} {how}; the run has no result")]
    #[diagnostic(help("run it again; if it recurs, report it with the command line"))]
    Died {
        /// Which: `a worker`.
        who: String,
        /// How: `was killed by signal 9`.
        how: String,
    },
    #[error("`{command}` {how}")]
    #[diagnostic(help("--show-output shows what it says"))]
    Failed {
        /// The command as the user wrote it.
        command: String,
        /// How it ended, and in which run.
        how: String,
    },
    /// Stopped by a signal or the supervisor.
    #[error("interrupted")]
    Interrupted,
}

pub(crate) type Result<T, E = HostError> = std::result::Result<T, E>;

impl HostError {
    pub fn input(problem: impl Into<String>, help: impl Into<String>) -> HostError {
        HostError::Input(Mistake::new(problem, help))
    }

    pub fn system(
        doing: impl Into<String>,
        error: impl Into<io::Error>,
        help: impl Into<String>,
    ) -> HostError {
        // The message of `strerror`, without Rust's `(os error 11)`.
        let error: io::Error = error.into();
        let text = error.to_string();
        let reason = text.split(" (os error").next().unwrap_or(&text).to_owned();
        HostError::System { doing: doing.into(), reason, help: help.into() }
    }

    /// Is the request at fault, rather than the run?
    pub fn is_input(&self) -> bool {
        matches!(self, HostError::Input(_) | HostError::System { .. })
    }
}

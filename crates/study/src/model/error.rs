//! Why a study cannot be loaded or run, said so that the reader can mend it: the
//! file, the line, the key (or the option), and the fix.

use miette::Diagnostic;
use reveille_host::HostError;
use reveille_place::{InputError, Mistake};
use reveille_sim::SimError;
use reveille_workload::WorkloadError;
use thiserror::Error;

/// Why [`load`](crate::load), [`compare`](crate::compare) or [`run`](crate::run) failed.
#[derive(Debug, Error, Diagnostic)]
pub enum StudyError {
    /// A name, a file or an option that cannot be used.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Input(#[from] InputError),
    /// The workload file that the study names is wrong; it has its own place.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Workload(Box<WorkloadError>),
    #[error("case `{case}` at load {load} under {policy}: {error}")]
    #[diagnostic(help("{}", error.help()))]
    Run {
        case: String,
        load: u64,
        /// The baseline's name or the variant's edits.
        policy: String,
        error: SimError,
    },
    #[error("case `{case}` at load {load} under {policy}, on this host: {error}")]
    #[diagnostic(help("{}", host_help(error)))]
    HostRun {
        case: String,
        load: u64,
        /// The baseline's name or the variant's edits.
        policy: String,
        error: Box<HostError>,
    },
    #[error("case `{case}`: {policy} cannot be run on this host: {error}")]
    #[diagnostic(help("{}", host_help(error)))]
    NotHere {
        case: String,
        /// Which it is, in words: the baseline's name or the variant's edits.
        policy: String,
        error: Box<HostError>,
    },
    #[error("case `{case}`: `{policy}` cannot be predicted: nothing is known of {scheduler}")]
    #[diagnostic(help("measure it: `--on host`"))]
    Unpredictable {
        case: String,
        /// The variant's edits.
        policy: String,
        scheduler: String,
    },
    #[error("cannot start {jobs} worker threads: {reason}")]
    #[diagnostic(help("ask for fewer with --jobs"))]
    Threads { jobs: usize, reason: String },
}

pub(crate) type Result<T, E = StudyError> = std::result::Result<T, E>;

/// The fix that a host's error names.
fn host_help(error: &HostError) -> String {
    error.help().map_or_else(|| "run it again".to_owned(), |help| help.to_string())
}

impl StudyError {
    /// Is the input wrong, rather than something that happened while running?
    pub fn is_input(&self) -> bool {
        match self {
            StudyError::Run { .. } | StudyError::Threads { .. } => false,
            StudyError::HostRun { error, .. } => error.is_input(),
            _ => true,
        }
    }

    /// Did a policy file decide what cannot be?
    pub fn is_by_policy(&self) -> bool {
        matches!(self, StudyError::Run { error: SimError::Policy { .. }, .. })
    }

    /// The name, file or option that cannot be used, if that is what failed.
    pub fn input(&self) -> Option<&InputError> {
        match self {
            StudyError::Input(error) => Some(error),
            StudyError::Workload(error) => error.input(),
            _ => None,
        }
    }

    pub(crate) fn option(option: &'static str, mistake: Mistake) -> StudyError {
        InputError::Option { option, mistake }.into()
    }
}

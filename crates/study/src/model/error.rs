//! Why a study cannot be loaded or run, said so that the reader can mend it: the
//! file, the line, the key (or the option), and the fix.

use miette::Diagnostic;
use reveille_host::HostError;
use reveille_machine::MachineError;
use reveille_place::{FileError, Mistake, ReadError};
use reveille_sim::SimError;
use reveille_workload::WorkloadError;
use thiserror::Error;

/// Why [`load`](crate::load), [`compare`](crate::compare) or [`run`](crate::run) failed.
#[derive(Debug, Error, Diagnostic)]
pub enum StudyError {
    /// No shipped study has this name, and it is no path of a study file.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Unknown(Mistake),
    /// A file could not be read.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Read(#[from] ReadError),
    /// A study file says something that is wrong.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] Box<FileError>),
    /// An option of the command line is wrong.
    #[error("`{option}`: {mistake}")]
    #[diagnostic(help("{}", mistake.help))]
    Option {
        /// The option, such as `--load`.
        option: &'static str,
        /// What is wrong, and the fix.
        mistake: Mistake,
    },
    /// The machine file that the study names is wrong; it has its own place.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Machine(Box<MachineError>),
    /// The workload file that the study names is wrong; it has its own place.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Workload(Box<WorkloadError>),
    /// A run had no result.
    #[error("case `{case}` at load {load} under {policy}: {error}")]
    Run {
        /// The case.
        case: String,
        /// The load.
        load: u64,
        /// The baseline's name or the variant's edits.
        policy: String,
        /// What the simulator said.
        error: SimError,
    },
    /// A run on this host had no result.
    #[error("case `{case}` at load {load} under {policy}, on this host: {error}")]
    #[diagnostic(help("{}", host_help(error)))]
    HostRun {
        /// The case.
        case: String,
        /// The load.
        load: u64,
        /// The baseline's name or the variant's edits.
        policy: String,
        /// What went wrong.
        error: Box<HostError>,
    },
    /// This host cannot do what a side of a case asks for.
    #[error("case `{case}`: `{policy}` cannot be run on this host: {error}")]
    #[diagnostic(help("{}", host_help(error)))]
    NotHere {
        /// The case.
        case: String,
        /// The baseline's name or the variant's edits.
        policy: String,
        /// What is missing.
        error: Box<HostError>,
    },
    /// Nothing is known of what a side of a case runs under.
    #[error("case `{case}`: `{policy}` cannot be predicted: nothing is known of {scheduler}")]
    #[diagnostic(help("measure it: `--on host`"))]
    Unpredictable {
        /// The case.
        case: String,
        /// The variant's edits.
        policy: String,
        /// The scheduler's program.
        scheduler: String,
    },
    /// Worker threads could not be started.
    #[error("cannot start {jobs} worker threads: {reason}")]
    #[diagnostic(help("ask for fewer with --jobs"))]
    Threads {
        /// How many were asked for.
        jobs: usize,
        /// What the system said.
        reason: String,
    },
}

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

    /// The mistake in a file that it is, if it is one.
    pub fn place(&self) -> Option<&FileError> {
        match self {
            StudyError::File(place) => Some(place),
            StudyError::Machine(error) => match &**error {
                MachineError::File(place) => Some(place),
                _ => None,
            },
            StudyError::Workload(error) => match &**error {
                WorkloadError::File(place) => Some(place),
                _ => None,
            },
            _ => None,
        }
    }

    pub(crate) fn option(option: &'static str, mistake: Mistake) -> StudyError {
        StudyError::Option { option, mistake }
    }
}

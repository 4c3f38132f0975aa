//! What can go wrong, how it is said, and the exit code.

use std::io;
use std::process::ExitCode;

use miette::Diagnostic;
use thiserror::Error;

/// Exit code for an end that was asked for, but not of this program: its unit does not restart it.
const SYSRQ: u8 = 3;
/// Exit code for wrong input and for a system that cannot run the scheduler; clap uses it.
const REFUSED: u8 = 2;

/// Why the command failed. Every variant says what is wrong and how to mend it.
#[derive(Debug, Error, Diagnostic)]
pub enum ScxError {
    /// An option, or this system, is not as it must be. Nothing was loaded.
    #[error("{problem}")]
    #[diagnostic(help("{help}"))]
    Refused {
        /// What is wrong, naming the option or the file.
        problem: String,
        /// The fix.
        help: String,
    },
    /// The kernel did not take the program.
    #[error("the kernel refused {what}: {reason}")]
    #[diagnostic(help("{help}"))]
    Kernel {
        /// What it was given.
        what: &'static str,
        /// What it said.
        reason: String,
        /// What to do about it.
        help: String,
    },
    /// The kernel ended the scheduler; tasks are back with its own.
    #[error("the kernel ended the scheduler: {0}")]
    #[diagnostic(help(
        "every task is back with the kernel's own scheduler; the dump above says what ran where, \
         please report it"
    ))]
    Ejected(String),
    /// Somebody ended the scheduler through the kernel.
    #[error("the scheduler was ended by SysRq-S")]
    #[diagnostic(help(
        "every task is back with the kernel's own scheduler; start it again if that is wanted"
    ))]
    Sysrq,
    /// A replayed decision was taken otherwise.
    #[error("{different} of {all} decisions differ")]
    #[diagnostic(help(
        "the first are shown above; policy/ was compiled into both programs from other files, or one of the worlds is wrong"
    ))]
    Different {
        /// Decisions that differ.
        different: usize,
        /// Decisions that were replayed.
        all: usize,
    },
    /// Standard output took no more.
    #[error("cannot write to standard output: {0}")]
    #[diagnostic(help("direct it elsewhere"))]
    Output(io::Error),
    /// Reading or writing failed.
    #[error("{doing}: {error}")]
    #[diagnostic(help("{help}"))]
    Io {
        /// What was tried, naming the file.
        doing: String,
        /// What the system said.
        error: io::Error,
        /// What to do about it.
        help: &'static str,
    },
}

impl ScxError {
    /// Something asked for, or this system, is not as it must be.
    pub fn refused(problem: impl Into<String>, help: impl Into<String>) -> ScxError {
        ScxError::Refused { problem: problem.into(), help: help.into() }
    }

    /// Reading or writing failed.
    pub fn io(doing: impl Into<String>, error: io::Error, help: &'static str) -> ScxError {
        ScxError::Io { doing: doing.into(), error, help }
    }

    /// Whoever read the output has enough: nobody need be told.
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, ScxError::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// 2 for what was refused before anything happened, 1 for what failed later.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            ScxError::Refused { .. } => ExitCode::from(REFUSED),
            ScxError::Sysrq => ExitCode::from(SYSRQ),
            _ => ExitCode::FAILURE,
        }
    }
}

//! What can go wrong, how it is said, and the exit code.

use std::io;

use miette::Diagnostic;
use thiserror::Error;

/// Exit code for what went wrong after loading, and for replayed decisions that differ.
const FAILED: u8 = 1;
/// Exit code for what went wrong before anything was loaded; clap uses it.
const REFUSED: u8 = 2;
/// Exit code for an end that was asked for, but not of this program: its unit does not restart it.
const SYSRQ: u8 = 3;

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
    /// What went wrong once a scheduler had been loaded.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Later(Box<ScxError>),
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
    #[error("cannot write to standard output: {0}")]
    #[diagnostic(help("direct it elsewhere"))]
    Output(io::Error),
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

    /// The same error, of a scheduler that had been loaded.
    pub fn after_loading(self) -> ScxError {
        ScxError::Later(Box::new(self))
    }

    /// The reader of the output has closed it, as `head` does: no error to report.
    pub fn is_closed_pipe(&self) -> bool {
        match self {
            ScxError::Output(error) => error.kind() == io::ErrorKind::BrokenPipe,
            ScxError::Later(error) => error.is_closed_pipe(),
            _ => false,
        }
    }

    /// As `--help` says.
    pub fn exit_code(&self) -> u8 {
        match self {
            ScxError::Refused { .. } | ScxError::Kernel { .. } | ScxError::Io { .. } => REFUSED,
            ScxError::Ejected(_) | ScxError::Different { .. } | ScxError::Output(_) => FAILED,
            ScxError::Sysrq => SYSRQ,
            ScxError::Later(error) => match error.exit_code() {
                REFUSED => FAILED,
                code => code,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_code_2_unless_a_scheduler_had_been_loaded() {
        let io = || ScxError::io("cannot write decisions", io::Error::other("full"), "");
        let kernel = || ScxError::Kernel { what: "", reason: String::new(), help: String::new() };
        for error in [|| ScxError::refused("", ""), io, kernel] as [fn() -> ScxError; 3] {
            assert_eq!((error().exit_code(), error().after_loading().exit_code()), (2, 1));
        }
        let closed = || ScxError::Output(io::ErrorKind::BrokenPipe.into());
        assert!(closed().is_closed_pipe() && closed().after_loading().is_closed_pipe());
        for (error, code) in [
            (ScxError::Different { different: 1, all: 2 }, 1),
            (ScxError::Ejected(String::new()), 1),
            (closed(), 1),
            (ScxError::Sysrq, 3),
        ] {
            assert_eq!(error.exit_code(), code, "{error}");
            assert_eq!(error.after_loading().exit_code(), code);
        }
        assert_eq!(io().after_loading().to_string(), io().to_string());
    }
}

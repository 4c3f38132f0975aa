//! Why a machine could not be loaded, said so that the reader can mend it: the
//! file, the line, the key and the fix, with the text around it when there is one.

use std::ops::Range;
use std::path::PathBuf;

use miette::Diagnostic;
use reveille_place::FileError;
use thiserror::Error;

/// Why [`load`](crate::load) failed.
#[derive(Debug, Error, Diagnostic)]
pub enum MachineError {
    /// No preset has this name, and it is not a path to a machine file.
    #[error("no machine is called `{name}`{}", nearest.as_ref().map(|n| format!("; did you mean `{n}`?")).unwrap_or_default())]
    #[diagnostic(help("{known}"))]
    Unknown {
        /// What was asked for.
        name: String,
        /// The most similar preset name, if one is similar.
        nearest: Option<String>,
        /// What there is.
        known: String,
    },
    /// A file could not be read.
    #[error("cannot read {}: {error}", path.display())]
    #[diagnostic(help("{help}"))]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
        /// The fix.
        help: String,
    },
    /// A file says something that is wrong.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(Box<FileError>),
    /// The host describes itself in a way that is no machine.
    #[error("{}: {problem}", path.display())]
    #[diagnostic(help("{help}"))]
    Host {
        /// The file or directory in sysfs.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
        /// The fix.
        help: String,
    },
}

impl MachineError {
    /// A mistake at `span` (bytes) of `text`.
    pub(crate) fn at(
        file: &str,
        text: &str,
        span: Range<usize>,
        key: Option<&str>,
        problem: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        MachineError::File(Box::new(FileError::at(file, text, span, key, problem, help)))
    }
}

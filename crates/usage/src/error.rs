//! What can be wrong with a recording or a file that is to become one: always the file,
//! the place in it, the problem and the fix.

use std::io;
use std::path::{Path, PathBuf};

use miette::Diagnostic;
use thiserror::Error;

/// Why a recording cannot be read, imported or written.
#[derive(Debug, Error, Diagnostic)]
pub enum UsageError {
    /// The file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    #[diagnostic(help("check that the path is right and that you may read it"))]
    Read {
        /// As given.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A line of a table.
    #[error("{file}:{line}: {}{problem}", column.as_ref().map(|c| format!("column `{c}`: ")).unwrap_or_default())]
    #[diagnostic(help("{help}"))]
    Line {
        /// The file, as given.
        file: String,
        /// From 1; the header is a line.
        line: u64,
        /// The column at fault, if one is.
        column: Option<String>,
        /// What is wrong.
        problem: String,
        /// The fix.
        help: String,
    },
    /// A file as a whole, or a part of it that has no line.
    #[error("{file}: {problem}")]
    #[diagnostic(help("{help}"))]
    File {
        /// The file, as given.
        file: String,
        /// What is wrong.
        problem: String,
        /// The fix.
        help: String,
    },
}

impl UsageError {
    pub(crate) fn read(path: &Path, error: io::Error) -> UsageError {
        UsageError::Read { path: path.to_owned(), error }
    }
}

/// What is wrong and how to mend it, before anyone knows in which file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    pub(crate) problem: String,
    pub(crate) help: String,
}

impl Mistake {
    pub(crate) fn new(problem: impl Into<String>, help: impl Into<String>) -> Mistake {
        Mistake { problem: problem.into(), help: help.into() }
    }

    pub(crate) fn in_file(self, file: &str) -> UsageError {
        UsageError::File { file: file.to_owned(), problem: self.problem, help: self.help }
    }

    pub(crate) fn at_line(self, file: &str, line: u64, column: Option<&str>) -> UsageError {
        let (file, column) = (file.to_owned(), column.map(str::to_owned));
        UsageError::Line { file, line, column, problem: self.problem, help: self.help }
    }
}

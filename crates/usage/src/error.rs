//! What can be wrong with a recording or a file that is to become one: always the file,
//! the place in it, the problem and the fix.

use miette::Diagnostic;
use reveille_place::{FileError, ReadError};
use thiserror::Error;

/// Why a recording cannot be read, imported or written.
#[derive(Debug, Error, Diagnostic)]
pub enum UsageError {
    /// The file cannot be read.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Read(#[from] ReadError),
    /// A line of a table, a part of a file that has no line, or all of it.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] Box<FileError>),
}

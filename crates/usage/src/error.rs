//! Errors in recordings and in files to import: the file, the position, the problem and the fix.

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
    /// A mistake in a file, with its line if it has one.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] Box<FileError>),
}

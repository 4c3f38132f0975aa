//! Why a machine could not be loaded, said so that the reader can mend it: the
//! file, the line, the key and the fix, with the text around it when there is one.

use miette::Diagnostic;
use reveille_place::{FileError, Mistake, ReadError};
use thiserror::Error;

/// Why [`load`](crate::load) failed.
#[derive(Debug, Error, Diagnostic)]
pub enum MachineError {
    /// No preset has this name, and it is not a path to a machine file.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Unknown(Mistake),
    /// A file could not be read.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Read(#[from] ReadError),
    /// A file, or one of this host's sysfs, says something that is wrong.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] Box<FileError>),
}

//! Why a workload could not be loaded or built, said so that the reader can mend
//! it: the file, the line, the key and the fix, with the text around it.

use miette::Diagnostic;
use reveille_place::{FileError, Mistake, ReadError};
use thiserror::Error;

/// Why [`load`](crate::load), [`Workload::parse`](crate::Workload::parse),
/// [`Workload::parse_rtapp`](crate::Workload::parse_rtapp) or
/// [`Workload::build`](crate::Workload::build) failed.
#[derive(Debug, Error, Diagnostic)]
pub enum WorkloadError {
    /// No workload of the catalogue has this name, and it is not a path to a file.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Unknown(Mistake),
    /// A file could not be read.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Read(#[from] ReadError),
    /// A file says something that is wrong, or becomes wrong with these parameters.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] Box<FileError>),
    /// The workload cannot run at this load.
    #[error("workload `{workload}` at load {load}: {mistake}")]
    #[diagnostic(help("{}", mistake.help))]
    Load {
        /// Name of the workload.
        workload: String,
        /// Load, in the workload's unit.
        load: u64,
        /// What is wrong with it, and the fix.
        mistake: Mistake,
    },
    /// A parameter does not exist or cannot have this value.
    #[error("workload `{workload}`: parameter `{param}`: {mistake}")]
    #[diagnostic(help("{}", mistake.help))]
    Param {
        /// Name of the workload.
        workload: String,
        /// The parameter, as given.
        param: String,
        /// What is wrong with it, and the fix.
        mistake: Mistake,
    },
}

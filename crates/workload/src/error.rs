//! Why a workload could not be loaded or built, said so that the reader can mend
//! it: the file, the line, the key and the fix, with the text around it.

use miette::Diagnostic;
use reveille_place::{InputError, Mistake};
use thiserror::Error;

/// Why [`load`](crate::load), [`Workload::parse`](crate::Workload::parse),
/// [`Workload::parse_rtapp`](crate::Workload::parse_rtapp) or
/// [`Workload::build`](crate::Workload::build) failed.
#[derive(Debug, Error, Diagnostic)]
pub enum WorkloadError {
    /// No workload has this name, or its file cannot be read or has a mistake.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Input(#[from] InputError),
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

impl WorkloadError {
    /// The name or file that cannot be used, if that is what failed.
    pub fn input(&self) -> Option<&InputError> {
        match self {
            WorkloadError::Input(error) => Some(error),
            _ => None,
        }
    }
}

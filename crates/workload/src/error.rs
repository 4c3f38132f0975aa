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
    #[error(transparent)]
    #[diagnostic(transparent)]
    Input(#[from] InputError),
    #[error("workload `{workload}` at load {load}: {mistake}")]
    #[diagnostic(help("{}", mistake.help))]
    Load { workload: String, load: u64, mistake: Mistake },
    #[error("workload `{workload}`: parameter `{param}`: {mistake}")]
    #[diagnostic(help("{}", mistake.help))]
    Param {
        workload: String,
        /// The parameter, as given.
        param: String,
        mistake: Mistake,
    },
}

pub(crate) type Result<T, E = WorkloadError> = std::result::Result<T, E>;

impl WorkloadError {
    /// The name or file that cannot be used, if that is what failed.
    pub fn input(&self) -> Option<&InputError> {
        match self {
            WorkloadError::Input(error) => Some(error),
            _ => None,
        }
    }
}

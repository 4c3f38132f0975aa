//! Why there is no table.

use std::io;
use std::path::PathBuf;

use miette::Diagnostic;
use reveille_place::InputError;
use reveille_study::StudyError;
use thiserror::Error;

#[derive(Debug, Error, Diagnostic)]
pub enum SweepError {
    /// A file, an option, or an argument cannot be used.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Input(#[from] InputError),
    /// A machine, a workload or a comparison has a mistake.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Study(#[from] StudyError),
    #[error("cannot write {}: {error}", path.display())]
    #[diagnostic(help("free space there and run the same command again: finished cells are kept"))]
    Journal { path: PathBuf, error: io::Error },
    #[error("{missing} of {cells} cells are missing{shards}, such as {example}")]
    #[diagnostic(help("run `reveille sweep` with the missing shards, and merge all of them"))]
    Missing {
        missing: usize,
        cells: usize,
        /// `: shards 2/4 and 3/4`, where the inputs are shards.
        shards: String,
        /// One of them in words.
        example: String,
    },
}

impl SweepError {
    /// Is the input wrong, rather than something that happened while running?
    pub fn is_input(&self) -> bool {
        match self {
            SweepError::Journal { .. } => false,
            SweepError::Study(error) => error.is_input(),
            _ => true,
        }
    }
}

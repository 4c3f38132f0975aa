//! Why an input cannot be used: an unknown name, a file that cannot be read, a mistake in a file
//! or in an option, each with its fix.

use std::io;
use std::path::{Path, PathBuf};

use miette::{Diagnostic, NamedSource, SourceSpan};
use thiserror::Error;

use crate::{InputKind, Mistake, ReadError, read_input_text};

#[derive(Debug, Error, Diagnostic)]
pub enum InputError {
    /// Nothing known has this name, and it is not a path either.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Unknown(Mistake),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Read(ReadError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(Box<FileError>),
    #[error("`{option}`: {mistake}")]
    #[diagnostic(help("{}", mistake.help))]
    Option {
        /// The option, such as `--load`.
        option: &'static str,
        mistake: Mistake,
    },
}

impl InputError {
    pub fn unreadable(
        path: impl Into<PathBuf>,
        error: io::Error,
        help: impl Into<String>,
    ) -> InputError {
        let help = match error.kind() {
            io::ErrorKind::InvalidData => "save it as UTF-8 text".to_owned(),
            _ => help.into(),
        };
        InputError::Read(ReadError { path: path.into(), error, help })
    }

    /// The mistake with its place in a file, if it has one.
    pub fn place(&self) -> Option<&FileError> {
        match self {
            InputError::File(place) => Some(place),
            _ => None,
        }
    }

    /// The file that it is about.
    pub fn file(&self) -> Option<String> {
        match self {
            InputError::File(place) => Some(place.file.clone()),
            InputError::Read(error) => Some(error.path.display().to_string()),
            _ => None,
        }
    }

    pub fn option(&self) -> Option<&'static str> {
        match self {
            InputError::Option { option, .. } => Some(option.trim_start_matches('-')),
            _ => None,
        }
    }
}

/// The text of a file that describes a machine, a workload or a study. `help` is the fix if it
/// cannot be read.
pub fn read_description(path: &Path, help: &str) -> Result<String, InputError> {
    read_input_text(path, InputKind::DESCRIPTION)
        .map_err(|error| InputError::unreadable(path, error, help))
}

#[derive(Debug, Error, Diagnostic)]
#[error("{file}{}: {}{problem}", colon(line), key.as_ref().map(|k| format!("`{k}`: ")).unwrap_or_default())]
pub struct FileError {
    /// File as named by the user, or the built-in one's name.
    pub file: String,
    /// From 1; `None` if the file as a whole is wrong.
    pub line: Option<u64>,
    /// The key at fault, if one is.
    pub key: Option<String>,
    pub problem: String,
    #[help]
    pub help: String,
    #[source_code]
    pub(crate) text: Option<NamedSource<String>>,
    #[label("here")]
    pub(crate) span: Option<SourceSpan>,
}

impl From<FileError> for InputError {
    fn from(error: FileError) -> InputError {
        InputError::File(Box::new(error))
    }
}

fn colon(line: &Option<u64>) -> String {
    line.map(|line| format!(":{line}")).unwrap_or_default()
}

impl Mistake {
    /// This is wrong with the whole of `file`, or with a part that has no line.
    pub fn in_file<E: From<InputError>>(self, file: impl Into<String>) -> E {
        InputError::from(self.placed(file.into(), None)).into()
    }

    /// This is wrong at a line of a file whose text is not at hand.
    pub fn at_line<E: From<InputError>>(self, file: impl Into<String>, line: u64) -> E {
        InputError::from(self.placed(file.into(), Some(line))).into()
    }

    pub(crate) fn placed(self, file: String, line: Option<u64>) -> FileError {
        let Mistake { problem, help } = self;
        FileError { file, line, key: None, problem, help, text: None, span: None }
    }
}

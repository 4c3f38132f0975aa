//! Why a workload could not be loaded or built, said so that the reader can mend
//! it: the file, the line, the key and the fix, with the text around it.

use std::ops::Range;
use std::path::PathBuf;

use miette::Diagnostic;
use reveille_place::FileError;
use thiserror::Error;

/// Why [`load`](crate::load), [`Workload::parse`](crate::Workload::parse),
/// [`Workload::parse_rtapp`](crate::Workload::parse_rtapp) or
/// [`Workload::build`](crate::Workload::build) failed.
#[derive(Debug, Error, Diagnostic)]
pub enum WorkloadError {
    /// No workload of the catalogue has this name, and it is not a path to a file.
    #[error("no workload is called `{name}`{}", did_you_mean(nearest.as_deref()))]
    #[diagnostic(help(
        "there are {known}; a path must end in .toml, or in .json for a file of rt-app"
    ))]
    Unknown {
        /// What was asked for.
        name: String,
        /// The most similar name, if one is similar.
        nearest: Option<String>,
        /// What there is.
        known: String,
    },
    /// A file could not be read.
    #[error("cannot read {}: {error}", path.display())]
    #[diagnostic(help("check that the path is right and that you may read it"))]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// A file says something that is wrong, or becomes wrong with these parameters.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(Box<FileError>),
    /// The workload cannot run at this load.
    #[error("workload `{workload}` at load {load}: {problem}")]
    #[diagnostic(help("{help}"))]
    Load {
        /// Name of the workload.
        workload: String,
        /// As given, in the workload's unit of load.
        load: u64,
        /// What is wrong with it.
        problem: String,
        /// The fix.
        help: String,
    },
    /// A parameter does not exist or cannot have this value.
    #[error("workload `{workload}`: parameter `{param}`: {problem}")]
    #[diagnostic(help("{help}"))]
    Param {
        /// Name of the workload.
        workload: String,
        /// The parameter, as given.
        param: String,
        /// What is wrong with it.
        problem: String,
        /// The fix.
        help: String,
    },
}

/// A workload file's name and text: the start of every error about it.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) file: String,
    pub(crate) text: String,
}

impl Source {
    /// A mistake of `key` at `span` (bytes).
    pub(crate) fn error(
        &self,
        span: &Range<usize>,
        key: Option<&str>,
        mistake: Mistake,
    ) -> WorkloadError {
        let Mistake { problem, help } = mistake;
        let (file, text) = (&self.file, &self.text);
        WorkloadError::File(Box::new(FileError::at(file, text, span.clone(), key, problem, help)))
    }
}

/// What is wrong and how to mend it, before anyone knows where it stands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    pub(crate) problem: String,
    pub(crate) help: String,
}

impl Mistake {
    pub(crate) fn new(problem: impl Into<String>, help: impl Into<String>) -> Mistake {
        Mistake { problem: problem.into(), help: help.into() }
    }

    /// `name` is none of `known`; `what` says what it should have been.
    pub(crate) fn unknown<'a>(
        what: &str,
        name: &str,
        known: impl Iterator<Item = &'a str> + Clone,
    ) -> Mistake {
        let all: Vec<String> = known.clone().map(|k| format!("`{k}`")).collect();
        let help = match all.len() {
            0 => format!("there is no {what} here: declare one, or leave this out"),
            _ => format!("known here: {}", all.join(", ")),
        };
        Mistake::new(
            format!(
                "no {what} is called `{name}`{}",
                did_you_mean(nearest(name, known).as_deref())
            ),
            help,
        )
    }
}

/// The most similar name, if one is similar enough to be meant. Jaro-Winkler knows
/// common beginnings, Damerau-Levenshtein the swapped letters of short words.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let name = name.to_lowercase();
    let score = |known: &str| {
        let swapped = strsim::normalized_damerau_levenshtein(known, &name);
        strsim::jaro_winkler(known, &name).max(if swapped > 0.6 { swapped + 0.1 } else { 0.0 })
    };
    known
        .map(|k| (score(&k.to_lowercase()), k))
        .filter(|(score, _)| *score > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, k)| k.to_owned())
}

pub(crate) fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|n| format!("; did you mean `{n}`?")).unwrap_or_default()
}

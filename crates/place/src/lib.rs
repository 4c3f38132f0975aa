//! Files that a user gives: how they are read, and how a mistake in one is reported, with file,
//! line, key, what is wrong, and the fix.

mod input;

use std::ops::Range;

use miette::{Diagnostic, NamedSource, SourceSpan};
use thiserror::Error;

pub use input::{InputKind, read_input, read_input_text};

/// A mistake in a file that a user wrote.
#[derive(Debug, Error, Diagnostic)]
#[error("{file}:{line}: {}{problem}", key.as_ref().map(|k| format!("`{k}`: ")).unwrap_or_default())]
pub struct FileError {
    /// File as named by the user, or the built-in one's name.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// The key at fault, if one is.
    pub key: Option<String>,
    /// What is wrong.
    pub problem: String,
    /// The fix.
    #[help]
    pub help: String,
    #[source_code]
    text: NamedSource<String>,
    #[label("here")]
    span: SourceSpan,
}

impl FileError {
    /// A mistake of `key` at `span` (bytes) of `text`; a span beyond the text is its end.
    pub fn at(
        file: &str,
        text: &str,
        span: Range<usize>,
        key: Option<&str>,
        problem: impl Into<String>,
        help: impl Into<String>,
    ) -> FileError {
        let start = span.start.min(text.len());
        let end = span.end.clamp(start, text.len());
        let line = 1 + text.as_bytes()[..start].iter().filter(|b| **b == b'\n').count();
        FileError {
            file: file.to_owned(),
            line,
            key: key.map(str::to_owned),
            problem: problem.into(),
            help: help.into(),
            text: NamedSource::new(file, text.to_owned()),
            span: (start..end).into(),
        }
    }
}

/// The key of the TOML line on which byte `at` of `text` lies, if it has a plain one.
pub fn key_at(text: &str, at: usize) -> Option<&str> {
    let start = text.get(..at)?.rfind('\n').map_or(0, |n| n + 1);
    let (key, _) = text.get(start..)?.lines().next()?.split_once('=')?;
    let key = key.trim();
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    (!key.is_empty() && key.bytes().all(plain)).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_lines_from_one_and_stays_within_the_text() {
        let second = FileError::at("a.toml", "x = 1\ny = 2\n", 6..7, Some("y"), "is 2", "write 3");
        assert_eq!(second.to_string(), "a.toml:2: `y`: is 2");
        let beyond = FileError::at("a.toml", "x", 90..99, None, "ends early", "go on");
        assert_eq!(beyond.to_string(), "a.toml:1: ends early");
    }

    #[test]
    fn finds_the_key_of_a_line() {
        assert_eq!(key_at("x = 1\nyy = 2\n", 9), Some("yy"));
        assert_eq!(key_at("[table]\n", 3), None);
        assert_eq!(key_at("x = 1", 99), None);
    }
}

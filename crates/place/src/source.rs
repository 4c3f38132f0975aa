//! A mistake gets its place: a file, and where one is known, the line, the key and the text.

use std::ops::Range;

use miette::NamedSource;
use serde::de::DeserializeOwned;
use toml::Spanned;

use crate::{FileError, InputError, Mistake, nearest};

#[derive(Clone, Debug)]
pub struct Source {
    /// Name in messages: the path the user gave.
    pub file: String,
    pub text: String,
}

impl Source {
    pub fn new(file: &str, text: &str) -> Source {
        Source { file: file.to_owned(), text: text.to_owned() }
    }

    /// A mistake of `key` at `span` (bytes); a span beyond the text is its end.
    pub fn error<E: From<InputError>>(
        &self,
        span: &Range<usize>,
        key: Option<&str>,
        mistake: Mistake,
    ) -> E {
        let start = span.start.min(self.text.len());
        let end = span.end.clamp(start, self.text.len());
        let placed = FileError {
            key: key.map(str::to_owned),
            text: Some(NamedSource::new(&self.file, self.text.clone())),
            span: Some((start..end).into()),
            ..mistake.placed(self.file.clone(), Some(self.line(start)))
        };
        InputError::from(placed).into()
    }

    /// [`Source::error`] of what is wrong with `key`, and the fix.
    pub fn fault<E: From<InputError>>(
        &self,
        span: Range<usize>,
        key: &str,
        problem: impl Into<String>,
        help: impl Into<String>,
    ) -> E {
        self.error(&span, Some(key), Mistake::new(problem, help))
    }

    /// The line, from 1, on which byte `at` lies.
    pub fn line(&self, at: usize) -> u64 {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        1 + before.iter().filter(|b| **b == b'\n').count() as u64
    }

    /// The file as TOML. `otherwise` is the fix where the reader's message suggests none.
    ///
    /// # Errors
    /// What is no TOML, an unknown or missing key, a value of the wrong kind.
    pub fn toml<T: DeserializeOwned>(&self, otherwise: &str) -> Result<T, InputError> {
        toml::from_str(&self.text).map_err(|error| self.not_toml(&error, otherwise))
    }

    /// Serde's message names the key in backquotes, and the allowed ones after it.
    pub fn not_toml(&self, error: &toml::de::Error, otherwise: &str) -> InputError {
        let span = error.span().unwrap_or(0..0);
        let message = &*in_words(error.message().trim_end());
        let mut quoted = message.split('`').skip(1).step_by(2);
        let unknown = message.starts_with("unknown");
        let named = message.starts_with("unknown field") || message.starts_with("missing field");
        let (key, help) = match quoted.next() {
            Some(key) if message.starts_with("missing field") => (key, format!("add `{key}`")),
            Some(name) if unknown => match nearest(name, quoted) {
                Some(like) => (name, format!("did you mean `{like}`?")),
                None => (name, "use one of the expected names, or leave it out".to_owned()),
            },
            _ => match message.rsplit_once(", expected ") {
                Some((_, wanted)) if message.starts_with("invalid ") => {
                    ("", format!("write {wanted}"))
                }
                _ => ("", otherwise.to_owned()),
            },
        };
        let key = if named { Some(key) } else { self.key_at(span.start) };
        self.error(&span, key, Mistake::new(message.replace('\n', ", "), help))
    }

    /// The key whose value begins at byte `at`, or that of the TOML line on which `at` lies, if it
    /// has a plain one.
    fn key_at(&self, at: usize) -> Option<&str> {
        let start = self.text.get(..at)?.rfind('\n').map_or(0, |n| n + 1);
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let key = match self.text.get(start..at)?.trim_end().strip_suffix('=') {
            Some(before) => before.trim_end().rsplit(|c| !plain(c)).next()?,
            None => self.text.get(start..)?.lines().next()?.split_once('=')?.0.trim(),
        };
        (!key.is_empty() && key.chars().all(plain)).then_some(key)
    }

    /// Refuses a text of nothing but blanks.
    pub fn filled(&self, key: &str, value: &Spanned<String>) -> Result<(), InputError> {
        if value.get_ref().trim().is_empty() {
            return Err(self.fault(value.span(), key, "is empty", "fill it in"));
        }
        Ok(())
    }
}

/// Serde's message without the names that types have in Rust.
fn in_words(message: &str) -> String {
    let words = [
        (" as i128", ""),
        (" as u128", ""),
        ("expected u8", "expected a whole number from 0 to 255"),
        ("expected u32", "expected a whole number from 0 to 4294967295"),
        ("expected u64", "expected a whole number from 0 on"),
        ("expected i64", "expected a whole number"),
        ("expected f64", "expected a number"),
    ];
    words.into_iter().fold(message.to_owned(), |text, (rust, word)| text.replace(rust, word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_lines_from_one_and_stays_within_the_text() {
        let two = Source::new("a.toml", "x = 1\ny = 2\n");
        let second: InputError = two.error(&(6..7), Some("y"), Mistake::new("is 2", "write 3"));
        assert_eq!(second.to_string(), "a.toml:2: `y`: is 2");
        let one = Source::new("a.toml", "x");
        let beyond: InputError = one.error(&(90..99), None, Mistake::new("ends early", "go on"));
        assert_eq!(beyond.to_string(), "a.toml:1: ends early");
        let whole: InputError = Mistake::new("is empty", "fill it in").in_file("b.csv");
        assert_eq!(whole.to_string(), "b.csv: is empty");
        assert!(miette::Diagnostic::source_code(&whole).is_none());
    }

    #[test]
    fn finds_the_key_of_a_line() {
        let key_at = |text, at| Source::new("", text).key_at(at).map(str::to_owned);
        assert_eq!(key_at("x = 1\nyy = 2\n", 9).as_deref(), Some("yy"));
        assert_eq!(key_at("[table]\n", 3), None);
        assert_eq!(key_at("x = 1", 99), None);
        assert_eq!(key_at("all = [\n  { x = 1, yy = true },\n", 24).as_deref(), Some("yy"));
    }
}

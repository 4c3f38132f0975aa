//! What is wrong and how to mend it, before anyone knows where it stands; and which name a
//! misspelt one was meant to be.

use std::path::Path;

use miette::Diagnostic;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What is wrong, and the fix. It gets its place from its caller: a file, or an option.
#[derive(Clone, Debug, PartialEq, Eq, Error, Diagnostic, Serialize, Deserialize)]
#[error("{problem}")]
pub struct Mistake {
    pub problem: String,
    #[help]
    pub help: String,
}

impl Mistake {
    pub fn new(problem: impl Into<String>, help: impl Into<String>) -> Mistake {
        Mistake { problem: problem.into(), help: help.into() }
    }

    /// `name` is none of `known`; `what` says what it should have been.
    pub fn unknown(what: &str, name: &str, known: impl IntoIterator<Item: AsRef<str>>) -> Mistake {
        let known: Vec<_> = known.into_iter().collect();
        let names = || known.iter().map(AsRef::as_ref);
        let help = match names().map(|k| format!("`{k}`")).collect::<Vec<_>>().as_slice() {
            [] => "there is none here: leave it out".to_owned(),
            all => format!("known here: {}", all.join(", ")),
        };
        let hint = did_you_mean(nearest(name, names()));
        Mistake::new(format!("no {what} is called `{name}`{hint}"), help)
    }

    /// The position of `name` among `known`, or [`Mistake::unknown`].
    pub fn position(what: &str, name: &str, known: &[&str]) -> Result<usize, Mistake> {
        let position = known.iter().position(|k| *k == name);
        position.ok_or_else(|| Mistake::unknown(what, name, known))
    }

    /// The message and help of another error.
    pub fn of(error: &dyn Diagnostic, otherwise: &str) -> Mistake {
        let help = error.help().map_or_else(|| otherwise.to_owned(), |help| help.to_string());
        Mistake::new(error.to_string(), help)
    }

    /// Of an unknown `name` where a path is possible too: proposes `NAME.toml` if that is a file.
    pub fn or_file(self, name: &str) -> Mistake {
        let path = Path::new(".").join(format!("{name}.toml"));
        if !path.is_file() {
            return self;
        }
        let help = format!("write `{}` for that file; {}", path.display(), self.help);
        self.mended_by(help)
    }

    pub fn mended_by(self, help: impl Into<String>) -> Mistake {
        Mistake { help: help.into(), ..self }
    }
}

/// The most similar of `known`, if one is similar: what a typing slip meant.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.into_iter().map(|known| (likeness(name, known), known));
    let likely = scored.filter(|(score, _)| *score >= 0.75);
    likely.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, known)| known)
}

/// How alike two names are, whatever their case: 1 if they are equal. Jaro-Winkler knows common
/// beginnings, Damerau-Levenshtein the swapped letters of short words.
pub fn likeness(name: &str, known: &str) -> f64 {
    // Long input is never a typing slip, and similarity is quadratic in length.
    let name: String = name.chars().take(64).flat_map(char::to_lowercase).collect();
    let known = known.to_lowercase();
    let swapped = strsim::normalized_damerau_levenshtein(&known, &name);
    strsim::jaro_winkler(&known, &name).max(if swapped > 0.65 { swapped + 0.1 } else { 0.0 })
}

/// The hint behind the message about an unknown name; empty without a similar one.
pub fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_compared_with_those_that_exist() {
        let slip = Mistake::unknown("colour", "gren", ["red", "green"]);
        assert_eq!(slip.problem, "no colour is called `gren`; did you mean `green`?");
        assert_eq!(slip.help, "known here: `red`, `green`");
        let other = Mistake::unknown("colour", "square", ["red", "green"]);
        assert_eq!(other.problem, "no colour is called `square`");
        let none = Mistake::unknown("colour", "red", [""; 0]);
        assert_eq!(none.help, "there is none here: leave it out");
    }

    #[test]
    fn slips_are_recognised() {
        let names = ["SIS_SHORT", "wait", "v6.12", "line_llc_ns"];
        let meant = |name| nearest(name, names);
        assert_eq!(meant("sis_shrot"), Some("SIS_SHORT"));
        assert_eq!(meant("wiat"), Some("wait"));
        assert_eq!(meant("v6.11"), Some("v6.12"));
        assert_eq!(meant("line_lcc_ns"), Some("line_llc_ns"));
        assert_eq!(meant("futex"), None);
        assert_eq!(meant(&"x".repeat(1 << 20)), None);
    }
}

//! The studies that come with Reveille, so that one can be run by name from any
//! directory; and how a study is named on the command line.

use std::path::Path;

use reveille_place::{InputError, Mistake, read_description};

use crate::model::error::Result;
use crate::model::study::Study;
use crate::read::file::{parse, parse_beside};

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../studies/", $name, ".toml")))),*]
    };
}

const STUDIES: &[(&str, &str)] = shipped![
    "aged-idle",
    "baselines",
    "burst",
    "first-idle",
    "host-check",
    "interference",
    "search-statistics",
    "sis-short",
    "swqueue"
];

/// The shipped study of absolute figures.
pub const BASELINES: &str = "baselines";

/// Shipped studies that have no part in the score of changes: absolute figures, and what is
/// measured on this host and differs from host to host.
const APART: &[&str] = &[BASELINES, "host-check"];

pub fn names() -> Vec<&'static str> {
    STUDIES.iter().map(|(name, _)| *name).collect()
}

/// Names of the shipped studies that hold predictions against published figures.
pub fn predicted_names() -> Vec<&'static str> {
    names().into_iter().filter(|name| !APART.contains(name)).collect()
}

pub fn find(name: &str) -> Option<&'static str> {
    STUDIES.iter().find(|(n, _)| *n == name).map(|(_, text)| *text)
}

const NAME_OR_PATH: &str =
    "a study is the name of one that `reveille studies` lists, or the path of a TOML file";

/// Loads a study: a shipped one by name, or a file by a path that ends in `.toml`.
///
/// # Errors
/// An unknown name (with the most similar one), a file that cannot be read, or a
/// file with a mistake in it; see [`crate::StudyError`].
pub fn load(spec: &str) -> Result<Study> {
    if let Some(text) = find(spec) {
        return parse(&format!("studies/{spec}.toml"), text);
    }
    let path = Path::new(spec);
    if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("toml")) {
        return parse_beside(path.parent(), spec, &read_description(path, NAME_OR_PATH)?);
    }
    let help = format!("studies: {}; or a path that ends in .toml", names().join(", "));
    let unknown = Mistake::unknown("study", spec, names()).mended_by(help).or_file(spec);
    Err(InputError::Unknown(unknown).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::on::On;

    #[test]
    fn every_table_loads_and_bears_its_file_name() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tables"));
        for (dir, count) in [(root.to_owned(), 11), (root.join("later"), 12)] {
            let files = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path());
            let tables = files.filter(|path| path.is_file()).map(|path| {
                let study = load(path.to_str().unwrap()).unwrap_or_else(|e| panic!("{e}"));
                let stem = path.file_stem().unwrap().to_str().unwrap();
                assert_eq!(study.name, format!("table-{stem}"));
            });
            assert_eq!(tables.count(), count, "{}", dir.display());
        }
    }

    #[test]
    fn every_shipped_study_loads_and_bears_its_file_name() {
        for name in names() {
            let study = load(name).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(study.name, name);
            let apart = study.on != On::Sim || study.cases.iter().any(|c| c.baselines);
            assert_eq!(apart, !predicted_names().contains(&name), "{name}");
        }
    }

    #[test]
    fn an_unknown_name_names_the_nearest() {
        let error = load("sis-shrot").unwrap_err().to_string();
        assert!(error.contains("did you mean `sis-short`"), "{error}");
    }
}

//! The workloads that Reveille ships: files beside this crate's sources, compiled
//! in, so that the command needs no data directory.

use std::path::Path;

use reveille_place::{
    CHECK_PATH, InputError, InputKind, Mistake, read_description, read_input_text,
};

use crate::error::Result;
use crate::file::Workload;

macro_rules! catalogue {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../catalogue/", $name, ".toml")))),*]
    };
}

const CATALOGUE: &[(&str, &str)] = catalogue![
    "context_switch1",
    "hackbench",
    "kernel_compile",
    "reaim",
    "redis",
    "schbench",
    "schbench_classic",
    "schbench_current",
    "schbench_current_rate",
    "tbench",
    "tcp_rr",
    "tcp_stream",
    "udp_rr",
];

pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    CATALOGUE.iter().map(|(name, _)| *name)
}

/// A workload of the catalogue.
///
/// # Errors
/// [`InputError::Unknown`], with the most similar name, if there is none of this name.
pub fn find(name: &str) -> Result<Workload> {
    match CATALOGUE.iter().find(|(known, _)| *known == name) {
        Some((_, text)) => Workload::parse(&format!("{name}.toml"), text),
        None => {
            let known = names().collect::<Vec<_>>().join(", ");
            let path = "a path must end in .toml, in .json for a file of rt-app, or in .txt for a \
                        trace as text";
            let unknown = Mistake::unknown("workload", name, names());
            let unknown = unknown.mended_by(format!("there are {known}; {path}")).or_file(name);
            Err(InputError::Unknown(unknown).into())
        }
    }
}

/// A workload by its name in the catalogue, or from the file at a path that ends in `.toml`,
/// in `.json` if it is rt-app's, or in `.txt` if it is a trace.
///
/// # Errors
/// As [`find`], [`Workload::parse`], [`Workload::parse_rtapp`] and [`Workload::parse_trace`], and [`InputError::Read`] if the file cannot be read.
pub fn load(spec: &str) -> Result<Workload> {
    let read = if spec.ends_with(".toml") {
        Workload::parse
    } else if spec.ends_with(".json") {
        Workload::parse_rtapp
    } else if spec.ends_with(".txt") {
        let path = Path::new(spec);
        let text = read_input_text(path, InputKind::TRACE)
            .map_err(|error| InputError::unreadable(path, error, CHECK_PATH))?;
        return Workload::parse_trace(spec, text);
    } else {
        return find(spec);
    };
    read(spec, &read_description(Path::new(spec), CHECK_PATH)?)
}

//! The machines that come with Reveille, and how a machine is named on a command
//! line or in a study: a preset, this host, or a file.

use std::path::Path;

use reveille_place::{InputError, InputKind, Mistake, read_input_text};

use crate::{Machine, parse_hwloc, parse_toml, read_sysfs};

macro_rules! embedded {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../../machines/", $name, ".toml")))),*]
    };
}

const MACHINES: &[(&str, &str)] = embedded! {
    "altra-1s80c"
    "bdw-2s20c"
    "bergamo-2s128c"
    "cfl-1s8c"
    "clx-2s26c"
    "clx-8260"
    "clx-8260-snc"
    "cpl-1s26c"
    "hsw-1s4c"
    "hsw-2s12c"
    "hsw-2s24c"
    "icx-2s32c"
    "icx-guest-32"
    "ivb-2s10c"
    "kp920-1n32c"
    "kp920-2n64c"
    "milan-2s64c"
    "milan-2s64c-nps2"
    "milan-2s64c-nps4"
    "quad-1s4c"
    "skx-1s18c"
    "skx-2s18c"
    "skx-2s20c"
    "spr-1s56c"
    "spr-2s56c"
    "zen2-1s12c"
    "zen3-milan-36c"
    "zen4-7950x"
    "zen4c-bergamo-88c"
};

const COST_MODELS: &[(&str, &str)] = embedded! { "generic-x86" };

/// The cost model of machines that have no file: the host and hwloc exports.
pub(crate) const DEFAULT_COST_MODEL: &str = "generic-x86";

/// Names of the machines that [`load`] knows, in alphabetical order.
pub fn preset_names() -> Vec<&'static str> {
    MACHINES.iter().map(|(name, _)| *name).collect()
}

/// Names that a machine file may give as `cost`, besides those of machines.
pub fn cost_model_names() -> Vec<&'static str> {
    COST_MODELS.iter().map(|(name, _)| *name).collect()
}

/// Path of an embedded file in the source tree, for messages.
pub(crate) fn file_of(name: &str) -> String {
    format!("machines/{name}.toml")
}

pub(crate) fn cost_model_text(name: &str) -> Option<&'static str> {
    COST_MODELS.iter().find(|(n, _)| *n == name).map(|(_, text)| *text)
}

pub(crate) fn machine_text(name: &str) -> Option<&'static str> {
    MACHINES.iter().find(|(n, _)| *n == name).map(|(_, text)| *text)
}

/// Loads a machine: a preset by name, `host` for this machine (from `/sys`), or
/// the path of a machine file (`.toml`) or hwloc export (`.xml`).
///
/// # Errors
/// An unknown name (with the most similar one), a file that cannot be read, or a
/// file with a mistake in it; see [`InputError`].
pub fn load(spec: &str) -> Result<Machine, InputError> {
    if spec == "host" {
        return read_sysfs(Path::new("/sys"));
    }
    if let Some(text) = machine_text(spec) {
        return parse_toml(&file_of(spec), text);
    }
    let extension = Path::new(spec).extension().map(|e| e.to_ascii_lowercase());
    match extension.as_ref().and_then(|e| e.to_str()) {
        Some("toml") => parse_toml(spec, &read(spec)?),
        Some("xml") => parse_hwloc(spec, &read(spec)?),
        _ => Err(unknown(spec)),
    }
}

fn read(path: &str) -> Result<String, InputError> {
    read_input_text(Path::new(path), InputKind::DESCRIPTION).map_err(|error| {
        let help = format!(
            "a path names a machine file (.toml) or an hwloc export (.xml); without one of \
             these endings it is a preset: {}",
            preset_names().join(", ")
        );
        InputError::unreadable(path, error, help)
    })
}

fn unknown(spec: &str) -> InputError {
    let names = preset_names();
    let help = format!(
        "Machines: host, {}; or a path that ends in .toml (machine file) or .xml \
         (from `lstopo --of xml`).",
        names.join(", ")
    );
    InputError::Unknown(if cost_model_text(spec).is_some() {
        let problem = format!("no machine is called `{spec}`");
        let model = "is a cost model without CPUs, for";
        let help = format!("`{spec}` {model} `cost = \"{spec}\"` in a machine file. {help}");
        Mistake::new(problem, help)
    } else {
        let known = names.iter().copied().chain(["host"]);
        Mistake::unknown("machine", spec, known).mended_by(help)
    })
}

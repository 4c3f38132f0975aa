//! How a machine is named on a command line or in a study: a preset, this host, or a file.

use std::path::Path;

use reveille_place::{CHECK_PATH, InputError, Mistake, read_description};

use crate::file::parse_toml;
use crate::hwloc::parse_hwloc;
use crate::machine::Machine;
use crate::presets::{cost_model_text, file_of, machine_text, preset_names};
use crate::sysfs::read_sysfs;

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
    let path = Path::new(spec);
    let text = || read_description(path, CHECK_PATH);
    let extension = path.extension().map(|e| e.to_ascii_lowercase());
    match extension.as_ref().and_then(|e| e.to_str()) {
        Some("toml") => parse_toml(spec, &text()?),
        Some("xml") => parse_hwloc(spec, &text()?),
        _ => Err(unknown(spec)),
    }
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
        Mistake::unknown("machine", spec, known).mended_by(help).or_file(spec)
    })
}

//! The machines and cost models that come with Reveille.

macro_rules! embedded {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../../machines/", $name, ".toml")))),*]
    };
}

const MACHINES: &[(&str, &str)] = embedded! {
    "altra-1s80c"
    "bdw-2s20c"
    "bergamo-2s128c"
    "cfl-1s6c"
    "cfl-1s8c"
    "clx-2s26c"
    "clx-8260"
    "clx-8260-snc"
    "cml-1s10c"
    "cpl-1s26c"
    "hsw-1s4c"
    "hsw-2s12c"
    "hsw-2s24c"
    "icx-2s32c"
    "icx-guest-32"
    "ivb-2s10c"
    "ivb-2s12c"
    "kbl-1s4c"
    "kp920-1n32c"
    "kp920-2n64c"
    "milan-2s32c-nps2"
    "milan-2s64c"
    "milan-2s64c-nps2"
    "milan-2s64c-nps4"
    "quad-1s4c"
    "skx-1s18c"
    "skx-2s18c"
    "skx-2s20c"
    "spr-1s56c"
    "spr-2s30c"
    "spr-2s56c"
    "spr-2s60c"
    "zen2-1s12c"
    "zen3-milan-36c"
    "zen4-7950x"
    "zen4c-bergamo-88c"
};

const COST_MODELS: &[(&str, &str)] = embedded! { "generic-x86" };

/// The cost model of machines that have no file: the host and hwloc exports.
pub(crate) const DEFAULT_COST_MODEL: &str = "generic-x86";

/// Names of the machines that [`load`](crate::load) knows, in alphabetical order.
pub fn preset_names() -> Vec<&'static str> {
    MACHINES.iter().map(|(name, _)| *name).collect()
}

/// Names that a machine file may give as `cost`, besides those of machines.
pub fn cost_model_names() -> Vec<&'static str> {
    COST_MODELS.iter().map(|(name, _)| *name).collect()
}

pub(crate) fn file_of(name: &str) -> String {
    format!("machines/{name}.toml")
}

pub(crate) fn cost_model_text(name: &str) -> Option<&'static str> {
    COST_MODELS.iter().find(|(n, _)| *n == name).map(|(_, text)| *text)
}

pub(crate) fn machine_text(name: &str) -> Option<&'static str> {
    MACHINES.iter().find(|(n, _)| *n == name).map(|(_, text)| *text)
}

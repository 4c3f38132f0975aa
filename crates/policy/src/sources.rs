//! The C sources that this crate carries.

/// Files with their path in the source tree and their text.
macro_rules! sources {
    ($($path:literal),+ $(,)?) => {
        &[$(($path, include_str!(concat!("../../../", $path)))),+]
    };
}

/// `policy/`: each file's path in the source tree, and its text.
pub const POLICY_SOURCES: &[(&str, &str)] = sources!(
    "policy/averages.h",
    "policy/bandwidth.h",
    "policy/cache_hot.h",
    "policy/features.h",
    "policy/idle_search.h",
    "policy/reveille.h",
    "policy/scan_budget.h",
    "policy/select.h",
    "policy/select_v45.h",
    "policy/swqueue.h",
    "policy/types.h",
    "policy/wake_affine.h",
    "policy/wakee.h",
    "policy/world.h",
);

/// What a policy file is compiled with for the simulator, besides [`POLICY_SOURCES`].
pub(crate) const SIMULATOR_SOURCES: &[(&str, &str)] =
    sources!("crates/policy/csrc/policy_file.h", "crates/policy/csrc/sim_world.h");

//! What commands ask about the running kernel and about their own executable.

use std::path::PathBuf;

use reveille_host::HostError;
use reveille_policy::{Baseline, Policy};

use crate::errors::Result;

/// Baseline for a running kernel that is older than all of them.
const USUAL_BASE: &str = "v6.12";

/// The running kernel's policy; `USUAL_BASE`'s if it is older than every baseline.
pub fn running_kernel() -> Result<Policy> {
    Ok(reveille_study::kernel(running_base())?)
}

/// The baseline of the running kernel.
pub fn running_base() -> &'static str {
    let known = Baseline::of_release(reveille_host::kernel_version());
    known.map_or(USUAL_BASE, |_| "host")
}

/// Path of this executable, which every run on the host re-executes.
pub fn this_command() -> Result<PathBuf, HostError> {
    std::env::current_exe().map_err(|error| {
        HostError::system("find this command's own file", error, "start it by its path")
    })
}

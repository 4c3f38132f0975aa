//! What a measured result was measured on.

use serde::{Deserialize, Serialize};

/// A host, and what may have disturbed a run on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostContext {
    /// Release of the running kernel: `6.12.5-amd64`.
    pub kernel: String,
    /// Model of the processor as it names itself.
    pub cpu: String,
    /// CPUs that are online.
    pub cpus: u32,
    /// Frequency governor; null if the kernel does not control the frequency.
    pub governor: Option<String>,
    /// Hypervisor that the kernel runs under; null on hardware.
    pub virtualisation: Option<String>,
    /// Name of the sched_ext scheduler that is loaded; null if the kernel's own decides.
    pub sched_ext: Option<String>,
    /// Schedulers that were loaded for the runs that are measured under them, each once, in
    /// the order in which they were first needed; none is loaded any more.
    #[serde(default)]
    pub loaded: Vec<LoadedScheduler>,
    /// What may have disturbed the result, a sentence each; empty if nothing was seen.
    pub warnings: Vec<String>,
}

/// A sched_ext scheduler that was loaded for some of the runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedScheduler {
    /// As the kernel calls it: `reveille`.
    pub name: String,
    /// What loaded it: `scx_reveille --base v6.2 --with +SIS_SHORT`.
    pub command: String,
}

//! The host that a result was measured on, as facts for the head of a report.

use reveille_measure::{HostContext, LoadedScheduler};

/// What was measured.
pub(crate) fn host_facts(host: &HostContext) -> Vec<(&'static str, String)> {
    let cpus = if host.cpus == 1 { "CPU" } else { "CPUs" };
    let mut facts = vec![
        ("Measured", format!("on Linux {}, {} {cpus}", host.kernel, host.cpus)),
        ("Processor", host.cpu.clone()),
    ];
    facts.extend(host.governor.iter().map(|g| ("Governor", g.clone())));
    facts.extend(host.virtualisation.iter().map(|v| ("Guest of", v.clone())));
    facts.extend(host.sched_ext.iter().map(|s| ("sched_ext", s.clone())));
    let loaded = |l: &LoadedScheduler| ("Loaded", format!("{} by {}", l.name, l.command));
    facts.extend(host.loaded.iter().map(loaded));
    facts
}

//! Reads this host from sysfs: the CPUs that are online, what they share, and the
//! idle states that the kernel may use. The root is a parameter so that tests and
//! copies of another machine's tree can be read alike.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use reveille_place::{InputError, Mistake};

use crate::cpulist::parse_cpu_list;
use crate::found::{self, FoundCpu};
use crate::machine::{IdleState, Machine, Origin};
use crate::unlike::{CpuKind, architecture_warning, kinds_warning};

/// Reads the machine whose sysfs is mounted at `root` (`/sys`).
///
/// CPUs that are offline are left out and the others numbered densely. The
/// last-level cache is the deepest data or unified cache that the kernel shows;
/// without one it is the package. Costs are those of the default cost model.
///
/// # Errors
/// [`InputError::Read`] or [`InputError::File`] with the file that is missing
/// or makes no sense.
pub fn read_sysfs(root: &Path) -> Result<Machine, InputError> {
    let cpu_dir = root.join("devices/system/cpu");
    let online = cpu_list(&cpu_dir.join("online"))?;
    if online.is_empty() {
        return Err(nonsense(&cpu_dir.join("online"), "lists no CPU"));
    }
    let nodes = nodes(&root.join("devices/system/node"))?;
    let cpus = online.iter().map(|&cpu| found_cpu(&cpu_dir, cpu, &nodes));
    let topology = found::topology(cpus.collect::<Result<_, _>>()?)
        .map_err(|error| nonsense(&cpu_dir, &error.to_string()))?;
    let idle = idle_states(&cpu_dir.join(format!("cpu{}/cpuidle", online[0])))?;
    let source = format!("sysfs of this host at {}", root.display());
    let warnings = kinds_warning(&kinds(root, &online)).into_iter();
    let warnings = warnings.chain(architecture_warning(std::env::consts::ARCH));
    found::machine("host", source, topology, idle, warnings.collect())
}

/// The kinds of CPU: by the PMU of each on Intel's hybrids, by capacity elsewhere.
fn kinds(root: &Path, online: &[u32]) -> Vec<CpuKind> {
    let among = |cpus: Vec<u32>| cpus.iter().filter(|cpu| online.contains(cpu)).count();
    let pmus = [
        ("cpu_core", "P-cores' CPUs"),
        ("cpu_atom", "E-cores' CPUs"),
        ("cpu_lowpower", "low-power E-cores' CPUs"),
    ];
    let by_pmu = pmus.into_iter().filter_map(|(pmu, name)| {
        let cpus = among(cpu_list(&root.join("devices").join(pmu).join("cpus")).ok()?);
        (cpus > 0).then(|| CpuKind { name: name.to_owned(), cpus })
    });
    let by_pmu: Vec<CpuKind> = by_pmu.collect();
    if !by_pmu.is_empty() {
        return by_pmu;
    }
    let mut by_capacity: BTreeMap<i64, usize> = BTreeMap::new();
    for cpu in online {
        let file = root.join(format!("devices/system/cpu/cpu{cpu}/cpu_capacity"));
        if let Ok(capacity) = number(&file) {
            *by_capacity.entry(capacity).or_default() += 1;
        }
    }
    let kind = |(capacity, cpus)| CpuKind { name: format!("of capacity {capacity}"), cpus };
    by_capacity.into_iter().rev().map(kind).collect()
}

fn found_cpu(cpu_dir: &Path, cpu: u32, nodes: &HashMap<u32, u32>) -> Result<FoundCpu, InputError> {
    let dir = cpu_dir.join(format!("cpu{cpu}"));
    let core_list = dir.join("topology/core_cpus_list");
    // The name before v5.3.
    let old_core_list = dir.join("topology/thread_siblings_list");
    let core = if !core_list.exists() && old_core_list.exists() {
        first_cpu(&old_core_list)?
    } else {
        first_cpu(&core_list)?
    };
    // Since v5.16.
    let cluster_list = dir.join("topology/cluster_cpus_list");
    let cluster = cluster_list.exists().then(|| first_cpu(&cluster_list)).transpose()?;
    let package = dir.join("topology/physical_package_id");
    // Some firmware gives no package: the kernel then says -1.
    let socket: i64 = number(&package)?;
    let llc = last_level_cache(&dir.join("cache"))?;
    Ok(FoundCpu {
        os_cpu: cpu,
        core: core.into(),
        cluster: cluster.map(u64::from),
        // A package that has no cache is told from any cache by the high bit.
        llc: llc.map_or(1 << 63, u64::from),
        node: nodes.get(&cpu).copied().unwrap_or(0).into(),
        socket: socket as u64,
    })
}

/// First CPU of the deepest cache that holds data.
fn last_level_cache(dir: &Path) -> Result<Option<u32>, InputError> {
    let mut deepest: Option<(i64, PathBuf)> = None;
    for index in numbered(dir, "index")? {
        let index = dir.join(format!("index{index}"));
        if text(&index.join("type"))? == "Instruction" {
            continue;
        }
        let level = number(&index.join("level"))?;
        if deepest.as_ref().is_none_or(|(l, _)| level > *l) {
            deepest = Some((level, index));
        }
    }
    deepest.map(|(_, index)| first_cpu(&index.join("shared_cpu_list"))).transpose()
}

/// Memory node of each CPU; empty on a kernel without NUMA.
fn nodes(dir: &Path) -> Result<HashMap<u32, u32>, InputError> {
    let mut node_of = HashMap::new();
    for node in numbered(dir, "node")? {
        let list = cpu_list(&dir.join(format!("node{node}/cpulist")))?;
        node_of.extend(list.into_iter().map(|cpu| (cpu, node)));
    }
    Ok(node_of)
}

/// The states that are not switched off; none if the kernel has no cpuidle driver.
fn idle_states(dir: &Path) -> Result<Vec<IdleState>, InputError> {
    let mut states = Vec::new();
    for state in numbered(dir, "state")? {
        let dir = dir.join(format!("state{state}"));
        if dir.join("disable").exists() && number(&dir.join("disable"))? != 0 {
            continue;
        }
        let exit_ns = micros(&dir.join("latency"))?;
        let residency = dir.join("residency");
        // Kernels before v4.12 do not show it; the latency is its floor.
        let residency_ns = if residency.exists() { micros(&residency)? } else { exit_ns };
        let name = text(&dir.join("name"))?;
        let desc = text(&dir.join("desc")).unwrap_or_default();
        states.push(IdleState {
            polling: name.eq_ignore_ascii_case("POLL") || desc.contains("MWAIT"),
            name,
            exit_ns,
            residency_ns,
            exit_low_ns: exit_ns / 2,
            exit_high_ns: exit_ns,
            origin: Origin::Cited(format!("cpuidle driver table of this host, {}", dir.display())),
        });
    }
    Ok(states)
}

fn micros(path: &Path) -> Result<u32, InputError> {
    let us = number(path)?;
    u32::try_from(us)
        .ok()
        .and_then(|us| us.checked_mul(1000))
        .ok_or_else(|| nonsense(path, &format!("{us} us is no plausible idle latency")))
}

/// The numbers N of the entries `<prefix>N`, ascending; none if there is no `dir`.
fn numbered(dir: &Path, prefix: &str) -> Result<BTreeSet<u32>, InputError> {
    if !dir.exists() {
        return Ok(BTreeSet::new());
    }
    let mut numbers = BTreeSet::new();
    for entry in fs::read_dir(dir).map_err(|error| unreadable(dir, error))? {
        let name = entry.map_err(|error| unreadable(dir, error))?.file_name();
        let digits = name.to_str().and_then(|n| n.strip_prefix(prefix));
        numbers.extend(digits.and_then(|d| d.parse::<u32>().ok()));
    }
    Ok(numbers)
}

fn first_cpu(path: &Path) -> Result<u32, InputError> {
    let first = cpu_list(path)?.first().copied();
    first.ok_or_else(|| nonsense(path, "lists no CPU"))
}

fn cpu_list(path: &Path) -> Result<Vec<u32>, InputError> {
    parse_cpu_list(&text(path)?).map_err(|error| nonsense(path, &error.to_string()))
}

fn number(path: &Path) -> Result<i64, InputError> {
    let text = text(path)?;
    text.parse().map_err(|_| {
        let shown: String = text.chars().take(40).collect();
        nonsense(path, &format!("`{shown}` is not a number"))
    })
}

fn text(path: &Path) -> Result<String, InputError> {
    let text = fs::read_to_string(path).map_err(|error| unreadable(path, error))?;
    Ok(text.trim().to_owned())
}

fn unreadable(path: &Path, error: std::io::Error) -> InputError {
    let help = "is sysfs mounted, and is this a Linux kernel? Otherwise name a preset machine";
    InputError::unreadable(path, error, help)
}

fn nonsense(path: &Path, problem: &str) -> InputError {
    let help = "name a preset machine or give an hwloc export (.xml) instead";
    Mistake::new(problem, help).in_file(path.display().to_string())
}

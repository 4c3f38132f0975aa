//! Turns CPUs as a host or an export names them into a dense [`Topology`], and
//! such a topology into a machine with default costs. Both readers share it.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use reveille_place::InputError;

use crate::file::base_machine;
use crate::machine::{IdleState, Machine};
use crate::topology::{CpuPlace, Topology, TopologyError};

/// One CPU with the source's own names of what it belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundCpu {
    pub os_cpu: u32,
    pub core: u64,
    /// If the source tells.
    pub cluster: Option<u64>,
    pub llc: u64,
    pub node: u64,
    pub socket: u64,
}

/// The topology of CPUs as found. A cluster that is a whole cache is none, as for the
/// kernel, which drops the domain.
pub(crate) fn topology(mut cpus: Vec<FoundCpu>) -> Result<Topology, TopologyError> {
    let cache = |c: &FoundCpu| (c.socket, c.node, c.llc);
    let mut first: HashMap<_, _> = HashMap::new();
    let mut split = HashSet::new();
    for c in &cpus {
        if *first.entry(cache(c)).or_insert(c.cluster) != c.cluster {
            split.insert(cache(c));
        }
    }
    for c in &mut cpus {
        c.cluster = c.cluster.filter(|_| split.contains(&cache(c)));
    }
    numbered(cpus)
}

/// Numbers everything densely in ascending order of the host's CPU numbers.
///
/// A cache that spans memory nodes (sub-NUMA clustering) becomes one cache per
/// node, as in the kernel's scheduling domains: `match_llc()` in
/// arch/x86/kernel/smpboot.c does not join CPUs of different nodes there. A cluster
/// ends where a cache does, and a core lies in that of its first thread.
pub(crate) fn numbered(mut cpus: Vec<FoundCpu>) -> Result<Topology, TopologyError> {
    cpus.sort_by_key(|c| c.os_cpu);
    let (mut cores, mut clusters, mut llcs) = (Dense::new(), Dense::new(), Dense::new());
    let (mut nodes, mut sockets) = (Dense::new(), Dense::new());
    let mut cluster_of = HashMap::new();
    let places = cpus.iter().map(|c| {
        let core = cores.id((c.socket, c.core));
        let llc = llcs.id((c.socket, c.node, c.llc));
        // One that the source names is told from a core by its kind.
        let named = c.cluster.map_or((false, u64::from(core)), |cluster| (true, cluster));
        CpuPlace {
            os_cpu: c.os_cpu,
            core,
            thread: 0,
            cluster: *cluster_of.entry(core).or_insert_with(|| clusters.id((llc, named))),
            llc,
            node: nodes.id(c.node),
            socket: sockets.id(c.socket),
        }
    });
    Topology::from_places(places.collect())
}

/// A machine of this topology with the default cost model; the default idle
/// states too, unless some were found.
pub(crate) fn machine(
    name: &str,
    source: String,
    topology: Topology,
    idle: Vec<IdleState>,
    warnings: Vec<String>,
) -> Result<Machine, InputError> {
    let mut machine = base_machine(topology)?;
    machine.name = name.to_owned();
    machine.about = machine.topology.describe();
    machine.source = source;
    machine.warnings = warnings;
    if !idle.is_empty() {
        machine.idle = idle;
    }
    Ok(machine)
}

/// Ids in order of first appearance.
struct Dense<K>(HashMap<K, u32>);

impl<K: Hash + Eq> Dense<K> {
    fn new() -> Self {
        Self(HashMap::new())
    }

    fn id(&mut self, key: K) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(key).or_insert(next)
    }
}

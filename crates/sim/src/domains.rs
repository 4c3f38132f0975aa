//! Scheduling domains of a machine: nested spans of CPUs, each split into the
//! groups between which load is balanced. Levels without a choice are left out.

use std::collections::BTreeMap;

use reveille_machine::{CpuId, Topology};

/// What a domain's groups are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Threads of a core.
    Smt,
    /// Cores of a last-level cache.
    Llc,
    /// Last-level caches of a NUMA node.
    Package,
    /// NUMA nodes.
    Numa,
}

/// One domain: a span and its groups.
#[derive(Clone, Debug)]
pub(crate) struct Domain {
    pub(crate) level: Level,
    pub(crate) span: Vec<u16>,
    pub(crate) groups: Vec<Vec<u16>>,
    pub(crate) imbalance_pct: u64,
    pub(crate) cache_nice_tries: u32,
    /// Spread tasks over groups before filling them: a property of the level below.
    pub(crate) prefer_sibling: bool,
}

impl Domain {
    /// Shortest time between two balancing passes of one CPU: its weight in ms.
    pub(crate) fn min_interval_ns(&self) -> u64 {
        self.span.len() as u64 * 1_000_000
    }
}

/// A CPU's place in one domain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Membership {
    pub(crate) domain: u32,
    pub(crate) group: u32,
}

/// Domains of a machine, and those of each CPU from the smallest to the largest.
pub(crate) struct Domains {
    pub(crate) all: Vec<Domain>,
    pub(crate) of_cpu: Vec<Vec<Membership>>,
}

impl Domains {
    pub(crate) fn new(topology: &Topology) -> Domains {
        let mut domains = Domains { all: Vec::new(), of_cpu: vec![Vec::new(); topology.n_cpus()] };
        let place = |cpu: CpuId| &topology.cpus()[cpu as usize];
        domains.add_level(topology, Level::Smt, |c| place(c).core, |c| c);
        domains.add_level(topology, Level::Llc, |c| place(c).llc, |c| place(c).core);
        domains.add_level(topology, Level::Package, |c| place(c).node, |c| place(c).llc);
        domains.add_level(topology, Level::Numa, |_| 0, |c| place(c).node);
        domains
    }

    /// One domain per value of `span`, one group per value of `group` in it.
    fn add_level(
        &mut self,
        topology: &Topology,
        level: Level,
        span: impl Fn(CpuId) -> u32,
        group: impl Fn(CpuId) -> u32,
    ) {
        let mut members: BTreeMap<u32, BTreeMap<u32, Vec<u16>>> = BTreeMap::new();
        for cpu in 0..topology.n_cpus() as CpuId {
            let groups = members.entry(span(cpu)).or_default();
            groups.entry(group(cpu)).or_default().push(cpu as u16);
        }
        for groups in members.into_values() {
            if groups.len() < 2 {
                continue;
            }
            let mut groups: Vec<Vec<u16>> = groups.into_values().collect();
            groups.sort_by_key(|g| g[0]);
            let mut all: Vec<u16> = groups.iter().flatten().copied().collect();
            all.sort_unstable();
            let domain = self.all.len() as u32;
            for (number, group) in groups.iter().enumerate() {
                for &cpu in group {
                    self.of_cpu[usize::from(cpu)].push(Membership { domain, group: number as u32 });
                }
            }
            self.all.push(Domain {
                level,
                span: all,
                groups,
                imbalance_pct: if level == Level::Smt { 110 } else { 117 },
                cache_nice_tries: match level {
                    Level::Smt => 0,
                    Level::Llc | Level::Package => 1,
                    Level::Numa => 2,
                },
                prefer_sibling: matches!(level, Level::Llc | Level::Package | Level::Numa),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_sockets_have_three_levels() {
        let topology = Topology::uniform(2, 1, 4, 2).unwrap();
        let domains = Domains::new(&topology);
        let levels: Vec<Level> =
            domains.of_cpu[0].iter().map(|m| domains.all[m.domain as usize].level).collect();
        assert_eq!(levels, [Level::Smt, Level::Llc, Level::Numa]);
        let llc = &domains.all[domains.of_cpu[0][1].domain as usize];
        assert_eq!((llc.span.len(), llc.groups.len()), (8, 4));
    }

    #[test]
    fn levels_without_a_choice_are_left_out() {
        let topology = Topology::uniform(1, 1, 4, 1).unwrap();
        let domains = Domains::new(&topology);
        assert_eq!(domains.of_cpu[3].len(), 1);
        assert_eq!(domains.all[0].level, Level::Llc);
    }
}

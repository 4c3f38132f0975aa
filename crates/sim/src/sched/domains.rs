//! Scheduling domains of a machine: nested spans of CPUs, each split into the groups to balance
//! between. Degenerate levels are left out.

use crate::ids::CpuVec;
use std::collections::BTreeMap;

use reveille_machine::Topology;
use reveille_policy::CpuId;

/// Two communicating tasks may stay on one node.
const NUMA_IMBALANCE_MIN: u64 = 2;

/// What a domain's groups are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Threads of a core.
    Smt,
    /// Cores of a cluster.
    Cluster,
    /// Cores or clusters of a last-level cache.
    Llc,
    /// Last-level caches of a NUMA node, or pairs of them (SIS_NODE_TOPOEXT).
    Package,
    /// NUMA nodes of a socket, and above them sockets. WAKE_AFFINE, BALANCE_FORK and
    /// BALANCE_EXEC hold here too: they end beyond node_reclaim_distance, which is 30,
    /// above the 21 or 22 between sockets of Intel and Kunpeng, and 32 on EPYC, as far as
    /// its sockets are (a55c7454a8c8).
    Numa,
}

/// One domain: a span and its groups.
#[derive(Clone, Debug)]
pub(crate) struct Domain {
    pub(crate) level: Level,
    /// Domains of one layer have no CPU in common.
    pub(crate) layer: usize,
    pub(crate) span: Vec<u16>,
    /// The span as words of a bit mask: number and bits.
    pub(crate) words: Vec<(usize, u64)>,
    pub(crate) groups: Vec<Vec<u16>>,
    pub(crate) imbalance_pct: u64,
    pub(crate) cache_nice_tries: u32,
    /// Spread tasks over groups before filling them: a property of the level below.
    pub(crate) prefer_sibling: bool,
    /// Its groups are cores of several threads.
    pub(crate) of_smt_cores: bool,
    /// Number of tasks a node may run before they spread; 0 below NUMA levels.
    pub(crate) imb_numa_nr: u64,
}

impl Domain {
    /// Minimum interval between two passes of one CPU: the domain's weight in ms.
    pub(crate) fn min_interval_ns(&self) -> u64 {
        self.span.len() as u64 * 1_000_000
    }

    /// adjust_numa_imbalance() since v6.0 (cb29a5c19d2d): is a small difference between two nodes,
    /// in tasks or idle CPUs, tolerated while the destination runs few tasks?
    pub(crate) fn leaves_imbalance(&self, difference: u64, running: u64) -> bool {
        difference <= NUMA_IMBALANCE_MIN && running < self.imb_numa_nr
    }
}

/// A CPU's place in one domain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Membership {
    pub(crate) domain: u32,
    pub(crate) group: u32,
}

/// Domains of a machine, and those of each CPU from the smallest to the largest.
#[derive(Clone)]
pub(crate) struct Domains {
    pub(crate) all: Vec<Domain>,
    pub(crate) of_cpu: CpuVec<Vec<Membership>>,
    /// By layer, the group of each CPU in its domain.
    pub(crate) group_of: Vec<CpuVec<u16>>,
}

impl Domains {
    /// With `pairs`, the last-level caches of a node are paired (SIS_NODE_TOPOEXT).
    /// `pct_above_llc` is the imbalance_pct of domains above the cache.
    pub(crate) fn new(topology: &Topology, pairs: bool, pct_above_llc: u64) -> Domains {
        let of_cpu = CpuVec::filled(Vec::new(), topology.n_cpus());
        let mut domains = Domains { all: Vec::new(), of_cpu, group_of: Vec::new() };
        let place = |cpu: CpuId| &topology.cpus()[cpu.index()];
        domains.add_level(topology, Level::Smt, |c| place(c).core, |c| c.0);
        domains.add_level(topology, Level::Cluster, |c| place(c).cluster, |c| place(c).core);
        domains.add_level(topology, Level::Llc, |c| place(c).llc, |c| place(c).cluster);
        let pair = pairs_of_llcs(topology, if pairs { 2 } else { 1 });
        let pair = |c: CpuId| pair[place(c).llc as usize];
        domains.add_level(topology, Level::Package, pair, |c| place(c).llc);
        domains.add_level(topology, Level::Package, |c| place(c).node, pair);
        domains.add_level(topology, Level::Numa, |c| place(c).socket, |c| place(c).node);
        domains.add_level(topology, Level::Numa, |_| 0, |c| place(c).socket);
        for domain in domains.all.iter_mut().filter(|domain| domain.level > Level::Llc) {
            domain.imbalance_pct = pct_above_llc;
        }
        domains.allow_numa_imbalance(topology);
        domains
    }

    /// build_sched_domains() since v6.0 (026b98a93bbd): an eighth of a node that has one cache,
    /// else one task per cache in the domain above the cache; above the lowest NUMA level, in
    /// proportion.
    fn allow_numa_imbalance(&mut self, topology: &Topology) {
        for members in self.of_cpu.iter() {
            let numa = members.iter().map(|m| m.domain as usize);
            let numa: Vec<usize> = numa.filter(|&d| self.all[d].level == Level::Numa).collect();
            let Some(&lowest) = numa.first() else { continue };
            let (cpu, span) = (self.all[lowest].span[0], self.all[lowest].span.len());
            let llc = topology.llc_cpus(topology.cpus()[usize::from(cpu)].llc).len();
            let mut all = members.iter().map(|m| &self.all[m.domain as usize]);
            let imb = match all.find(|d| d.level == Level::Package) {
                Some(above) => above.span.len() / llc,
                None => (llc / 8).max(1),
            };
            for d in numa {
                self.all[d].imb_numa_nr = (imb * (self.all[d].span.len() / span)) as u64;
            }
        }
    }

    /// One domain per value of `span`, one group per value of `group` in it.
    fn add_level(
        &mut self,
        topology: &Topology,
        level: Level,
        span: impl Fn(CpuId) -> u32,
        group: impl Fn(CpuId) -> u32,
    ) {
        let layer = self.group_of.len();
        let mut group_of = CpuVec::filled(0, topology.n_cpus());
        let mut members: BTreeMap<u32, BTreeMap<u32, Vec<u16>>> = BTreeMap::new();
        for cpu in (0..topology.n_cpus()).map(CpuId::at) {
            let groups = members.entry(span(cpu)).or_default();
            groups.entry(group(cpu)).or_default().push(cpu.0 as u16);
        }
        for groups in members.into_values() {
            if groups.len() < 2 {
                continue;
            }
            let mut groups: Vec<Vec<u16>> = groups.into_values().collect();
            groups.sort_by_key(|g| g[0]);
            let mut all: Vec<u16> = groups.iter().flatten().copied().collect();
            all.sort_unstable();
            let child = self.of_cpu[CpuId::from(all[0])].last().map(|m| m.domain as usize);
            let domain = self.all.len() as u32;
            for (number, group) in groups.iter().enumerate() {
                for &cpu in group {
                    self.of_cpu[CpuId::from(cpu)].push(Membership { domain, group: number as u32 });
                    group_of[CpuId::from(cpu)] = number as u16;
                }
            }
            let mut words: BTreeMap<usize, u64> = BTreeMap::new();
            for cpu in all.iter().map(|&cpu| usize::from(cpu)) {
                *words.entry(cpu / 64).or_default() |= 1 << (cpu % 64);
            }
            self.all.push(Domain {
                level,
                layer,
                words: words.into_iter().collect(),
                span: all,
                groups,
                imbalance_pct: if level == Level::Smt { 110 } else { 117 },
                cache_nice_tries: match level {
                    Level::Smt => 0,
                    Level::Cluster | Level::Llc | Level::Package => 1,
                    Level::Numa => 2,
                },
                of_smt_cores: child.is_some_and(|c| self.all[c].level == Level::Smt),
                prefer_sibling: child.is_some_and(|c| self.all[c].level != Level::Numa),
                imb_numa_nr: 0,
            });
        }
        if self.all.last().is_some_and(|domain| domain.layer == layer) {
            self.group_of.push(group_of);
        }
    }
}

/// For each last-level cache its pair: `size` caches of one node with consecutive numbers.
fn pairs_of_llcs(topology: &Topology, size: usize) -> Vec<u32> {
    let node = |llc: u32| topology.cpus()[topology.llc_cpus(llc)[0] as usize].node;
    let mut pairs = vec![0; topology.n_llcs()];
    for n in 0..topology.n_nodes() as u32 {
        let llcs: Vec<u32> = (0..pairs.len() as u32).filter(|&llc| node(llc) == n).collect();
        for pair in llcs.chunks(size) {
            pair.iter().for_each(|&llc| pairs[llc as usize] = pair[0]);
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The domains of CPU 0.
    fn of_cpu_0(machine: &str, pairs: bool, pct_above_llc: u64) -> Vec<Domain> {
        let topology = reveille_machine::load(machine).unwrap().topology;
        let domains = Domains::new(&topology, pairs, pct_above_llc);
        let members = domains.of_cpu[CpuId(0)].iter();
        members.map(|m| domains.all[m.domain as usize].clone()).collect()
    }

    #[test]
    fn two_sockets_have_three_levels() {
        let topology = Topology::uniform(2, 1, 4, 2).unwrap();
        let domains = Domains::new(&topology, false, 117);
        let levels: Vec<Level> =
            domains.of_cpu[CpuId(0)].iter().map(|m| domains.all[m.domain as usize].level).collect();
        assert_eq!(levels, [Level::Smt, Level::Llc, Level::Numa]);
        let llc = &domains.all[domains.of_cpu[CpuId(0)][1].domain as usize];
        assert_eq!((llc.span.len(), llc.groups.len()), (8, 4));
    }

    /// Level, weight and groups of each domain of CPU 0, and imb_numa_nr.
    fn domains_of(machine: &str) -> Vec<(Level, usize, usize, u64)> {
        let all = of_cpu_0(machine, false, 117);
        all.iter().map(|d| (d.level, d.span.len(), d.groups.len(), d.imb_numa_nr)).collect()
    }

    /// The values that K Prateek Nayak worked out on the mail of e496132ebedd (LKML,
    /// 2022-02): 8 for NPS1, 4 and 8 for NPS2, 2 and 4 for NPS4.
    #[test]
    fn memory_nodes_within_a_socket_are_a_level_of_their_own() {
        use Level::*;
        let below = [(Smt, 2, 2, 0), (Llc, 16, 8, 0)];
        let of = |numa: &[_]| [&below[..], numa].concat();
        assert_eq!(domains_of("milan-2s64c"), of(&[(Package, 128, 8, 0), (Numa, 256, 2, 8)]));
        let two = [(Package, 64, 4, 0), (Numa, 128, 2, 4), (Numa, 256, 2, 8)];
        assert_eq!(domains_of("milan-2s64c-nps2"), of(&two));
        let four = [(Package, 32, 2, 0), (Numa, 128, 4, 2), (Numa, 256, 2, 4)];
        assert_eq!(domains_of("milan-2s64c-nps4"), of(&four));
        let snc = [(Smt, 2, 2, 0), (Llc, 24, 12, 0), (Numa, 48, 2, 3), (Numa, 96, 2, 6)];
        assert_eq!(domains_of("clx-8260-snc"), snc);
        let paired = of_cpu_0("milan-2s64c", true, 117);
        let spans: Vec<usize> = paired.iter().map(|d| d.span.len()).collect();
        assert_eq!(spans, [2, 16, 32, 128, 256]);
        assert_eq!(domains_of("kp920-1n32c"), [(Cluster, 4, 4, 0), (Llc, 32, 8, 0)]);
    }

    #[test]
    fn a_level_spreads_if_one_below_it_shares_something() {
        let of = |machine: &str| {
            let all = of_cpu_0(machine, false, 117);
            all.iter().map(|d| d.prefer_sibling).collect::<Vec<_>>()
        };
        assert_eq!(of("milan-2s64c-nps2"), [false, true, true, true, false]);
        assert_eq!(of("quad-1s4c"), [false]);
    }

    #[test]
    fn domains_above_the_cache_tolerate_what_the_kernel_says() {
        let of = |pct| {
            let all = of_cpu_0("milan-2s64c", false, pct);
            all.iter().map(|d| d.imbalance_pct).collect::<Vec<_>>()
        };
        assert_eq!(of(117), [110, 117, 117, 117]);
        assert_eq!(of(125), [110, 117, 125, 125]);
    }

    #[test]
    fn levels_without_a_choice_are_left_out() {
        let topology = Topology::uniform(1, 1, 4, 1).unwrap();
        let domains = Domains::new(&topology, false, 117);
        assert_eq!(domains.of_cpu[CpuId(3)].len(), 1);
        assert_eq!(domains.all[0].level, Level::Llc);
    }
}

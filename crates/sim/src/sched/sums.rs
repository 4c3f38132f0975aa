//! Cached statistics of groups of CPUs: sums, which CPUs have changed since, and which queues have
//! two tasks. A pass over a cache of 56 cores so sums only the few that have changed.

use reveille_policy::CpuId;

use crate::ids::{At, IdVec};
use crate::sched::domains::{Domain, Domains};
use crate::sched::imbalance::{Group, Ranked, ranked};

/// Larger groups are summed at every pass: some of their CPUs have changed anyway.
const NARROW: usize = 8;

/// What is known of the groups of one domain.
#[derive(Clone, Debug, Default)]
pub(crate) struct DomainSums {
    /// Sums of large groups; those of small ones are made when needed.
    pub(crate) groups: Vec<Group>,
    /// [`Group::rank`] of each.
    pub(crate) ranks: Vec<Ranked>,
}

/// A set of CPUs, in words of 64.
#[derive(Clone)]
pub(crate) struct CpuSet(IdVec<At, u64>);

impl CpuSet {
    pub(crate) fn all(n_cpus: usize) -> CpuSet {
        let mut set = CpuSet(IdVec::filled(0, n_cpus.div_ceil(64)));
        (0..n_cpus).map(CpuId::at).for_each(|cpu| set.insert(cpu));
        set
    }

    #[inline]
    pub(crate) fn contains(&self, cpu: CpuId) -> bool {
        self.0[At(cpu.index() / 64)] >> (cpu.index() % 64) & 1 != 0
    }

    #[inline]
    pub(crate) fn insert(&mut self, cpu: CpuId) {
        self.0[At(cpu.index() / 64)] |= 1 << (cpu.index() % 64);
    }

    #[inline]
    pub(crate) fn remove(&mut self, cpu: CpuId) {
        self.0[At(cpu.index() / 64)] &= !(1 << (cpu.index() % 64));
    }

    pub(crate) fn first(&self) -> Option<CpuId> {
        let word = self.0.iter().position(|&word| word != 0)?;
        Some(CpuId::at(word * 64 + self.0[At(word)].trailing_zeros() as usize))
    }
}

/// Sums of all domains.
#[derive(Clone)]
pub(crate) struct Sums {
    of_domain: Vec<DomainSums>,
    /// CPUs with at least two tasks.
    pub(crate) crowded: CpuSet,
    /// CPUs that have changed since the last refresh of any domain.
    changed: CpuSet,
    /// By layer of domains: CPUs whose change that layer's domains have not seen yet.
    stale: Vec<CpuSet>,
}

impl Sums {
    pub(crate) fn new(domains: &Domains) -> Sums {
        let all = CpuSet::all(domains.of_cpu.len());
        let of_domain = domains.all.iter().map(|domain| DomainSums {
            groups: Vec::new(),
            ranks: vec![Ranked::default(); domain.groups.len()],
        });
        Sums {
            of_domain: of_domain.collect(),
            crowded: CpuSet(IdVec::filled(0, domains.of_cpu.len().div_ceil(64))),
            stale: vec![all.clone(); domains.group_of.len()],
            changed: all,
        }
    }

    /// Marks a CPU as changed.
    #[inline]
    pub(crate) fn note(&mut self, cpu: CpuId) {
        self.changed.insert(cpu);
    }

    /// Does some CPU of the domain have two tasks?
    #[inline]
    pub(crate) fn some_crowded(&self, domain: &Domain) -> bool {
        domain.words.iter().any(|&(word, mask)| self.crowded.0[At(word)] & mask != 0)
    }

    #[inline]
    pub(crate) fn of(&mut self, domain: usize) -> &mut DomainSums {
        &mut self.of_domain[domain]
    }

    /// Refreshes what is known of the changed groups of a domain, by `sum`.
    pub(crate) fn refresh(
        &mut self,
        domains: &Domains,
        number: usize,
        sum: impl Fn(&Domain, usize) -> Group,
    ) {
        let domain = &domains.all[number];
        let sums = &mut self.of_domain[number];
        if domain.span.len() > NARROW * domain.groups.len() {
            sums.groups.clear();
            sums.groups.extend((0..domain.groups.len()).map(|g| sum(domain, g)));
            sums.ranks.clear();
            sums.ranks.extend(ranked(&sums.groups));
            return;
        }
        for &(word, mask) in &domain.words {
            let changed = self.changed.0[At(word)] & mask;
            if changed != 0 {
                self.changed.0[At(word)] ^= changed;
                self.stale.iter_mut().for_each(|layer| layer.0[At(word)] |= changed);
            }
        }
        let (stale, group_of) = (&mut self.stale[domain.layer], &domains.group_of[domain.layer]);
        for &(word, mask) in &domain.words {
            loop {
                let bits = stale.0[At(word)] & mask;
                if bits == 0 {
                    break;
                }
                let cpu = CpuId::at(word * 64 + bits.trailing_zeros() as usize);
                let g = usize::from(group_of[cpu]);
                domain.groups[g].iter().for_each(|&c| stale.remove(CpuId::from(c)));
                sums.ranks[g] = Ranked::new(sum(domain, g).rank(), g);
            }
        }
        #[cfg(debug_assertions)]
        for (g, kept) in sums.ranks.iter().enumerate() {
            assert_eq!(
                *kept,
                Ranked::new(sum(domain, g).rank(), g),
                "group {g} of domain {number} has changed"
            );
        }
    }
}

//! The imbalance between two groups of a domain, and the busiest group. Works on sums alone;
//! balance_pass.rs reads and migrates.

use reveille_measure::Ns;

use crate::sched::domains::{Domain, Level};

/// Lower bound of rq->max_idle_balance_cost: sysctl_sched_migration_cost.
pub(crate) const MIGRATION_COST_NS: Ns = 500_000;

/// Occasion of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The tick of a busy CPU.
    Busy,
    /// The tick of an idle CPU, or on its behalf.
    Idle,
    /// A CPU is about to go idle.
    NewIdle,
}

/// Outcome of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    /// Another CPU of the group balances this domain.
    Elsewhere,
    /// There was no imbalance.
    Balanced,
    /// There was an imbalance, but no task could be moved.
    Failed,
    /// Tasks were pulled.
    Moved,
    /// None could be pulled; the other CPU has pushed one.
    Pushed,
}

/// How loaded a group is, in ascending order of preference to pull from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum GroupType {
    HasSpare,
    FullyBusy,
    /// A core with two tasks, to an idle CPU (group_smt_balance).
    TwoTasks,
    /// It has tasks that prefer the cache of the CPU that balances (SCHED_CACHE).
    Gathering,
    Overloaded,
}

/// Sums over one group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Group {
    pub(crate) kind: GroupType,
    pub(crate) load: u64,
    pub(crate) util: u64,
    pub(crate) nr: u64,
    pub(crate) idle: u64,
    pub(crate) weight: u64,
    pub(crate) capacity: u64,
    /// Tasks that prefer the cache of the CPU that balances.
    pub(crate) preferring: u64,
}

impl Group {
    /// A group of `weight` CPUs, with zero sums.
    #[inline]
    pub(crate) fn of(weight: usize) -> Group {
        Group {
            kind: GroupType::HasSpare,
            load: 0,
            util: 0,
            nr: 0,
            idle: 0,
            weight: weight as u64,
            capacity: weight as u64 * 1024,
            preferring: 0,
        }
    }

    /// Rank by which find_busiest_group() chooses; 0 means none. The highest type wins; among
    /// overloaded groups the most loaded, among those with spare capacity the one with the fewest idle
    /// CPUs and then the most tasks; of cores with two tasks first those without an idle CPU.
    #[inline]
    pub(crate) fn rank(&self) -> u64 {
        let type_bits = (self.kind as u64) << 44;
        let spare = ((u64::from(u16::MAX) - self.idle) << 28) | self.nr;
        match self.kind {
            _ if self.nr == 0 => 0,
            GroupType::Overloaded => type_bits | self.avg_load().min((1 << 44) - 1),
            GroupType::FullyBusy => type_bits,
            GroupType::TwoTasks if self.idle == 0 => type_bits | u64::from(u16::MAX) << 28,
            GroupType::TwoTasks => type_bits | spare,
            GroupType::Gathering => type_bits | self.preferring,
            GroupType::HasSpare => type_bits | spare,
        }
    }

    #[inline]
    fn avg_load(&self) -> u64 {
        self.load * 1024 / self.capacity.max(1)
    }
}

/// The quantity to move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Imbalance {
    Tasks(u64),
    /// Tasks that prefer the cache of the CPU that balances.
    Preferring(u64),
    Load(u64),
    Util(u64),
}

impl Imbalance {
    pub(crate) fn is_none(&self) -> bool {
        match *self {
            Imbalance::Tasks(n)
            | Imbalance::Preferring(n)
            | Imbalance::Util(n)
            | Imbalance::Load(n) => n == 0,
        }
    }
}

/// A group's rank and its number in one: of equal ranks the first group has the highest. Kept as the
/// bits of a positive number, which are in its order: x86 compares two such numbers at once.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Ranked(f64);

impl Ranked {
    /// `rank` is [`Group::rank`] of group `g`.
    #[inline]
    pub(crate) fn new(rank: u64, g: usize) -> Ranked {
        debug_assert!(rank < 1 << 47 && g <= usize::from(u16::MAX));
        Ranked(f64::from_bits((rank << 16) | u64::from(u16::MAX - g as u16)))
    }
}

/// The ranks of all groups of a domain.
pub(crate) fn ranked(groups: &[Group]) -> impl Iterator<Item = Ranked> {
    groups.iter().enumerate().map(|(g, group)| Ranked::new(group.rank(), g))
}

/// update_sd_lb_stats(): the first of the highest rank in the ring of groups that begins behind `local`.
#[inline]
pub(crate) fn busiest(ranks: &[Ranked], local: usize) -> Option<usize> {
    let [before, behind] = [&ranks[..local], &ranks[local + 1..]].map(highest);
    let busiest = if before >> 16 > behind >> 16 { before } else { behind };
    (busiest >> 16 != 0).then_some(usize::from(u16::MAX - busiest as u16))
}

/// The highest rank of some groups, and the first group that has it, as in [`Ranked`].
#[inline]
fn highest(ranks: &[Ranked]) -> u64 {
    let higher = |most: f64, rank: f64| if rank > most { rank } else { most };
    let (eights, rest) = ranks.as_chunks::<8>();
    let mut most = [0.0; 8];
    for eight in eights {
        for (most, rank) in most.iter_mut().zip(eight) {
            *most = higher(*most, rank.0);
        }
    }
    most.into_iter().chain(rest.iter().map(|rank| rank.0)).fold(0.0, higher).to_bits()
}

/// calculate_imbalance(), after the checks that leave everything in place. `sum` sums a group. `may_spread`
/// says whether tasks are spread over groups that are not full.
pub(crate) fn imbalance(
    domain: &Domain,
    sum: impl Fn(usize) -> Group,
    (local, busiest): (&Group, &Group),
    dst_idle: bool,
    may_spread: bool,
) -> Option<Imbalance> {
    // The kernel sums no load of a group that is only busy.
    if local.kind > busiest.kind
        || local.kind == GroupType::FullyBusy && busiest.kind == GroupType::FullyBusy
    {
        return None;
    }
    if local.kind == GroupType::Overloaded
        && (local.avg_load() >= busiest.avg_load()
            || local.avg_load() >= avg_load(domain, &sum)
            || 100 * busiest.avg_load() <= domain.imbalance_pct * local.avg_load())
    {
        return None;
    }
    let gathers = busiest.kind == GroupType::Gathering;
    let spread = domain.prefer_sibling
        && may_spread
        && local.kind == GroupType::HasSpare
        && (gathers || busiest.nr > local.nr + 1);
    if !spread && busiest.kind != GroupType::Overloaded {
        let enough_idle = local.weight > 1 && local.idle <= busiest.idle + 1;
        if !dst_idle || enough_idle || busiest.nr == 1 {
            return None;
        }
    }
    match busiest.kind {
        GroupType::Gathering => return Some(Imbalance::Preferring(1)),
        GroupType::TwoTasks => return Some(Imbalance::Tasks(1)),
        _ => {}
    }
    let amount = amount(domain, sum, local, busiest, dst_idle);
    (!amount.is_none()).then_some(amount)
}

/// Load per capacity of the whole domain.
fn avg_load(domain: &Domain, sum: impl Fn(usize) -> Group) -> u64 {
    let load: u64 = (0..domain.groups.len()).map(|g| sum(g).load).sum();
    load / domain.span.len() as u64
}

fn amount(
    domain: &Domain,
    sum: impl Fn(usize) -> Group,
    local: &Group,
    busiest: &Group,
    dst_idle: bool,
) -> Imbalance {
    if local.kind == GroupType::HasSpare {
        let above_llc = matches!(domain.level, Level::Package | Level::Numa);
        if busiest.kind > GroupType::FullyBusy && above_llc {
            let room = local.capacity.max(local.util) - local.util;
            return if room == 0 && dst_idle { Imbalance::Tasks(1) } else { Imbalance::Util(room) };
        }
        let difference = if local.weight == 1 || domain.prefer_sibling {
            busiest.nr.saturating_sub(local.nr)
        } else {
            local.idle.saturating_sub(busiest.idle)
        };
        let left = domain.leaves_imbalance(difference, local.nr);
        return Imbalance::Tasks(if left { 0 } else { difference / 2 });
    }
    let avg_load = avg_load(domain, sum);
    let above = busiest.avg_load().saturating_sub(avg_load) * busiest.capacity;
    let below = avg_load.saturating_sub(local.avg_load()) * local.capacity;
    Imbalance::Load(above.min(below) / 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn core(kind: GroupType, nr: u64, idle: u64) -> Group {
        Group { kind, nr, idle, ..Group::of(2) }
    }

    /// update_sd_pick_busiest(): by type; of cores with two tasks the first without an idle CPU, whatever it has;
    /// else the most tasks.
    #[test]
    fn an_idle_cpu_seeks_cores_with_two_tasks() {
        use GroupType::*;
        let of = |groups: &[(GroupType, u64, u64)]| {
            let local = std::iter::once(Ranked::new(core(HasSpare, 0, 2).rank(), 0));
            let others = groups
                .iter()
                .enumerate()
                .map(|(g, &(kind, nr, idle))| Ranked::new(core(kind, nr, idle).rank(), g + 1));
            busiest(&local.chain(others).collect::<Vec<_>>(), 0)
        };
        assert_eq!(of(&[(FullyBusy, 2, 0), (TwoTasks, 2, 1), (HasSpare, 1, 1)]), Some(2));
        assert_eq!(of(&[(TwoTasks, 4, 1), (TwoTasks, 2, 0), (TwoTasks, 5, 0)]), Some(2));
        assert_eq!(of(&[(TwoTasks, 2, 1), (TwoTasks, 3, 1)]), Some(2));
        assert_eq!(of(&[(TwoTasks, 5, 0), (Overloaded, 3, 0)]), Some(2));
    }

    /// Seven tasks on a core and none on another: one comes over at a time, and only to an idle CPU.
    #[test]
    fn one_task_comes_from_a_core_with_two() {
        let topology = reveille_machine::Topology::uniform(1, 1, 4, 2).unwrap();
        let domains = crate::sched::domains::Domains::new(&topology, false, 117);
        let llc =
            domains.all.iter().find(|domain| domain.of_smt_cores).expect("cores of two threads");
        let local = core(GroupType::HasSpare, 0, 2);
        let from = |kind, idle: bool, may_spread| {
            let busiest = core(kind, 7, 0);
            imbalance(llc, |_| local, (&local, &busiest), idle, may_spread)
        };
        assert_eq!(from(GroupType::TwoTasks, true, true), Some(Imbalance::Tasks(1)));
        assert_eq!(from(GroupType::FullyBusy, true, true), Some(Imbalance::Tasks(3)));
        assert_eq!(from(GroupType::FullyBusy, false, true), Some(Imbalance::Tasks(3)));
        assert_eq!(from(GroupType::FullyBusy, false, false), None);
    }

    proptest::proptest! {
        #[test]
        fn the_first_of_the_busiest_behind_the_own_group(
            ranks in proptest::collection::vec(0u64..3, 1..40),
            local in proptest::prelude::any::<proptest::sample::Index>(),
        ) {
            let (n, local) = (ranks.len(), local.index(ranks.len()));
            let mut first = None;
            for g in (1..n).map(|step| (local + step) % n) {
                if ranks[g] > first.map_or(0, |first: usize| ranks[first]) {
                    first = Some(g);
                }
            }
            let ranked: Vec<_> = ranks.iter().zip(0..).map(|(&r, g)| Ranked::new(r, g)).collect();
            assert_eq!(busiest(&ranked, local), first);
        }
    }
}

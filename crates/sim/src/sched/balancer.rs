//! State of load balancing: domains, and when each CPU last balanced its own.

use crate::ids::CpuVec;
use std::rc::Rc;

use reveille_machine::Machine;
use reveille_measure::Ns;
use reveille_policy::bits;

use crate::rules::Rules;
use crate::sched::domains::{Domains, Membership};
use crate::sched::odds::Odds;
use crate::sched::sums::{CpuSet, Sums};

/// Balancing state of one CPU in one of its domains.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DomainState {
    /// Time of the last pass; negative before the start of the run.
    pub(crate) last_ns: i64,
    pub(crate) interval_ns: Ns,
    pub(crate) max_newidle_cost: Ns,
    pub(crate) decayed_ns: Ns,
    pub(crate) odds: Odds,
    pub(crate) failed: u32,
}

/// Balancing state of a machine.
#[derive(Clone)]
pub(crate) struct Balancer {
    pub(crate) domains: Rc<Domains>,
    /// Per CPU, one per domain from the smallest.
    pub(crate) state: CpuVec<Vec<DomainState>>,
    /// Some CPU has two runnable tasks (root_domain.overload).
    pub(crate) overload: bool,
    /// Averages of every CPU as last published, contiguous for the statistics.
    pub(crate) published: CpuVec<Published>,
    pub(crate) sums: Sums,
    /// Tickless idle CPUs.
    pub(crate) sleepers: CpuSet,
    pub(crate) nohz_next_ns: Ns,
    /// Before this time every domain is balanced at every tick.
    pub(crate) settled_ns: Ns,
}

/// The averages of a CPU that statistics read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Published {
    /// cpu_load(), in whole numbers.
    pub(crate) load: u32,
    pub(crate) runnable: f32,
    /// max(util_avg, util_est), 0 to 1024.
    pub(crate) util: u32,
}

impl Balancer {
    pub(crate) fn new(machine: &Machine, rules: &Rules) -> Balancer {
        let pairs = rules.has(bits::SIS_NODE_TOPOEXT);
        let domains = Domains::new(&machine.topology, pairs, rules.imbalance_pct_above_llc);
        let cost = &machine.cost;
        let [base, per_cpu] = [cost.balance_base_ns, cost.balance_cpu_ns].map(Ns::from);
        // The first domain pays for update_blocked_averages().
        let counted = !rules.newidle_before_v5_16;
        let blocked = |l| if l == 0 && counted { Ns::from(cost.blocked_worst_ns) } else { 0 };
        let state_of = |level: usize, m: &Membership| {
            let domain = &domains.all[m.domain as usize];
            DomainState {
                last_ns: 0,
                interval_ns: domain.min_interval_ns(),
                // Measured before the run, and decaying by 1% a second.
                max_newidle_cost: blocked(level) + base + domain.span.len() as Ns * per_cpu,
                decayed_ns: 0,
                odds: Odds::new(&rules.tunables),
                failed: 0,
            }
        };
        let state = domains
            .of_cpu
            .iter()
            .map(|members| members.iter().enumerate().map(|(l, m)| state_of(l, m)).collect())
            .collect();
        Balancer {
            sums: Sums::new(&domains),
            sleepers: CpuSet::all(machine.topology.n_cpus()),
            domains: Rc::new(domains),
            state,
            overload: false,
            published: CpuVec::filled(Published::default(), machine.topology.n_cpus()),
            nohz_next_ns: 0,
            settled_ns: 0,
        }
    }
}

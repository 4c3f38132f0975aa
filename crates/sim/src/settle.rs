//! When a run is warm: once both halves of what is measured agree.

use reveille_measure::{Ns, RunResult};

use crate::hw::cpu::Step;
use crate::sim::Sim;

/// Counts of both halves may differ by this share, and by what chance does to counts.
const SHARE: f64 = 0.02;
/// How idle a cache is may differ by this share of its CPUs' time.
const IDLE_SHARE: f64 = 0.05;
/// Random deviation allowed, in standard deviations of counts of independent events.
const DEVIATIONS: f64 = 3.0;

/// A run and whether it was warm.
pub struct Settled {
    /// What was measured.
    pub result: RunResult,
    /// Virtual time before it.
    pub warmup_ns: Ns,
    /// Both halves agree.
    pub settled: bool,
}

/// What has happened since measuring began.
#[derive(Clone)]
pub(crate) struct Pace {
    at: Ns,
    operations: u64,
    activations: u64,
    /// Stacked wakeups, and migrations by wakeups and by balancing: all are parts of the
    /// activations.
    events: [u64; 3],
    /// Idle time of each last-level cache, and its CPUs.
    idle: Vec<(u64, usize)>,
}

impl Sim<'_> {
    pub(crate) fn pace(&mut self) -> Pace {
        for cpu in self.cpus.iter_mut().filter(|cpu| cpu.step == Step::Idle) {
            cpu.account_idle(self.now);
        }
        let counters = &self.measured.counters;
        let idle_of = |llc: usize| {
            let cpus = self.world.llc_cpus(llc);
            let idle = cpus.iter().map(|&cpu| self.cpus[cpu.into()].time.idle_ns).sum();
            (idle, cpus.len())
        };
        Pace {
            at: self.now,
            operations: self.measured.operations,
            activations: counters.activations,
            events: [
                counters.stacked_wakeups,
                counters.wakeup_migrations,
                counters.balance_migrations,
            ],
            idle: (0..self.world.n_llcs()).map(idle_of).collect(),
        }
    }
}

impl Pace {
    pub(crate) fn since(&self, before: &Pace) -> Pace {
        Pace {
            at: self.at - before.at,
            operations: self.operations - before.operations,
            activations: self.activations - before.activations,
            events: std::array::from_fn(|i| self.events[i] - before.events[i]),
            idle: self.idle.iter().zip(&before.idle).map(|(a, b)| (a.0.saturating_sub(b.0), a.1)).collect(),
        }
    }

    pub(crate) fn agrees_with(&self, other: &Pace) -> bool {
        let near = |a: u64, b: u64, of: u64| {
            let chance = DEVIATIONS * ((a + b) as f64).sqrt();
            a.abs_diff(b) as f64 <= SHARE * of as f64 + chance
        };
        let idle_near = |(a, b): (&(u64, usize), &(u64, usize))| {
            a.0.abs_diff(b.0) as f64 <= IDLE_SHARE * self.at as f64 * a.1 as f64
        };
        near(self.operations, other.operations, self.operations)
            && (self.events.iter().zip(other.events))
                .all(|(&a, b)| near(a, b, self.activations))
            && self.idle.iter().zip(&other.idle).all(idle_near)
    }
}

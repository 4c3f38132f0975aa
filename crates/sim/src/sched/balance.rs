//! When to balance load: periodically at the tick, and by one idle CPU for all tickless idle ones (NOHZ).
//! newidle.rs has the balancing of a CPU that is about to go idle, balance_pass.rs the pass itself. Misfit
//! and asymmetric packing are not modelled.

use reveille_measure::Ns;
use reveille_policy::CpuId;

use crate::hw::cpu::Toll;
use crate::sched::domains::{Domain, Level};
use crate::sched::imbalance::{Kind, MIGRATION_COST_NS, Pass};
use crate::sim::Sim;

impl Sim<'_> {
    /// The machine has been running long before the run, so each CPU starts somewhere within its
    /// balancing interval. The run's own tasks have not been balanced, and sockets are balanced
    /// only every 100 to 250 ms. Balancing at every tick for three quarters of the warm-up spreads
    /// them without simulating seconds.
    pub(crate) fn spread_balance_phases(&mut self, warmup: Ns) {
        self.balancer.settled_ns = warmup / 4 * 3;
        for cpu in self.cpus.ids() {
            for level in 0..self.balancer.state[cpu].len() {
                let interval = self.balancer.state[cpu][level].interval_ns * self.rules.busy_factor;
                let phase = self.chance.below(interval);
                self.balancer.state[cpu][level].last_ns = -(phase as i64);
            }
        }
    }

    /// rebalance_domains() at a CPU's tick. Returns its duration.
    pub(crate) fn periodic_balance(&mut self, cpu: CpuId) -> Ns {
        let kind = if self.cpus[cpu].is_idle() { Kind::Idle } else { Kind::Busy };
        self.rebalance(cpu, kind)
    }

    fn rebalance(&mut self, cpu: CpuId, mut kind: Kind) -> Ns {
        let mut cost = 0;
        let (mut decays, mut elsewhere, mut newidle_cost) = (false, false, 0);
        for level in 0..self.balancer.state[cpu].len() {
            // need_decay: since v5.16 only the last domain visited counts.
            decays &= self.rules.newidle_before_v5_16;
            decays |= self.update_newidle_cost(cpu, level, 0);
            newidle_cost += self.balancer.state[cpu][level].max_newidle_cost;
            if elsewhere {
                if decays {
                    continue;
                }
                break;
            }
            let state = self.balancer.state[cpu][level];
            let interval = match kind {
                Kind::Busy => {
                    state.interval_ns * self.rules.busy_factor - self.rules.busy_earlier_ns
                }
                _ => state.interval_ns,
            };
            let interval = if self.now < self.balancer.settled_ns {
                self.rules.tick_ns
            } else {
                interval.clamp(self.rules.tick_ns, 100_000_000 * self.cpus.len() as u64)
            };
            if (self.now as i64) < state.last_ns + interval as i64 {
                continue;
            }
            let (pass, took) = self.balance_pass(cpu, level, kind);
            cost += took;
            // Another CPU of its group is balancing: the larger domains are left to it.
            elsewhere = pass == Pass::Elsewhere;
            self.balancer.state[cpu][level].last_ns = self.now as i64;
            if self.world.nr_running(cpu) > 0 {
                kind = Kind::Busy; // it has pulled a task
            }
        }
        if decays {
            self.cpus[cpu].max_idle_balance_cost = newidle_cost.max(MIGRATION_COST_NS);
        }
        cost
    }

    /// At a busy CPU's tick: asks the first tickless idle CPU to balance for all of them. Returns
    /// the duration of the request.
    pub(crate) fn kick_nohz_balance(&mut self, cpu: CpuId) -> Ns {
        if self.now < self.balancer.nohz_next_ns || !self.nohz_wanted(cpu) {
            return 0;
        }
        let Some(sleeper) = self.balancer.sleepers.first() else { return 0 };
        self.balancer.nohz_next_ns = self.now + self.rules.tick_ns;
        self.cpus[sleeper].nohz_next = 1;
        let toll: Toll = self.kick_idle(cpu, sleeper, 0);
        toll.stall + toll.cost
    }

    /// nohz_balancer_kick(): two tasks here, or another busy CPU in this LLC.
    fn nohz_wanted(&self, cpu: CpuId) -> bool {
        if self.world.nr_running(cpu) >= 2 {
            return true;
        }
        let llc = self.hw.near.llc(cpu);
        let busy = self
            .world
            .llc_cpus(llc)
            .iter()
            .filter(|&&c| !self.cpus[CpuId::from(c)].tick_stopped)
            .take(2)
            .count();
        busy > 1
    }

    /// _nohz_idle_balance() on `cpu`, which has no task: the passes of the next tickless CPU that any is
    /// due for, on top of `toll`. Like need_resched() there, a wakeup ends it between two CPUs. Does it
    /// go on?
    pub(crate) fn nohz_balance(&mut self, cpu: CpuId, toll: &mut Toll) -> bool {
        let n = self.cpus.len();
        let mut next = std::mem::take(&mut self.cpus[cpu].nohz_next);
        if next == 0 || self.world.nr_running(cpu) > 0 {
            return false;
        }
        if next == 1 {
            toll.cost += Ns::from(self.hw.cost.irq_ns);
        }
        while next as usize <= n {
            let idle = CpuId::at((cpu.index() + next as usize) % n);
            next += 1;
            let own = idle == cpu;
            if !own && !self.balancer.sleepers.contains(idle) {
                continue;
            }
            self.advance_cpu(idle);
            self.publish_load(idle);
            let cost = self.rebalance(idle, Kind::Idle);
            toll.cost += cost;
            if !own && !self.cpus[idle].rq.is_empty() {
                *toll += self.kick_idle(cpu, idle, cost);
            }
            if cost > 0 && !own {
                self.cpus[cpu].nohz_next = next;
                return true;
            }
        }
        false
    }

    /// After collecting a whole LLC's statistics: updates how far SIS_UTIL may search, from the
    /// utilisation.
    pub(crate) fn refresh_nr_idle_scan(&mut self, cpu: CpuId, util: u64) {
        let llc = self.hw.near.llc(cpu);
        let weight = self.world.llc_weight(llc);
        let n = reveille_policy::nr_idle_scan(util, weight, self.rules.tunables.imbalance_pct);
        self.world.set_nr_idle_scan(llc, n);
    }

    /// Is this domain the CPU's whole last-level cache?
    pub(crate) fn spans_llc(&self, cpu: CpuId, domain: &Domain) -> bool {
        domain.level <= Level::Llc
            && domain.span.len() == self.world.llc_weight(self.hw.near.llc(cpu)) as usize
    }
}

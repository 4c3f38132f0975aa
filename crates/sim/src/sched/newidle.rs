//! New-idle balancing: a CPU that is about to go idle looks for work, from its smallest domain on.

use reveille_measure::Ns;
use reveille_policy::{CpuId, bits};

use crate::hw::cpu::Toll;
use crate::sched::domains::{Level, Membership};
use crate::sched::imbalance::{Kind, MIGRATION_COST_NS, Pass};
use crate::sim::Sim;

/// max_newidle_lb_cost decays by 3/256 once a second.
const COST_DECAY_NS: Ns = 1_000_000_000;
/// NEWIDLE_BUMP does not raise a domain's cost beyond this.
const MOST_BUMPED_NS: Ns = MIGRATION_COST_NS + 200;

impl Sim<'_> {
    /// newidle_balance(): looks for work before the CPU goes idle, after the `toll` of the dequeue.
    /// Returns its duration; `None` if it did not look.
    pub(crate) fn new_idle_balance(&mut self, cpu: CpuId, toll: Toll) -> Option<Toll> {
        let levels = self.balancer.state[cpu].len();
        let lowest = self.balancer.state[cpu].first()?.max_newidle_cost;
        let avg_idle = self.world.scan_state(cpu).avg_idle_ns;
        let mut gate = match self.rules.has(bits::SWQUEUE_GATE_ABOVE_LLC) {
            true => self.newidle_cost_above_llc(cpu).unwrap_or(0),
            false => lowest,
        };
        if self.rules.has(bits::NEWIDLE_COST) {
            gate = gate.max(MIGRATION_COST_NS);
        }
        if !self.balancer.overload || avg_idle < gate {
            return None;
        }
        // update_blocked_averages() comes first, while the task that is leaving is still the
        // queue's current one: its dequeue, with all waits, counts as running.
        let c = &mut self.cpus[cpu];
        let left = self.now + toll.stall + c.stretch(toll.cost);
        c.advance(&self.rules.decay, left, true, 0, 0);
        // It may have to report a change of load: that wait is part of the first domain's cost.
        let stall = self.group_load_decayed(cpu, left);
        let mut work = Ns::from(self.hw.cost.blocked_ns);
        let mut cost = 0;
        let mut blocked = match self.rules.newidle_before_v5_16 {
            true => 0,
            false => stall + self.cpus[cpu].stretch(work),
        };
        for level in 0..levels {
            let state = self.balancer.state[cpu][level];
            if avg_idle < cost + state.max_newidle_cost {
                break;
            }
            let Some(weight) = self.draw_pass(cpu, level) else { continue };
            let (pass, took) = self.balance_pass(cpu, level, Kind::NewIdle);
            // The kernel measures by the clock: SMT contention and random variation count.
            let took = self.chance.varied(took);
            work += took;
            let took = self.cpus[cpu].stretch(took) + std::mem::take(&mut blocked);
            cost += took;
            let pulled = pass == Pass::Moved;
            self.note_cost(cpu, level, took, pulled);
            self.note_pass(cpu, level, weight * u32::from(pulled));
            if pulled || self.world.nr_running(cpu) > 0 || !self.cpus[cpu].wake_list.is_empty() {
                break;
            }
        }
        let c = &mut self.cpus[cpu];
        c.max_idle_balance_cost = c.max_idle_balance_cost.max(cost);
        if self.world.nr_running(cpu) > 0 {
            c.idle_stamp = 0;
        }
        Some(Toll { stall, cost: work })
    }

    /// shared_runq v3 starts with the domain above the cache, whose queue has been checked. Only
    /// the first test sees it: for_each_domain() starts over.
    fn newidle_cost_above_llc(&self, cpu: CpuId) -> Option<Ns> {
        let domains = &self.balancer.domains;
        let above = |m: &Membership| domains.all[m.domain as usize].level > Level::Llc;
        let level = domains.of_cpu[cpu].iter().position(above)?;
        Some(self.balancer.state[cpu][level].max_newidle_cost)
    }

    /// NI_RANDOM: the number of passes over this domain that one made now stands for; `None` to skip it.
    fn draw_pass(&mut self, cpu: CpuId, level: usize) -> Option<u32> {
        if !self.rules.has(bits::NI_RANDOM) {
            return Some(1);
        }
        let odds = self.balancer.state[cpu][level].odds;
        let weight = odds.weight(|limit| self.chance.below(Ns::from(limit)) as u32);
        if weight.is_none() {
            self.note_pass(cpu, level, 0);
        }
        weight
    }

    fn note_pass(&mut self, cpu: CpuId, level: usize, successes: u32) {
        if !self.rules.has(bits::NI_RANDOM) {
            return;
        }
        let odds = &mut self.balancer.state[cpu][level].odds;
        odds.note(successes, self.rules.pace, self.now, &self.rules.tunables);
    }

    /// A pass has taken so long; one that has pulled nothing counts for more under NEWIDLE_BUMP.
    fn note_cost(&mut self, cpu: CpuId, level: usize, took: Ns, pulled: bool) {
        let bumped = self.rules.has(bits::NEWIDLE_BUMP) && !pulled;
        let known = self.balancer.state[cpu][level].max_newidle_cost;
        self.update_newidle_cost(cpu, level, if bumped { 3 * known / 2 } else { took });
    }

    /// update_newidle_cost(): a pass over this domain has taken `cost`, or the periodic pass comes by
    /// (0). Returns whether the domain's cost has decayed.
    pub(crate) fn update_newidle_cost(&mut self, cpu: CpuId, level: usize, cost: Ns) -> bool {
        let bumps = self.rules.has(bits::NEWIDLE_BUMP);
        let only_raises = self.rules.newidle_before_v5_16;
        let state = &mut self.balancer.state[cpu][level];
        if cost > state.max_newidle_cost {
            state.max_newidle_cost = if bumps { cost.min(MOST_BUMPED_NS) } else { cost };
            if !only_raises {
                state.decayed_ns = self.now;
            }
            return false;
        }
        if self.now < state.decayed_ns + COST_DECAY_NS || only_raises && cost != 0 {
            return false;
        }
        state.max_newidle_cost = state.max_newidle_cost * 253 / 256;
        state.decayed_ns = self.now;
        true
    }
}

#[cfg(test)]
mod tests {
    use reveille_policy::Policy;

    use super::*;
    use crate::start::with_pairs_under;

    const CPU: CpuId = CpuId(3);

    /// A domain's cost after each of these passes, which are given by time and duration and pull nothing. It
    /// is 100 us before the first.
    fn costs(base: &str, edits: &str, passes: &[(Ns, Ns)]) -> Vec<Ns> {
        let mut policy = Policy::baseline(base).unwrap();
        if !edits.is_empty() {
            policy = policy.with(edits).unwrap();
        }
        with_pairs_under(&policy, 1, |sim| {
            sim.balancer.state[CPU][0].max_newidle_cost = 100_000;
            let after = |&(now, took): &(Ns, Ns)| {
                sim.now = now;
                sim.note_cost(CPU, 0, took, false);
                sim.balancer.state[CPU][0].max_newidle_cost
            };
            passes.iter().map(after).collect()
        })
    }

    #[test]
    fn a_cheaper_pass_lowers_the_cost_after_a_second() {
        const SECOND: Ns = 1_000_000_000;
        let passes =
            [(SECOND / 2, 150_000), (SECOND, 1_000), (2 * SECOND, 1_000), (2 * SECOND, 1_000)];
        assert_eq!(costs("v6.2", "", &passes), [150_000, 150_000, 148_242, 148_242]);
        assert_eq!(costs("v5.13", "", &passes), [150_000; 4]);
    }

    #[test]
    fn what_found_nothing_costs_half_as_much_again_up_to_half_a_millisecond() {
        let bumped = costs("v6.12", "+NEWIDLE_BUMP", &[(1, 1_000); 5]);
        assert_eq!(bumped, [150_000, 225_000, 337_500, 500_200, 500_200]);
    }
}

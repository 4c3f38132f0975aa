//! Cache-aware balancing (SCHED_CACHE, v7.2): the threads of a process gather in the cache where they run
//! most, while that has room. Acts in load balancing above the cache alone. gathering.rs has what it goes by.

use reveille_measure::Ns;
use reveille_policy::{CpuId, TaskId};

use crate::hw::cpu::Cpu;
use crate::ids::{CpuVec, Known};
use crate::sched::domains::{Domain, Level};
use crate::sched::gathering::{Gathering, Move, Room};
use crate::sched::imbalance::{Group, GroupType, Imbalance, Kind};
use crate::sim::Sim;

/// Tasks of `cpu` that prefer this cache.
fn preferring(
    cpus: &CpuVec<Cpu>,
    world: &Known,
    gathering: &Gathering,
    cpu: CpuId,
    llc: u32,
) -> u64 {
    if !gathering.any {
        return 0;
    }
    let tasks = world.curr(cpu).some().into_iter().chain(cpus[cpu].rq.waiting());
    tasks.filter(|&task| gathering.preferred[task] == Some(llc)).count() as u64
}

impl Sim<'_> {
    /// A task's time on the CPU counts for its process there.
    pub(crate) fn account_gathering(&mut self, cpu: CpuId, task: TaskId, ran: Ns) {
        let jiffies = self.jiffies();
        let process = self.tasks[task].spec.process;
        if let Some(gathering) = &mut self.gathering {
            gathering.account(cpu, task, process, ran, jiffies);
        }
    }

    /// A tick while a task runs: its process may be looked at, before the task goes on. Returns the work.
    pub(crate) fn tick_gathering(&mut self, cpu: CpuId) -> Ns {
        let jiffies = self.jiffies();
        let Some(gathering) = &mut self.gathering else { return 0 };
        let Some(curr) = self.world.curr(cpu).some() else { return 0 };
        let process = self.tasks[curr].spec.process;
        if !gathering.due(cpu, process, jiffies) {
            return 0;
        }
        let (world, tasks) = (&self.world, &self.tasks);
        let of_process = |task: TaskId| tasks[task].spec.process == process;
        let running = |cpu: CpuId| world.curr(cpu).some().is_some_and(of_process);
        gathering.look(process, cpu, jiffies, running);
        self.cpus.len() as u64 * Ns::from(self.hw.cost.balance_cpu_ns)
    }

    /// Do preferences count in this domain?
    pub(crate) fn gathers_in(&self, domain: &Domain) -> bool {
        self.gathering.is_some() && domain.level > Level::Llc
    }

    /// Notes how full the caches are that are the groups of a domain, and marks the groups that have tasks which
    /// prefer the cache of `dst` (record_sg_llc_stats(), llc_balance()). Begins with the own group, as the
    /// kernel does.
    pub(crate) fn mark_gathering(
        &mut self,
        dst: CpuId,
        level: usize,
        kind: Kind,
        (domain, local): (&Domain, usize),
        groups: &mut [Group],
    ) {
        let failed = self.balancer.state[dst][level].failed;
        let Some(gathering) = &mut self.gathering else { return };
        let own = gathering.llc_of[dst];
        let notes = kind != Kind::NewIdle && groups[local].weight == gathering.llc_weight(dst);
        let ring = (local..groups.len()).chain(0..local);
        for number in ring {
            let group = &mut groups[number];
            let first = CpuId::from(domain.groups[number][0]);
            let llc = gathering.llc_of[first];
            if number != local
                && group.kind != GroupType::Overloaded
                && gathering.any
                && failed <= domain.cache_nice_tries
                && gathering.may_move(llc, own, 0, true) == Move::Wanted
            {
                let cpus = domain.groups[number].iter().map(|&cpu| CpuId::from(cpu));
                let preferring =
                    cpus.map(|cpu| preferring(&self.cpus, &self.world, gathering, cpu, own));
                group.preferring = preferring.sum();
                if group.preferring > 0 {
                    group.kind = GroupType::Gathering;
                }
            }
            if notes {
                gathering.rooms[llc as usize] = Room { util: group.util, capacity: group.capacity };
            }
        }
    }

    /// Tasks of `cpu` that prefer the cache of `dst`.
    pub(crate) fn preferring(&self, cpu: CpuId, dst: CpuId) -> u64 {
        let Some(gathering) = &self.gathering else { return 0 };
        preferring(&self.cpus, &self.world, gathering, cpu, gathering.llc_of[dst])
    }

    /// migrate_degrades_llc(): does moving the task break its preference?
    pub(crate) fn degrades_gathering(
        &mut self,
        task: TaskId,
        (src, dst): (CpuId, CpuId),
        domain: &Domain,
        imbalance: Imbalance,
        failed: u32,
    ) -> bool {
        let Some(gathering) = &mut self.gathering else { return false };
        if failed > domain.cache_nice_tries {
            return false;
        }
        let prefers = gathering.preferred[task];
        if matches!(imbalance, Imbalance::Preferring(_)) && prefers != Some(gathering.llc_of[dst]) {
            return true;
        }
        let t = &self.tasks[task];
        let util = t.averages.util as u64;
        gathering.may_move_task(src, dst, t.spec.process, util) == Move::Forbidden
    }

    /// alb_break_llc(): would pushing what `src` runs to `dst` break its preference?
    pub(crate) fn push_breaks_gathering(&self, src: CpuId, dst: CpuId) -> bool {
        let Some(gathering) = &self.gathering else { return false };
        let (from, to) = (gathering.llc_of[src], gathering.llc_of[dst]);
        let nr = u64::from(self.h_nr_runnable(src));
        let at_home = preferring(&self.cpus, &self.world, gathering, src, from);
        if from == to || at_home == 0 || at_home != nr {
            return false;
        }
        let util = self.world.curr(src).some().map_or(0, |t| self.tasks[t].averages.util as u64);
        nr <= 1 || gathering.may_move(from, to, util, false) == Move::Forbidden
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use reveille_machine::Machine;
    use reveille_measure::RunSpec;
    use reveille_policy::Policy;

    use super::*;
    use crate::tasks::code::Code;
    use crate::together::Together;

    /// Two processes of three threads that run 0.3 ms and sleep about as long, on two caches of 4 CPUs: the
    /// share of time for which a process has all its threads in one cache.
    fn together(nodes: u32, process: &str, edits: &str) -> f64 {
        const MS: Ns = 1_000_000;
        let topology = reveille_machine::Topology::uniform(nodes, 2 / nodes, 4, 1).unwrap();
        let machine = Machine { topology, ..reveille_machine::load("icx-2s32c").unwrap() };
        let text = format!(
            "name = \"threads\"\nabout = \"threads\"\nload = \"processes\"\n\
             metric = [{{ name = \"throughput (1/s)\", throughput = true }}]\n\
             [[task]]\nname = \"s\"\ncount = 3\nprocess = \"{process}\"\n\
             program = [{{ run = \"300us\" }}, {{ sleep = \"200us\", jitter = \"200us\" }}, {{ count = 1 }}]\n"
        );
        let workload = reveille_workload::Workload::parse("threads.toml", &text).unwrap();
        let program = workload.build(2, &Default::default()).unwrap();
        let (code, spec) = (Code::new(&program), RunSpec { seed: 1, warmup_ns: 0, duration_ns: 1 });
        let policy = Policy::baseline("v7.2").unwrap();
        let policy = if edits.is_empty() { policy } else { policy.with(edits).unwrap() };
        let mut sim = Sim::new(&machine, &program, &code, &policy, None, &spec);
        sim.start(&spec);
        let (stop, mut nothing) = (AtomicBool::new(false), Together::default());
        let llc_of = |cpu: CpuId| machine.topology.cpus()[cpu.index()].llc;
        let mut gathered = 0;
        for ms in 1000..2000 {
            sim.advance_to(ms * MS, &stop, &mut nothing).unwrap();
            let llcs: Vec<u32> =
                (0..6).map(|task| llc_of(sim.world.task(TaskId(task)).prev_cpu)).collect();
            gathered += llcs.chunks(3).filter(|of| of.iter().all(|llc| *llc == of[0])).count();
        }
        gathered as f64 / 2000.0
    }

    /// In Linux 7.3.4 with two caches in one node such threads were together in all of 240 samples, and in 8 to
    /// 18% of them with llc_balancing off.
    #[test]
    fn threads_gather_in_one_of_a_nodes_caches() {
        let (with, without) =
            (together(1, "instance", ""), together(1, "instance", "-SCHED_CACHE"));
        assert!(with > 0.9 && without < 0.6, "{with} and {without} of the time");
        let apart = together(1, "own", "");
        assert_eq!(together(1, "own", "-SCHED_CACHE"), apart);
        let nodes = together(2, "instance", "");
        assert_eq!(together(2, "instance", "-SCHED_CACHE"), nodes);
    }
}

//! The slow path of fork, find_idlest_cpu(): from the whole machine down to a CPU, at
//! each level the group with the most idle CPUs, or without idle ones the least loaded;
//! the group of the forking CPU unless another is better. New tasks begin there.

use reveille_measure::Ns;
use reveille_policy::{CpuId, TaskId};

use crate::cpu::at;
use crate::engine::Sim;
use crate::task::Task;

/// What is compared of a group.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    cpus: usize,
    idle: usize,
    running: u32,
    load: f64,
}

impl Group {
    fn avg_load(&self) -> f64 {
        self.load / self.cpus as f64
    }
}

impl Sim<'_> {
    /// The current task exits; its successor begins where a child of it would be placed.
    pub(crate) fn respawn(&mut self, cpu: CpuId, task: TaskId) {
        self.block(cpu);
        self.detach(task, cpu);
        let old = &self.tasks[at(task)];
        let successor = Task {
            place: old.place,
            timer: old.timer,
            wait_jitter: old.wait_jitter,
            on_cpu_until: 0,
            ..Task::new(old.spec, self.code.begin(old.spec.role), cpu)
        };
        self.tasks[at(task)] = successor;
        let flip_decay_j = self.jiffies();
        let memory = self.world.task_mut(task);
        *memory = reveille_policy::Task::new(task, cpu);
        memory.wakee_flip_decay_j = flip_decay_j;
        self.fork(task, cpu, self.now + 1);
        self.replan_timers();
    }

    /// A task is forked on `cpu` at that time: placed then, and woken where it is placed.
    pub(crate) fn fork(&mut self, task: TaskId, cpu: CpuId, at_ns: Ns) {
        let t = &mut self.tasks[at(task)];
        t.period_at = at_ns;
        t.unborn = true;
        self.set_timer(cpu, task, at_ns);
    }

    /// sched_fork() and wake_up_new_task() up to the placement: what `cpu` forks begins on
    /// the CPU returned.
    pub(crate) fn place_forked(&mut self, task: TaskId, cpu: CpuId) -> CpuId {
        let dst = self.find_idlest_cpu(cpu);
        let memory = self.world.task_mut(task);
        (memory.prev_cpu, memory.recent_used_cpu) = (dst, dst);
        let t = &mut self.tasks[at(task)];
        (t.warm_cpu, t.waker_cpu) = (dst, dst);
        t.averages.at = self.now;
        t.unborn = false;
        self.advance_cpu(dst);
        self.new_task_averages(task, dst);
        dst
    }

    /// Where a child that is forked on `cpu` goes.
    fn find_idlest_cpu(&self, cpu: CpuId) -> CpuId {
        let topology = &self.machine.topology;
        let (all, place) = (topology.cpus(), &topology.cpus()[at(cpu)]);
        let sockets = 0..topology.n_sockets() as u32;
        let socket = self.idlest_group(place.socket, sockets, true, |s| topology.socket_cpus(s));
        let llcs = 0..topology.n_llcs() as u32;
        let llcs = llcs.filter(|&llc| all[at(topology.llc_cpus(llc)[0])].socket == socket);
        let llc = self.idlest_group(place.llc, llcs, false, |llc| topology.llc_cpus(llc));
        let core_of = |&cpu: &CpuId| all[at(cpu)].core;
        let firsts = topology.llc_cpus(llc).iter();
        let firsts = firsts.filter(|&cpu| topology.core_cpus(core_of(cpu))[0] == *cpu);
        let cores = firsts.map(core_of);
        let core = self.idlest_group(place.core, cores, false, |core| topology.core_cpus(core));
        self.idlest_thread(topology.core_cpus(core))
    }

    /// find_idlest_group() among `groups`; `local` is that of the forking CPU, which may be
    /// none of them.
    fn idlest_group<'a>(
        &self,
        local: u32,
        groups: impl Iterator<Item = u32>,
        numa: bool,
        members: impl Fn(u32) -> &'a [CpuId],
    ) -> u32 {
        let sum = |group: u32| {
            members(group).iter().fold(Group::default(), |mut sum, &cpu| {
                let nr = self.world.nr_running(cpu);
                sum.cpus += 1;
                sum.idle += usize::from(nr == 0);
                sum.running += nr;
                sum.load += f64::from(self.balancer.published[at(cpu)].load);
                sum
            })
        };
        let better = |a: &Group, b: &Group| match (a.idle, b.idle) {
            (0, 0) => a.avg_load() < b.avg_load(),
            (a, b) => a > b,
        };
        let mut best: Option<(u32, Group)> = None;
        let mut here = None;
        for group in groups {
            let sums = sum(group);
            if group == local {
                here = Some(sums);
                continue;
            }
            if best.as_ref().is_none_or(|(_, b)| better(&sums, b)) {
                best = Some((group, sums));
            }
        }
        let Some((other, there)) = best else { return local };
        let Some(here) = here else { return other };
        let stays = if here.idle > 0 || there.idle > 0 {
            // imb_numa_nr: a node may hold an eighth of its CPUs' number before it spreads.
            let allowed = (here.cpus as u32 / 8).max(1);
            here.idle >= there.idle || numa && here.running <= allowed
        } else {
            // A loaded local group is kept until another has that much less.
            let pct = f64::from(self.tunables.imbalance_pct);
            let margin = 1024.0 * (pct - 100.0) / 100.0;
            there.avg_load() + margin >= here.avg_load()
                || 100.0 * here.avg_load() <= pct * there.avg_load()
        };
        if stays { local } else { other }
    }

    /// find_idlest_group_cpu(): the idle thread that wakes fastest, of equals the one idle
    /// for the shortest time; without one the least loaded.
    fn idlest_thread(&self, threads: &[CpuId]) -> CpuId {
        *threads
            .iter()
            .min_by_key(|&&cpu| {
                let c = &self.cpus[at(cpu)];
                let idle = self.world.nr_running(cpu) == 0;
                let (state, since) =
                    if idle { (c.idle_state, Ns::MAX - c.idle_from) } else { (0, 0) };
                let load = if idle { 0 } else { self.balancer.published[at(cpu)].load as u64 };
                (!idle, state, since, load)
            })
            .expect("a core has threads")
    }
}

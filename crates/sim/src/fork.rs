//! The slow path of fork, find_idlest_cpu(): from the whole machine down to a CPU, at
//! each level the group with the most idle CPUs, or without idle ones the least loaded;
//! the group of the forking CPU unless another is better. New tasks begin there.

use reveille_measure::Ns;
use reveille_policy::{CpuId, TaskId};

use crate::cpu::at;
use crate::engine::Sim;
use crate::task::Task;

/// An overloaded local group is kept until another has this many percent less load:
/// imbalance_pct of the domains above a core.
const IMBALANCE_PCT: f64 = 117.0;

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
        self.load / self.cpus.max(1) as f64
    }
}

impl Sim<'_> {
    /// The current task exits; its successor begins where a child would be placed.
    pub(crate) fn respawn(&mut self, cpu: CpuId, task: TaskId) {
        let dst = self.find_idlest_cpu(cpu);
        self.block(cpu);
        self.detach(task, cpu);
        let old = &self.tasks[at(task)];
        let successor = Task {
            place: old.place,
            timer: old.timer,
            wait_jitter: old.wait_jitter,
            on_cpu_until: 0,
            ..Task::new(old.spec, self.code.begin(old.spec.role), dst)
        };
        self.tasks[at(task)] = successor;
        let flip_decay_j = self.jiffies();
        let memory = self.world.task_mut(task);
        *memory = reveille_policy::Task::new(task, dst);
        memory.wakee_flip_decay_j = flip_decay_j;
        self.tasks[at(task)].averages.at = self.now;
        self.advance_cpu(dst);
        self.new_task_averages(task, dst);
        self.begin_task(task, dst, self.now + 1);
        self.replan_timers();
    }

    /// Where a child that is forked on `cpu` goes.
    fn find_idlest_cpu(&self, cpu: CpuId) -> CpuId {
        let topology = &self.machine.topology;
        let place = &topology.cpus()[at(cpu)];
        let sockets = 1 + topology.cpus().iter().map(|p| p.socket).max().unwrap_or(0);
        let socket = self.idlest_group(place.socket, 0..sockets, true, |socket| {
            topology.cpus().iter().enumerate().filter(move |(_, p)| p.socket == socket)
        });
        let llcs = topology.n_llcs() as u32;
        let llc = self.idlest_group(place.llc, 0..llcs, false, |llc| {
            let all = topology.cpus().iter().enumerate();
            all.filter(move |(_, p)| p.llc == llc && p.socket == socket)
        });
        let cores = topology.n_cores() as u32;
        let core = self.idlest_group(place.core, 0..cores, false, |core| {
            let threads = topology.core_cpus(core).iter().map(|&t| t as usize);
            threads.map(|t| (t, &topology.cpus()[t])).filter(move |(_, p)| p.llc == llc)
        });
        self.idlest_thread(topology.core_cpus(core).iter().map(|&t| t as CpuId))
    }

    /// find_idlest_group() among `groups`, some of which may be empty; `local` is that of
    /// the forking CPU, which may be none of them.
    fn idlest_group<P>(
        &self,
        local: u32,
        groups: std::ops::Range<u32>,
        numa: bool,
        members: impl Fn(u32) -> P,
    ) -> u32
    where
        P: Iterator,
        P::Item: Member,
    {
        let sum = |group: u32| {
            members(group).fold(Group::default(), |mut sum, member| {
                let cpu = member.cpu();
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
        for group in groups.filter(|g| *g != local) {
            let sums = sum(group);
            if sums.cpus > 0 && best.as_ref().is_none_or(|(_, b)| better(&sums, b)) {
                best = Some((group, sums));
            }
        }
        let here = sum(local);
        let Some((other, there)) = best else { return local };
        if here.cpus == 0 {
            return other;
        }
        let stays = if here.idle > 0 || there.idle > 0 {
            // imb_numa_nr: a node may hold an eighth of its CPUs' number before it spreads.
            let allowed = (here.cpus as u32 / 8).max(1);
            here.idle >= there.idle || numa && here.running <= allowed
        } else {
            let margin = 1024.0 * (IMBALANCE_PCT - 100.0) / 100.0;
            there.avg_load() + margin >= here.avg_load()
                || 100.0 * here.avg_load() <= IMBALANCE_PCT * there.avg_load()
        };
        if stays { local } else { other }
    }

    /// find_idlest_group_cpu(): the idle thread that wakes fastest, of equals the one idle
    /// for the shortest time; without one the least loaded.
    fn idlest_thread(&self, threads: impl Iterator<Item = CpuId>) -> CpuId {
        threads
            .min_by_key(|&cpu| {
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

/// A CPU with its place.
trait Member {
    fn cpu(&self) -> CpuId;
}

impl<T> Member for (usize, T) {
    fn cpu(&self) -> CpuId {
        self.0 as CpuId
    }
}

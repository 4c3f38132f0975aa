//! How a run begins: tasks are forked one after the other and placed where the
//! fork's slow path would put them, on a machine that has been idle for long.

use reveille_measure::Ns;
use reveille_policy::{CpuId, TaskId};

use crate::RunSpec;
use crate::cpu::at;
use crate::engine::Sim;
use crate::task::{Place, Task};

/// Time between two forks of the starting program.
const FORK_INTERVAL_NS: Ns = 20_000;
/// All tasks have been forked after this share of the warm-up, however many they are.
const FORK_SHARE_OF_WARMUP: Ns = 8;

impl Sim<'_> {
    /// Forks every task of the program.
    pub(crate) fn start(&mut self, spec: &RunSpec) {
        self.spread_balance_phases();
        for llc in 0..self.world.n_llcs() {
            // An idle machine has been balanced often: the whole LLC may be searched.
            let weight = self.world.llc_cpus(llc).len() as u32;
            self.world.set_nr_idle_scan(llc, weight);
            let smt = self.world.smt_cpus(CpuId::from(self.world.llc_cpus(llc)[0])).len() > 1;
            self.world.set_has_idle_cores(llc, smt);
        }
        let n = self.program.tasks.len() as Ns;
        let interval =
            FORK_INTERVAL_NS.min(spec.warmup_ns / FORK_SHARE_OF_WARMUP / n.max(1)).max(1);
        let mut placed = Placed::new(self);
        for (number, &task) in self.program.tasks.iter().enumerate() {
            let cpu = placed.next(self);
            let id = number as TaskId;
            self.world.add_task(reveille_policy::Task::new(id, cpu));
            let mut state = Task::new(task, cpu);
            state.place = Place::Blocked;
            self.tasks.push(state);
            self.new_task_averages(id, cpu);
            // wake_up_new_task() comes with a timer on the CPU that the fork chose.
            self.timer_number += 1;
            self.tasks[at(id)].timer = self.timer_number;
            self.timers.push(std::cmp::Reverse(crate::engine::Timer {
                at: 1 + number as Ns * interval,
                task: id,
                number: self.timer_number,
                cpu,
            }));
        }
        self.set_flip_decay(spec);
        self.replan_timers();
    }

    /// init_entity_runnable_average() and post_init_entity_util_avg().
    fn new_task_averages(&mut self, task: TaskId, cpu: CpuId) {
        let queue = &mut self.cpus[at(cpu)].averages;
        let weight = f64::from(self.tasks[at(task)].weight);
        let room = (1024.0 - queue.util).max(0.0) / 2.0;
        let util = if queue.util == 0.0 {
            room
        } else {
            (queue.util * weight / (queue.load + 1.0)).min(room)
        };
        let t = &mut self.tasks[at(task)];
        t.averages.util = util;
        t.averages.load = weight;
        t.averages.runnable = util;
        t.util_est = util;
        queue.attach(&t.averages);
        t.attaching = false;
        t.vruntime = self.cpus[at(cpu)].rq.place_new(t.weight, &self.fair);
        self.publish_load(cpu);
    }
}

/// Where forks go: the least loaded CPU on the least loaded core of the least loaded
/// cache of the least loaded socket, first by number among equals.
struct Placed {
    /// Tasks per CPU so far.
    tasks: Vec<u32>,
}

impl Placed {
    fn new(sim: &Sim) -> Placed {
        Placed { tasks: vec![0; sim.cpus.len()] }
    }

    fn next(&mut self, sim: &Sim) -> CpuId {
        let topology = &sim.machine.topology;
        let load = |cpus: &[CpuId]| {
            let sum: u64 = cpus.iter().map(|&c| u64::from(self.tasks[at(c)])).sum();
            // Per mille of the CPUs, so that sockets of different size compare.
            sum * 1_000_000 / cpus.len() as u64
        };
        let least = |count: usize, cpus: &dyn Fn(u32) -> Vec<CpuId>| {
            (0..count as u32).min_by_key(|&i| load(&cpus(i))).expect("a machine has CPUs")
        };
        let socket = least(topology.n_sockets(), &|s| topology.socket_cpus(s).to_vec());
        let in_socket = topology.socket_cpus(socket);
        let llc = *distinct(in_socket, |c| topology.cpus()[at(c)].llc)
            .iter()
            .min_by_key(|&&l| load(topology.llc_cpus(l)))
            .expect("a socket has a cache");
        let core = *distinct(topology.llc_cpus(llc), |c| topology.cpus()[at(c)].core)
            .iter()
            .min_by_key(|&&k| load(topology.core_cpus(k)))
            .expect("a cache has a core");
        let cpu = *topology
            .core_cpus(core)
            .iter()
            .min_by_key(|&&c| self.tasks[at(c)])
            .expect("a core has a thread");
        self.tasks[at(cpu)] += 1;
        cpu
    }
}

fn distinct(cpus: &[CpuId], of: impl Fn(CpuId) -> u32) -> Vec<u32> {
    let mut values: Vec<u32> = cpus.iter().map(|&c| of(c)).collect();
    values.sort_unstable();
    values.dedup();
    values
}

//! How a run begins: tasks are forked one after the other and placed where the
//! fork's slow path would put them, on a machine that has been idle for long.

use reveille_measure::Ns;
use reveille_policy::{CpuId, TaskId};

use crate::RunSpec;
use crate::cpu::at;
use crate::engine::Sim;
use crate::task::Task;

/// Time between two forks of the starting program.
const FORK_INTERVAL_NS: Ns = 20_000;
/// All tasks have been forked after this share of the warm-up, however many they are.
const FORK_SHARE_OF_WARMUP: Ns = 8;

impl Sim<'_> {
    /// Forks every task of the program.
    pub(crate) fn start(&mut self, spec: &RunSpec) {
        self.spread_balance_phases();
        let now_j = self.jiffies();
        for cpu in 0..self.cpus.len() {
            self.world.scan_state_mut(cpu as CpuId).wake_stamp_j = now_j;
        }
        self.make_shared_queues();
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
        let order = fork_order(self);
        for (number, &task) in self.program.tasks.iter().enumerate() {
            let cpu = order[number % order.len()];
            let id = number as TaskId;
            self.world.add_task(reveille_policy::Task::new(id, cpu));
            self.tasks.push(Task::new(task, self.code.begin(task.role), cpu));
            self.new_task_averages(id, cpu);
            self.begin_task(id, cpu, 1 + number as Ns * interval);
        }
        self.set_flip_decay(spec);
        self.replan_timers();
        self.start_bandwidth();
    }

    /// wake_up_new_task() comes with a timer on the CPU that the fork chose.
    pub(crate) fn begin_task(&mut self, task: TaskId, cpu: CpuId, at_ns: Ns) {
        self.timer_number += 1;
        self.tasks[at(task)].timer = self.timer_number;
        self.tasks[at(task)].period_at = at_ns;
        self.timers.push(std::cmp::Reverse(crate::engine::Timer {
            at: at_ns,
            task,
            number: self.timer_number,
            cpu,
        }));
    }

    /// init_entity_runnable_average() and post_init_entity_util_avg().
    pub(crate) fn new_task_averages(&mut self, task: TaskId, cpu: CpuId) {
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
        self.cpus[at(cpu)].rq.place_new(t, &self.fair);
        self.publish_load(cpu);
    }
}

/// Where forks go one after the other: to the next socket, there to the next cache,
/// there to the next core; siblings are used when every core has a task.
fn fork_order(sim: &Sim) -> Vec<CpuId> {
    let topology = &sim.machine.topology;
    let mut order: Vec<CpuId> = (0..topology.n_cpus() as CpuId).collect();
    let places = topology.cpus();
    let mut cores_seen = std::collections::BTreeMap::new();
    let mut llcs_seen = std::collections::BTreeMap::new();
    // Rank of each core in its cache, and of each cache in its socket.
    let mut core_rank = vec![0u32; topology.n_cores()];
    let mut llc_rank = vec![0u32; topology.n_llcs()];
    for core in 0..topology.n_cores() {
        let place = &places[at(topology.core_cpus(core as u32)[0])];
        let next: &mut u32 = cores_seen.entry(place.llc).or_default();
        core_rank[core] = *next;
        *next += 1;
    }
    for llc in 0..topology.n_llcs() {
        let place = &places[at(topology.llc_cpus(llc as u32)[0])];
        let next: &mut u32 = llcs_seen.entry(place.socket).or_default();
        llc_rank[llc] = *next;
        *next += 1;
    }
    order.sort_by_key(|&cpu| {
        let p = &places[at(cpu)];
        (p.thread, core_rank[p.core as usize], llc_rank[p.llc as usize], p.socket)
    });
    order
}

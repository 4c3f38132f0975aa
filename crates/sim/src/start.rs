//! How a run begins: tasks are forked one after the other and placed where the
//! fork's slow path would put them, on a machine that has been idle for long.

use reveille_measure::{Ns, RunSpec};
use reveille_policy::{CpuId, TaskId};

use crate::cpu::at;
use crate::engine::Sim;
use crate::task::Task;

/// Where the program runs that forks all tasks. It is no task itself and takes no time.
const FORKER: CpuId = 0;
/// Time between two forks of the starting program.
const FORK_INTERVAL_NS: Ns = 20_000;
/// All tasks have been forked after this share of the warm-up, however many they are.
const FORK_SHARE_OF_WARMUP: Ns = 8;

impl Sim<'_> {
    /// Forks every task of the program.
    pub(crate) fn start(&mut self, spec: &RunSpec) {
        self.spread_balance_phases(spec.warmup_ns);
        let now_j = self.jiffies();
        for cpu in 0..self.cpus.len() {
            self.world.scan_state_mut(cpu as CpuId).wake_stamp_j = now_j;
            self.set_speed(cpu as CpuId);
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
        for (number, &task) in self.program.tasks.iter().enumerate() {
            let id = number as TaskId;
            self.world.add_task(reveille_policy::Task::new(id, FORKER));
            self.tasks.push(Task::new(task, self.code.begin(task.role), FORKER));
            self.fork(id, FORKER, 1 + number as Ns * interval);
        }
        self.set_flip_decay(spec);
        self.replan_timers();
        self.start_bandwidth();
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

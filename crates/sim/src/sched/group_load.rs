//! `tg->load_avg`: one line that every enqueue of a session and most dequeues read, and write when the
//! queue's share has changed; and the loads of the group's entities, which placement and balancing compare.

use reveille_measure::Ns;
use reveille_policy::{CpuId, TaskId, bits};

use crate::rq::fair::NICE_0;
use crate::rq::pelt::window_passed;
use crate::sim::Sim;

/// LOAD_AVG_RATELIMIT: minimum interval between a queue's reports (v6.7, commit 1528c661c24b).
const REPORT_INTERVAL_NS: Ns = 1_000_000;

/// Least weight of a group's entity.
const MIN_SHARES: u64 = 2;

impl Sim<'_> {
    /// An enqueue or dequeue reads `tg->load_avg` (update_cfs_group()), and writes it before that
    /// when the queue's share has changed by more than 1/64 (update_tg_load_avg()). With
    /// EMPTY_KEEPS_WEIGHT an empty queue is given no new weight, and does not read. Returns the
    /// duration.
    #[inline(always)]
    pub(crate) fn group_load_moved(&mut self, by: CpuId, of: CpuId, when: Ns) -> Ns {
        let reads = self.cpus[of].rq.weight != 0 || !self.rules.has(bits::EMPTY_KEEPS_WEIGHT);
        if self.reports_load(of, self.now) {
            return self.report_load(by, when, reads);
        }
        if !reads {
            return 0;
        }
        let Some(line) = &mut self.hw.group_line else { return 0 };
        let wait = line.read(by, self.now, when, self.hw.near.lines());
        self.measured.counters.hot_line_wait_ns += wait;
        wait
    }

    /// update_blocked_averages() only writes, if a window has ended since the last report.
    pub(crate) fn group_load_decayed(&mut self, cpu: CpuId, when: Ns) -> Ns {
        if self.reports_load(cpu, when) { self.report_load(cpu, when, false) } else { 0 }
    }

    /// A new task's load is reported at once. Its fork pays.
    pub(crate) fn group_load_attached(&mut self, cpu: CpuId) {
        self.cpus[cpu].removed = true;
        self.reports_load(cpu, self.now);
    }

    /// cpu_load(): the average load of the task group's entity on a CPU, or of its tasks in the root group.
    /// The entity's weight is the CPU's share of the group's load (calc_group_shares()), and counts
    /// for the time that it had tasks; a task that joins brings its own time
    /// (update_tg_cfs_load()), which the sum of their loads has.
    #[inline]
    pub(crate) fn cpu_load(&mut self, cpu: CpuId) -> u32 {
        let c = &mut self.cpus[cpu];
        let load = c.averages.load as u32;
        if self.hw.group_line.is_none() {
            return load;
        }
        if c.rq.weight != 0 || !self.rules.has(bits::EMPTY_KEEPS_WEIGHT) {
            let here = c.rq.weight.max(u64::from(load));
            let everywhere = (self.group_load - c.group_contrib) as u64 + here;
            c.entity_weight = (NICE_0 * here / everywhere.max(1)).max(MIN_SHARES) as u32;
        }
        // To the nearest 1024th, as the kernel's sums of a task that always runs are whole.
        let time = ((c.averages.load.max(c.averages.util) + 0.5) as u32).min(NICE_0 as u32);
        c.entity_weight * time / NICE_0 as u32
    }

    /// task_h_load(): a task's part of its CPU's load.
    #[inline]
    pub(crate) fn task_load(&self, task: TaskId) -> u32 {
        let cpu = self.world.task(task).prev_cpu;
        let load = self.tasks[task].averages.load as u32;
        if self.hw.group_line.is_none() {
            return load;
        }
        // At most 1024, as a task's load is.
        let entity = self.balancer.published[cpu].load;
        let of_group = entity * entity / (entity + 1);
        load * of_group / (self.cpus[cpu].averages.load as u32 + 1)
    }

    /// Has a CPU's load changed enough to be reported? If so, marks it as reported.
    fn reports_load(&mut self, cpu: CpuId, when: Ns) -> bool {
        let c = &mut self.cpus[cpu];
        let windows = [c.reported_at, when].map(|at| at + c.window_phase);
        if !std::mem::take(&mut c.removed) && !window_passed(windows) {
            return false;
        }
        c.reported_at = when;
        if self.rules.rate_limited && when < c.report_again_at {
            return false;
        }
        let load = c.averages.load as i64;
        let moved = (load - c.group_contrib).abs() > c.group_contrib / 64;
        if moved {
            self.group_load += load - c.group_contrib;
            c.group_contrib = load;
            c.report_again_at = when + REPORT_INTERVAL_NS;
        }
        moved
    }

    #[inline(never)]
    fn report_load(&mut self, by: CpuId, when: Ns, then_reads: bool) -> Ns {
        let Some(line) = &mut self.hw.group_line else { return 0 };
        let wait = match then_reads {
            true => line.write_and_read(by, self.now, when, self.hw.near.lines()),
            false => line.write(by, self.now, when, self.hw.near.lines()),
        };
        self.measured.counters.hot_line_wait_ns += wait;
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rq::runqueue::Arrival;
    use crate::start::with_pairs;

    /// calc_group_shares() and task_h_load() on 128 CPUs with one task each. Each CPU has
    /// 1024 / 128 = 8, the group 8 * 8 / 9 = 7 of these, and the task 1024 * 7 / 1025 = 6. A CPU with 15 more tasks
    /// has 114, and each of its tasks 7.
    #[test]
    fn loads_are_whole_numbers_of_the_groups_entity() {
        with_pairs(64, |sim| {
            for cpu in sim.cpus.ids() {
                let task = TaskId::at(cpu.index());
                sim.world.task_mut(task).prev_cpu = cpu;
                sim.new_task_averages(task, cpu);
                sim.enqueue(task, cpu, Arrival::New);
            }
            let (cpu, task) = (CpuId(5), TaskId(5));
            sim.publish_load(cpu);
            assert_eq!(
                (sim.group_load, sim.cpu_load(cpu), sim.task_load(task)),
                (128 * 1024, 8, 6)
            );
            sim.cpus[cpu].rq.weight += 15 * 1024;
            sim.cpus[cpu].averages.load += 15.0 * 1024.0;
            sim.publish_load(cpu);
            assert_eq!(sim.cpu_load(cpu), 114);
            assert_eq!(sim.task_load(task), 7);
        });
    }
}

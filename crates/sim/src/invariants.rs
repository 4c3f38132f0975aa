//! What must hold at any time, checked in debug builds: every task is in exactly
//! one place, and the copies of a fact agree.
#![cfg(debug_assertions)]

use crate::ids::{CpuVec, TaskVec};

use crate::hw::cpu::Step;
use crate::sim::Sim;
use crate::tasks::channel::Channel;
use crate::tasks::task::Place;

impl Sim<'_> {
    pub(crate) fn check_invariants(&self) {
        self.check_shared_queues();
        let mut seen = TaskVec::filled(0u32, self.tasks.len());
        for cpu in self.cpus.ids() {
            let c = &self.cpus[cpu];
            let curr = self.world.curr(cpu).some();
            if let Some(task) = curr {
                seen[task] += 1;
                assert_eq!(self.tasks[task].place, Place::Running(cpu));
                assert!(c.runs_task(), "CPU {cpu} has a current task and does {:?}", c.step);
            }
            for task in c.rq.waiting() {
                seen[task] += 1;
                assert_eq!(self.tasks[task].place, Place::Queued(cpu));
            }
            for task in c.rq.delayed() {
                seen[task] += 1;
                assert_eq!(self.tasks[task].place, Place::Delayed(cpu));
                assert!(curr.is_some(), "CPU {cpu} leaves delayed tasks on its queue");
            }
            c.rq.check(|task| self.tasks[task].se.vruntime, curr);
            for &task in &c.wake_list {
                seen[task] += 1;
                assert_eq!(self.tasks[task].place, Place::WakeList(cpu));
            }
            let held = self.bandwidth.as_ref().map_or(&[][..], |b| &b.held[cpu]);
            for &task in held {
                seen[task] += 1;
                assert_eq!(self.tasks[task].place, Place::Held(cpu));
            }
            if let Step::Commit { wakee, .. } | Step::Select { wakee, .. } = c.step {
                seen[wakee] += 1;
                assert_eq!(self.tasks[wakee].place, Place::Waking);
            }
            let delayed = c.rq.delayed().count() as u32;
            let counted = if self.rules.fair.hides_delayed() { 0 } else { delayed };
            assert_eq!(c.rq.delayed_running, counted, "delayed tasks of CPU {cpu}");
            let nr = c.rq.waiting().count() as u32 + counted + u32::from(curr.is_some());
            assert_eq!(self.world.nr_running(cpu), nr, "nr_running of CPU {cpu}");
            let weight: u64 =
                c.rq.waiting()
                    .chain(c.rq.delayed())
                    .chain(curr)
                    .map(|t| u64::from(self.tasks[t].se.weight))
                    .sum();
            assert_eq!(c.rq.weight, weight, "queue weight of CPU {cpu}");
            let sleeps = c.is_idle() && c.tick_stopped;
            assert_eq!(self.balancer.sleepers.contains(cpu), sleeps, "tick of CPU {cpu}");
            if self.world.available_idle(cpu) {
                let unseen = self.unseen.iter().any(|&(_, unseen)| unseen == cpu);
                assert!(self.is_free(cpu) || unseen, "CPU {cpu} is not available");
            }
        }
        self.check_group_queues();
        self.work.channels.iter().for_each(Channel::check);
        for task in self.tasks.ids() {
            let places = seen[task];
            let blocked = u32::from(self.tasks[task].place == Place::Blocked);
            assert_eq!(places + blocked, 1, "task {task} is in {} places", places + blocked);
        }
    }

    /// Tasks are held exactly where a group around them is throttled (those in the kernel are not,
    /// if throttling waits for their exit), and each group's queue holds as many tasks and groups as
    /// say so.
    fn check_group_queues(&self) {
        let Some(bandwidth) = &self.bandwidth else { return };
        let n_cpus = self.cpus.len();
        let mut entities = vec![CpuVec::filled(0u32, n_cpus); bandwidth.groups.len()];
        for number in self.tasks.ids() {
            let (cpu, held) = match self.tasks[number].place {
                Place::Held(cpu) => (cpu, true),
                Place::Queued(cpu) | Place::Running(cpu) | Place::Delayed(cpu) => (cpu, false),
                _ => continue,
            };
            let group = self.group_of(number);
            let throttled = bandwidth.held_back(group, cpu);
            let at_exit = self.rules.throttles_at_exit;
            assert!(throttled == held || at_exit && throttled, "task {number} on CPU {cpu}");
            if let Some(g) = group.filter(|_| !(held && at_exit)) {
                entities[g][cpu] += 1;
            }
        }
        for (g, group) in bandwidth.groups.iter().enumerate().rev() {
            for cpu in self.cpus.ids() {
                let queue = &group.queues[cpu];
                assert_eq!(queue.entities, entities[g][cpu], "{g} on CPU {cpu}");
                let off = queue.runtime.throttled() && !self.rules.throttles_at_exit;
                let on_parent = queue.entities > 0 && !off;
                assert_eq!(queue.on_parent, on_parent, "{g} on CPU {cpu}");
                if let Some(parent) = group.parent {
                    entities[parent][cpu] += u32::from(on_parent);
                }
                let listed = group.throttled.contains(&cpu);
                assert_eq!(listed, queue.runtime.throttled(), "{g} on CPU {cpu}");
            }
        }
    }

    /// Every task stands on at most one list, that of the CPU where it waits.
    #[cfg(debug_assertions)]
    pub(crate) fn check_shared_queues(&self) {
        let mut listed = 0;
        for (q, queue) in self.shared_queues.iter().flat_map(|s| s.queues.iter().enumerate()) {
            for entry in &queue.list {
                let t = &self.tasks[entry.task];
                assert_eq!(t.shared_queue, Some(q), "task {} stands on two lists", entry.task);
                let Place::Queued(cpu) = t.place else {
                    panic!("task {} is on a shared queue and {:?}", entry.task, t.place)
                };
                assert_eq!(self.queue_tried(cpu, 0), Some(q), "task {} on CPU {cpu}", entry.task);
                listed += 1;
            }
        }
        let marked = self.tasks.iter().filter(|t| t.shared_queue.is_some()).count();
        assert_eq!(marked, listed, "tasks on shared queues");
    }
}

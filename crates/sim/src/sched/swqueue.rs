//! The shared wake queue: wakees are listed on their cache's queue as well as their runqueue, and a
//! CPU that runs out of work pulls one before it goes idle. policy/swqueue.h decides which wakee
//! and which queue; this file has the queues and the costs of their locks and lines.

use reveille_measure::Ns;
use reveille_policy::{CpuId, TaskId, bits};

use crate::hw::cpu::Toll;
use crate::rq::shared::{Entry, Queue};
use crate::sim::Sim;
use crate::tasks::task::Place;

/// Why the queue's lock is taken; waits are counted separately.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Append,
    Remove,
}

/// Outcome of a CPU's look at the shared queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pull {
    /// The queues were empty.
    Nothing,
    /// A queue was locked, but no task could be taken.
    Lost,
    /// A task now waits on this CPU's runqueue.
    Taken,
}

impl Sim<'_> {
    /// Is this wakee, about to be enqueued on `dst`, also appended to a shared queue?
    #[inline]
    pub(crate) fn goes_to_shared_queue(&mut self, wakee: TaskId, dst: CpuId) -> bool {
        let Some(shared) = &self.shared_queues else { return false };
        // A fork is not a wakeup; and a task that changed queues has migrated.
        let forked = self.world.task(wakee).sum_exec_ns == 0 && !shared.at_every_enqueue;
        let migrated = self.tasks[wakee].attaching;
        !forked && self.world.swqueue_appends(&self.rules.tunables, wakee, dst, migrated)
    }

    /// `cpu` appends a wakee just enqueued on `dst`. It holds the runqueue's lock and requests the
    /// shared queue's at `when`.
    pub(crate) fn append_shared(
        &mut self,
        cpu: CpuId,
        wakee: TaskId,
        dst: CpuId,
        when: Ns,
    ) -> Toll {
        let Some(q) = self.queue_tried(dst, 0) else { return Toll::default() };
        let tail = self.queue(q).list.back().map(|e| e.by);
        let (toll, done) = self.access(q, cpu, when, [tail, None], Access::Append);
        self.queue(q).list.push_back(Entry { task: wakee, by: cpu, seen_from: done });
        self.tasks[wakee].shared_queue = Some(q);
        toll
    }

    /// The task that `cpu` runs next, after `toll`, leaves its shared queue.
    #[inline(never)]
    fn unlist_next(&mut self, cpu: CpuId, task: TaskId, toll: Toll) -> Toll {
        let asked_at = self.after(cpu, toll);
        self.remove_shared(cpu, task, asked_at)
    }

    /// Removes a task that stops waiting on `of`'s runqueue from its shared queue, if it is on one.
    /// `cpu` requests the queue's lock at `when`.
    #[inline]
    pub(crate) fn remove_shared(&mut self, cpu: CpuId, task: TaskId, when: Ns) -> Toll {
        let Some(q) = self.tasks[task].shared_queue.take() else { return Toll::default() };
        let list = &self.queue(q).list;
        let place = list.iter().position(|e| e.task == task).expect("listed where it says");
        let before = place.checked_sub(1).map(|p| list[p].by);
        let after = list.get(place + 1).map(|e| e.by);
        let (toll, done) = self.access(q, cpu, when, [before, after], Access::Remove);
        let queue = self.queue(q);
        if let Some(entry) = queue.list.remove(place) {
            queue.leaving.push_back((entry.seen_from, done));
        }
        toll
    }

    /// A task moved by balancing leaves its shared queue; the pass pays for it.
    pub(crate) fn remove_shared_in_balance(&mut self, cpu: CpuId, task: TaskId) {
        let toll = self.remove_shared(cpu, task, self.now);
        if let Some(shared) = &mut self.shared_queues {
            shared.balancing += toll.stall + toll.cost;
        }
    }

    /// __enqueue_entity() outside a wakeup: does a task put back or moved to the runqueue of `cpu`
    /// also join the shared queue?
    #[inline]
    fn joins_shared(&mut self, cpu: CpuId, task: TaskId) -> bool {
        self.shared_queues.as_ref().is_some_and(|s| s.at_every_enqueue)
            && self.tasks[task].place == Place::Queued(cpu)
            && self.tasks[task].shared_queue.is_none()
            && self.world.swqueue_appends(&self.rules.tunables, task, cpu, false)
    }

    /// The shared queue at a switch from `prev` to `next`, after `toll`: a still runnable `prev` is
    /// appended, `next` removed.
    #[inline]
    pub(crate) fn relist(
        &mut self,
        cpu: CpuId,
        prev: Option<TaskId>,
        next: TaskId,
        toll: Toll,
    ) -> Toll {
        let mut own = Toll::default();
        if let Some(prev) = prev.filter(|&p| p != next && self.joins_shared(cpu, p)) {
            own = self.append_shared(cpu, prev, cpu, self.after(cpu, toll));
        }
        if self.tasks[next].shared_queue.is_some() {
            let mut before = toll;
            before += own;
            own += self.unlist_next(cpu, next, before);
        }
        own
    }

    /// A task moved to `cpu` by balancing or a pull joins the shared queue there.
    pub(crate) fn append_shared_in_balance(&mut self, cpu: CpuId, task: TaskId) {
        if self.joins_shared(cpu, task) {
            let toll = self.append_shared(cpu, task, cpu, self.now);
            if let Some(shared) = &mut self.shared_queues {
                shared.balancing += toll.stall + toll.cost;
            }
        }
    }

    /// Cost of removals and appends in the balancing pass that ends here.
    pub(crate) fn take_shared_costs(&mut self) -> Ns {
        self.shared_queues.as_mut().map_or(0, |s| std::mem::take(&mut s.balancing))
    }

    /// Before `cpu` goes idle: moves the oldest wakee of its cache that may run here to this
    /// runqueue. Adds the duration to `toll`.
    pub(crate) fn pull_shared(&mut self, cpu: CpuId, toll: &mut Toll) -> Pull {
        let in_newidle = self.rules.has(bits::SWQUEUE_NEWIDLE);
        if in_newidle && !self.cpus[cpu].wake_list.is_empty() {
            return Pull::Nothing; // a wake-up is pending: new-idle balancing returns at once
        }
        let (mut k, mut pull) = (0, Pull::Nothing);
        while let Some(q) = self.queue_tried(cpu, k) {
            k += 1;
            if self.sees_none(cpu, q, toll) {
                continue;
            }
            pull = Pull::Lost;
            let Some(task) = self.pop_shared(cpu, q, toll) else { continue };
            if self.take_popped(cpu, task, toll) {
                if in_newidle {
                    self.cpus[cpu].idle_stamp = 0;
                }
                return Pull::Taken;
            }
            break;
        }
        pull
    }

    /// Reads a queue's head without the lock: is it empty?
    fn sees_none(&mut self, cpu: CpuId, q: usize, toll: &mut Toll) -> bool {
        let Some(shared) = &mut self.shared_queues else { return true };
        let look = shared.queues[q].head.look(cpu, self.hw.near.lines());
        toll.stall += look;
        self.measured.counters.hot_line_wait_ns += look;
        let (now, when) = (self.now, self.after(cpu, *toll));
        self.queue(q).looks_empty(now, when)
    }

    /// Locks a queue and pops its head, if there is one and `cpu` may run it.
    fn pop_shared(&mut self, cpu: CpuId, q: usize, toll: &mut Toll) -> Option<TaskId> {
        let list = &self.queue(q).list;
        let (first, after) = (list.front().copied(), list.get(1).map(|e| e.by));
        let pops = first.filter(|e| self.world.swqueue_pops(&self.rules.tunables, e.task, cpu));
        let touched = [first.map(|e| e.by), pops.and(after)];
        let when = self.after(cpu, *toll);
        let (access, done) = self.access(q, cpu, when, touched, Access::Remove);
        *toll += access;
        let Entry { task, seen_from, .. } = pops?;
        let queue = self.queue(q);
        queue.list.pop_front();
        queue.leaving.push_back((seen_from, done));
        self.tasks[task].shared_queue = None;
        Some(task)
    }

    /// Moves a popped task here under its runqueue's lock, if it still waits there.
    fn take_popped(&mut self, cpu: CpuId, task: TaskId, toll: &mut Toll) -> bool {
        let src = self.world.task(task).prev_cpu;
        let when = self.after(cpu, *toll);
        let wait = self.cpus[src].lock.acquire(cpu, self.now, when, self.hw.near.lines());
        self.measured.counters.lock_wait_ns += wait;
        toll.stall += wait;
        let queued = self.tasks[task].place == Place::Queued(src);
        let takes = self.world.swqueue_takes(task, cpu, queued);
        if takes {
            self.move_task(task, src, cpu);
            self.measured.counters.swqueue_pulls += 1;
            // Half of a migration is the detachment, under that lock; half is under this CPU's.
            let half = self.cpus[cpu].stretch(Ns::from(self.hw.cost.migrate_ns) / 2);
            self.cpus[src].lock.hold(self.now, half);
            toll.cost += Ns::from(self.hw.cost.migrate_ns);
            let left = self.group_load_moved(cpu, src, self.after(cpu, *toll));
            self.cpus[src].lock.hold(self.now, left);
            toll.stall += left;
            let joined = self.group_load_moved(cpu, cpu, self.after(cpu, *toll));
            let listed = self.take_shared_costs();
            toll.stall += joined + listed;
            self.cpus[cpu].lock.hold(self.now, half + joined + listed);
        }
        takes
    }

    /// Takes a queue's lock at `when`, does one list operation that touches the neighbouring nodes,
    /// and releases the lock. Returns the duration and the end.
    fn access(
        &mut self,
        q: usize,
        cpu: CpuId,
        when: Ns,
        neighbours: [Option<CpuId>; 2],
        access: Access,
    ) -> (Toll, Ns) {
        let Some(shared) = &mut self.shared_queues else { return (Toll::default(), when) };
        let queue = &mut shared.queues[q];
        // Under contention the lock's word moves back to its owner for the release, and from there
        // to the next waiter (queued_spin_lock_slowpath()).
        let back =
            if queue.lock.held_at(self.now) { self.hw.near.line(cpu, queue.head.owner) } else { 0 };
        let handoff = back + queue.head.take(cpu, self.hw.near.lines());
        let wait = queue.lock.acquire(cpu, self.now, when, |_, _| handoff);
        let nodes: Ns = neighbours.into_iter().flatten().map(|by| self.hw.near.line(by, cpu)).sum();
        let work = Ns::from(self.hw.cost.swqueue_hold_ns);
        let hold = nodes + self.cpus[cpu].stretch(work);
        queue.lock.hold(self.now, hold);
        let done = when + wait + hold;
        match access {
            Access::Append => self.measured.counters.swqueue_append_wait_ns += wait,
            Access::Remove => self.measured.counters.swqueue_remove_wait_ns += wait,
        }
        (Toll { stall: wait + nodes, cost: work }, done)
    }

    /// The queue of a CPU, followed by all queues of its cache in search order.
    pub(crate) fn queue_tried(&self, cpu: CpuId, k: u32) -> Option<usize> {
        self.shared_queues.as_ref()?.tried(self.hw.near.llc(cpu), cpu, k)
    }

    fn queue(&mut self, q: usize) -> &mut Queue {
        let shared = self.shared_queues.as_mut().expect("asked for with SWQUEUE only");
        &mut shared.queues[q]
    }
}

#[cfg(test)]
mod tests {
    use reveille_policy::Policy;

    use super::*;
    use crate::hw::cpu::Step;
    use crate::start::with_pairs_under;

    /// Runs pairs until a CPU has left idle for a wakee and is on its way to the pick: the simulator, that CPU and
    /// the wakee.
    fn on_the_way<R>(edits: &str, act: impl FnOnce(&mut Sim, CpuId, TaskId) -> R) -> R {
        let policy = Policy::baseline("v6.4").unwrap().with(edits).unwrap();
        with_pairs_under(&policy, 8, |sim| {
            let wakee = sim.pass_until(20, |sim| {
                sim.tasks.ids().find(|&task| match sim.tasks[task].place {
                    Place::Queued(cpu) => {
                        sim.tasks[task].shared_queue.is_some() && sim.cpus[cpu].step == Step::Pick
                    }
                    _ => false,
                })
            });
            act(sim, sim.world.task(wakee).prev_cpu, wakee)
        })
    }

    const EVERY: &str = "+SWQUEUE,+SWQUEUE_NEWIDLE,+SWQUEUE_SHARD,+SWQUEUE_ENQUEUE";

    /// Between its enqueue and its pick an idle CPU's wakee is anybody's in the cache. Then the CPU looks for
    /// another, or takes it back. Both queues report their loads.
    #[test]
    fn a_wakee_is_taken_before_it_is_picked() {
        for edits in ["+SWQUEUE", "+SWQUEUE,+SWQUEUE_NEWIDLE", EVERY] {
            on_the_way(edits, |sim, cpu, wakee| {
                let thief = CpuId(if cpu == CpuId(0) { 1 } else { 0 });
                let writes = (sim.cpus[cpu].group_contrib, sim.cpus[thief].group_contrib);
                let mut toll = Toll::default();
                sim.now = sim.cpus[cpu].end;
                assert_eq!(sim.pull_shared(thief, &mut toll), Pull::Taken, "{edits}");
                assert_eq!(sim.tasks[wakee].place, Place::Queued(thief));
                assert_ne!(sim.cpus[cpu].group_contrib, writes.0, "{edits}");
                assert_ne!(sim.cpus[thief].group_contrib, writes.1, "{edits}");
                sim.now += 1_000; // the lists look empty by then
                sim.run_next(cpu, None, Toll::default());
                // Where every enqueue lists a task, the pull has listed it again.
                let back = edits == EVERY;
                assert_eq!(sim.tasks[wakee].place == Place::Running(cpu), back, "{edits}");
                assert_eq!(sim.cpus[cpu].is_idle(), !back, "{edits}");
            });
        }
    }

    /// __enqueue_entity() lists a wakee in the middle of its enqueue, a wakeup's own list at the end.
    #[test]
    fn an_enqueue_lists_early_where_every_enqueue_does() {
        let listed_before_the_pick = |edits| {
            on_the_way(edits, |sim, cpu, wakee| {
                let q = sim.tasks[wakee].shared_queue.unwrap();
                let seen_from = sim.queue(q).list.back().unwrap().seen_from;
                sim.cpus[cpu].end - seen_from
            })
        };
        let late = listed_before_the_pick("+SWQUEUE,+SWQUEUE_NEWIDLE,+SWQUEUE_SHARD");
        let early = listed_before_the_pick(EVERY);
        let rest = on_the_way(EVERY, |sim, _, _| {
            Ns::from(sim.hw.cost.enqueue_ns) / 2 + sim.hw.group_level_ns()
        });
        assert!(early >= late + rest, "{early} ns before, {late} otherwise, {rest}");
    }
}

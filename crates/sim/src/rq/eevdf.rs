//! The fair timeline under EEVDF (v6.6 and later): tasks with non-negative lag are eligible, and
//! the eligible task with the earliest deadline runs. Implements placement, the pick, slice
//! protection, and delayed dequeue.

use reveille_measure::Ns;
use reveille_policy::TaskId;

use crate::rq::fair::{EevdfRules, NICE_0, virtual_ns};

/// A task on the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entity {
    pub(crate) deadline: i64,
    pub(crate) vruntime: i64,
    pub(crate) task: TaskId,
    pub(crate) weight: u32,
    /// Requested slice.
    pub(crate) slice_ns: u32,
    /// It sleeps with negative lag and stays queued until that is repaid (DELAY_DEQUEUE).
    pub(crate) delayed: bool,
}

impl Entity {
    fn virtual_slice(&self) -> i64 {
        virtual_ns(Ns::from(self.slice_ns), self.weight)
    }
}

/// What a task carries from one queue to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Carried {
    /// Lag on leaving, in its own virtual time; negative if it owes service.
    pub(crate) vlag: i64,
    /// Its deadline relative to its vruntime, if it left while runnable.
    pub(crate) deadline: Option<i64>,
}

/// The running task, and the vruntime until which it is protected from wakeup preemption.
#[derive(Clone, Copy, Debug)]
struct Current {
    entity: Entity,
    protected_until: i64,
}

/// What [`Eevdf::pick`] removed from the queue, or [`Eevdf::preempts`] would.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// This task runs.
    Run(TaskId),
    /// This delayed task was dequeued with this lag; pick again.
    Asleep(TaskId, i64),
}

/// Tasks of one CPU.
#[derive(Clone)]
pub(crate) struct Eevdf {
    rules: EevdfRules,
    /// Waiting and delayed tasks by descending deadline; ties in FIFO order from the end.
    queued: Vec<Entity>,
    curr: Option<Current>,
    /// The previously running task, which waits again, with its protection.
    prev: Option<(TaskId, i64)>,
    /// Virtual times are summed relative to this one, to keep products small.
    zero: i64,
    /// Σ weight · (vruntime − zero) over `queued`.
    moment: i64,
    /// Σ weight over `queued`.
    weight: i64,
    /// Some task has requested a slice other than the base slice.
    uneven: bool,
}

impl Eevdf {
    pub(crate) fn new(rules: EevdfRules) -> Eevdf {
        Eevdf {
            rules,
            queued: Vec::new(),
            curr: None,
            prev: None,
            zero: 0,
            moment: 0,
            weight: 0,
            uneven: false,
        }
    }

    /// Waiting and delayed tasks by descending deadline.
    pub(crate) fn queued(&self) -> &[Entity] {
        &self.queued
    }

    pub(crate) fn base_slice_ns(&self) -> u32 {
        self.rules.base_slice_ns
    }

    /// Enqueues a task: woken, new, or migrated while runnable.
    pub(crate) fn enqueue(
        &mut self,
        task: TaskId,
        weight: u32,
        slice_ns: u32,
        carried: Carried,
        new: bool,
    ) {
        let mut entity =
            Entity { deadline: 0, vruntime: 0, task, weight, slice_ns, delayed: false };
        self.place(&mut entity, carried, new);
        self.uneven |= slice_ns != self.rules.base_slice_ns;
        self.insert(entity);
    }

    /// place_entity(): places it with its previous lag. Joining moves the average towards the
    /// newcomer, so the lag is scaled up beforehand to compensate.
    fn place(&mut self, entity: &mut Entity, carried: Carried, new: bool) {
        let average = self.average();
        let (_, total) = self.totals();
        let lag = if self.rules.place_lag && total > 0 {
            carried.vlag * (total + i64::from(entity.weight)) / total
        } else {
            0
        };
        entity.vruntime = average - lag;
        // A new task requests half a slice first, so that it runs soon beside CPU-bound tasks.
        let slice = if new { entity.virtual_slice() / 2 } else { entity.virtual_slice() };
        entity.deadline = entity.vruntime + carried.deadline.unwrap_or(slice);
    }

    /// update_curr(): charges `delta` to the current task. Returns whether to reschedule.
    #[inline(never)]
    pub(crate) fn charge(&mut self, delta: Ns) -> bool {
        let Some(curr) = &mut self.curr else { return false };
        let entity = &mut curr.entity;
        entity.vruntime += virtual_ns(delta, entity.weight);
        let renewed = entity.vruntime >= entity.deadline;
        if renewed {
            entity.deadline = entity.vruntime + entity.virtual_slice();
        }
        if self.queued.is_empty() {
            return false;
        }
        let (vruntime, protected_until) = (entity.vruntime, curr.protected_until);
        if renewed || vruntime >= protected_until {
            return renewed
                || self.rules.slice_protect
                || (self.rules.preempt_short && !self.eligible(vruntime));
        }
        false
    }

    /// Time until the current task's deadline, if another task is queued.
    pub(crate) fn slice_left(&self) -> Option<Ns> {
        let entity = self.curr.filter(|_| !self.queued.is_empty())?.entity;
        let left = (entity.deadline - entity.vruntime).max(0) as u64;
        Some(left * u64::from(entity.weight) / NICE_0)
    }

    /// dequeue_entity() of the current task, which sleeps. Returns its lag if it is dequeued;
    /// `None` if it stays until eligible.
    pub(crate) fn block(&mut self) -> Option<i64> {
        let entity = self.curr.expect("a task runs").entity;
        if self.rules.delay_dequeue && !self.eligible(entity.vruntime) {
            self.curr = None;
            self.insert(Entity { delayed: true, ..entity });
            return None;
        }
        let vlag = self.lag(&entity);
        self.curr = None;
        Some(vlag)
    }

    /// put_prev_entity(): the current task waits again.
    pub(crate) fn put_back(&mut self) {
        self.average(); // keeps sums small even if no task sleeps for long
        let curr = self.curr.take().expect("a task runs");
        self.prev = Some((curr.entity.task, curr.protected_until));
        self.insert(curr.entity);
    }

    /// pick_next_entity(): the eligible task with the earliest deadline, or the previous task if it
    /// is eligible and protected. A delayed task is dequeued instead.
    pub(crate) fn pick(&mut self) -> Option<Next> {
        let at = match self.queued.len() {
            0 => return None,
            1 => 0, // alone it is eligible
            _ => self.stays().or_else(|| self.earliest_eligible())?,
        };
        let entity = self.queued[at];
        if entity.delayed {
            let (task, vlag) = self.dequeue_delayed(at);
            return Some(Next::Asleep(task, vlag));
        }
        // A task that keeps running keeps its protection.
        let protected_until = match self.prev.take() {
            Some((task, until)) if task == entity.task => until,
            _ => self.protection(&entity),
        };
        self.take(at);
        self.curr = Some(Current { entity, protected_until });
        Some(Next::Run(entity.task))
    }

    /// finish_delayed_dequeue_entity(): a task that sleeps is gone. Returns it and its lag.
    fn dequeue_delayed(&mut self, at: usize) -> (TaskId, i64) {
        let entity = self.queued[at];
        let vlag = self.lag(&entity);
        self.take(at);
        (entity.task, if self.rules.delay_zero { vlag.min(0) } else { vlag })
    }

    /// Dequeues a delayed task of these, before its lag is repaid.
    pub(crate) fn dequeue_a_delayed(
        &mut self,
        of: impl Fn(TaskId) -> bool,
    ) -> Option<(TaskId, i64)> {
        let at = self.queued.iter().position(|e| e.delayed && of(e.task))?;
        Some(self.dequeue_delayed(at))
    }

    /// The previous task, if it is still protected.
    fn stays(&self) -> Option<usize> {
        let (task, protected_until) = self.prev?;
        let at = self.position(task);
        let vruntime = self.queued[at].vruntime;
        let protected =
            (self.rules.run_to_parity || self.rules.slice_protect) && vruntime < protected_until;
        (protected && self.eligible(vruntime)).then_some(at)
    }

    /// vruntime up to which a task is protected from wakeups: its deadline or, from v6.17 on, the
    /// end of the smallest slice requested here.
    fn protection(&self, entity: &Entity) -> i64 {
        if !self.rules.slice_protect {
            return entity.deadline;
        }
        let slice = if self.rules.run_to_parity {
            self.slice_bounds().0
        } else {
            self.rules.unscaled_slice_ns.min(entity.slice_ns)
        };
        let until = entity.vruntime + virtual_ns(Ns::from(slice), entity.weight);
        until.min(entity.deadline)
    }

    /// check_preempt_wakeup_fair(): the wakee, if it preempts the current task, or a delayed task that was
    /// dequeued ahead of it; ask again then. `new`: it has just been forked.
    pub(crate) fn preempts(&mut self, woken: TaskId, new: bool) -> Option<Next> {
        let curr = self.curr.filter(|_| !(new && self.rules.pick_preempts))?;
        let eligible = self.eligible(curr.entity.vruntime);
        let cut_short = self.uneven
            && self.rules.preempt_short
            && self.may_cut_short(woken, &curr.entity, eligible);
        let protected = (self.rules.run_to_parity || self.rules.slice_protect)
            && curr.entity.vruntime < curr.protected_until
            && !cut_short;
        let best = match eligible && protected {
            true => None,
            false => self
                .earliest_eligible()
                .filter(|&at| !(eligible && curr.entity.deadline < self.queued[at].deadline)),
        };
        if let Some(at) = best.filter(|&at| self.rules.pick_preempts && self.queued[at].delayed) {
            let (task, vlag) = self.dequeue_delayed(at);
            return Some(Next::Asleep(task, vlag));
        }
        let preempts = best.is_some_and(|at| self.queued[at].task == woken);
        let least_slice = virtual_ns(Ns::from(self.slice_bounds().0), curr.entity.weight);
        let until = &mut self.curr.as_mut().expect("a task runs").protected_until;
        // v6.12 cancels the protection even if another task runs next.
        if cut_short && (preempts || !self.rules.slice_protect) {
            *until = (*until).min(curr.entity.vruntime);
        } else if !preempts && self.rules.slice_protect && self.rules.run_to_parity {
            *until = (*until).min(curr.entity.vruntime + least_slice);
        }
        preempts.then_some(Next::Run(woken))
    }

    /// do_preempt_short(): may a wakee with a shorter slice cut the current one short? v6.17 leaves
    /// the rest to the pick.
    fn may_cut_short(&self, woken: TaskId, curr: &Entity, curr_eligible: bool) -> bool {
        let entity = &self.queued[self.position(woken)];
        let sooner = entity.deadline < curr.deadline || !curr_eligible;
        entity.slice_ns < curr.slice_ns
            && (self.rules.slice_protect || self.eligible(entity.vruntime) && sooner)
    }

    /// Removes a waiting task for migration.
    pub(crate) fn remove(&mut self, task: TaskId) -> Carried {
        let at = self.position(task);
        let entity = self.queued[at];
        let vlag = self.lag(&entity);
        self.take(at);
        self.prev = self.prev.filter(|&(prev, _)| prev != task);
        // PLACE_REL_DEADLINE, of v6.12 as delayed dequeue is.
        let keeps = self.rules.delay_dequeue;
        Carried { vlag, deadline: keeps.then_some(entity.deadline - entity.vruntime) }
    }

    /// requeue_delayed_entity(): a delayed task is woken where it is. With DELAY_ZERO it
    /// keeps no claim that it has come by in its sleep.
    pub(crate) fn wake_delayed(&mut self, task: TaskId) {
        let at = self.position(task);
        debug_assert!(self.queued[at].delayed);
        let entity = self.queued[at];
        if self.rules.delay_zero && self.lag(&entity) > 0 {
            self.take(at);
            let mut entity = Entity { delayed: false, ..entity };
            self.place(&mut entity, Carried::default(), false);
            self.insert(entity);
        } else {
            self.queued[at].delayed = false;
        }
    }

    /// avg_vruntime(): the weighted average of vruntimes, where lag is zero, rounded down.
    fn average(&mut self) -> i64 {
        let (moment, weight) = self.totals();
        if weight > 0 {
            let moved = moment.div_euclid(weight);
            self.zero += moved;
            self.moment -= moved * self.weight;
        }
        self.zero
    }

    /// Moment and weight of all tasks, including the current one.
    #[inline]
    fn totals(&self) -> (i64, i64) {
        match &self.curr {
            Some(Current { entity, .. }) => {
                let weight = i64::from(entity.weight);
                (self.moment + weight * (entity.vruntime - self.zero), self.weight + weight)
            }
            None => (self.moment, self.weight),
        }
    }

    /// Has it had no more than its share? Without a division, that would round.
    #[inline]
    fn eligible(&self, vruntime: i64) -> bool {
        let (moment, weight) = self.totals();
        (vruntime - self.zero) * weight <= moment
    }

    /// Index of the eligible task with the earliest deadline, the current one left out.
    #[inline]
    fn earliest_eligible(&self) -> Option<usize> {
        let (moment, weight) = self.totals();
        self.queued.iter().rposition(|e| (e.vruntime - self.zero) * weight <= moment)
    }

    /// update_entity_lag(): what a queued task is owed, as far as it may take that along.
    fn lag(&mut self, entity: &Entity) -> i64 {
        let limit = if self.rules.pick_preempts {
            self.slice_bounds().1 + self.rules.tick_ns
        } else {
            (2 * entity.slice_ns).max(self.rules.tick_ns)
        };
        let limit = virtual_ns(Ns::from(limit), entity.weight);
        (self.average() - entity.vruntime).clamp(-limit, limit)
    }

    /// The smallest and the largest slice requested on this queue.
    fn slice_bounds(&self) -> (u32, u32) {
        if !self.uneven {
            return (self.rules.base_slice_ns, self.rules.base_slice_ns);
        }
        let curr = self.curr.iter().map(|c| c.entity.slice_ns);
        let slices = || curr.clone().chain(self.queued.iter().map(|e| e.slice_ns));
        let base = self.rules.base_slice_ns;
        (slices().min().unwrap_or(base), slices().max().unwrap_or(base))
    }

    fn position(&self, task: TaskId) -> usize {
        self.queued.iter().position(|e| e.task == task).expect("the task is on this queue")
    }

    fn insert(&mut self, entity: Entity) {
        let weight = i64::from(entity.weight);
        self.moment += weight * (entity.vruntime - self.zero);
        self.weight += weight;
        if self.queued.is_empty() {
            return self.queued.push(entity); // mostly it is
        }
        let at = self.queued.partition_point(|e| e.deadline > entity.deadline);
        self.queued.insert(at, entity);
    }

    fn take(&mut self, at: usize) -> Entity {
        let entity = if self.queued.len() == 1 {
            self.queued.pop().expect("it is there")
        } else {
            self.queued.remove(at)
        };
        let weight = i64::from(entity.weight);
        self.moment -= weight * (entity.vruntime - self.zero);
        self.weight -= weight;
        entity
    }
    /// Sums and order are those of the tasks, and `curr` is the current one.
    #[cfg(any(test, debug_assertions))]
    pub(crate) fn check(&self, curr: Option<TaskId>) {
        assert_eq!(self.curr.map(|c| c.entity.task), curr);
        assert!(self.queued.is_sorted_by(|a, b| a.deadline >= b.deadline));
        let weight: i64 = self.queued.iter().map(|e| i64::from(e.weight)).sum();
        let moment: i64 =
            self.queued.iter().map(|e| i64::from(e.weight) * (e.vruntime - self.zero)).sum();
        assert_eq!((self.weight, self.moment), (weight, moment));
    }
}

#[cfg(test)]
mod model;

#[cfg(test)]
mod schedules;

#[cfg(test)]
mod tests;

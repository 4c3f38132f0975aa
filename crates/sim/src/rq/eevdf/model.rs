//! The rules of EEVDF once more, for the tests: each written down as it reads, and
//! nothing kept that can be computed from the tasks.

use super::*;
use reveille_policy::TaskId;

/// The tasks of one CPU.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) rules: EevdfRules,
    /// In order of arrival on the queue, the current one included.
    pub(super) on: Vec<Entity>,
    pub(super) curr: Option<TaskId>,
    protected_until: i64,
    /// The average when it was last needed.
    average: i128,
}

impl Model {
    pub(super) fn new(rules: EevdfRules) -> Model {
        Model { rules, on: Vec::new(), curr: None, protected_until: 0, average: 0 }
    }

    pub(super) fn sums(&self) -> (i128, i128) {
        let of = |e: &Entity| (i128::from(e.weight) * i128::from(e.vruntime), i128::from(e.weight));
        self.on.iter().map(of).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
    }

    pub(super) fn average(&mut self) -> i64 {
        let (sum, weight) = self.sums();
        if weight > 0 {
            self.average = sum.div_euclid(weight);
        }
        self.average as i64
    }

    /// weight · total weight · (V − v), without rounding.
    pub(super) fn exact_lag(&self, e: &Entity) -> i128 {
        let (sum, weight) = self.sums();
        i128::from(e.weight) * (sum - weight * i128::from(e.vruntime))
    }

    pub(super) fn eligible(&self, e: &Entity) -> bool {
        self.exact_lag(e) >= 0
    }

    pub(super) fn of(&self, task: TaskId) -> Entity {
        *self.on.iter().find(|e| e.task == task).expect("on the queue")
    }

    pub(super) fn curr(&self) -> Option<Entity> {
        self.curr.map(|task| self.of(task))
    }

    /// The first of the eligible ones with the earliest deadline; the current one loses
    /// against an equal.
    pub(super) fn earliest(&self) -> Option<Entity> {
        let curr = self.curr;
        self.on
            .iter()
            .filter(|e| self.eligible(e))
            .min_by_key(|e| (e.deadline, curr == Some(e.task)))
            .copied()
    }

    pub(super) fn choice(&self, cut_short: bool) -> Option<Entity> {
        let protects = self.rules.run_to_parity || self.rules.slice_protect;
        match self.curr() {
            Some(curr)
                if protects
                    && !cut_short
                    && self.eligible(&curr)
                    && curr.vruntime < self.protected_until =>
            {
                Some(curr)
            }
            _ => self.earliest(),
        }
    }

    pub(super) fn lag(&mut self, e: &Entity) -> i64 {
        let slices = self.on.iter().map(|e| e.slice_ns).max().expect("it is there itself");
        let limit = match self.rules.pick_preempts {
            true => slices + self.rules.tick_ns,
            false => (2 * e.slice_ns).max(self.rules.tick_ns),
        };
        let limit = virtual_ns(u64::from(limit), e.weight);
        (self.average() - e.vruntime).max(-limit).min(limit)
    }

    pub(super) fn least_slice(&self) -> u32 {
        self.on.iter().map(|e| e.slice_ns).min().expect("a task is there")
    }

    pub(super) fn leave(&mut self, task: TaskId) {
        self.on.retain(|e| e.task != task);
        if self.curr == Some(task) {
            self.curr = None;
        }
    }

    pub(super) fn join(&mut self, mut e: Entity, carried: Carried, new: bool) {
        let weight = self.sums().1;
        let mut lag = 0;
        if self.rules.place_lag && weight > 0 {
            lag = i128::from(carried.vlag) * (weight + i128::from(e.weight)) / weight;
        }
        e.vruntime = self.average() - lag as i64;
        let slice = e.virtual_slice() / if new { 2 } else { 1 };
        e.deadline = e.vruntime + carried.deadline.unwrap_or(slice);
        self.on.push(e);
    }

    pub(super) fn charge(&mut self, delta: u32) -> bool {
        let Some(task) = self.curr else { return false };
        let e = self.on.iter_mut().find(|e| e.task == task).expect("on the queue");
        e.vruntime += virtual_ns(u64::from(delta), e.weight);
        let renewed = e.vruntime >= e.deadline;
        if renewed {
            e.deadline = e.vruntime + e.virtual_slice();
        }
        let e = *e;
        let unprotected = e.vruntime >= self.protected_until;
        let preempted = unprotected
            && (self.rules.slice_protect || self.rules.preempt_short && !self.eligible(&e));
        self.on.len() > 1 && (renewed || preempted)
    }

    pub(super) fn preempts(&mut self, woken: TaskId, new: bool) -> Option<Next> {
        let curr = self.curr()?;
        if self.rules.pick_preempts && new {
            return None;
        }
        let wakee = self.of(woken);
        let mut cut_short = self.rules.preempt_short && wakee.slice_ns < curr.slice_ns;
        if !self.rules.slice_protect {
            cut_short &=
                self.eligible(&wakee) && (wakee.deadline < curr.deadline || !self.eligible(&curr));
        }
        let best = self.choice(cut_short).expect("some task is eligible");
        if best.delayed && self.rules.pick_preempts {
            return Some(self.dequeue_delayed(&best));
        }
        if cut_short && (best.task == woken || !self.rules.slice_protect) {
            self.protected_until = self.protected_until.min(curr.vruntime);
        } else if best.task != woken && self.rules.slice_protect && self.rules.run_to_parity {
            let slice = virtual_ns(u64::from(self.least_slice()), curr.weight);
            self.protected_until = self.protected_until.min(curr.vruntime + slice);
        }
        (best.task == woken).then_some(Next::Run(woken))
    }

    fn dequeue_delayed(&mut self, e: &Entity) -> Next {
        let mut lag = self.lag(e);
        if self.rules.delay_zero {
            lag = lag.min(0);
        }
        self.leave(e.task);
        Next::Asleep(e.task, lag)
    }

    /// Who runs next, if the current task may be replaced.
    pub(super) fn pick(&mut self) -> Option<Next> {
        let best = self.choice(false)?;
        if best.delayed {
            return Some(self.dequeue_delayed(&best));
        }
        if self.curr != Some(best.task) {
            // The previously running task waits behind its equals.
            if let Some(prev) = self.curr() {
                self.on.retain(|e| e.task != prev.task);
                self.on.push(prev);
            }
            let mut until = best.deadline;
            if self.rules.slice_protect {
                let slice = match self.rules.run_to_parity {
                    true => self.least_slice(),
                    false => self.rules.unscaled_slice_ns.min(best.slice_ns),
                };
                until = until.min(best.vruntime + virtual_ns(u64::from(slice), best.weight));
            }
            self.protected_until = until;
            self.curr = Some(best.task);
        }
        Some(Next::Run(best.task))
    }
}

//! The fair timeline under CFS (up to v6.5): tasks waiting in order of vruntime, where
//! a waking or new task is placed, when it preempts, and who is picked next.

use reveille_measure::Ns;
use reveille_policy::TaskId;

use crate::rq::fair::{FairTunables, virtual_ns};

/// A waiting task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) vruntime: i64,
    pub(crate) task: TaskId,
}

/// Tasks of one CPU that wait to run; the current one is not among them.
pub(crate) struct Cfs {
    /// By vruntime, latest first: the next to run is popped from the end.
    waiting: Vec<Waiting>,
    pub(crate) min_vruntime: i64,
    /// Tasks that a pick prefers while they are close enough.
    pub(crate) next_buddy: TaskId,
    pub(crate) last_buddy: TaskId,
}

impl Cfs {
    pub(crate) fn new() -> Cfs {
        let waiting = Vec::new();
        Cfs { waiting, min_vruntime: 0, next_buddy: TaskId::NONE, last_buddy: TaskId::NONE }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Waiting tasks, the one that runs last first.
    pub(crate) fn waiting(&self) -> &[Waiting] {
        &self.waiting
    }

    /// The waiting task that has received least.
    #[inline]
    pub(crate) fn leftmost(&self) -> Option<Waiting> {
        self.waiting.last().copied()
    }

    #[inline]
    pub(crate) fn insert(&mut self, task: TaskId, vruntime: i64) {
        if self.waiting.is_empty() {
            return self.waiting.push(Waiting { vruntime, task }); // mostly it is
        }
        // Equal vruntimes run in order of arrival.
        let at = self.waiting.partition_point(|w| w.vruntime > vruntime);
        self.waiting.insert(at, Waiting { vruntime, task });
    }

    /// Takes a waiting task out.
    pub(crate) fn remove(&mut self, task: TaskId) {
        let at = self.waiting.iter().position(|w| w.task == task);
        self.waiting.remove(at.expect("the task waits on this queue"));
        self.forget_buddy(task);
    }

    #[inline]
    pub(crate) fn forget_buddy(&mut self, task: TaskId) {
        if self.next_buddy == task {
            self.next_buddy = TaskId::NONE;
        }
        if self.last_buddy == task {
            self.last_buddy = TaskId::NONE;
        }
    }

    /// min_vruntime follows the least of the current task and the leftmost, never back.
    #[inline]
    pub(crate) fn update_min_vruntime(&mut self, curr: Option<i64>) {
        let least = match (curr, self.leftmost()) {
            (Some(c), Some(l)) => c.min(l.vruntime),
            (Some(c), None) => c,
            (None, Some(l)) => l.vruntime,
            (None, None) => return,
        };
        self.min_vruntime = self.min_vruntime.max(least);
    }

    /// Where a task that slept is placed: not further back than half a latency period.
    #[inline]
    pub(crate) fn place_woken(&self, vruntime: i64, fair: &FairTunables) -> i64 {
        let credit = if fair.gentle { fair.latency / 2 } else { fair.latency };
        vruntime.max(self.min_vruntime - credit as i64)
    }

    /// Where a new task is placed: one slice ahead, so that forking gains nothing.
    pub(crate) fn place_new(&self, weight: u32, total: u64, fair: &FairTunables) -> i64 {
        if !fair.start_debit {
            return self.min_vruntime;
        }
        let nr = self.len() as u64 + 1;
        let slice = fair.slice(nr, weight, total + u64::from(weight));
        self.min_vruntime + virtual_ns(slice, weight)
    }

    /// Does a woken task preempt the current one?
    #[inline]
    pub(crate) fn preempts(&self, curr: i64, woken: i64, weight: u32, fair: &FairTunables) -> bool {
        curr - woken > virtual_ns(fair.wakeup_granularity, weight)
    }

    /// A woken task preempts `curr`: it runs next, and curr after it while close.
    pub(crate) fn set_buddies(&mut self, woken: TaskId, curr: TaskId, fair: &FairTunables) {
        self.next_buddy = woken;
        if fair.last_buddy && self.len() as u64 + 1 >= fair.nr_latency {
            self.last_buddy = curr;
        }
    }

    /// Has the current task had its slice, `ran` ns after it was picked?
    pub(crate) fn slice_ends(
        &mut self,
        curr: i64,
        weight: u32,
        total: u64,
        ran: Ns,
        fair: &FairTunables,
    ) -> bool {
        let Some(leftmost) = self.leftmost() else { return false };
        let slice = fair.slice(self.len() as u64 + 1, weight, total);
        if ran > slice {
            self.next_buddy = TaskId::NONE;
            self.last_buddy = TaskId::NONE;
            return true;
        }
        ran >= fair.min_granularity && curr - leftmost.vruntime > slice as i64
    }

    /// Takes the task that runs next.
    #[inline]
    pub(crate) fn pick(&mut self, fair: &FairTunables) -> Option<Waiting> {
        let left = self.leftmost()?;
        let mut choice = self.waiting.len() - 1;
        if choice == 0 {
            self.waiting.clear();
            self.forget_buddy(left.task);
            return Some(left);
        }
        for buddy in [self.last_buddy, self.next_buddy] {
            if buddy == TaskId::NONE || buddy == left.task {
                continue;
            }
            if let Some(at) = self.waiting.iter().position(|w| w.task == buddy)
                && self.waiting[at].vruntime - left.vruntime <= fair.wakeup_granularity as i64
            {
                choice = at;
            }
        }
        let picked = self.waiting.remove(choice);
        self.forget_buddy(picked.task);
        Some(picked)
    }
}

//! The fair timeline under CFS (up to v6.5): tasks ordered by vruntime; placement of woken and new
//! tasks, preemption, and the pick.

use reveille_measure::Ns;
use reveille_policy::TaskId;

use crate::rq::fair::{FairTunables, virtual_ns};

/// A waiting task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) vruntime: i64,
    pub(crate) task: TaskId,
}

/// Waiting tasks of one CPU; excludes the current one.
#[derive(Clone)]
pub(crate) struct Cfs {
    /// By descending vruntime: the next to run is popped from the end.
    waiting: Vec<Waiting>,
    pub(crate) min_vruntime: i64,
    /// Buddies, which a pick prefers if their vruntime is close enough.
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

    /// Waiting tasks, the last to run first.
    pub(crate) fn waiting(&self) -> &[Waiting] {
        &self.waiting
    }

    /// The waiting task with the smallest vruntime.
    #[inline]
    pub(crate) fn leftmost(&self) -> Option<Waiting> {
        self.waiting.last().copied()
    }

    #[inline]
    pub(crate) fn insert(&mut self, task: TaskId, vruntime: i64) {
        if self.waiting.is_empty() {
            return self.waiting.push(Waiting { vruntime, task }); // mostly it is
        }
        // Equal vruntimes run in FIFO order.
        let at = self.waiting.partition_point(|w| w.vruntime > vruntime);
        self.waiting.insert(at, Waiting { vruntime, task });
    }

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

    /// min_vruntime follows the smaller of the current task's and the leftmost's, and never
    /// decreases.
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

    /// Placement of a wakee: at most half a latency period back.
    #[inline]
    pub(crate) fn place_woken(&self, vruntime: i64, fair: &FairTunables) -> i64 {
        let credit = if fair.gentle { fair.latency / 2 } else { fair.latency };
        vruntime.max(self.min_vruntime - credit as i64)
    }

    /// Placement of a new task: one slice ahead, so that forking gains nothing.
    pub(crate) fn place_new(&self, weight: u32, total: u64, fair: &FairTunables) -> i64 {
        if !fair.start_debit {
            return self.min_vruntime;
        }
        let nr = self.len() as u64 + 1;
        let slice = fair.slice(nr, weight, total + u64::from(weight));
        self.min_vruntime + virtual_ns(slice, weight)
    }

    /// Does a wakee preempt the current task?
    #[inline]
    pub(crate) fn preempts(&self, curr: i64, woken: i64, weight: u32, fair: &FairTunables) -> bool {
        curr - woken > virtual_ns(fair.wakeup_granularity, weight)
    }

    /// A wakee preempts `curr`: it runs next, and `curr` after it if close enough.
    pub(crate) fn set_buddies(&mut self, woken: TaskId, curr: TaskId, fair: &FairTunables) {
        self.next_buddy = woken;
        if fair.last_buddy && self.len() as u64 + 1 >= fair.nr_latency {
            self.last_buddy = curr;
        }
    }

    /// Has the current task used its slice, `ran` ns after its pick?
    pub(crate) fn slice_ends(
        &mut self,
        (curr, vruntime): (TaskId, i64),
        weight: u32,
        total: u64,
        ran: Ns,
        fair: &FairTunables,
    ) -> bool {
        let Some(leftmost) = self.leftmost() else { return false };
        let slice = fair.slice(self.len() as u64 + 1, weight, total);
        if ran > slice {
            self.forget_buddy(curr);
            return true;
        }
        ran >= fair.min_granularity && vruntime - leftmost.vruntime > slice as i64
    }

    #[inline]
    pub(crate) fn pick(&mut self, fair: &FairTunables) -> Option<Waiting> {
        let left = self.leftmost()?;
        let mut choice = self.waiting.len() - 1;
        if choice == 0 {
            self.waiting.clear();
            self.forget_buddy(left.task);
            return Some(left);
        }
        // The leftmost task is no choice of a buddy, but as the next buddy it goes before the last.
        let last = if self.next_buddy == left.task { TaskId::NONE } else { self.last_buddy };
        for buddy in [last, self.next_buddy] {
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

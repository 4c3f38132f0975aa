//! The runqueue of one CPU: one set of operations over the two fair timelines, CFS up
//! to v6.5 and EEVDF from v6.6 on. Which one a run has is decided when it begins.

use reveille_measure::Ns;
use reveille_policy::TaskId;

use crate::rq::cfs::Cfs;
use crate::rq::eevdf::{Carried, Eevdf, Next};
use crate::rq::entity::SchedEntity;
use crate::rq::fair::{FairTunables, virtual_ns};

/// Why a task joins a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It has just been forked.
    New,
    /// It has been woken.
    Woken,
    /// Balancing has moved it while it was runnable.
    Moved,
}

#[derive(Clone)]
enum Timeline {
    Cfs(Cfs),
    Eevdf(Box<Eevdf>),
}

/// The queue of one CPU. Under CFS the current task is not on it.
#[derive(Clone)]
pub(crate) struct RunQueue {
    timeline: Timeline,
    /// Weight of waiting tasks, delayed ones, and the current one.
    pub(crate) weight: u64,
    /// Delayed tasks that nr_running counts.
    pub(crate) delayed_running: u32,
}

impl RunQueue {
    pub(crate) fn new(fair: &FairTunables) -> RunQueue {
        let timeline = match fair.eevdf {
            Some(rules) => Timeline::Eevdf(Box::new(Eevdf::new(rules))),
            None => Timeline::Cfs(Cfs::new()),
        };
        RunQueue { timeline, weight: 0, delayed_running: 0 }
    }

    /// Does no task wait here, and none sleep here delayed?
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        match &self.timeline {
            Timeline::Cfs(cfs) => cfs.is_empty(),
            Timeline::Eevdf(eevdf) => eevdf.queued().is_empty(),
        }
    }

    /// Tasks that wait to run.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = TaskId> + '_ {
        let (cfs, eevdf) = match &self.timeline {
            Timeline::Cfs(cfs) => (cfs.waiting(), [].as_slice()),
            Timeline::Eevdf(eevdf) => ([].as_slice(), eevdf.queued()),
        };
        let eevdf = eevdf.iter().filter(|e| !e.delayed).map(|e| e.task);
        cfs.iter().map(|w| w.task).chain(eevdf)
    }

    /// How long the running task may go on until its deadline, under EEVDF, if another is queued.
    pub(crate) fn slice_left(&self) -> Option<Ns> {
        match &self.timeline {
            Timeline::Cfs(_) => None,
            Timeline::Eevdf(eevdf) => eevdf.slice_left(),
        }
    }

    /// Where a task's vruntime counts from, so that it can be taken to another queue.
    #[inline]
    pub(crate) fn origin(&self) -> i64 {
        match &self.timeline {
            Timeline::Cfs(cfs) => cfs.min_vruntime,
            Timeline::Eevdf(_) => 0,
        }
    }

    /// Where fork() places a task under CFS; EEVDF does that when it is woken.
    pub(crate) fn place_new(&self, t: &mut SchedEntity, fair: &FairTunables) {
        if let Timeline::Cfs(cfs) = &self.timeline {
            t.vruntime = cfs.place_new(t.weight, self.weight, fair);
        }
    }

    /// A task joins; its vruntime counts from this queue's origin.
    #[inline(always)]
    pub(crate) fn arrive(
        &mut self,
        task: TaskId,
        t: &mut SchedEntity,
        arrival: Arrival,
        fair: &FairTunables,
    ) {
        match &mut self.timeline {
            Timeline::Cfs(cfs) => {
                if arrival != Arrival::Moved {
                    t.vruntime = cfs.place_woken(t.vruntime, fair);
                }
                cfs.insert(task, t.vruntime);
            }
            Timeline::Eevdf(eevdf) => {
                let slice_ns = eevdf.base_slice_ns();
                let new = arrival == Arrival::New;
                eevdf.enqueue(task, t.weight, slice_ns, std::mem::take(&mut t.carried), new);
            }
        }
        self.weight += u64::from(t.weight);
    }

    /// update_curr(): the current task has run for `delta`. Is another to run?
    #[inline]
    pub(crate) fn charge(&mut self, t: &mut SchedEntity, delta: Ns) -> bool {
        match &mut self.timeline {
            Timeline::Cfs(cfs) => {
                t.vruntime += virtual_ns(delta, t.weight);
                cfs.update_min_vruntime(Some(t.vruntime));
                false
            }
            Timeline::Eevdf(eevdf) => eevdf.charge(delta),
        }
    }

    /// The current task sleeps, and is no buddy any more. Returns false if it stays queued
    /// nevertheless (delayed).
    #[inline]
    pub(crate) fn block(&mut self, task: TaskId, t: &mut SchedEntity, fair: &FairTunables) -> bool {
        match &mut self.timeline {
            Timeline::Cfs(cfs) => {
                cfs.forget_buddy(task);
                cfs.update_min_vruntime(None);
            }
            Timeline::Eevdf(eevdf) => {
                let Some(vlag) = eevdf.block() else {
                    self.delayed_running += u32::from(!fair.hides_delayed());
                    return false;
                };
                t.carried = Carried { vlag, deadline: None };
            }
        }
        self.weight -= u64::from(t.weight);
        true
    }

    /// A delayed task, which [`RunQueue::pick`] found asleep, is gone.
    pub(crate) fn delayed_left(&mut self, t: &mut SchedEntity, vlag: i64, fair: &FairTunables) {
        t.carried = Carried { vlag, deadline: None };
        self.weight -= u64::from(t.weight);
        self.delayed_running -= u32::from(!fair.hides_delayed());
    }

    /// A delayed task is woken, and waits where it is.
    pub(crate) fn wake_delayed(&mut self, task: TaskId, fair: &FairTunables) {
        if let Timeline::Eevdf(eevdf) = &mut self.timeline {
            eevdf.wake_delayed(task);
            self.delayed_running -= u32::from(!fair.hides_delayed());
        }
    }

    /// The current task waits again.
    #[inline]
    pub(crate) fn put_back(&mut self, task: TaskId, t: &SchedEntity) {
        match &mut self.timeline {
            Timeline::Cfs(cfs) => cfs.insert(task, t.vruntime),
            Timeline::Eevdf(eevdf) => eevdf.put_back(),
        }
    }

    /// Takes a waiting task out, for another queue.
    pub(crate) fn remove(&mut self, task: TaskId, t: &mut SchedEntity) {
        match &mut self.timeline {
            Timeline::Cfs(cfs) => {
                cfs.remove(task);
                t.vruntime -= cfs.min_vruntime;
            }
            Timeline::Eevdf(eevdf) => t.carried = eevdf.remove(task),
        }
        self.weight -= u64::from(t.weight);
    }

    /// Takes the task that runs next, or a delayed one whose turn it would be.
    #[inline]
    pub(crate) fn pick(&mut self, fair: &FairTunables) -> Option<Next> {
        match &mut self.timeline {
            Timeline::Cfs(cfs) => cfs.pick(fair).map(|picked| Next::Run(picked.task)),
            Timeline::Eevdf(eevdf) => eevdf.pick(),
        }
    }

    /// The woken task, if it takes the CPU of the current one, or a delayed task that was dequeued ahead
    /// of it; ask again then. `new`: it has just been forked.
    #[inline]
    pub(crate) fn preempts(
        &mut self,
        (curr, running): (TaskId, &SchedEntity),
        (woken, waking): (TaskId, &SchedEntity),
        new: impl FnOnce() -> bool,
        fair: &FairTunables,
    ) -> Option<Next> {
        match &mut self.timeline {
            Timeline::Cfs(cfs) => {
                if !cfs.preempts(running.vruntime, waking.vruntime, waking.weight, fair) {
                    return None;
                }
                cfs.set_buddies(woken, curr, fair);
                Some(Next::Run(woken))
            }
            Timeline::Eevdf(eevdf) => eevdf.preempts(woken, new()),
        }
    }

    /// Dequeues a delayed task of these, before its turn.
    pub(crate) fn dequeue_a_delayed(
        &mut self,
        of: impl Fn(TaskId) -> bool,
    ) -> Option<(TaskId, i64)> {
        match &mut self.timeline {
            Timeline::Cfs(_) => None,
            Timeline::Eevdf(eevdf) => eevdf.dequeue_a_delayed(of),
        }
    }

    /// check_preempt_tick(): has the current task had its slice, `ran` ns after it was
    /// picked? EEVDF answers that in [`RunQueue::charge`].
    pub(crate) fn slice_ends(
        &mut self,
        (curr, t): (TaskId, &SchedEntity),
        ran: Ns,
        fair: &FairTunables,
    ) -> bool {
        match &mut self.timeline {
            Timeline::Cfs(cfs) => {
                cfs.slice_ends((curr, t.vruntime), t.weight, self.weight, ran, fair)
            }
            Timeline::Eevdf(_) => false,
        }
    }

    /// Is it a task that CFS prefers at the next pick?
    pub(crate) fn is_buddy(&self, task: TaskId) -> bool {
        match &self.timeline {
            Timeline::Cfs(cfs) => cfs.next_buddy == task || cfs.last_buddy == task,
            Timeline::Eevdf(_) => false,
        }
    }

    /// Checks the timeline against the tasks: what is kept of both agrees.
    #[cfg(debug_assertions)]
    pub(crate) fn check(&self, vruntime: impl Fn(TaskId) -> i64, curr: Option<TaskId>) {
        match &self.timeline {
            Timeline::Cfs(cfs) => {
                for waiting in cfs.waiting() {
                    assert_eq!(vruntime(waiting.task), waiting.vruntime);
                }
            }
            Timeline::Eevdf(eevdf) => eevdf.check(curr),
        }
    }

    /// Tasks that sleep, and stay queued until their lag is repaid.
    #[cfg(debug_assertions)]
    pub(crate) fn delayed(&self) -> impl Iterator<Item = TaskId> + '_ {
        let queued = match &self.timeline {
            Timeline::Cfs(_) => &[],
            Timeline::Eevdf(eevdf) => eevdf.queued(),
        };
        queued.iter().filter(|e| e.delayed).map(|e| e.task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// dequeue_entity(): a task that is about to be preempted, and sleeps first, is not preferred once it wakes.
    #[test]
    fn a_task_that_sleeps_is_no_buddy() {
        let tunables = reveille_policy::Policy::baseline("v6.2").unwrap().tunables(8, 250);
        let fair = FairTunables { nr_latency: 1, ..FairTunables::new(&tunables, 8) };
        let mut rq = RunQueue::new(&fair);
        let (curr, woken) = (TaskId(0), TaskId(1));
        let mut running = SchedEntity { vruntime: 1_000_000_000, ..SchedEntity::new() };
        let mut waking = SchedEntity::new();
        rq.arrive(curr, &mut running, Arrival::Moved, &fair);
        assert!(rq.pick(&fair).is_some());
        rq.arrive(woken, &mut waking, Arrival::Moved, &fair);
        let preempts = rq.preempts((curr, &running), (woken, &waking), || false, &fair);
        assert_eq!(preempts, Some(Next::Run(woken)));
        assert!(rq.is_buddy(curr) && rq.is_buddy(woken));
        assert!(rq.block(curr, &mut running, &fair));
        assert!(!rq.is_buddy(curr) && rq.is_buddy(woken));
    }
}

//! One task as the simulator sees it: where it is, how far its program has come,
//! and its place on the fair timeline. What placement decisions remember of it
//! is in [`reveille_policy::Task`].

use reveille_measure::Ns;
use reveille_policy::{CpuId, TaskId};
use reveille_workload::{MAX_DEPTH, TaskSpec};

use crate::rq::entity::SchedEntity;
use crate::rq::pelt::{Averages, window_passed};

/// Estimates that are closer to the utilisation stay (UTIL_EST_MARGIN, 1% of a CPU).
const UTIL_EST_MARGIN: f64 = 10.0;

/// Where a task is. A task is in exactly one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Place {
    /// Waiting for a message, a post or a timer.
    #[default]
    Blocked,
    /// A waker is choosing its CPU.
    Waking,
    /// On the wake list of a CPU.
    WakeList(CpuId),
    /// Runnable on the queue of a CPU.
    Queued(CpuId),
    /// Asleep, but still on the queue of a CPU until its lag is repaid (EEVDF).
    Delayed(CpuId),
    /// Runnable, but its group is throttled on that CPU.
    Held(CpuId),
    /// Current on a CPU.
    Running(CpuId),
}

/// What was left of an activity when the task was preempted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Saved {
    pub(crate) busy_ns: Ns,
    /// Waits and kernel work before it.
    pub(crate) overhead_ns: Ns,
    pub(crate) user: bool,
    pub(crate) some: bool,
}

/// A cache line of 64 bytes to a paragraph; what an exchange of messages needs comes first.
#[derive(Clone, Default)]
#[repr(C, align(64))]
pub(crate) struct Task {
    pub(crate) place: Place,
    pub(crate) se: SchedEntity,
    /// Place of its next operation in the code.
    pub(crate) pc: u32,
    /// The operation has blocked once and is being completed.
    pub(crate) resumed: bool,
    /// Its operation has slept: it did not find at once what it asked for.
    pub(crate) slept: bool,
    /// It has left one queue and not yet joined the next.
    pub(crate) attaching: bool,
    /// Its futex has been posted and not yet consumed.
    pub(crate) posted: bool,
    /// When its current wake-up began; 0 if it is not waking.
    pub(crate) wake_at: Ns,

    pub(crate) averages: Averages,
    pub(crate) util_est: f64,
    pub(crate) util_est_ewma: f64,
    /// When they were last updated.
    pub(crate) estimated_at: Ns,
    pub(crate) exec_start: Ns,
    /// When it was last enqueued or picked.
    pub(crate) listed_at: Ns,
    /// Until then its last CPU is still switching away from it.
    pub(crate) on_cpu_until: Ns,

    pub(crate) spec: TaskSpec,
    pub(crate) saved: Saved,
    /// The CPU that woke it.
    pub(crate) waker_cpu: CpuId,
    /// The CPU on which it executed last: its cache is warm there.
    pub(crate) warm_cpu: CpuId,
    /// That CPU's count of switches then.
    pub(crate) switched_in: u32,
    /// Next task that waits for the same thing, or that the same operation wakes.
    pub(crate) next_waiter: TaskId,
    /// First task that its operation still has to wake.
    pub(crate) to_wake: TaskId,

    /// It blocks on its futex.
    pub(crate) waits_futex: bool,
    /// Time of the `WakeList` operation in progress.
    pub(crate) batch_at: Option<Ns>,
    /// Next task that this batch wakes.
    pub(crate) batch: TaskId,
    /// When a batch wake-up noted it (schbench's timestamp).
    pub(crate) noted_at: Ns,
    /// Wall-clock end of a spin in progress; 0 if none.
    pub(crate) spin_until: Ns,
    /// Random part of a wait's timeout, drawn once.
    pub(crate) wait_jitter: Option<Ns>,
    /// It will be forked when its timer fires; it has no place yet.
    pub(crate) unborn: bool,
    /// Number of its pending timer; a timer with another number is void.
    pub(crate) timer: u64,
    /// Flags of the wakeups of `to_wake`.
    pub(crate) to_wake_flags: u32,
    /// It blocks until it gets a request.
    pub(crate) waits_request: bool,
    /// Requests of the operation in progress that are still to be sent.
    pub(crate) requests_left: u32,
    /// Whose turn the next request is.
    pub(crate) request_turn: u32,
    /// Rounds done of the loops that it is in.
    pub(crate) rounds: [u32; MAX_DEPTH],
    /// The CPU whose lock it has.
    pub(crate) cpu_lock: CpuId,
    /// Work that has arrived for it so far.
    pub(crate) arrived: u64,
    /// When its present period began.
    pub(crate) period_at: Ns,
    /// Next task on the list that it has joined.
    pub(crate) list_next: TaskId,
    /// Shared wake queue on which it stands.
    pub(crate) shared_queue: Option<usize>,
}

impl Task {
    pub(crate) fn new(spec: TaskSpec, pc: u32, cpu: CpuId) -> Task {
        Task {
            spec,
            pc,
            batch: TaskId::NONE,
            se: SchedEntity::new(),
            waker_cpu: cpu,
            warm_cpu: cpu,
            next_waiter: TaskId::NONE,
            to_wake: TaskId::NONE,
            cpu_lock: CpuId::NONE,
            list_next: TaskId::NONE,
            ..Task::default()
        }
    }

    /// util_est_update() as the task goes to sleep: the estimate rises at once, and decays by a quarter
    /// of the difference; at most once per window. If `waits_keep`, it does not decay after an
    /// activation with waits.
    #[inline]
    pub(crate) fn estimate_util(&mut self, now: Ns, waits_keep: bool) {
        if !window_passed([self.estimated_at, now]) {
            return;
        }
        self.estimated_at = now;
        let Averages { util, runnable, .. } = self.averages;
        let ewma = &mut self.util_est_ewma;
        if util >= *ewma {
            *ewma = util;
        } else if *ewma - util >= UTIL_EST_MARGIN
            && !(waits_keep && util + UTIL_EST_MARGIN < runnable)
        {
            *ewma += (util - *ewma) / 4.0;
        }
        self.util_est = if waits_keep { 0.0 } else { util };
    }

    /// `max(ewma, enqueued)`: the utilisation expected of it when it runs again.
    #[inline]
    pub(crate) fn util_est(&self) -> f64 {
        if self.util_est > self.util_est_ewma { self.util_est } else { self.util_est_ewma }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A task of 200 that was expected to use 400: after a window the estimate falls by a quarter of the
    /// difference, but since v6.8 not if it has waited for as long as it ran.
    #[test]
    fn an_estimate_falls_once_a_window_and_not_after_waits() {
        let task = |runnable| Task {
            averages: Averages { util: 200.0, runnable, ..Averages::default() },
            util_est_ewma: 400.0,
            ..Task::default()
        };
        let after = |mut task: Task, times: &[Ns], waits_keep| {
            times.iter().for_each(|&at| task.estimate_util(at, waits_keep));
            task.util_est()
        };
        assert_eq!(after(task(200.0), &[1 << 20, 3 << 19], true), 350.0);
        assert_eq!(after(task(200.0), &[1 << 20, 2 << 20], true), 312.5);
        assert_eq!(after(task(400.0), &[1 << 20, 2 << 20], true), 400.0);
        assert_eq!(after(task(400.0), &[1 << 20], false), 350.0);
        assert_eq!(after(Task { util_est_ewma: 205.0, ..task(200.0) }, &[1 << 20], true), 205.0);
    }
}

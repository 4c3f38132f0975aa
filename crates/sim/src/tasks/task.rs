//! One task as the simulator sees it: where it is, how far its program has come,
//! and its place on the fair timeline. What placement decisions remember of it
//! is in [`reveille_policy::Task`].

use reveille_measure::Ns;
use reveille_policy::{CpuId, TaskId};
use reveille_workload::{MAX_DEPTH, TaskSpec};

use crate::rq::entity::SchedEntity;
use crate::rq::pelt::Averages;

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

    /// `max(ewma, enqueued)`: the utilisation expected of it when it runs again.
    #[inline]
    pub(crate) fn util_est(&self) -> f64 {
        if self.util_est > self.util_est_ewma { self.util_est } else { self.util_est_ewma }
    }
}

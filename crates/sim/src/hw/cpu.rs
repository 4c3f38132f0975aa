//! One CPU: its current activity, runqueue, idle bookkeeping and time accounting.

use reveille_measure::{CpuTime, Ns};
use reveille_policy::{Pick, TaskId};

use crate::hw::clock::NEVER;
use crate::hw::clock_speed::{Speed, Speeds};
use crate::hw::contention::Lock;
use crate::hw::governor::Governor;
use crate::rq::pelt::{Averages, Decay, FULL_CLOCK};
use crate::rq::runqueue::RunQueue;

/// What the current activity leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// In the idle task; nothing ends by itself.
    Idle,
    /// Exiting idle; then interrupts, the wake list and the runqueue are processed.
    IdleExit,
    /// Taking its runqueue lock for the wake list, after idle and with the pending bit cleared:
    /// looks idle to other CPUs (before v6.2). Then the list is enqueued.
    Drain,
    /// Has enqueued a wakee after idle, and is on the way to the pick; with a shared wake queue another CPU
    /// may take it until then.
    Pick,
    /// Nothing is left on its runqueue, and `prev` is off it; then the shared wake queues are looked at.
    Pull { prev: TaskId },
    /// New-idle balancing; then the runqueue is checked again.
    NewIdle,
    /// The current task's operation; then its effect.
    Op,
    /// Waiting for the wakee to be switched out; then its CPU is selected.
    Select { wakee: TaskId, flags: u32 },
    /// Searching, and what follows; then the wakee is enqueued where it was selected to go.
    Commit { wakee: TaskId, pick: Pick, flags: u32 },
}

/// Work and waiting from `start` on: first `stall`, then `cost`, then `busy`. Stalls (lines, locks,
/// cold caches, idle exits) are wall time; cost and busy are at full speed and take longer while a
/// sibling is busy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Activity {
    pub(crate) start: Ns,
    pub(crate) stall: Ns,
    pub(crate) cost: Ns,
    pub(crate) busy: Ns,
    /// Until when the busy part spins on the clock; 0 if it does not.
    pub(crate) until: Ns,
    /// End of stall and cost at the current speed.
    overhead_end: Ns,
    /// The busy part runs in user space.
    pub(crate) user: bool,
}

impl Activity {
    #[inline]
    pub(crate) fn new(start: Ns, stall: Ns, cost: Ns, busy: Ns) -> Activity {
        Activity { start, stall, cost, busy, until: 0, overhead_end: start, user: false }
    }
}

/// Duration of a step: waiting in wall time, and work at full speed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Toll {
    pub(crate) stall: Ns,
    pub(crate) cost: Ns,
}

impl Toll {
    pub(crate) fn cost(cost: impl Into<Ns>) -> Toll {
        Toll { stall: 0, cost: cost.into() }
    }
}

impl std::ops::AddAssign for Toll {
    #[inline]
    fn add_assign(&mut self, more: Toll) {
        self.stall += more.stall;
        self.cost += more.cost;
    }
}

/// A cache line of 64 bytes to a paragraph; what a busy CPU needs comes first.
#[derive(Clone)]
#[repr(C, align(64))]
pub(crate) struct Cpu {
    /// End of the activity.
    pub(crate) end: Ns,
    pub(crate) tick_at: Ns,
    pub(crate) ipi_at: Ns,
    /// When HRTICK's timer fires; `NEVER` if it is not set.
    pub(crate) hrtick_at: Ns,
    pub(crate) step: Step,
    pub(crate) need_resched: bool,
    /// Switches to a task, for the age of what a task left in the caches.
    pub(crate) switches: u32,
    /// 1 more than the tickless CPUs that it has balanced for in a NOHZ balance; 0 if it does none.
    pub(crate) nohz_next: u32,
    /// Siblings that are not idle.
    pub(crate) busy_siblings: u8,
    /// A task has joined or left the averages since the report.
    pub(crate) removed: bool,
    pub(crate) idle_state: u8,
    pub(crate) tick_stopped: bool,
    /// An idle interval has ended in this run.
    pub(crate) has_idled: bool,

    pub(crate) activity: Activity,
    pub(crate) idle_stamp: Ns,
    /// From when on other CPUs see that it is busy, or idle, as it is now.
    pub(crate) looks_so_from: Ns,

    /// By the number of busy siblings, and the socket's clock.
    pub(crate) speeds: Speeds,
    pub(crate) lock: Lock,
    /// Share of the task group's load_avg that this CPU has reported.
    pub(crate) group_contrib: i64,
    /// Weight of the task group's entity on this CPU.
    pub(crate) entity_weight: u32,
    /// When `group_contrib` was last compared with the averages.
    pub(crate) reported_at: Ns,

    pub(crate) rq: RunQueue,
    pub(crate) util_est: f64,

    pub(crate) averages: Averages,
    /// Running time that the averages have not counted, as the clock was lower.
    pub(crate) uncounted_ns: Ns,
    /// The clock at the last tick, of [`FULL_CLOCK`].
    pub(crate) counted_clock: u32,
    pub(crate) time: CpuTime,
    /// When the current task was picked: the tick counts its slice from here.
    pub(crate) picked_at: Ns,
    /// When the last switch between tasks was over.
    pub(crate) switched_at: Ns,

    /// Wake list, and whether its IPI is in flight.
    pub(crate) wake_list: Vec<TaskId>,
    /// Tasks whose timers fired here during the idle exit.
    pub(crate) fired: Vec<TaskId>,
    /// When the idle task becomes current; before that, the CPU is switching to it.
    pub(crate) idle_from: Ns,
    /// End of the idle time accounted so far.
    pub(crate) idle_accounted: Ns,

    pub(crate) max_idle_balance_cost: Ns,
    pub(crate) governor: Governor,
    /// Start of the idle task's time not counted yet; `NEVER` while a task is current.
    pub(crate) idle_task_from: Ns,
    /// Its windows of averages end so long before full multiples of their length.
    pub(crate) window_phase: Ns,
    /// Earliest time of the next report, if reports are rate-limited.
    pub(crate) report_again_at: Ns,
}

impl Cpu {
    pub(crate) fn new(rq: RunQueue) -> Cpu {
        Cpu {
            step: Step::Idle,
            activity: Activity::new(0, 0, 0, 0),
            end: NEVER,
            speeds: Speeds::FULL,
            switches: 0,
            busy_siblings: 0,
            tick_at: NEVER,
            ipi_at: NEVER,
            hrtick_at: NEVER,
            need_resched: false,
            nohz_next: 0,
            rq,
            lock: Lock::default(),
            wake_list: Vec::new(),
            fired: Vec::new(),
            averages: Averages::default(),
            uncounted_ns: 0,
            counted_clock: FULL_CLOCK,
            util_est: 0.0,
            group_contrib: 0,
            entity_weight: 0,
            reported_at: 0,
            window_phase: 0,
            picked_at: 0,
            switched_at: 0,
            report_again_at: 0,
            removed: false,
            idle_stamp: 0,
            looks_so_from: 0,
            max_idle_balance_cost: 500_000,
            governor: Governor::default(),
            idle_from: 0,
            idle_state: 0,
            idle_task_from: 0,
            tick_stopped: true,
            has_idled: false,
            time: CpuTime::default(),
            idle_accounted: 0,
        }
    }

    /// Time of this CPU's next event.
    #[inline]
    pub(crate) fn deadline(&self) -> Ns {
        self.end.min(self.tick_at).min(self.ipi_at).min(self.hrtick_at)
    }

    /// Wall time of kernel work at the current speed.
    #[inline]
    pub(crate) fn stretch(&self, nominal: Ns) -> Ns {
        self.speeds.kernel.stretch(nominal)
    }

    /// Speed of the activity's busy part.
    #[inline]
    fn busy_speed(&self) -> Speed {
        if self.activity.user { self.speeds.user } else { self.speeds.kernel }
    }

    /// Updates the queue's averages to `to`.
    #[inline(always)]
    pub(crate) fn advance(&mut self, decay: &Decay, to: Ns, running: bool, weight: u64, nr: u32) {
        if running {
            let clock = self.counted_clock;
            self.uncounted_ns += self.averages.advance_running(decay, to, clock, weight, nr);
        } else {
            self.averages.advance(decay, to, false, weight, nr);
        }
    }

    /// Goes on at these speeds. Returns whether that moves the end of its activity.
    #[inline]
    pub(crate) fn set_speeds(&mut self, speeds: &Speeds, now: Ns) -> bool {
        if self.speeds == *speeds {
            return false;
        }
        let active = !self.is_idle();
        if active {
            self.settle(now);
        }
        self.speeds = *speeds;
        if active {
            self.plan_end();
        }
        active
    }

    /// Recomputes the end after a change of activity or speed.
    #[inline(always)]
    pub(crate) fn plan_end(&mut self) {
        let a = &self.activity;
        let mut overhead_end = a.start + a.stall;
        if a.cost != 0 {
            overhead_end += self.stretch(a.cost);
        }
        self.end = if a.until != 0 {
            a.until.max(overhead_end)
        } else {
            overhead_end + self.busy_speed().stretch(a.busy)
        };
        self.activity.overhead_end = overhead_end;
    }

    /// When the activity's overhead ends and the task itself proceeds.
    #[inline]
    pub(crate) fn busy_from(&self) -> Ns {
        self.activity.overhead_end
    }

    /// Completes the activity at `now`, its end.
    #[inline]
    pub(crate) fn finish(&mut self, now: Ns) {
        let a = &self.activity;
        let elapsed = now - a.start;
        let overhead = elapsed.min(a.overhead_end - a.start);
        self.time.cost_ns += overhead;
        self.time.busy_ns += elapsed - overhead;
        // The next activity begins before the event is over.
        self.activity.start = now;
    }

    /// Accounts the activity up to `now` and keeps the remainder.
    #[inline]
    pub(crate) fn settle(&mut self, now: Ns) {
        let a = self.activity;
        if now <= a.start {
            return; // it begins when the switch to idle is over
        }
        let mut elapsed = now - a.start;
        let stalled = elapsed.min(a.stall);
        elapsed -= stalled;
        let cost_wall = self.stretch(a.cost);
        let (cost_done, cost_elapsed) = if elapsed >= cost_wall {
            (a.cost, cost_wall)
        } else {
            (self.speeds.kernel.done_in(elapsed).min(a.cost), elapsed)
        };
        elapsed -= cost_elapsed;
        let busy_done = self.busy_speed().done_in(elapsed).min(a.busy);
        self.time.cost_ns += stalled + cost_elapsed;
        self.time.busy_ns += elapsed;
        let (stall, cost) = (a.stall - stalled, a.cost - cost_done);
        self.activity = Activity {
            start: now,
            stall,
            cost,
            busy: a.busy - busy_done,
            until: a.until,
            overhead_end: now + stall + self.stretch(cost),
            user: a.user,
        };
    }

    /// Adds kernel work to the running activity, as an interrupt does.
    #[inline]
    pub(crate) fn interrupt(&mut self, now: Ns, stall: Ns, cost: Ns) {
        self.settle(now);
        self.activity.stall += stall;
        self.activity.cost += cost;
        self.plan_end();
    }

    /// Accounts idle time up to `now`.
    #[inline]
    pub(crate) fn account_idle(&mut self, now: Ns) {
        if now > self.idle_accounted {
            self.time.idle_ns += now - self.idle_accounted;
            self.idle_accounted = now;
        }
    }

    /// Time after `now` that is already accounted: the rest of the switch to idle, and idle time
    /// until an IPI in flight arrives.
    pub(crate) fn ahead(&self, now: Ns) -> CpuTime {
        let mut ahead = CpuTime::default();
        if matches!(self.step, Step::Idle | Step::IdleExit) {
            ahead.cost_ns = self.idle_from.saturating_sub(now);
        }
        if self.step == Step::IdleExit {
            ahead.idle_ns = self.activity.start.saturating_sub(now.max(self.idle_from));
        }
        ahead
    }

    /// max(util_avg, sum of util_est of queued tasks), at most one CPU.
    #[inline]
    pub(crate) fn util(&self) -> u64 {
        let (util, expected) = (self.averages.util, self.util_est);
        let util = if util > expected { util } else { expected };
        u64::from((if util < 1024.0 { util } else { 1024.0 }) as u32)
    }

    /// Is the idle task current?
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.step, Step::Idle)
    }

    /// Is it exiting idle? New events are then processed after the exit.
    #[inline]
    pub(crate) fn leaves_idle(&self) -> bool {
        matches!(self.step, Step::IdleExit | Step::Drain)
    }

    #[inline]
    pub(crate) fn runs_task(&self) -> bool {
        matches!(self.step, Step::Op | Step::Select { .. } | Step::Commit { .. })
    }
}

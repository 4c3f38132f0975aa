//! CPU bandwidth control of a task group: the Rust face of `policy/bandwidth.h`.
//! Settings and what is wrong with them; the group's pool; its queue on one CPU.

mod ffi;

use std::fmt;

use reveille_measure::duration_text;
use reveille_place::Mistake;
use serde::{Deserialize, Serialize};

use crate::Ns;

/// Stands for "no quota" in C.
const NO_QUOTA: Ns = Ns::MAX;

/// Quota, period and burst of a task group, as `cpu.max` and `cpu.max.burst` set them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BandwidthLimits {
    /// CPU time that the group may use in a period; `None` for no limit.
    pub quota_ns: Option<Ns>,
    /// After this time the quota is refilled; 100 ms by default.
    pub period_ns: Ns,
    /// Unused quota that may be kept for later periods.
    pub burst_ns: Ns,
}

impl Default for BandwidthLimits {
    fn default() -> BandwidthLimits {
        BandwidthLimits { quota_ns: None, period_ns: 100_000_000, burst_ns: 0 }
    }
}

/// In microseconds, the unit of the kernel's files: `quota 20000 us per 100000 us, burst 0 us`.
impl fmt::Display for BandwidthLimits {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let us = |ns: Ns| ns as f64 / 1e3;
        match self.quota_ns {
            Some(quota) => write!(f, "quota {} us per {} us", us(quota), us(self.period_ns))?,
            None => write!(f, "no quota, period {} us", us(self.period_ns))?,
        }
        write!(f, ", burst {} us", us(self.burst_ns))
    }
}

/// Why the kernel refuses settings (EINVAL for all of them), in the order in which it
/// looks. The root group takes no settings at all.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "each message says what its fields are")]
pub enum BandwidthError {
    /// The quota is below 1 ms.
    QuotaTooShort { quota_ns: Ns },
    /// The period is below 1 ms.
    PeriodTooShort { period_ns: Ns },
    /// The period is above 1 s.
    PeriodTooLong { period_ns: Ns },
    /// The quota is above 2^44 - 1 us.
    QuotaTooLong { quota_ns: Ns },
    /// The burst is above the quota.
    BurstAboveQuota { burst_ns: Ns, quota_ns: Ns },
    /// Burst and quota together are above 2^44 - 1 us.
    BurstTooLong { burst_ns: Ns, quota_ns: Ns },
    /// A group has more CPU than one that it lies in: cgroup v1 only.
    AboveParent {
        /// Quota divided by period.
        cpus: f64,
        /// Quota divided by period of the nearest limited ancestor.
        parent_cpus: f64,
    },
}

impl BandwidthError {
    /// The rule that is broken, and the remedy.
    pub fn mistake(self) -> Mistake {
        let most = "17,592,186,044,415 us (203 days) that the kernel accepts";
        let text = |ns: Ns| duration_text(ns as f64);
        let (problem, help) = match self {
            BandwidthError::QuotaTooShort { quota_ns } => (
                format!("a quota of {} is less than 1 ms", text(quota_ns)),
                "raise it, or leave it out for no limit",
            ),
            BandwidthError::PeriodTooShort { period_ns } => {
                (format!("a period of {} is less than 1 ms", text(period_ns)), "use 1 ms to 1 s")
            }
            BandwidthError::PeriodTooLong { period_ns } => {
                (format!("a period of {} is more than 1 s", text(period_ns)), "use 1 ms to 1 s")
            }
            BandwidthError::QuotaTooLong { quota_ns } => (
                format!("a quota of {} is more than the {most}", text(quota_ns)),
                "lower it, or leave it out for no limit",
            ),
            BandwidthError::BurstAboveQuota { burst_ns, quota_ns } => (
                format!(
                    "a burst of {} is more than the quota of {}",
                    text(burst_ns),
                    text(quota_ns)
                ),
                "lower the burst to at most the quota, or raise the quota first",
            ),
            BandwidthError::BurstTooLong { burst_ns, quota_ns } => (
                format!(
                    "burst and quota of {} + {} are together more than the {most}",
                    text(burst_ns),
                    text(quota_ns)
                ),
                "lower one of them",
            ),
            BandwidthError::AboveParent { cpus, parent_cpus } => (
                format!(
                    "quota/period is {cpus:.3} CPUs, more than the {parent_cpus:.3} of a group \
                     around it"
                ),
                "lower it, or raise the outer group first (cgroup v2 would take the lesser)",
            ),
        };
        Mistake::new(problem, help)
    }
}

/// The rule and its remedy in one sentence.
impl fmt::Display for BandwidthError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Mistake { problem, help } = self.mistake();
        write!(f, "{problem}; {help}")
    }
}

impl std::error::Error for BandwidthError {}

/// Quota per period as the kernel compares it: in 2^-20 of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CpuRatio(u64);

impl BandwidthLimits {
    /// Would the kernel accept these settings for a group of its own? Names the first
    /// rule that they break (`tg_set_cfs_bandwidth()`, v5.14 to v6.12).
    pub fn check(&self) -> Result<(), BandwidthError> {
        let (quota_ns, period_ns, burst_ns) = (self.quota(), self.period_ns, self.burst_ns);
        match ffi::check(quota_ns, period_ns, burst_ns) {
            0 => Ok(()),
            1 => Err(BandwidthError::QuotaTooShort { quota_ns }),
            2 => Err(BandwidthError::PeriodTooShort { period_ns }),
            3 => Err(BandwidthError::PeriodTooLong { period_ns }),
            4 => Err(BandwidthError::QuotaTooLong { quota_ns }),
            5 => Err(BandwidthError::BurstAboveQuota { burst_ns, quota_ns }),
            _ => Err(BandwidthError::BurstTooLong { burst_ns, quota_ns }),
        }
    }

    /// The hierarchy's rule of cgroup v1: no more CPU than the nearest limited group
    /// around it. `around` are those groups, the nearest first; bursts are not compared.
    pub fn check_in(&self, around: &[BandwidthLimits]) -> Result<(), BandwidthError> {
        let ratio = self.ratio();
        let parent = around.iter().map(BandwidthLimits::ratio).find(|&r| r.0 != NO_QUOTA);
        let Some(parent) = parent else { return Ok(()) };
        if ffi::check_child(ratio.0, parent.0) == 0 {
            return Ok(());
        }
        Err(BandwidthError::AboveParent { cpus: ratio.cpus(), parent_cpus: parent.cpus() })
    }

    /// In microseconds, as the kernel's files have them.
    pub fn of_us(quota: Option<u64>, period: u64, burst: u64) -> BandwidthLimits {
        let quota_ns = quota.map(|us| us * 1000);
        BandwidthLimits { quota_ns, period_ns: period * 1000, burst_ns: burst * 1000 }
    }

    /// CPUs that it reserves; nothing without a quota.
    pub fn cpus(&self) -> Option<f64> {
        self.quota_ns.map(|quota| quota as f64 / self.period_ns as f64)
    }

    /// CPUs that the group can use at most, by its own settings and, as cgroup v2 takes
    /// it, those of all groups `around` it; `None` without any limit.
    pub fn effective_cpus(&self, around: &[BandwidthLimits]) -> Option<f64> {
        let all = around.iter().map(BandwidthLimits::ratio);
        let least = all.fold(self.ratio(), |a, b| CpuRatio(ffi::effective(a.0, b.0)));
        (least.0 != NO_QUOTA).then(|| least.cpus())
    }

    /// These limits in whole microseconds, as in the kernel's files. Quota and burst are rounded
    /// down, so that the burst stays within the quota; the period to the nearest.
    pub fn in_whole_us(&self) -> BandwidthLimits {
        let down = |ns: Ns| ns / 1000 * 1000;
        BandwidthLimits {
            quota_ns: self.quota_ns.map(down),
            period_ns: down(self.period_ns.saturating_add(500)),
            burst_ns: down(self.burst_ns),
        }
    }

    fn ratio(&self) -> CpuRatio {
        CpuRatio(ffi::ratio(self.quota(), self.period_ns))
    }

    /// The quota as C has it; no quota in ns is as large as the number for none.
    fn quota(&self) -> Ns {
        self.quota_ns.map_or(NO_QUOTA, |quota| quota.min(NO_QUOTA - 1))
    }
}

impl CpuRatio {
    fn cpus(self) -> f64 {
        self.0 as f64 / f64::from(1u32 << 20)
    }
}

/// What one pass of the period timer found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeriodStep {
    /// No period has ended.
    NotDue,
    /// The timer has stopped; it starts again at the next draw.
    Stopped,
    /// Refilled, without throttled queues waiting for runtime.
    Rested,
    /// Refilled, and throttled queues wait: [`Pool::grant`] to each in order.
    Distribute,
}

/// A task group's settings and remaining quota (`struct cfs_bandwidth`).
/// The list of throttled queues belongs to the caller.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pool {
    quota_ns: Ns,
    period_ns: Ns,
    burst_ns: Ns,
    runtime_ns: Ns,
    runtime_snap_ns: Ns,
    refill_at_ns: Ns,
    slack_at_ns: Ns,
    nr_periods: u64,
    nr_throttled: u64,
    nr_bursts: u64,
    throttled_ns: Ns,
    burst_used_ns: Ns,
    throttled_queues: u32,
    idle: u32,
    period_active: u32,
    slack_started: u32,
}

/// A group's queue on one CPU: what it has drawn and not yet used. It belongs to one
/// pool, and every call takes both.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LocalRuntime {
    remaining_ns: i64,
    throttled_at_ns: Ns,
    enabled: u32,
    throttled: u32,
}

impl LocalRuntime {
    /// A queue of a group with these limits that has drawn nothing.
    pub fn new(limits: &BandwidthLimits) -> LocalRuntime {
        LocalRuntime { enabled: u32::from(limits.quota_ns.is_some()), ..LocalRuntime::default() }
    }

    /// Drawn and not used, in ns; negative if it overran.
    #[inline]
    pub fn remaining_ns(&self) -> i64 {
        self.remaining_ns
    }

    /// Is its own group limited? Otherwise it is never charged nor throttled.
    #[inline]
    pub fn enabled(&self) -> bool {
        self.enabled != 0
    }

    /// Has it been thrown off its CPU?
    #[inline]
    pub fn throttled(&self) -> bool {
        self.throttled != 0
    }

    /// Since when, if it is throttled.
    pub fn throttled_since_ns(&self) -> Option<Ns> {
        self.throttled().then_some(self.throttled_at_ns)
    }
}

impl Pool {
    /// The pool of a group whose limits are set at `now_ns`: one quota is in it. Periods
    /// end at `phase_ns` plus multiples of the period.
    /// Errors: as [`BandwidthLimits::check`].
    pub fn new(limits: &BandwidthLimits, phase_ns: Ns, now_ns: Ns) -> Result<Pool, BandwidthError> {
        limits.check()?;
        let mut pool = Pool {
            quota_ns: NO_QUOTA,
            period_ns: limits.period_ns,
            refill_at_ns: phase_ns,
            ..Pool::default()
        };
        pool.set(limits, now_ns)?;
        Ok(pool)
    }

    /// Changes the settings, which refills one quota at once, even if they are what they
    /// were. The caller unthrottles every queue and replaces it by a new one.
    /// Errors: as [`BandwidthLimits::check`]; nothing has changed then.
    pub fn set(&mut self, limits: &BandwidthLimits, now_ns: Ns) -> Result<(), BandwidthError> {
        limits.check()?;
        ffi::set(self, limits.quota(), limits.period_ns, limits.burst_ns, now_ns);
        Ok(())
    }

    /// The settings in force; [`Pool::stretch`] changes them.
    pub fn limits(&self) -> BandwidthLimits {
        BandwidthLimits {
            quota_ns: (self.quota_ns != NO_QUOTA).then_some(self.quota_ns),
            period_ns: self.period_ns,
            burst_ns: self.burst_ns,
        }
    }

    /// An enabled queue has run for `delta_ns`; out of runtime, it draws a slice of
    /// `slice_ns`. False: the pool has nothing left, and what runs there is rescheduled.
    #[inline]
    pub fn account(
        &mut self,
        queue: &mut LocalRuntime,
        delta_ns: Ns,
        slice_ns: Ns,
        now_ns: Ns,
    ) -> bool {
        ffi::account(self, queue, delta_ns, slice_ns, now_ns)
    }

    /// Throttles the queue if it is out of runtime and the pool too. True: it now is, and
    /// the caller appends it to its list.
    #[inline]
    pub fn throttle(&mut self, queue: &mut LocalRuntime, now_ns: Ns) -> bool {
        ffi::throttle(self, queue, now_ns)
    }

    /// A throttled queue may run again.
    pub fn unthrottle(&mut self, queue: &mut LocalRuntime, now_ns: Ns) {
        debug_assert!(queue.throttled() && self.throttled_queues > 0);
        ffi::unthrottle(self, queue, now_ns);
    }

    /// Pays what the throttled queue at the head of the list has overrun, as far as the
    /// pool reaches. True: the caller unthrottles it.
    pub fn grant(&mut self, queue: &mut LocalRuntime) -> bool {
        debug_assert!(queue.throttled() && queue.remaining_ns <= 0);
        ffi::grant(self, queue)
    }

    /// The last task has left an enabled queue: all but 1 ms goes back.
    pub fn give_back(&mut self, queue: &mut LocalRuntime, slice_ns: Ns, now_ns: Ns) {
        ffi::give_back(self, queue, slice_ns, now_ns);
    }

    /// The slack timer has expired. True: distribute what has been given back.
    pub fn slack_timer(&mut self, slice_ns: Ns, now_ns: Ns) -> bool {
        ffi::slack(self, slice_ns, now_ns)
    }

    /// One pass of the period timer; to be repeated until it says [`PeriodStep::NotDue`]
    /// or [`PeriodStep::Stopped`].
    pub fn period_timer(&mut self, now_ns: Ns) -> PeriodStep {
        ffi::period(self, now_ns)
    }

    /// The period timer found itself late more than three times in one call: doubles
    /// quota, period and burst. False: the period would reach 1 s, and nothing changes.
    pub fn stretch(&mut self) -> bool {
        ffi::stretch(self)
    }

    /// When the period timer next expires, if it is active.
    pub fn refill_at_ns(&self) -> Option<Ns> {
        (self.period_active != 0).then_some(self.refill_at_ns)
    }

    /// When the slack timer expires, if it has been started.
    pub fn slack_at_ns(&self) -> Option<Ns> {
        (self.slack_started != 0).then_some(self.slack_at_ns)
    }

    /// What may be drawn now, in ns.
    pub fn runtime_ns(&self) -> Ns {
        self.runtime_ns
    }

    /// Throttled queues on the caller's list.
    pub fn throttled_queues(&self) -> u32 {
        self.throttled_queues
    }

    /// Periods that ended while the timer was active.
    pub fn nr_periods(&self) -> u64 {
        self.nr_periods
    }

    /// Those at whose end a queue was throttled.
    pub fn nr_throttled(&self) -> u64 {
        self.nr_throttled
    }

    /// Refills that found more than a quota drawn.
    pub fn nr_bursts(&self) -> u64 {
        self.nr_bursts
    }

    /// Time that queues were throttled, over all of them, without those that still are.
    pub fn throttled_ns(&self) -> Ns {
        self.throttled_ns
    }

    /// Runtime drawn beyond a quota per period.
    pub fn burst_used_ns(&self) -> Ns {
        self.burst_used_ns
    }
}

#[cfg(test)]
pub(crate) fn c_layout() -> String {
    use crate::layout::layout;
    let pool = layout! { Pool, "struct policy_bw_pool",
    quota_ns, period_ns, burst_ns, runtime_ns, runtime_snap_ns, refill_at_ns, slack_at_ns,
    nr_periods, nr_throttled, nr_bursts, throttled_ns, burst_used_ns, throttled_queues, idle,
    period_active, slack_started };
    pool + &layout! { LocalRuntime, "struct policy_bw_queue",
    remaining_ns, throttled_at_ns, enabled, throttled }
}

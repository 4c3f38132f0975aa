//! What a policy sets once for a whole run.

use reveille_machine::Machine;
use reveille_measure::Ns;
use reveille_policy::{Policy, Tunables, bits, changes};

use crate::rq::fair::FairTunables;
use crate::rq::pelt::Decay;

/// Features that only `Sim::select_cpu` and `Sim::ttwu_queue` heed: policies that differ in no others
/// have the same rules.
pub(crate) const AT_WAKEUPS: u64 = bits::SIS_SHORT
    | bits::SIS_CURRENT
    | bits::SIS_SHORT_V4
    | bits::SIS_CLUSTER
    | bits::WA_IDLE
    | bits::WA_WEIGHT
    | bits::WA_BIAS
    | bits::TTWU_QUEUE
    | bits::TTWU_QUEUE_ON_CPU
    | bits::TTWU_QUEUE_IDLE;

#[derive(Clone)]
pub(crate) struct Rules {
    pub(crate) tunables: Tunables,
    pub(crate) fair: FairTunables,
    pub(crate) decay: Decay,
    pub(crate) tick_ns: Ns,
    /// A task's time counts so many times against its slice and its virtual time: more than once
    /// in warm-up.
    pub(crate) pace: u64,
    /// Reports to the task group's load are limited in rate (LOAD_AVG_RATELIMIT).
    pub(crate) rate_limited: bool,
    /// A new-idle pass does not count blocked averages, moves all of the imbalance, and only raises
    /// its cost (before [`changes::NEWIDLE_ACCOUNTED`]). That it moves one task is a rule of CONFIG_PREEMPTION,
    /// which servers lacked until PREEMPT_DYNAMIC became the default.
    pub(crate) newidle_before_v5_16: bool,
    /// Factor by which a busy CPU balances less often than an idle one, and how much earlier than that
    /// ([`changes::CLOSER_BALANCE`]).
    pub(crate) busy_factor: u64,
    pub(crate) busy_earlier_ns: Ns,
    /// Imbalance in percent that domains above the cache tolerate ([`changes::CLOSER_BALANCE`]).
    pub(crate) imbalance_pct_above_llc: u64,
    /// Of a group's idle CPUs, one of an idle core balances ([`changes::IDLE_CORE_BALANCES`]).
    pub(crate) idle_core_balances: bool,
    /// An idle CPU prefers cores with two tasks, and only idle CPUs spread tasks over groups
    /// ([`changes::SMT_BALANCE`]).
    pub(crate) smt_balance: bool,
    /// Delayed tasks do not count when the busiest queue is sought ([`changes::DELAYED_NOT_BUSY`]).
    pub(crate) delayed_not_busy: bool,
    /// Delayed tasks do not count when a waker asks whether it is alone on its CPU
    /// ([`changes::ALONE_WITH_DELAYED`]).
    pub(crate) alone_with_delayed: bool,
    /// An idle interval ends as the idle task is switched away from, however the next task came
    /// ([`changes::IDLE_ENDS_AT_SWITCH`]).
    pub(crate) idle_ends_at_switch: bool,
    /// An activation with waits does not lower a task's estimated utilisation, which then has one part
    /// ([`changes::WAITS_KEEP_UTIL_EST`]).
    pub(crate) waits_keep_util_est: bool,
    /// Slices end on time (HRTICK).
    pub(crate) hrtick: bool,
    /// Throttled tasks run on until they return to user mode (THROTTLE_EXIT).
    pub(crate) throttles_at_exit: bool,
}

impl Rules {
    pub(crate) fn new(policy: &Policy, machine: &Machine) -> Rules {
        let n_cpus = machine.topology.n_cpus();
        let tunables = policy.tunables(n_cpus, machine.hz);
        let closer_balance = policy.since(changes::CLOSER_BALANCE);
        let tick_ns = 1_000_000_000 / Ns::from(machine.hz);
        let mut fair = FairTunables::new(&tunables, n_cpus);
        if let Some(eevdf) = &mut fair.eevdf {
            eevdf.pick_preempts = policy.since(changes::PICK_PREEMPTS);
        }
        Rules {
            tunables,
            fair,
            decay: Decay::new(),
            tick_ns,
            pace: 1,
            rate_limited: tunables.has(bits::LOAD_AVG_RATELIMIT),
            newidle_before_v5_16: !policy.since(changes::NEWIDLE_ACCOUNTED),
            busy_factor: if closer_balance { 16 } else { 32 },
            busy_earlier_ns: if closer_balance { tick_ns } else { 0 },
            imbalance_pct_above_llc: if closer_balance { 117 } else { 125 },
            idle_core_balances: policy.since(changes::IDLE_CORE_BALANCES),
            smt_balance: policy.since(changes::SMT_BALANCE),
            delayed_not_busy: policy.since(changes::DELAYED_NOT_BUSY),
            alone_with_delayed: policy.since(changes::ALONE_WITH_DELAYED),
            idle_ends_at_switch: policy.since(changes::IDLE_ENDS_AT_SWITCH),
            waits_keep_util_est: policy.since(changes::WAITS_KEEP_UTIL_EST),
            hrtick: tunables.has(bits::HRTICK),
            throttles_at_exit: tunables.has(bits::THROTTLE_EXIT),
        }
    }

    #[inline]
    pub(crate) fn has(&self, bit: u64) -> bool {
        debug_assert_eq!(bit & AT_WAKEUPS, 0, "a feature that followers may differ in");
        self.tunables.has(bit)
    }
}

//! What the fair class's timelines are tuned by: CFS up to v6.5, EEVDF from v6.6 on,
//! scaled by the number of CPUs, and the conversion of time into virtual time.

use reveille_measure::Ns;
use reveille_policy::{Tunables, bits, scaling_factor};

/// Weight of a task at nice 0.
pub(crate) const NICE_0: u64 = 1024;

/// The base slice as it is before scaling, which SLICE_PROTECT protects without RUN_TO_PARITY.
const UNSCALED_BASE_SLICE_NS: u32 = 700_000;

/// Tunables in ns, scaled by the number of CPUs (SCHED_TUNABLESCALING_LOG).
#[derive(Clone, Copy, Debug)]
pub(crate) struct FairTunables {
    pub(crate) latency: Ns,
    pub(crate) min_granularity: Ns,
    pub(crate) wakeup_granularity: Ns,
    /// Up to this many tasks share one latency period.
    pub(crate) nr_latency: u64,
    pub(crate) gentle: bool,
    pub(crate) start_debit: bool,
    pub(crate) last_buddy: bool,
    pub(crate) wakeup_preemption: bool,
    /// The timeline is EEVDF's, and these are its rules.
    pub(crate) eevdf: Option<EevdfRules>,
}

/// Rules of EEVDF.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EevdfRules {
    /// What a task asks for at a time.
    pub(crate) base_slice_ns: u32,
    pub(crate) unscaled_slice_ns: u32,
    pub(crate) tick_ns: u32,
    pub(crate) place_lag: bool,
    pub(crate) run_to_parity: bool,
    pub(crate) preempt_short: bool,
    pub(crate) delay_dequeue: bool,
    pub(crate) delay_zero: bool,
    pub(crate) slice_protect: bool,
    pub(crate) delayed_hidden: bool,
    /// `reveille_policy::changes::PICK_PREEMPTS`.
    pub(crate) pick_preempts: bool,
}

impl FairTunables {
    pub(crate) fn new(tunables: &Tunables, n_cpus: usize) -> FairTunables {
        let factor = scaling_factor(n_cpus);
        FairTunables {
            latency: 6_000_000 * factor,
            min_granularity: tunables.min_granularity_ns,
            wakeup_granularity: 1_000_000 * factor,
            nr_latency: 8,
            gentle: tunables.has(bits::GENTLE_FAIR_SLEEPERS),
            start_debit: tunables.has(bits::START_DEBIT),
            last_buddy: tunables.has(bits::LAST_BUDDY),
            wakeup_preemption: tunables.has(bits::WAKEUP_PREEMPTION),
            eevdf: tunables.has(bits::EEVDF).then(|| EevdfRules::new(tunables)),
        }
    }

    /// The CFS slice of a task of this weight among `nr` tasks weighing `total`.
    pub(crate) fn slice(&self, nr: u64, weight: u32, total: u64) -> Ns {
        let period = if nr > self.nr_latency { nr * self.min_granularity } else { self.latency };
        (period * u64::from(weight) / total.max(1)).max(self.min_granularity)
    }

    /// Tasks that sleep while they are queued do not count as running (DELAYED_HIDDEN).
    #[inline]
    pub(crate) fn hides_delayed(&self) -> bool {
        self.eevdf.is_some_and(|rules| rules.delayed_hidden)
    }
}

impl EevdfRules {
    pub(crate) fn new(tunables: &Tunables) -> EevdfRules {
        EevdfRules {
            base_slice_ns: tunables.min_granularity_ns as u32,
            unscaled_slice_ns: UNSCALED_BASE_SLICE_NS,
            tick_ns: 1_000_000_000 / tunables.hz,
            place_lag: tunables.has(bits::PLACE_LAG),
            run_to_parity: tunables.has(bits::RUN_TO_PARITY),
            preempt_short: tunables.has(bits::PREEMPT_SHORT),
            delay_dequeue: tunables.has(bits::DELAY_DEQUEUE),
            delay_zero: tunables.has(bits::DELAY_ZERO),
            slice_protect: tunables.has(bits::SLICE_PROTECT),
            delayed_hidden: tunables.has(bits::DELAYED_HIDDEN),
            pick_preempts: false,
        }
    }
}

/// Time in ns at this weight, as virtual time.
#[inline]
pub(crate) fn virtual_ns(delta: Ns, weight: u32) -> i64 {
    if u64::from(weight) == NICE_0 {
        delta as i64
    } else {
        (delta * NICE_0 / u64::from(weight.max(1))) as i64
    }
}

//! A latency histogram with a fixed relative error, cheap enough to record
//! every wake-up of a simulated machine.

use hdrhistogram::Histogram;

use crate::Ns;

/// Latencies in nanoseconds; values keep two significant digits (error < 1%).
#[derive(Clone, Debug)]
pub struct Latency(Histogram<u64>);

/// The largest latency kept apart; longer ones are counted at this value.
const MAX_NS: Ns = 1_000_000_000_000;

impl Default for Latency {
    fn default() -> Self {
        Latency(Histogram::new_with_bounds(1, MAX_NS, 2).expect("bounds are constant and valid"))
    }
}

impl Latency {
    /// Counts one latency.
    #[inline]
    pub fn record(&mut self, ns: Ns) {
        self.0.saturating_record(ns.min(MAX_NS));
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Latency) {
        self.0.add(&other.0).expect("both histograms have the same bounds");
    }

    /// How many latencies were counted.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The latency at quantile `q` (0 to 1) in ns; 0 if nothing was counted.
    pub fn quantile(&self, q: f64) -> Ns {
        if self.0.is_empty() { 0 } else { self.0.value_at_quantile(q) }
    }

    /// The largest latency counted, in ns.
    pub fn max(&self) -> Ns {
        if self.0.is_empty() { 0 } else { self.0.max() }
    }

    /// The cumulative distribution as (ns, share of samples at or below it).
    pub fn cdf(&self) -> Vec<(Ns, f64)> {
        let total = self.0.len() as f64;
        let mut seen = 0u64;
        self.0
            .iter_recorded()
            .map(|step| {
                seen += step.count_since_last_iteration();
                (step.value_iterated_to(), seen as f64 / total)
            })
            .collect()
    }
}

//! A latency histogram with a fixed relative error, cheap enough to record
//! every wake-up of a simulated machine.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::Ns;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "Vec<(Ns, u64)>", into = "Vec<(Ns, u64)>")]
pub struct Latency(Histogram<u64>);

/// The largest latency kept apart; longer ones are counted at this value.
const MAX_NS: Ns = 1_000_000_000_000;

impl Default for Latency {
    fn default() -> Self {
        Latency(Histogram::new_with_bounds(1, MAX_NS, 2).expect("bounds are constant and valid"))
    }
}

impl From<Vec<(Ns, u64)>> for Latency {
    /// Of lengths, and how often each was counted.
    fn from(counts: Vec<(Ns, u64)>) -> Latency {
        let mut latency = Latency::default();
        for (ns, n) in counts {
            latency.record_n(ns, n);
        }
        latency
    }
}

impl From<Latency> for Vec<(Ns, u64)> {
    /// The lengths that occur, as far as they are kept apart, and how often each does.
    fn from(latency: Latency) -> Vec<(Ns, u64)> {
        let steps = latency.0.iter_recorded();
        steps.map(|step| (step.value_iterated_to(), step.count_at_value())).collect()
    }
}

/// Samples that must lie beyond a quantile for it to mean something.
pub const BEYOND_QUANTILE: u64 = 10;

/// How many samples this quantile needs; any number will do for the largest (1).
pub fn needed_for(quantile: f64) -> u64 {
    if quantile >= 1.0 {
        return 1;
    }
    // Not to be undone by rounding: 1,000 are enough for p99.
    (BEYOND_QUANTILE as f64 / (1.0 - quantile) - 1e-6).ceil() as u64
}

/// Is this number of samples enough to state this quantile?
pub fn enough_for(samples: u64, quantile: f64) -> bool {
    samples >= needed_for(quantile)
}

impl Latency {
    #[inline]
    pub fn record(&mut self, ns: Ns) {
        self.0.saturating_record(ns.min(MAX_NS));
    }

    /// Counts `n` latencies of the same length.
    pub fn record_n(&mut self, ns: Ns, n: u64) {
        self.0.saturating_record_n(ns.min(MAX_NS), n);
    }

    pub fn merge(&mut self, other: &Latency) {
        self.0.add(&other.0).expect("both histograms have the same bounds");
    }

    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The latency at quantile `q` (0 to 1) in ns; 0 if nothing was counted.
    pub fn quantile(&self, q: f64) -> Ns {
        if self.0.is_empty() { 0 } else { self.0.value_at_quantile(q) }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_needs_ten_samples_beyond_it() {
        for (quantile, needed) in
            [(0.5, 20), (0.9, 100), (0.99, 1000), (0.999, 10_000), (0.9999, 100_000), (1.0, 1)]
        {
            assert_eq!(needed_for(quantile), needed, "{quantile}");
            assert!(enough_for(needed, quantile) && !enough_for(needed - 1, quantile));
        }
    }

    #[test]
    fn travels_without_loss() {
        let mut latency = Latency::default();
        for n in 0..2000u64 {
            latency.record(n * n * n * 37);
            latency.record_n(n, n % 3);
        }
        latency.record(Ns::MAX);
        let counts: Vec<(Ns, u64)> = latency.clone().into();
        let back = Latency::from(counts);
        assert_eq!(back.count(), latency.count());
        assert_eq!(back.max(), latency.max());
        assert_eq!(back.cdf(), latency.cdf());
        assert_eq!(Latency::from(Vec::new()).count(), 0);
    }
}

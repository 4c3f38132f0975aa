//! Recorded latency beside the model's under the same limits. A client's latency includes more than
//! waiting for CPU time, and no limit shortens the rest.

use reveille_measure::enough_for;
use reveille_usage::Usage;
use serde::Serialize;

use crate::figures::{Figures, Range};
use crate::goal::quantile_of;

/// Recorded latency: from a request's arrival to its completion.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Observed {
    /// Requests with a recorded completion.
    pub requests: usize,
    pub p50_ns: f64,
    pub p99_ns: f64,
    /// The model's median under the recorded limits, over phases.
    pub model_p50_ns: Range,
    /// The model's 99% quantile under the recorded limits, over phases.
    pub model_p99_ns: Range,
}

impl Observed {
    /// `None` if too few requests have a recorded completion.
    pub(crate) fn new(usage: &Usage, model: &Figures<Range>) -> Option<Observed> {
        let took = |demand: &reveille_usage::Demand| Some(demand.done_ns? - demand.at_ns);
        let mut took: Vec<u64> = usage.demands.iter().filter_map(took).collect();
        if !enough_for(took.len() as u64, 0.99) {
            return None;
        }
        let mut quantile = |quantile| quantile_of(&mut took, quantile) as f64;
        Some(Observed {
            p50_ns: quantile(0.5),
            p99_ns: quantile(0.99),
            requests: usage.demands.iter().filter(|demand| demand.done_ns.is_some()).count(),
            model_p50_ns: model.p50_ns,
            model_p99_ns: model.p99_ns,
        })
    }
}

//! What tests ask for unless they say otherwise.

use reveille_machine::Machine;
use reveille_plan::{Allowed, Goal, Request};
use reveille_policy::Policy;
use reveille_usage::Usage;

/// Two CPUs under v6.12, no head-room, and anything may be recommended.
pub fn request<'a>(machine: &'a Machine, usage: &'a Usage, goals: &[&str]) -> Request<'a> {
    Request {
        usage,
        as_likely: &[],
        inferred: None,
        goals: goals.iter().map(|text| Goal::parse(text).unwrap()).collect(),
        neighbours: Vec::new(),
        today: None,
        machine,
        cpus: 2,
        policy: Policy::baseline("v6.12").unwrap(),
        slice_ns: 5_000_000,
        within: None,
        quota_sum_cpus: None,
        phases: 20,
        confidence: 0.95,
        headroom: 0.0,
        growth: 0.0,
        allowed: Allowed::ANY,
        seed: 1,
        exhaustive: false,
    }
}

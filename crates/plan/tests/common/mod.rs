//! What tests ask for unless they say otherwise.

use reveille_machine::Machine;
use reveille_plan::{Allowed, Goal, Request};
use reveille_policy::Policy;
use reveille_usage::Usage;

/// Two CPUs under v6.12, no head-room, and anything may be recommended.
pub fn request<'a>(machine: &'a Machine, usage: &'a Usage, goals: &[&str]) -> Request<'a> {
    Request {
        goals: goals.iter().map(|text| Goal::parse(text).unwrap()).collect(),
        cpus: 2,
        headroom: 0.0,
        allowed: Allowed::ANY,
        ..Request::new(usage, machine, Policy::baseline("v6.12").unwrap())
    }
}

//! What groups with bursts do to each other, as chance has it: many groups share CPUs,
//! each under its own quota and burst, and their demands happen to fall together or not.
//!
//! No tasks, no slices, no phases: time goes in periods and CPU time is a fluid, so that a
//! million periods take a second. The model is the one by which the author of the burst
//! patch measured interference (Huaixin Chang on linux-kernel, May 2021; the link is in
//! the kernel's Documentation/scheduler/sched-bwc.rst). In every period
//!
//! 1. each group's new demand is added to its need;
//! 2. a group is *allowed* its need as far as quota and saved tokens reach;
//! 3. needs within quotas are served; what capacity is left is shared equally among the
//!    groups that want to use tokens, and no group gets more than it wants;
//! 4. quota that a group did not use becomes tokens, as many as its burst can hold; what
//!    it used above its quota is paid with tokens; need that is left stays.
//!
//! CPU time is in CPUs: time per period over the length of a period.

mod closed;
mod count;
mod demand;
mod share;
mod state;
#[cfg(test)]
mod tests;

use reveille_measure::Random;

pub use closed::{ClosedForm, closed_form};
pub use count::Interference;
pub use demand::Demand;
pub use state::GroupDemand;

use count::Count;
use state::State;

/// Warm-up: one period in this many.
const WARMUP: u64 = 20;

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum InterferenceError {
    #[error("there is no group; give at least one")]
    NoGroup,
    #[error("there is no period to simulate; give at least one")]
    NoPeriod,
    #[error("a capacity of {0} CPUs cannot be shared; it has to be above 0")]
    Capacity(f64),
    #[error("group {index} has a quota of {quota} CPUs; it has to be above 0")]
    Quota { index: usize, quota: f64 },
    #[error("group {index} has a burst of {burst} CPUs; it has to be 0 or above")]
    Burst { index: usize, burst: f64 },
    /// A parameter out of range, a recording without periods, or with a demand that is
    /// negative or no number.
    #[error("the demand of group {index} cannot be drawn; give numbers that are not negative")]
    Demand { index: usize },
}

/// Simulates groups that share `capacity_cpus` for `periods`, after a twentieth of them as warm-up.
/// Deterministic: equal arguments give the same result, bit for bit. Demands depend on `seed` but
/// not on quotas and bursts, so settings can be compared pairwise.
pub fn joint(
    groups: &[GroupDemand],
    capacity_cpus: f64,
    periods: u64,
    seed: u64,
) -> Result<Interference, InterferenceError> {
    check(groups, capacity_cpus, periods)?;
    let mut state = State::new(groups, capacity_cpus);
    let mut random = Random::new(seed);
    let mut count = Count::new(groups.len());
    for _ in 0..periods.div_ceil(WARMUP) {
        state.period(&mut random);
    }
    for _ in 0..periods {
        let period = state.period(&mut random);
        count.add(&state, &period);
    }
    Ok(count.result(capacity_cpus))
}

fn check(groups: &[GroupDemand], capacity: f64, periods: u64) -> Result<(), InterferenceError> {
    if groups.is_empty() {
        return Err(InterferenceError::NoGroup);
    }
    if periods == 0 {
        return Err(InterferenceError::NoPeriod);
    }
    if !(capacity.is_finite() && capacity > 0.0) {
        return Err(InterferenceError::Capacity(capacity));
    }
    for (index, group) in groups.iter().enumerate() {
        let GroupDemand { demand, quota, burst } = group;
        if !(quota.is_finite() && *quota > 0.0) {
            return Err(InterferenceError::Quota { index, quota: *quota });
        }
        if burst.is_nan() || *burst < 0.0 {
            return Err(InterferenceError::Burst { index, burst: *burst });
        }
        if !demand.is_sound() {
            return Err(InterferenceError::Demand { index });
        }
    }
    Ok(())
}

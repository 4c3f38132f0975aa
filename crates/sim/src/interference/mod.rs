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
//!    groups that want to use tokens, and nobody gets more than he wants;
//! 4. quota that a group did not use becomes tokens, as many as its burst can hold; what
//!    it used above its quota is paid with tokens; need that is left stays.
//!
//! CPU time is in CPUs: time per period over the length of a period.

mod closed;
mod count;
mod demand;
mod share;
#[cfg(test)]
mod tests;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

pub use closed::{ClosedForm, closed_form};
pub use count::{GroupInterference, Interference};
pub use demand::Demand;

use count::Count;
use demand::Source;

/// Differences of this share of the capacity are rounding.
const ROUNDING: f64 = 1e-9;

/// A period in so many is spent before counting starts.
const WARMUP: u64 = 20;

/// One of the groups that share CPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupDemand {
    /// What it asks for anew in each period.
    pub demand: Demand,
    /// Quota over period, in CPUs; above 0.
    pub quota: f64,
    /// Burst over period, in CPUs; infinite if tokens have no cap.
    pub burst: f64,
}

/// Why groups cannot be simulated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum InterferenceError {
    /// There is none.
    #[error("there is no group; give at least one")]
    NoGroup,
    /// Nothing would be counted.
    #[error("there is no period to simulate; give at least one")]
    NoPeriod,
    /// Not a positive number.
    #[error("a capacity of {0} CPUs cannot be shared; it has to be above 0")]
    Capacity(f64),
    /// Not a positive number.
    #[error("group {index} has a quota of {quota} CPUs; it has to be above 0")]
    Quota {
        /// Position of the group.
        index: usize,
        /// Its quota.
        quota: f64,
    },
    /// Negative or no number.
    #[error("group {index} has a burst of {burst} CPUs; it has to be 0 or above")]
    Burst {
        /// Position of the group.
        index: usize,
        /// Its burst.
        burst: f64,
    },
    /// A parameter out of range, a recording without periods, or with a demand that is
    /// negative or no number.
    #[error("the demand of group {index} cannot be drawn; give numbers that are not negative")]
    Demand {
        /// Position of the group.
        index: usize,
    },
}

/// Simulates groups that share `capacity_cpus` for so many periods, after a twentieth of
/// them as warm-up. The same arguments give the same result, bit for bit. Demands depend
/// on `seed` and not on quotas and bursts, so that settings can be compared pair by pair.
///
/// # Errors
/// See [`InterferenceError`].
pub fn joint(
    groups: &[GroupDemand],
    capacity_cpus: f64,
    periods: u64,
    seed: u64,
) -> Result<Interference, InterferenceError> {
    check(groups, capacity_cpus, periods)?;
    let mut state = State::new(groups, capacity_cpus);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut count = Count::new(groups.len());
    for _ in 0..periods.div_ceil(WARMUP) {
        state.period(&mut random);
    }
    for _ in 0..periods {
        let period = state.period(&mut random);
        count.add(&state, &period);
    }
    Ok(count.result(&state))
}

/// The share of periods in which groups together are allowed more than `capacity_cpus`,
/// if each is served all that it is allowed as though it were alone: no group waits for
/// another, so that nothing that is owed adds to later periods.
///
/// # Errors
/// See [`InterferenceError`].
pub fn apart(
    groups: &[GroupDemand],
    capacity_cpus: f64,
    periods: u64,
    seed: u64,
) -> Result<f64, InterferenceError> {
    check(groups, capacity_cpus, periods)?;
    let mut state = State::new(groups, f64::INFINITY);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    for _ in 0..periods.div_ceil(WARMUP) {
        state.period(&mut random);
    }
    let mut over = 0u64;
    for _ in 0..periods {
        state.period(&mut random);
        let served: f64 = state.served.iter().sum();
        over += u64::from(served > capacity_cpus * (1.0 + ROUNDING));
    }
    Ok(over as f64 / periods as f64)
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

/// Groups between two periods, and what the last one did.
struct State<'a> {
    groups: &'a [GroupDemand],
    sources: Vec<Source<'a>>,
    capacity: f64,
    /// Smaller differences are rounding.
    least: f64,
    /// Asked for and not served yet.
    need: Vec<f64>,
    /// Saved quota.
    tokens: Vec<f64>,
    /// Asked for anew.
    fresh: Vec<f64>,
    /// What limits let each group use.
    allowed: Vec<f64>,
    served: Vec<f64>,
    /// Space for sharing.
    wants: Vec<f64>,
    given: Vec<f64>,
    order: Vec<usize>,
}

/// What happened in one period.
struct Period {
    /// How much more groups were allowed than there was.
    excess: f64,
    /// Whether a group missed its period because of others.
    missed: bool,
}

impl<'a> State<'a> {
    fn new(groups: &'a [GroupDemand], capacity: f64) -> State<'a> {
        let zeros = || vec![0.0; groups.len()];
        let size =
            if capacity.is_finite() { capacity } else { groups.iter().map(|g| g.quota).sum() };
        State {
            groups,
            sources: groups.iter().map(|g| Source::new(&g.demand)).collect(),
            capacity,
            least: ROUNDING * size,
            need: zeros(),
            tokens: zeros(),
            fresh: zeros(),
            allowed: zeros(),
            served: zeros(),
            wants: zeros(),
            given: zeros(),
            order: Vec::with_capacity(groups.len()),
        }
    }

    /// What a group is owed at the end of a period: allowed, but not served.
    fn owed(&self, i: usize) -> f64 {
        let owed = self.allowed[i] - self.served[i];
        if owed > self.least { owed } else { 0.0 }
    }

    fn period(&mut self, random: &mut Xoshiro256PlusPlus) -> Period {
        let (mut allowed, mut within) = (0.0, 0.0);
        for (i, group) in self.groups.iter().enumerate() {
            self.fresh[i] = self.sources[i].next(random);
            self.need[i] += self.fresh[i];
            self.allowed[i] = self.need[i].min(group.quota + self.tokens[i]);
            self.served[i] = self.allowed[i].min(group.quota);
            allowed += self.allowed[i];
            within += self.served[i];
        }
        let excess = allowed - self.capacity;
        let over = excess > self.least;
        if over {
            self.share(within);
        } else {
            self.served.copy_from_slice(&self.allowed);
        }
        for (i, group) in self.groups.iter().enumerate() {
            self.need[i] -= self.served[i];
            if self.need[i] <= self.least {
                self.need[i] = 0.0;
            }
            let saved = self.tokens[i] + group.quota - self.served[i];
            self.tokens[i] = saved.clamp(0.0, group.burst);
        }
        // Where all groups use up their quotas and those are all there is, nobody bursts
        // and each gets what it would get without any burst: no interference.
        let shared = (within - self.capacity).abs() > self.least;
        Period { excess: if over { excess } else { 0.0 }, missed: over && shared }
    }

    /// Serves groups in a period that has not enough for all; `within` is what they want
    /// within their quotas, and stands in `served`.
    fn share(&mut self, within: f64) {
        if within > self.capacity {
            // Quotas promise more than there is.
            self.wants.copy_from_slice(&self.served);
            share::fair(self.capacity, &self.wants, &mut self.served, &mut self.order);
            return;
        }
        for (want, (allowed, served)) in
            self.wants.iter_mut().zip(self.allowed.iter().zip(&self.served))
        {
            *want = allowed - served;
        }
        let free = self.capacity - within;
        share::fair(free, &self.wants, &mut self.given, &mut self.order);
        for (served, given) in self.served.iter_mut().zip(&self.given) {
            *served += given;
        }
    }
}

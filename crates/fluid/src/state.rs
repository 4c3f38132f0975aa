//! Groups from one period to the next: who needs, is allowed, and gets how much.

use reveille_measure::Random;

use crate::demand::{Demand, Source};
use crate::share;

/// Differences of this share of the capacity are rounding.
pub(crate) const ROUNDING: f64 = 1e-9;

#[derive(Clone, Debug, PartialEq)]
pub struct GroupDemand {
    /// New demand in each period.
    pub demand: Demand,
    /// Quota over period, in CPUs; above 0.
    pub quota: f64,
    /// Burst over period, in CPUs; infinite if tokens have no cap.
    pub burst: f64,
}

/// Groups between two periods, and what the last one did.
pub(crate) struct State<'a> {
    pub(crate) groups: &'a [GroupDemand],
    sources: Vec<Source<'a>>,
    pub(crate) capacity: f64,
    /// Smaller differences are rounding.
    pub(crate) least: f64,
    /// Asked for and not served yet.
    pub(crate) need: Vec<f64>,
    pub(crate) tokens: Vec<f64>,
    /// New demand of this period.
    pub(crate) fresh: Vec<f64>,
    /// What limits let each group use.
    pub(crate) allowed: Vec<f64>,
    pub(crate) served: Vec<f64>,
    /// Space for sharing.
    wants: Vec<f64>,
    given: Vec<f64>,
    order: Vec<usize>,
}

pub(crate) struct Period {
    /// How much more groups were allowed than there was.
    pub(crate) excess: f64,
    /// Whether a group missed its period because of others.
    pub(crate) missed: bool,
}

impl<'a> State<'a> {
    pub(crate) fn new(groups: &'a [GroupDemand], capacity: f64) -> State<'a> {
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
    pub(crate) fn owed(&self, i: usize) -> f64 {
        let owed = self.allowed[i] - self.served[i];
        if owed > self.least { owed } else { 0.0 }
    }

    pub(crate) fn period(&mut self, random: &mut Random) -> Period {
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
        // If quotas are all used and sum to the capacity, no group bursts: each gets what it
        // would get without bursts, so there is no interference.
        let shared = (within - self.capacity).abs() > self.least;
        Period { excess: if over { excess } else { 0.0 }, missed: over && shared }
    }

    /// Serves groups in a period that has not enough for all; `within` is what they want
    /// within their quotas, and is in `served`.
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

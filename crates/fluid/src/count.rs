//! What is counted over the periods of a joint simulation.

use crate::state::{Period, State};

/// What groups did to each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Interference {
    /// Mean number of periods until what is due in a period is met, 1 if in time:
    /// E\[WCET\] of the published table. Of a stretch of missed periods the first is met
    /// after all of it, the last in the period after it.
    pub wcet: f64,
    /// Share of missed periods, P(WCET>1) of the published table: some group wants to use
    /// tokens, others have left CPU time for it, and that does not suffice. A period in
    /// which all groups use up quotas that are all of the capacity is none: each gets what
    /// it would get without bursts.
    pub missed: f64,
    /// Share of periods in which groups are allowed more than the capacity, those without
    /// anything to share included: the probability that not every group can be served,
    /// whatever the order.
    pub overcommitted: f64,
    /// Mean over overcommitted periods of what is owed at their end, in periods of the
    /// whole capacity; 0 if there is none.
    pub mean_tardiness: f64,
    /// The most that was owed at the end of a period, in periods of the whole capacity.
    /// While quotas fit the capacity, at most the sum of all bursts over the capacity.
    pub worst_tardiness: f64,
    /// Share of periods in which every group's new demand is within its quota.
    pub all_within: f64,
    /// Share of periods in which every group's new demand is beyond its quota.
    pub all_beyond: f64,
    /// Share of periods at whose end a group is owed what its limits allow: held up by
    /// others; the mean over groups.
    pub late: f64,
}

/// Sums over periods.
#[derive(Default)]
pub(crate) struct Count {
    periods: u64,
    wcet: u64,
    missed: u64,
    missed_run: u64,
    over: u64,
    excess: f64,
    worst_excess: f64,
    all_within: u64,
    all_beyond: u64,
    /// Periods at whose end each group was owed something.
    late: Vec<u64>,
}

impl Count {
    pub(crate) fn new(groups: usize) -> Count {
        Count { late: vec![0; groups], ..Count::default() }
    }

    pub(crate) fn add(&mut self, state: &State<'_>, period: &Period) {
        self.periods += 1;
        let over = period.excess > 0.0;
        self.missed_run = if period.missed { self.missed_run + 1 } else { 0 };
        self.missed += u64::from(period.missed);
        self.wcet += self.missed_run;
        self.over += u64::from(over);
        self.excess += period.excess;
        self.worst_excess = self.worst_excess.max(period.excess);
        let beyond = |i: usize| state.fresh[i] > state.groups[i].quota + state.least;
        let beyond = (0..state.groups.len()).filter(|i| beyond(*i)).count();
        self.all_within += u64::from(beyond == 0);
        self.all_beyond += u64::from(beyond == state.groups.len());
        for (i, late) in self.late.iter_mut().enumerate() {
            *late += u64::from(state.owed(i) > 0.0);
        }
    }

    pub(crate) fn result(&self, capacity: f64) -> Interference {
        let share = |n: u64| n as f64 / self.periods as f64;
        Interference {
            wcet: 1.0 + share(self.wcet),
            missed: share(self.missed),
            overcommitted: share(self.over),
            mean_tardiness: mean(self.excess, self.over) / capacity,
            worst_tardiness: self.worst_excess / capacity,
            all_within: share(self.all_within),
            all_beyond: share(self.all_beyond),
            late: self.late.iter().map(|&n| share(n)).sum::<f64>() / self.late.len() as f64,
        }
    }
}

fn mean(sum: f64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { sum / of as f64 }
}

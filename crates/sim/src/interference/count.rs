//! What is counted over the periods of a joint simulation.

use super::State;

/// What groups did to each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Interference {
    /// Periods counted.
    pub periods: u64,
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
    /// Length of the longest stretch of overcommitted periods; no sum of bursts bounds it.
    pub longest_run: u64,
    /// Share of periods in which every group's new demand is within its quota.
    pub all_within: f64,
    /// Share of periods in which every group's new demand is beyond its quota.
    pub all_beyond: f64,
    /// CPUs used, on the mean.
    pub used: f64,
    /// By group.
    pub groups: Vec<GroupInterference>,
}

/// What one group met with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupInterference {
    /// Mean of new demand, in CPUs.
    pub demand: f64,
    /// CPUs used, on the mean.
    pub used: f64,
    /// Need at the end, in CPUs and periods.
    pub backlog: f64,
    /// Share of periods at whose end it needs more than its own limits allow: throttled by
    /// its own doing.
    pub throttled: f64,
    /// Share of periods at whose end it is owed what its limits allow: held up by others.
    pub late: f64,
    /// Mean number of periods until it is owed nothing, 1 if in time.
    pub wcet: f64,
    /// Mean over late periods of what it is owed, in CPUs and periods; 0 if never late.
    pub mean_owed: f64,
    /// The most that it was owed, in CPUs and periods.
    pub worst_owed: f64,
    /// Share of periods in which it stays within its quota while the CPUs are
    /// overcommitted: late if it is served last. Bounds how often a group that keeps its
    /// quota misses its period, whatever the order of service.
    pub exposed: f64,
    /// Share of periods in which another group is late: what its neighbours pay.
    pub others_late: f64,
    /// The most tokens that it had, in CPUs and periods.
    pub most_tokens: f64,
}

/// Sums over periods.
pub(super) struct Count {
    periods: u64,
    wcet: u64,
    missed: u64,
    missed_run: u64,
    over: u64,
    over_run: u64,
    longest_run: u64,
    excess: f64,
    worst_excess: f64,
    all_within: u64,
    all_beyond: u64,
    groups: Vec<GroupCount>,
}

#[derive(Clone, Default)]
struct GroupCount {
    demand: f64,
    used: f64,
    throttled: u64,
    late: u64,
    late_run: u64,
    wcet: u64,
    owed: f64,
    worst_owed: f64,
    exposed: u64,
    others_late: u64,
    most_tokens: f64,
}

impl Count {
    pub(super) fn new(groups: usize) -> Count {
        Count {
            periods: 0,
            wcet: 0,
            missed: 0,
            missed_run: 0,
            over: 0,
            over_run: 0,
            longest_run: 0,
            excess: 0.0,
            worst_excess: 0.0,
            all_within: 0,
            all_beyond: 0,
            groups: vec![GroupCount::default(); groups],
        }
    }

    pub(super) fn add(&mut self, state: &State<'_>, period: &super::Period) {
        self.periods += 1;
        let over = period.excess > 0.0;
        self.missed_run = if period.missed { self.missed_run + 1 } else { 0 };
        self.missed += u64::from(period.missed);
        self.wcet += self.missed_run;
        self.over_run = if over { self.over_run + 1 } else { 0 };
        self.over += u64::from(over);
        self.longest_run = self.longest_run.max(self.over_run);
        self.excess += period.excess;
        self.worst_excess = self.worst_excess.max(period.excess);
        let beyond = |i: usize| state.fresh[i] > state.groups[i].quota + state.least;
        let beyond = (0..state.groups.len()).filter(|i| beyond(*i)).count();
        self.all_within += u64::from(beyond == 0);
        self.all_beyond += u64::from(beyond == state.groups.len());
        let late = (0..state.groups.len()).filter(|i| state.owed(*i) > 0.0).count();
        for (i, group) in self.groups.iter_mut().enumerate() {
            group.add(state, i, over, late);
        }
    }

    pub(super) fn result(&self, state: &State<'_>) -> Interference {
        let share = |n: u64| n as f64 / self.periods as f64;
        let groups = self.groups.iter().zip(&state.need);
        Interference {
            periods: self.periods,
            wcet: 1.0 + share(self.wcet),
            missed: share(self.missed),
            overcommitted: share(self.over),
            mean_tardiness: mean(self.excess, self.over) / state.capacity,
            worst_tardiness: self.worst_excess / state.capacity,
            longest_run: self.longest_run,
            all_within: share(self.all_within),
            all_beyond: share(self.all_beyond),
            used: self.groups.iter().map(|g| g.used).sum::<f64>() / self.periods as f64,
            groups: groups.map(|(g, backlog)| g.result(self.periods, *backlog)).collect(),
        }
    }
}

impl GroupCount {
    /// `late` groups are owed something at the end of the period, this one included.
    fn add(&mut self, state: &State<'_>, i: usize, over: bool, late: usize) {
        let group = &state.groups[i];
        let owed = state.owed(i);
        let own = usize::from(owed > 0.0);
        self.demand += state.fresh[i];
        self.used += state.served[i];
        // What is needed beyond what was allowed; the rest of the need is owed.
        self.throttled += u64::from(state.need[i] - owed > state.least);
        self.late += own as u64;
        self.late_run = if own > 0 { self.late_run + 1 } else { 0 };
        self.wcet += self.late_run;
        self.owed += owed;
        self.worst_owed = self.worst_owed.max(owed);
        let keeps = state.allowed[i] > 0.0 && state.allowed[i] <= group.quota + state.least;
        self.exposed += u64::from(over && keeps);
        self.others_late += u64::from(late > own);
        self.most_tokens = self.most_tokens.max(state.tokens[i]);
    }

    fn result(&self, periods: u64, backlog: f64) -> GroupInterference {
        let share = |n: u64| n as f64 / periods as f64;
        GroupInterference {
            demand: self.demand / periods as f64,
            used: self.used / periods as f64,
            backlog,
            throttled: share(self.throttled),
            late: share(self.late),
            wcet: 1.0 + share(self.wcet),
            mean_owed: mean(self.owed, self.late),
            worst_owed: self.worst_owed,
            exposed: share(self.exposed),
            others_late: share(self.others_late),
            most_tokens: self.most_tokens,
        }
    }
}

fn mean(sum: f64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { sum / of as f64 }
}

//! What can be said of groups that share CPUs without simulating them: probabilities
//! where they are exact, and the bound of tardiness.

use super::GroupDemand;

/// See [`closed_form`].
#[derive(Clone, Debug, PartialEq)]
pub struct ClosedForm {
    /// Mean demand of all groups together, in CPUs.
    pub mean_demand: f64,
    /// Whether need stays bounded in the long run: every group's mean demand is below its
    /// quota, and all of them together are below the capacity.
    pub stable: bool,
    /// By group: the probability that a period's new demand is above the group's quota.
    pub beyond: Vec<f64>,
    /// The probability that all groups' new demand is within their quotas in one period:
    /// the product over groups, which are independent.
    pub all_within: f64,
    /// The probability that all groups' new demand is beyond their quotas in one period.
    pub all_beyond: f64,
    /// The probability that a period is overcommitted where it follows from the limits
    /// alone: 0 if no group may burst and the quotas fit the capacity.
    pub overcommitted: Option<f64>,
    /// No more than this is owed at the end of any period, in periods of the whole
    /// capacity: the sum of all bursts. `None` if the quotas do not fit the capacity.
    ///
    /// It bounds what is owed, not how long it stays owed: while need that came later is
    /// served, overruns may repeat before the groups have recovered, as Peter Zijlstra
    /// remarked in the discussion of the burst patch (linux-kernel, May and June 2021).
    pub tardiness_bound: Option<f64>,
    /// By group, the same for periods in which it stays within its own quota, however it
    /// is treated: the sum of the other groups' bursts.
    pub tardiness_from_others: Vec<Option<f64>>,
}

/// What follows without simulation for groups that share `capacity_cpus`, if the demands
/// of different groups are independent.
pub fn closed_form(groups: &[GroupDemand], capacity_cpus: f64) -> ClosedForm {
    let sum = |part: fn(&GroupDemand) -> f64| groups.iter().map(part).sum::<f64>();
    let mean_demand = sum(|g| g.demand.mean());
    let beyond: Vec<f64> = groups.iter().map(|g| g.demand.beyond(g.quota)).collect();
    let fits = sum(|g| g.quota) <= capacity_cpus * (1.0 + super::ROUNDING);
    let bursts_but = |i: Option<usize>| {
        let others = groups.iter().enumerate().filter(|(j, _)| Some(*j) != i);
        let bursts: f64 = others.map(|(_, g)| g.burst).sum();
        fits.then_some(bursts / capacity_cpus)
    };
    ClosedForm {
        mean_demand,
        stable: mean_demand < capacity_cpus && groups.iter().all(|g| g.demand.mean() < g.quota),
        all_within: beyond.iter().map(|p| 1.0 - p).product(),
        all_beyond: beyond.iter().product(),
        beyond,
        overcommitted: (fits && groups.iter().all(|g| g.burst == 0.0)).then_some(0.0),
        tardiness_bound: bursts_but(None),
        tardiness_from_others: (0..groups.len()).map(|i| bursts_but(Some(i))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interference::Demand;

    fn group(quota: f64, burst: f64) -> GroupDemand {
        GroupDemand { demand: Demand::Exponential { mean: 0.2 }, quota, burst }
    }

    #[test]
    fn two_groups_at_p95() {
        let quota = Demand::Exponential { mean: 0.2 }.quantile(0.95);
        let closed = closed_form(&[group(quota, 0.0), group(quota, 0.0)], 2.0);
        assert!((closed.all_within - 0.9025).abs() < 1e-12, "{closed:?}");
        assert!((closed.all_beyond - 0.0025).abs() < 1e-12, "{closed:?}");
        assert_eq!(closed.overcommitted, Some(0.0));
        assert_eq!(closed.tardiness_bound, Some(0.0));
        assert!(closed.stable);
    }

    #[test]
    fn bursts_of_the_others_bound_what_one_waits_for() {
        let groups = [group(0.5, 0.25), group(0.5, 0.5), group(1.0, 0.0)];
        let closed = closed_form(&groups, 2.0);
        assert_eq!(closed.overcommitted, None);
        assert_eq!(closed.tardiness_bound, Some(0.375));
        assert_eq!(closed.tardiness_from_others, [Some(0.25), Some(0.125), Some(0.375)]);
        // Quotas beyond the capacity bound nothing.
        let closed = closed_form(&groups, 1.0);
        assert_eq!(closed.tardiness_bound, None);
        assert_eq!(closed.tardiness_from_others, [None; 3]);
        assert!(closed.stable);
        assert!(!closed_form(&groups, 0.6).stable);
        assert!(!closed_form(&[group(0.2, 0.2)], 2.0).stable);
    }
}

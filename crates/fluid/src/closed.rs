//! What can be said of groups that share CPUs without simulating them: probabilities
//! where they are exact, and the bound of tardiness.

use crate::state::{GroupDemand, ROUNDING};

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
    /// No more than this is owed at the end of any period, in periods of the whole
    /// capacity: the sum of all bursts. `None` if the quotas do not fit the capacity.
    ///
    /// It bounds what is owed, not how long it stays owed: while need that came later is
    /// served, overruns may repeat before the groups have recovered, as Peter Zijlstra
    /// remarked in the discussion of the burst patch (linux-kernel, May and June 2021).
    pub tardiness_bound: Option<f64>,
}

/// What follows without simulation for groups that share `capacity_cpus`, if the demands
/// of different groups are independent.
pub fn closed_form(groups: &[GroupDemand], capacity_cpus: f64) -> ClosedForm {
    let sum = |part: fn(&GroupDemand) -> f64| groups.iter().map(part).sum::<f64>();
    let mean_demand = sum(|g| g.demand.mean());
    let beyond: Vec<f64> = groups.iter().map(|g| g.demand.beyond(g.quota)).collect();
    let fits = sum(|g| g.quota) <= capacity_cpus * (1.0 + ROUNDING);
    ClosedForm {
        mean_demand,
        stable: mean_demand < capacity_cpus && groups.iter().all(|g| g.demand.mean() < g.quota),
        all_within: beyond.iter().map(|p| 1.0 - p).product(),
        all_beyond: beyond.iter().product(),
        beyond,
        tardiness_bound: fits.then(|| sum(|g| g.burst) / capacity_cpus),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Demand;

    fn group(quota: f64, burst: f64) -> GroupDemand {
        GroupDemand { demand: Demand::Exponential { mean: 0.2 }, quota, burst }
    }

    #[test]
    fn two_groups_at_p95() {
        let quota = Demand::Exponential { mean: 0.2 }.quantile(0.95);
        let closed = closed_form(&[group(quota, 0.0), group(quota, 0.0)], 2.0);
        assert!((closed.all_within - 0.9025).abs() < 1e-12, "{closed:?}");
        assert!((closed.all_beyond - 0.0025).abs() < 1e-12, "{closed:?}");
        assert_eq!(closed.tardiness_bound, Some(0.0));
        assert!(closed.stable);
    }

    #[test]
    fn bursts_bound_what_is_owed() {
        let groups = [group(0.5, 0.25), group(0.5, 0.5), group(1.0, 0.0)];
        let closed = closed_form(&groups, 2.0);
        assert_eq!(closed.tardiness_bound, Some(0.375));
        // Quotas beyond the capacity bound nothing.
        let closed = closed_form(&groups, 1.0);
        assert_eq!(closed.tardiness_bound, None);
        assert!(closed.stable);
        assert!(!closed_form(&groups, 0.6).stable);
        assert!(!closed_form(&[group(0.2, 0.2)], 2.0).stable);
    }
}

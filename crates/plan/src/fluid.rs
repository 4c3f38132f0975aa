//! Groups on the same CPUs by their demand per period alone: closed forms, and a fluid simulation,
//! which has no threads and no slices.

use reveille_fluid::{Demand, GroupDemand, joint};
use reveille_policy::BandwidthLimits;
use reveille_usage::Usage;

use crate::Ns;
use crate::neighbours::USUAL_PERIOD_NS;
use crate::plan::{ClosedForm, Pair};

/// Random periods to simulate.
const PERIODS: u64 = 200_000;

/// A group's demand in CPUs, period by period, and its limits in CPUs.
struct Group<'a> {
    usage: &'a Usage,
    cpus: Vec<f64>,
    /// The quota, or all CPUs without one.
    quota: f64,
    limited: bool,
    burst: f64,
}

impl<'a> Group<'a> {
    fn new(
        usage: &'a Usage,
        limits: Option<BandwidthLimits>,
        period_ns: Ns,
        capacity: f64,
    ) -> Group<'a> {
        let quota = limits.and_then(|limits| limits.cpus());
        let burst_ns = limits.map_or(0, |limits| limits.burst_ns);
        let in_cpus = |ns: Ns| ns as f64 / period_ns as f64;
        Group {
            usage,
            cpus: usage.per_period(period_ns, 0).into_iter().map(in_cpus).collect(),
            quota: quota.unwrap_or(capacity),
            limited: quota.is_some(),
            burst: in_cpus(burst_ns),
        }
    }

    fn demand(&self) -> GroupDemand {
        let demand = Demand::Drawn(self.cpus.clone());
        GroupDemand { demand, quota: self.quota, burst: self.burst }
    }
}

/// The closed form for these groups on `cpus`; `None` for a single group, or if a recording is
/// shorter than a period.
pub(crate) fn closed_form(
    groups: &[(&Usage, Option<BandwidthLimits>)],
    cpus: u32,
    seed: u64,
) -> Option<ClosedForm> {
    if groups.len() < 2 {
        return None;
    }
    let capacity = f64::from(cpus);
    let periods = groups.iter().filter_map(|(_, limits)| *limits).map(|limits| limits.period_ns);
    let period_ns = periods.max().unwrap_or(USUAL_PERIOD_NS);
    let groups: Vec<Group<'_>> = groups
        .iter()
        .map(|&(usage, limits)| Group::new(usage, limits, period_ns, capacity))
        .collect();
    let demands: Vec<GroupDemand> = groups.iter().map(Group::demand).collect();
    let simulated = joint(&demands, capacity, PERIODS, seed).ok()?;
    let closed = reveille_fluid::closed_form(&demands, capacity);
    let in_ns = |periods: f64| (periods * capacity * period_ns as f64).round() as Ns;
    let limited: Vec<&Group<'_>> = groups.iter().filter(|group| group.limited).collect();
    let pairs = limited
        .iter()
        .enumerate()
        .flat_map(|(number, a)| limited[number + 1..].iter().map(|b| pair(a, b, capacity)));
    Some(ClosedForm {
        period_ns,
        reserved_cpus: limited.iter().map(|group| group.quota).sum(),
        mean_cpus: closed.mean_demand,
        stable: closed.stable,
        tardiness_bound_ns: closed.tardiness_bound.map(in_ns),
        overcommitted_share: simulated.overcommitted,
        worst_owed_ns: in_ns(simulated.worst_tardiness),
        pairs: pairs.collect(),
    })
}

fn pair(a: &Group<'_>, b: &Group<'_>, capacity: f64) -> Pair {
    let closed = reveille_fluid::closed_form(&[a.demand(), b.demand()], capacity);
    let both = |beyond: bool| {
        let periods = a.cpus.iter().zip(&b.cpus);
        let all = periods.len();
        let is = |(x, y): &(&f64, &f64)| (**x > a.quota) == beyond && (**y > b.quota) == beyond;
        periods.filter(is).count() as f64 / all.max(1) as f64
    };
    Pair {
        groups: [a.usage.name.clone(), b.usage.name.clone()],
        within: [1.0 - closed.beyond[0], 1.0 - closed.beyond[1]],
        both_within: closed.all_within,
        both_within_seen: both(false),
        both_beyond: closed.all_beyond,
        both_beyond_seen: both(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_usage::{Demand as Piece, Origin};

    /// Uses 90 ms of a CPU in busy periods, else 5 ms.
    fn usage(name: &str, busy: impl Fn(u64) -> bool) -> Usage {
        let cpu_ns = |period| if busy(period) { 90_000_000 } else { 5_000_000 };
        let piece = |period: u64| Piece {
            at_ns: period * 100_000_000,
            cpu_ns: cpu_ns(period),
            thread: 0,
            done_ns: None,
        };
        Usage {
            origin: Origin::Traced,
            span_ns: 400 * 100_000_000,
            threads: 1,
            demands: (0..400).map(piece).collect(),
            ..Usage::idle(name)
        }
    }

    #[test]
    fn two_groups_at_p95_are_both_within_in_90_percent_and_both_beyond_in_a_quarter_percent() {
        // All pairs of periods of two groups occur once in 400.
        let (a, b) = (usage("a", |p| p % 20 == 7), usage("b", |p| p / 20 == 3));
        let limits = |burst_ms: u64| {
            Some(BandwidthLimits {
                quota_ns: Some(50_000_000),
                period_ns: 100_000_000,
                burst_ns: burst_ms * 1_000_000,
            })
        };
        let closed = closed_form(&[(&a, limits(50)), (&b, limits(50))], 1, 1).unwrap();
        let pair = &closed.pairs[0];
        assert!((pair.within[0] - 0.95).abs() < 1e-9 && (pair.within[1] - 0.95).abs() < 1e-9);
        assert!((pair.both_within - 0.9025).abs() < 1e-9, "{pair:?}");
        assert!((pair.both_within_seen - 0.9025).abs() < 1e-9, "{pair:?}");
        assert!((pair.both_beyond - 0.0025).abs() < 1e-9, "{pair:?}");
        assert!((pair.both_beyond_seen - 0.0025).abs() < 1e-9, "{pair:?}");
        assert!(closed.stable);
        assert_eq!(closed.tardiness_bound_ns, Some(100_000_000));
        assert!((closed.reserved_cpus - 1.0).abs() < 1e-9);
        // Both beyond: they want 180 ms and 100 exist. Chance draws that in 0.25%.
        assert!((0.0015..0.006).contains(&closed.overcommitted_share), "{closed:?}");
        assert!(closed.worst_owed_ns <= 100_000_000);
        let kept = closed_form(&[(&a, limits(0)), (&b, limits(0))], 1, 1).unwrap();
        assert_eq!(kept.overcommitted_share, 0.0);
    }
}

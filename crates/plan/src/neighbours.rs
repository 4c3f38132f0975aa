//! Effect of a setting on other groups on the same CPUs, simulated together.

use reveille_measure::{UNANSWERED, enough_for};
use reveille_policy::BandwidthLimits;
use reveille_usage::Usage;

use crate::Ns;
use crate::figures::Range;
use crate::goal::quantile_of;
use crate::load::Load;
use crate::plan::NeighbourEffect;
use crate::replay::{Outcome, as_f64};
use crate::short::pieces;

/// Period of a neighbour without limits: the kernel's default.
pub(crate) const USUAL_PERIOD_NS: Ns = 100_000_000;

/// Lateness of one neighbour in one run relative to another.
struct Lateness {
    missed_share: f64,
    mean_ns: f64,
    worst_ns: f64,
}

/// A request that takes longer than in `before` is late by the difference. A period is missed if a
/// request that arrived in it is late by more than `tolerance_ns`.
fn lateness(
    arrivals: &[Ns],
    before: &[Ns],
    after: &[Ns],
    period_ns: Ns,
    tolerance_ns: Ns,
) -> Lateness {
    let (mut sum_ns, mut worst_ns) = (0.0, 0.0f64);
    let mut periods: Vec<(Ns, bool)> = Vec::with_capacity(arrivals.len());
    for ((&at_ns, &before), &after) in arrivals.iter().zip(before).zip(after) {
        // A request that does not complete without the group either is not late because of it.
        let late_ns = match (before, after) {
            (UNANSWERED, _) => 0.0,
            (_, UNANSWERED) => f64::INFINITY,
            _ => after.saturating_sub(before) as f64,
        };
        sum_ns += late_ns;
        worst_ns = worst_ns.max(late_ns);
        periods.push((at_ns / period_ns, late_ns > tolerance_ns as f64));
    }
    // Threads are concatenated: sorting puts a period's late requests last.
    periods.sort_unstable();
    let missed = periods.chunk_by(|a, b| a.0 == b.0).map(|of| of.iter().any(|(_, late)| *late));
    let (all, missed) = missed.fold((0u32, 0u32), |(all, n), late| (all + 1, n + u32::from(late)));
    Lateness {
        missed_share: f64::from(missed) / f64::from(all.max(1)),
        mean_ns: sum_ns / arrivals.len().max(1) as f64,
        worst_ns,
    }
}

/// Worst lateness over all neighbours, against a run without the group.
pub(crate) fn worst_tardiness_ns(load: &Load, alone: (&Load, &Outcome), joint: &Outcome) -> f64 {
    let mut worst_ns = 0.0f64;
    for recording in 1..load.answers.len() {
        let before = alone.1.latencies(alone.0, recording);
        let after = joint.latencies(load, recording);
        for (&before, &after) in before.iter().zip(after) {
            if before != UNANSWERED {
                worst_ns = worst_ns.max(as_f64(after) - as_f64(before));
            }
        }
    }
    worst_ns
}

/// Runs at one phase, for comparison.
pub(crate) struct Runs<'a> {
    /// Without the group.
    pub(crate) alone: (&'a Load, &'a Outcome),
    /// With the group and a burst of 0.
    pub(crate) without_burst: &'a Outcome,
    /// With the group.
    pub(crate) joint: &'a Outcome,
}

/// Summarizes the runs, one per phase, for the neighbour of this index, from 1.
pub(crate) fn effect(
    usage: &Usage,
    number: usize,
    limits: Option<BandwidthLimits>,
    load: &Load,
    runs: &[Runs<'_>],
    tolerance_ns: Ns,
) -> NeighbourEffect {
    let period_ns = limits.map_or(USUAL_PERIOD_NS, |limits| limits.period_ns);
    let arrivals = load.arrivals_of(number);
    let mut figures: [Vec<f64>; 7] = Default::default();
    for run in runs {
        let before = run.alone.1.latencies(run.alone.0, number);
        let bursting = run.without_burst.latencies(load, number);
        let after = run.joint.latencies(load, number);
        let by_us = lateness(&arrivals, before, after, period_ns, tolerance_ns);
        let by_burst = lateness(&arrivals, bursting, after, period_ns, tolerance_ns);
        let p99 = |of: &[Ns]| as_f64(quantile_of(&mut of.to_vec(), 0.99));
        let row = [
            by_us.missed_share,
            by_burst.missed_share,
            by_us.mean_ns,
            by_us.worst_ns,
            by_burst.worst_ns,
            p99(before),
            p99(after),
        ];
        for (all, figure) in figures.iter_mut().zip(row) {
            all.push(figure);
        }
    }
    let [missed, by_burst, mean, worst, worst_by_burst, without, with] =
        figures.map(|all| Range::over(&all));
    let told = enough_for(pieces(usage), 0.99);
    let p99 = |range: Range| if told { range } else { Range::UNKNOWN };
    NeighbourEffect {
        name: usage.name.clone(),
        missed_share: missed,
        missed_by_burst_share: by_burst,
        mean_tardiness_ns: mean,
        worst_tardiness_ns: worst,
        worst_tardiness_by_burst_ns: worst_by_burst,
        p99_without_ns: p99(without),
        p99_ns: p99(with),
    }
}

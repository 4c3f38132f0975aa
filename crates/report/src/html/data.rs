//! The data block that the page's script draws from. It holds only what plots
//! need, thinned and rounded to what a screen can show, so that the page of a
//! large machine stays small enough to mail.

use std::collections::HashMap;

use reveille_measure::{CpuTime, Ns};
use reveille_study::{Comparison, Direction, Metric, Row, RowKind, SideDetail};
use serde::Serialize;

use crate::group::{Group, groups, unique};
use crate::made::object;
use crate::number;
use crate::number::Unit;

/// Points of the latency curve that are kept: one for every 1/50 of the wake-ups,
/// one for every 1/30 of the (logarithmic) width and the corners of wide gaps.
/// The plot draws straight lines between them.
const SHARE_STEPS: f64 = 50.0;
const WIDTH_STEPS: f64 = 30.0;

/// Quantiles that the latency plot marks.
const MARKS: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];

/// What can be looked into: one load of one variant, as indices into `sides`.
#[derive(Serialize)]
struct Run<'a> {
    load: u64,
    variant: &'a str,
    base: usize,
    candidate: usize,
}

#[derive(PartialEq, Eq, Hash, Clone, Serialize)]
struct Side {
    /// (ns, wake-ups at or below it in 1/10000).
    cdf: Vec<(Ns, u16)>,
    /// Quantiles of the full distribution, by name.
    marks: Vec<(&'static str, Ns)>,
    /// Per CPU, in 1/1000 of its time.
    busy: Vec<u16>,
    cost: Vec<u16>,
}

/// The block as JSON that may stand inside a script element.
pub(super) fn block(cs: &[Comparison]) -> String {
    let mut pool = Pool::default();
    let mut comparison = |c| {
        let groups = groups(c);
        let names = unique(c.rows.iter().map(|r| r.case.as_str()));
        let cases: Vec<_> = names.iter().map(|name| case(name, c, &groups, &mut pool)).collect();
        object! { cases }
    };
    let comparisons: Vec<_> = cs.iter().map(&mut comparison).collect();
    // A baseline that several variants share is stored once.
    let block = object! { comparisons, sides: pool.sides };
    let json = serde_json::to_string(&block).expect("the block has only text keys");
    // A `<` can only stand inside a string, where the escape means the same;
    // without it no text can close the script element.
    json.replace('<', "\\u003c")
}

fn case<'a>(
    name: &'a str,
    c: &'a Comparison,
    groups: &[Group<'a>],
    pool: &mut Pool,
) -> impl Serialize + use<'a> {
    // Spreads and numbers of runs are figures of single loads and make no curve.
    let curve = |g: &&Group<'_>| !matches!(g.first().kind, RowKind::Std | RowKind::Runs);
    let of_case = || groups.iter().filter(|g| g.first().case == name).filter(curve);
    let variant = |g: &Group<'a>| {
        let points: Vec<_> = g.loads().into_iter().map(point).collect();
        object! { variant: g.first().variant.as_str(), points }
    };
    let curve = |metric: &'a Metric| {
        let of_metric = of_case().filter(|g| g.first().metric == *metric);
        let variants: Vec<_> = of_metric.map(variant).collect();
        object! { metric, unit: unit(metric), variants }
    };
    let metrics = unique(of_case().map(|g| &g.first().metric));
    let curves: Vec<_> = metrics.into_iter().map(curve).collect();
    let base = c.rows.iter().find(|r| r.case == name).map_or(&c.base, |r| &r.base);
    object! { case: name, base, curves, runs: runs(name, c, pool) }
}

/// Kind of quantity, and what a figure is multiplied by to be in its base unit.
fn unit(metric: &Metric) -> (&'static str, f64) {
    match Unit::of(metric) {
        Unit::Time { to_ns } => ("time", to_ns),
        Unit::Rate => ("rate", 1.0),
        Unit::Percent | Unit::PeriodShare => ("percent", 1.0),
        Unit::Count | Unit::Periods => ("count", 1.0),
    }
}

/// `base` and `candidate` are mean and absolute standard deviation; `implied` is the value that
/// the published change would have given here.
fn point(row: &Row) -> impl Serialize + use<> {
    let spread = |f: reveille_study::Figure| (f.mean, (f.mean * f.rel_std).abs());
    object! {
        load: row.load,
        base: spread(row.baseline),
        candidate: spread(row.candidate),
        change: row.change_pct,
        significant: number::has_star(row.significant, row.change_pct),
        published: row.published_change_pct,
        implied: row.published_change_pct.map(|pct| implied(row, pct)),
        verdict: row.verdict,
    }
}

/// The candidate's value if it had changed by `published` percent, which is positive
/// when better.
fn implied(row: &Row, published: f64) -> f64 {
    let ratio = 1.0 + published / 100.0;
    match row.metric.direction {
        Direction::Higher | Direction::Neither => row.baseline.mean * ratio,
        Direction::Lower => row.baseline.mean / ratio,
    }
}

/// Every load and variant of the case with something to look into. Rows of
/// further metrics are of the same runs and add nothing.
fn runs<'a>(case: &str, c: &'a Comparison, pool: &mut Pool) -> Vec<Run<'a>> {
    let mut runs: Vec<Run<'a>> = Vec::new();
    for row in c.rows.iter().filter(|r| r.case == case) {
        let (base, candidate) = (&row.detail.baseline, &row.detail.candidate);
        let empty = |s: &SideDetail| s.cpus.is_empty() && s.latency_cdf.is_empty();
        let known = runs.iter().any(|r| r.load == row.load && r.variant == row.variant);
        if known || (empty(base) && empty(candidate)) {
            continue;
        }
        runs.push(Run {
            load: row.load,
            variant: &row.variant,
            base: pool.index(side(base)),
            candidate: pool.index(side(candidate)),
        });
    }
    runs
}

/// Distinct sides in the order of first use.
#[derive(Default)]
struct Pool {
    sides: Vec<Side>,
    /// Only looked up, never walked: its order cannot reach the page.
    seen: HashMap<Side, usize>,
}

impl Pool {
    fn index(&mut self, side: Side) -> usize {
        let next = self.sides.len();
        let index = *self.seen.entry(side.clone()).or_insert(next);
        if index == next {
            self.sides.push(side);
        }
        index
    }
}

fn side(detail: &SideDetail) -> Side {
    let cpus =
        |part: fn(&CpuTime) -> Ns| detail.cpus.iter().map(|t| per_mille(part(t), t)).collect();
    Side {
        cdf: thin(&detail.latency_cdf),
        marks: marks(&detail.latency_cdf),
        busy: cpus(|t| t.busy_ns),
        cost: cpus(|t| t.cost_ns),
    }
}

fn per_mille(part: Ns, cpu: &CpuTime) -> u16 {
    let whole = cpu.busy_ns as f64 + cpu.idle_ns as f64 + cpu.cost_ns as f64;
    if whole == 0.0 { 0 } else { (1000.0 * part as f64 / whole).round() as u16 }
}

/// At most 112 points of `cdf`, with its first and last: a point is kept when the
/// curve has moved visibly up or visibly to the right since the last one kept.
/// Where no latency was seen over a visible width, the curve is flat and then
/// jumps; a corner keeps the straight lines from making a slope of it.
fn thin(cdf: &[(Ns, f64)]) -> Vec<(Ns, u16)> {
    // ln(0) is no place on a logarithmic axis.
    let place = |ns: Ns| (ns.max(1) as f64).ln();
    let (Some(first), Some(last)) = (cdf.first(), cdf.last()) else { return Vec::new() };
    let width = place(last.0) - place(first.0);
    let mut kept = vec![*first];
    for pair in cdf.windows(2) {
        let (before, step) = (&pair[0], &pair[1]);
        let from = kept[kept.len() - 1];
        if place(step.0) - place(before.0) >= width / WIDTH_STEPS {
            kept.push((step.0, before.1));
        }
        let up = step.1 - from.1 >= 1.0 / SHARE_STEPS;
        let right = place(step.0) - place(from.0) >= width / WIDTH_STEPS;
        if up || right {
            kept.push(*step);
        }
    }
    if kept[kept.len() - 1] != *last {
        kept.push(*last);
    }
    kept.into_iter().map(|(ns, share)| (ns.max(1), (share * 10_000.0).round() as u16)).collect()
}

fn marks(cdf: &[(Ns, f64)]) -> Vec<(&'static str, Ns)> {
    let Some(last) = cdf.last() else { return Vec::new() };
    let at = |q: f64| cdf.iter().find(|(_, share)| *share >= q).unwrap_or(last).0;
    MARKS.iter().map(|(name, q)| (*name, at(*q))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_the_ends_and_bounds_the_count() {
        let cdf: Vec<(Ns, f64)> = (1..=5000).map(|i| (i * i, i as f64 / 5000.0)).collect();
        let thinned = thin(&cdf);
        assert!(thinned.len() <= 120, "{} steps", thinned.len());
        assert_eq!(thinned[0].0, 1);
        assert_eq!(*thinned.last().unwrap(), (25_000_000, 10_000));
        assert!(thinned.windows(2).all(|w| w[0].0 <= w[1].0 && w[0].1 <= w[1].1));
    }

    #[test]
    fn thinning_takes_small_and_degenerate_curves() {
        assert!(thin(&[]).is_empty());
        assert_eq!(thin(&[(0, 1.0)]), [(1, 10_000)]);
        // Flat until 20, then up: the corner says so.
        assert_eq!(thin(&[(10, 0.5), (20, 1.0)]), [(10, 5_000), (20, 5_000), (20, 10_000)]);
    }

    #[test]
    fn marks_are_read_from_the_full_curve() {
        let cdf: Vec<(Ns, f64)> = (1..=1000).map(|i| (i, i as f64 / 1000.0)).collect();
        assert_eq!(
            marks(&cdf),
            [("p50", 500), ("p90", 900), ("p99", 990), ("p99.9", 999), ("max", 1000)]
        );
    }

    #[test]
    fn shares_of_a_cpu_without_time_are_zero() {
        assert_eq!(per_mille(0, &CpuTime::default()), 0);
        let cpu = CpuTime { busy_ns: 1, idle_ns: 1, cost_ns: 2 };
        assert_eq!((per_mille(1, &cpu), per_mille(2, &cpu)), (250, 500));
    }
}

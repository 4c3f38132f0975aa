//! Studies as JSON, for `reveille studies --json`.

use reveille_report::object;
use reveille_study::{
    Case, FLUID, Measure, NO_BURST, Point, Published, PublishedFigure, Side, Statement,
    StatementKind, Study, TaskGroup,
};
use serde::Serialize;

use super::interference;

/// A study's line in the list.
pub fn line(s: &Study) -> impl Serialize {
    object! {
        name: &s.name,
        about: &s.about,
        machine: machine_name(s),
        on: s.on.to_string(),
        mechanism: &s.mechanism,
    }
}

pub fn full_json(s: &Study) -> impl Serialize {
    object! {
        name: &s.name,
        about: &s.about,
        mechanism: &s.mechanism,
        machine: machine_name(s),
        base: base_name(s),
        on: s.on.to_string(),
        variants: s.variants(),
        seed: s.seed,
        cases: s.cases.iter().map(|c| case_json(s, c)).collect::<Vec<_>>(),
        interference: s.interference.iter().map(interference::json).collect::<Vec<_>>(),
        peaks: s.statements.iter().filter_map(|p| peak_json(s, p)).collect::<Vec<_>>(),
        claims: s.statements.iter().map(|p| claim_json(s, p)).collect::<Vec<_>>(),
        unpredicted: &s.unpredicted,
    }
}

/// `metric` is the first of `metrics`.
fn case_json<'a>(s: &'a Study, c: &'a Case) -> impl Serialize + 'a {
    let groups = &c.groups.groups;
    let group = |g: &'a TaskGroup| {
        object! {
            name: &g.name,
            parent: g.parent.map(|p| &groups[p].name),
            quota_ns: g.limits.quota_ns,
            period_ns: g.limits.period_ns,
            burst_ns: g.limits.burst_ns,
            phase_ns: g.phase_ns,
        }
    };
    let metric = |m: &Measure| {
        object! { name: m.metric.to_string(), direction: m.metric.direction }
    };
    object! {
        name: &c.name,
        workload: &c.workload,
        machine: &s.machines[c.machine].name,
        base: &c.base.base,
        variants: c.variants.iter().map(|v| &v.name).collect::<Vec<_>>(),
        groups: groups.iter().map(group).collect::<Vec<_>>(),
        slice_ns: c.groups.slice_ns,
        metric: c.metrics[0].metric.to_string(),
        metrics: c.metrics.iter().map(metric).collect::<Vec<_>>(),
        loads: c.points.iter().map(|p| p.load).collect::<Vec<_>>(),
        repeats: c.repeats,
        warmup_ns: c.warmup_ns,
        duration_ns: c.duration_ns,
        published: published(c).map(|(point, p)| published_json(c, point, p)).collect::<Vec<_>>(),
    }
}

/// A published figure; what its kind does not have is null. Standard deviations are relative, in
/// percent.
fn published_json<'a>(c: &'a Case, point: &Point, p: &'a Published) -> impl Serialize + use<'a> {
    let of_side = |side: Side, value: f64| match side {
        Side::Base => (Some(value), None),
        Side::Variant => (None, Some(value)),
    };
    let (kind, (base, variant_value), unit) = match &p.figure {
        PublishedFigure::Change { .. } => ("change", (None, None), &None),
        PublishedFigure::Pair { base, variant, unit } => {
            ("pair", (Some(*base), Some(*variant)), unit)
        }
        PublishedFigure::Std { base, variant, unit } => {
            ("std", (Some(*base), Some(*variant)), unit)
        }
        PublishedFigure::Side { side, value, unit, .. } => ("side", of_side(*side, *value), unit),
        PublishedFigure::RunsAbove { side, runs, .. } => {
            ("runs", of_side(*side, f64::from(*runs)), &None)
        }
    };
    let (of, runs_above) = match &p.figure {
        PublishedFigure::RunsAbove { of, above_text, .. } => (Some(of), Some(above_text)),
        _ => (None, None),
    };
    object! {
        kind,
        load: point.load,
        variant: c.variants.get(p.variant).map_or("", |v| &v.name),
        metric: c.metrics[p.metric].metric.to_string(),
        change_pct: p.change_pct(c.metrics[p.metric].metric.direction),
        base,
        variant_value,
        unit,
        of,
        runs_above,
        std_base_pct: p.std_base_pct,
        std_variant_pct: p.std_variant_pct,
        noise: &p.noise,
        source: &p.source,
    }
}

fn peak_json<'a>(s: &'a Study, p: &'a Statement) -> Option<impl Serialize + 'a> {
    let StatementKind::Peak { load } = p.kind else { return None };
    Some(object! { case: &s.cases[p.case].name, load, source: &p.source })
}

fn claim_json<'a>(s: &'a Study, p: &'a Statement) -> impl Serialize + 'a {
    object! {
        kind: p.kind.name(),
        case: &s.cases[p.case].name,
        claim: p.words(s),
        expected: p.expected(),
        source: &p.source,
    }
}

pub(super) fn machine_name(s: &Study) -> &str {
    s.machine().map_or(FLUID, |machine| &machine.name)
}

pub(super) fn base_name(s: &Study) -> &str {
    s.base.as_ref().map_or(NO_BURST, |base| &base.base)
}

/// The published figures of a case, load by load.
pub(super) fn published(c: &Case) -> impl Iterator<Item = (&Point, &Published)> {
    c.points.iter().flat_map(|point| point.published.iter().map(move |p| (point, p)))
}

//! Cases of groups that share CPUs with random demand, in `reveille studies`.

use std::fmt::Write;

use reveille_place::counted;
use reveille_report::object;
use reveille_study::{
    DemandKind, FLUID, InterferenceCase, JointMeasure, JointPublished, LoadIs, Metric, NO_BURST,
    Side,
};
use serde::Serialize;

use super::layout::entry;

/// Of `poisson` alone `step_pct`, one request in percent of the quota; of `pareto` alone `alpha`.
pub fn json(c: &InterferenceCase) -> impl Serialize {
    let (demand, step_pct, alpha) = match c.demand {
        DemandKind::Exponential => ("exponential", None, None),
        DemandKind::Poisson { step } => ("poisson", Some(100.0 * step), None),
        DemandKind::Pareto { alpha } => ("pareto", None, Some(alpha)),
    };
    let metric = |m: &&JointMeasure| {
        let Metric { direction, .. } = m.metric();
        object! { key: m.key, name: m.metric().to_string(), direction }
    };
    let published = |p: &JointPublished| {
        object! {
            kind: "interference",
            load: c.loads[p.load],
            variant: c.variants[p.variant].name.clone(),
            metric: c.metrics[p.metric].metric().to_string(),
            base: (p.side == Side::Base).then_some(p.value),
            variant_value: (p.side == Side::Variant).then_some(p.value),
            source: p.source.clone(),
        }
    };
    object! {
        name: &c.name,
        machine: FLUID,
        base: NO_BURST,
        demand,
        step_pct,
        alpha,
        groups: c.groups,
        cpus: c.cpus,
        load_is: load_is(c),
        loads: &c.loads,
        variants: c.variants.iter().map(|v| &v.name).collect::<Vec<_>>(),
        metrics: c.metrics.iter().map(metric).collect::<Vec<_>>(),
        periods: c.periods,
        repeats: c.repeats,
        published: c.published.iter().map(published).collect::<Vec<_>>(),
    }
}

fn load_is(c: &InterferenceCase) -> &'static str {
    match c.load_is {
        LoadIs::Use => "use",
        LoadIs::Quantile => "quantile",
    }
}

pub fn text(c: &InterferenceCase) -> String {
    let demand = match c.demand {
        DemandKind::Exponential => "exponential".to_owned(),
        DemandKind::Poisson { step } => format!("Poisson, steps of {}% of quota", 100.0 * step),
        DemandKind::Pareto { alpha } => format!("Pareto, alpha {alpha}"),
    };
    let loads: Vec<String> = c.loads.iter().map(u64::to_string).collect();
    let loads = match c.load_is {
        LoadIs::Use => format!("{} (mean demand, % of quota)", loads.join(", ")),
        LoadIs::Quantile => format!("{} (quantile of demand that is the quota)", loads.join(", ")),
    };
    let metrics: Vec<String> = c.metrics.iter().map(|m| m.metric().to_string()).collect();
    let mut text = entry(0, "interference", &c.name);
    text += &entry(2, "demand", &demand);
    text += &entry(2, "groups", &format!("{} on {}", c.groups, counted(c.cpus, "CPU")));
    text += &entry(2, "metric", &metrics.join(", "));
    text += &entry(2, "loads", &loads);
    text += &entry(2, "runs", &format!("{} of {} periods each", c.repeats, c.periods));
    let mut last_source = None;
    for p in &c.published {
        if last_source != Some(&p.source) {
            text += &entry(2, "published", &p.source);
            last_source = Some(&p.source);
        }
        let side = if p.side == Side::Base { NO_BURST } else { &c.variants[p.variant].name };
        let (load, metric) = (c.loads[p.load], c.metrics[p.metric].metric());
        let _ = writeln!(text, "    load {load}, {side}: {}, {metric}", p.value);
    }
    text
}

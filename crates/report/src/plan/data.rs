//! What the page's script draws: latency of each setting, and settings over time.

use reveille_plan::{Goal, Picture, Plan, Shown, Strip, Subject};
use serde::Serialize;

use super::rows::{Column, columns};
use super::words::setting;
use crate::made::object;

#[derive(Serialize)]
struct Setting<'a> {
    name: &'a str,
    today: bool,
    /// Nanoseconds and share, what is never done left out.
    cdf: Vec<(f64, f64)>,
    /// Of this distribution: null if it is never reached, left out if there are too few pieces
    /// of work.
    #[serde(skip_serializing_if = "Option::is_none")]
    p50: Option<Option<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p99: Option<Option<f64>>,
    /// Share that is never done.
    never: f64,
}

/// The plan and its pictures as JSON that no script element ends in.
pub(super) fn block(plan: &Plan, pictures: &[Picture]) -> String {
    let columns = columns(plan);
    let block = object! {
        settings: columns.iter().map(latency).collect::<Vec<_>>(),
        goals: plan.goals.iter().filter_map(mark).collect::<Vec<_>>(),
        pictures: pictures.iter().map(|picture| pictured(&columns, picture)).collect::<Vec<_>>(),
    };
    let json = serde_json::to_string(&block).expect("the block has only text keys");
    json.replace('<', "\\u003c")
}

fn latency<'a>(column: &Column<'a>) -> Setting<'a> {
    let points = &column.shown.latency;
    let done: Vec<(f64, f64)> = points
        .iter()
        .filter(|point| point.latency_ns.is_finite())
        .map(|point| (point.latency_ns.max(1.0).round(), point.share))
        .collect();
    let never = 1.0 - done.last().map_or(0.0, |point| point.1);
    let at = |share: f64| done.iter().find(|point| point.1 >= share).map(|point| point.0);
    let p50 = (!column.shown.effect.p50_ns.median.is_nan()).then(|| at(0.5));
    let p99 = (!column.shown.effect.p99_ns.median.is_nan()).then(|| at(0.99));
    Setting { name: column.name, today: column.name == "today", cdf: done, p50, p99, never }
}

fn mark(goal: &Goal) -> Option<impl Serialize> {
    match goal.subject {
        Subject::Latency(share) => {
            Some(object! { text: goal.text.as_str(), share, ns: goal.limit })
        }
        _ => None,
    }
}

fn pictured(columns: &[Column<'_>], picture: &Picture) -> impl Serialize + use<> {
    let of = |shown: &Shown| shown.limits == picture.limits;
    let limits = picture.limits;
    let name = columns.iter().find(|c| of(c.shown)).map_or("setting", |column| column.name);
    object! {
        name: name.to_owned(),
        setting: setting(&limits),
        quota_cpus: limits.cpus(),
        quota_ns: limits.quota_ns,
        burst_ns: limits.burst_ns,
        whole: drawn(&picture.whole),
        close: picture.close.as_ref().map(drawn),
    }
}

fn drawn(strip: &Strip) -> impl Serialize + use<> {
    // No more digits than can be seen.
    let cpus = |of: &[f64]| of.iter().map(|v| (v * 1000.0).round() / 1000.0).collect::<Vec<_>>();
    let us = |of: &[f64]| of.iter().map(|v| (v / 1000.0).round() * 1000.0).collect::<Vec<_>>();
    object! {
        from: strip.from_ns,
        step: strip.step_ns,
        used: cpus(&strip.used_cpus),
        least: us(&strip.least_ns),
        most: us(&strip.most_ns),
        throttled: cpus(&strip.throttled_share),
    }
}

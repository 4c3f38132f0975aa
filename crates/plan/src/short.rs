//! How long a recording must be before its answer may be acted on. The one rule for the printed plan,
//! `--json`, `--emit` and `--apply --write`; docs/plan.md explains it.

use reveille_measure::{enough_for, needed_for};
use reveille_policy::BandwidthLimits;
use reveille_usage::{Origin, Usage};
use serde::Serialize;

use crate::Ns;
use crate::goal::{Goal, Subject, quantile_name};
use crate::request::Request;

/// Periods that a recording must hold ...
const PERIODS: u64 = 100;
/// ... or this time, which is less for periods of over 300 ms.
const LONG_NS: Ns = 30_000_000_000;
/// Requests without which the longest latency is not told.
const REQUESTS: u64 = 100;
/// Throttled periods that tell a share of them.
const THROTTLED: f64 = 10.0;

/// What a recording has too little of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Lacking {
    Requests,
    /// Periods of the recommended setting.
    Periods,
    /// Those in which something runs.
    BusyPeriods,
}

/// Why a recording is too short to act on the plan made from it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TooShort {
    /// The goal that needs more; `None` where every goal does.
    pub goal: Option<String>,
    pub of: Lacking,
    pub has: u64,
    pub needs: u64,
    pub period_ns: Ns,
    /// Length that is enough at the recording's rate; `None` if it has nothing to go by.
    pub enough_ns: Option<Ns>,
    /// The quantile that cannot be told.
    #[serde(skip)]
    pub(crate) quantile: Option<String>,
}

impl std::fmt::Display for TooShort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the {}", self.about_the_recording())
    }
}

impl TooShort {
    /// `recording is too short …`, behind an article.
    fn about_the_recording(&self) -> String {
        let TooShort { has, needs, .. } = self;
        let goal = self.goal.as_deref().unwrap_or("any goal");
        let period = self.period_ns as f64 / 1e6;
        match (&self.quantile, self.of) {
            (Some(quantile), _) => format!(
                "recording has too few requests to tell {quantile}: {has}, and {needs} are needed"
            ),
            (None, Lacking::Requests) => format!(
                "recording is too short for `{goal}`: it has {has} requests, and {needs} are \
                 needed"
            ),
            (None, Lacking::Periods) => format!(
                "recording is too short for {goal}: it holds {has} periods of {period} ms, and \
                 {needs} are needed"
            ),
            (None, Lacking::BusyPeriods) => format!(
                "recording is too short for `{goal}`: something runs in {has} of its periods of \
                 {period} ms, and {needs} are needed"
            ),
        }
    }
}

/// Requests whose latency is meaningful: none in a recording of averages.
pub(crate) fn pieces(usage: &Usage) -> u64 {
    match usage.origin {
        Origin::Averaged { .. } => 0,
        _ => usage.demands.len() as u64,
    }
}

/// What of a request's recording is too short for a plan that recommends `limits`.
pub(crate) fn too_short(request: &Request<'_>, limits: BandwidthLimits) -> Vec<TooShort> {
    let usage = request.usage;
    let counted = request.inferred.and_then(|inferred| inferred.recorded_ns());
    // Averages tell no limit, however long they are.
    if counted.is_none() && matches!(usage.origin, Origin::Averaged { .. }) {
        return Vec::new();
    }
    let (span_ns, period_ns) = (counted.unwrap_or(usage.span_ns), limits.period_ns);
    let needed = PERIODS.min(LONG_NS.div_ceil(period_ns));
    let short = |goal: Option<&Goal>, of, has: u64, needs: u64| {
        let at_its_rate = |has| (u128::from(span_ns) * u128::from(needs)).div_ceil(has) as Ns;
        let of_periods = (of == Lacking::Periods).then_some(needs * period_ns);
        let enough_ns = of_periods.or_else(|| (has > 0).then(|| at_its_rate(u128::from(has))));
        let goal = goal.map(|goal| goal.text.clone());
        (has < needs).then_some(TooShort {
            goal,
            of,
            has,
            needs,
            period_ns,
            enough_ns,
            quantile: None,
        })
    };
    let mut found: Vec<TooShort> =
        short(None, Lacking::Periods, span_ns / period_ns, needed).into_iter().collect();
    let whole = found.is_empty();
    let requests = pieces(usage);
    for goal in &request.goals {
        found.extend(match goal.subject {
            Subject::Latency(1.0) => short(Some(goal), Lacking::Requests, requests, REQUESTS),
            Subject::Latency(quantile) if !enough_for(requests, quantile) => {
                let told = short(Some(goal), Lacking::Requests, requests, needed_for(quantile));
                told.map(|told| TooShort { quantile: Some(quantile_name(quantile)), ..told })
            }
            Subject::Throttled | Subject::Lost if counted.is_none() && whole => {
                short(Some(goal), Lacking::BusyPeriods, busy(request, period_ns), needed)
            }
            _ => None,
        });
    }
    found
}

/// Warnings: what is too short to be acted on, and shares that so few periods only estimate.
/// Quantiles have their own.
pub(crate) fn warnings(request: &Request<'_>, short: &[TooShort], period_ns: Ns) -> Vec<String> {
    let told = short.iter().filter(|short| short.quantile.is_none()).map(|short| {
        let enough = short.enough_ns.map_or("longer".into(), at_least);
        let what = short.about_the_recording();
        format!(
            "The {what}. Record for {enough}; until then --emit and --apply --write are refused."
        )
    });
    let mut warnings: Vec<String> = told.collect();
    let counters = matches!(request.usage.origin, Origin::Averaged { .. })
        || request.inferred.is_some_and(|inferred| inferred.of_counters());
    let shares = request.goals.iter().filter(|goal| goal.subject == Subject::Throttled);
    for goal in shares.filter(|goal| goal.limit > 0.0 && !counters && short.is_empty()) {
        let (busy, needs) = (busy(request, period_ns), (THROTTLED / goal.limit).ceil() as u64);
        if busy < needs {
            let span_ns = u128::from(request.usage.span_ns) * u128::from(needs);
            warnings.push(format!(
                "`{}`: something runs in {busy} periods of {} ms, and {needs} are needed for \
                 {THROTTLED} throttled ones at that share, so it is an estimate. Record for {} to tell it.",
                goal.text,
                period_ns as f64 / 1e6,
                at_least(span_ns.div_ceil(u128::from(busy.max(1))) as Ns)
            ));
        }
    }
    warnings
}

/// `at least 35 s`.
pub(crate) fn at_least(ns: Ns) -> String {
    format!("at least {} s", ns.div_ceil(1_000_000_000))
}

/// Periods in which something runs.
fn busy(request: &Request<'_>, period_ns: Ns) -> u64 {
    let used = request.usage.per_period(period_ns, 0);
    used.into_iter().filter(|&used| used > 0).count() as u64
}

//! Quota, period and burst as text (`quota=50ms,period=100ms`) and as steps of the search.

use reveille_measure::duration_ns;
use reveille_place::Mistake;
use reveille_policy::BandwidthLimits;

use crate::{Ns, PlanError};

const FIX: &str = "write quota=50ms,period=100ms,burst=0ms; period and burst may be left out, \
                   and quota=max stands for no limit";

/// Parses `quota=50ms,period=100ms,burst=0ms`, the value of `option`.
///
/// # Errors
/// [`InputError::Option`]: an unknown key, an invalid duration, or a value that no kernel accepts.
pub fn parse_limits(option: &'static str, text: &str) -> Result<BandwidthLimits, PlanError> {
    let wrong =
        |problem: String, fix: &str| Err(PlanError::option(option, Mistake::new(problem, fix)));
    let mut limits = BandwidthLimits::default();
    let mut given: Vec<&str> = Vec::new();
    for part in text.split(',').map(str::trim) {
        let Some((key, value)) = part.split_once('=') else {
            return wrong(format!("`{part}` is no setting"), FIX);
        };
        let (key, value) = (key.trim(), value.trim());
        if given.contains(&key) {
            return wrong(format!("`{key}` is given twice"), "leave one of them");
        }
        given.push(key);
        if key == "quota" && value == "max" {
            continue;
        }
        let time = match duration_ns(value) {
            Ok(ns) => ns,
            Err(error) => return wrong(format!("{key}: {error}"), FIX),
        };
        match key {
            "quota" => limits.quota_ns = Some(time),
            "period" => limits.period_ns = time,
            "burst" => limits.burst_ns = time,
            _ => return wrong(format!("there is no setting `{key}`"), FIX),
        }
    }
    if !given.contains(&"quota") {
        return wrong(format!("`{text}` has no quota"), FIX);
    }
    match limits.check() {
        Ok(()) => Ok(limits),
        Err(error) => wrong(format!("no kernel accepts it: {error}"), FIX),
    }
}

/// A quota in thousandths of a CPU and a burst in percent of it; `None` if no kernel accepts that.
pub(crate) fn limits_of(
    millicpus: u64,
    period_ns: Ns,
    burst_percent: u64,
) -> Option<BandwidthLimits> {
    let whole_us = |ns: Ns| ns / 1000 * 1000;
    let quota_ns = whole_us(period_ns * millicpus / 1000);
    let burst_ns = whole_us(quota_ns * burst_percent / 100);
    let limits = BandwidthLimits { quota_ns: Some(quota_ns), period_ns, burst_ns };
    limits.check().is_ok().then_some(limits)
}

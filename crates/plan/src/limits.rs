//! Quota, period and burst as text (`quota=50ms,period=100ms`) and as steps of the search.

use reveille_place::Mistake;
use reveille_policy::{BandwidthError, BandwidthLimits, settings};

use crate::{Ns, PlanError, Result};

/// Parses `quota=50ms,period=100ms,burst=0ms`, the value of `option`.
///
/// # Errors
/// [`InputError::Option`]: an unknown key, an invalid duration, or a value that no kernel accepts.
///
/// [`InputError::Option`]: reveille_place::InputError::Option
pub fn parse_limits(option: &'static str, text: &str) -> Result<BandwidthLimits> {
    parsed(text).map_err(|mistake| PlanError::option(option, mistake))
}

fn parsed(text: &str) -> Result<BandwidthLimits, Mistake> {
    let mut limits = BandwidthLimits::default();
    let given = settings(text)?;
    for (key, value) in &given {
        limits.set(key, value)?;
    }
    if !given.iter().any(|(key, _)| *key == "quota") {
        let help = "write quota=50ms,period=100ms,burst=0ms; period and burst may be left out, and \
                    quota=max stands for no limit";
        return Err(Mistake::new(format!("`{text}` has no quota"), help));
    }
    limits.check().map(|()| limits).map_err(BandwidthError::mistake)
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

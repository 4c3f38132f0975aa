//! Averages that sit at a limit, where no counter tells whether the limit throttled the group.

use reveille_policy::BandwidthLimits;

use super::series::Counter;

/// A step that used this share of the limit is at the limit.
const AT_LIMIT: f64 = 0.95;
/// Without a known limit: steps within this share of the largest count as equal to it.
const AS_LARGE: f64 = 0.98;
/// This many steps equal to the largest are no coincidence,
const FEWEST: usize = 5;
/// if they are at least one in `PART`.
const PART: usize = 5;

const UNKNOWN: &str = "and no counter of throttling is in the answers: whether it wanted more \
                       cannot be known. Query container_cpu_cfs_throttled_periods_total too, or \
                       lift the limit and record for 60 s with `reveille record`.";

/// The warning for use that is flat at a limit, or at what may be one.
pub(super) fn warning(usage: &Counter, limits: Option<BandwidthLimits>) -> Option<String> {
    let rate = |(from, until, used_s): (u64, u64, f64)| used_s * 1e9 / (until - from) as f64;
    let rates: Vec<f64> = usage.steps().map(rate).collect();
    let steps = rates.len();
    let above = |bound: f64| rates.iter().filter(|rate| **rate >= bound).count();
    match limits {
        Some(BandwidthLimits { quota_ns: Some(quota_ns), period_ns, .. }) => {
            let limit = quota_ns as f64 / period_ns as f64;
            let at_limit = above(AT_LIMIT * limit);
            (at_limit > 0).then(|| {
                format!(
                    "It used {:.0}% or more of its limit of {limit:.2} CPUs in {at_limit} of \
                     {steps} steps, {UNKNOWN}",
                    100.0 * AT_LIMIT
                )
            })
        }
        Some(_) => None,
        None => {
            let largest = rates.iter().copied().fold(0.0, f64::max);
            let flat = above(AS_LARGE * largest);
            (largest > 0.0 && flat >= FEWEST.max(steps / PART)).then(|| {
                format!(
                    "Its use is flat at {largest:.2} CPUs in {flat} of {steps} steps, as at a \
                     limit, {UNKNOWN}"
                )
            })
        }
    }
}

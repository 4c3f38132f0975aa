//! Quota, period and burst as a plain value and as text: `quota=50ms,period=100ms`.

use reveille_measure::{duration_ns, duration_text};
use reveille_place::Mistake;
use reveille_policy::BandwidthLimits;
use serde::Serialize;

use crate::{Ns, PlanError};

const FIX: &str = "write quota=50ms,period=100ms,burst=0ms; period and burst may be left out, \
                   and quota=max stands for no limit";

/// Limits of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// CPU time in a period; nothing for no limit.
    pub quota_ns: Option<Ns>,
    /// The period.
    pub period_ns: Ns,
    /// Unused quota that may be kept.
    pub burst_ns: Ns,
}

impl From<BandwidthLimits> for Limits {
    fn from(of: BandwidthLimits) -> Limits {
        Limits { quota_ns: of.quota_ns, period_ns: of.period_ns, burst_ns: of.burst_ns }
    }
}

impl From<Limits> for BandwidthLimits {
    fn from(of: Limits) -> BandwidthLimits {
        BandwidthLimits { quota_ns: of.quota_ns, period_ns: of.period_ns, burst_ns: of.burst_ns }
    }
}

impl std::fmt::Display for Limits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = |ns: Ns| duration_text(ns as f64);
        let quota = self.quota_ns.map_or("max".into(), text);
        let (period, burst) = (text(self.period_ns), text(self.burst_ns));
        write!(f, "quota={quota},period={period},burst={burst}")
    }
}

impl Limits {
    /// No quota, and the period that kernels begin with.
    pub fn none() -> Limits {
        BandwidthLimits::default().into()
    }

    /// Reads `quota=50ms,period=100ms,burst=0ms`, given by `option`.
    ///
    /// # Errors
    /// [`PlanError::Option`]: no such key, no duration, or what no kernel accepts.
    pub fn parse(option: &'static str, text: &str) -> Result<Limits, PlanError> {
        let wrong =
            |problem: String, fix: &str| Err(PlanError::option(option, Mistake::new(problem, fix)));
        let mut limits = Limits::none();
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
        match BandwidthLimits::from(limits).check() {
            Ok(()) => Ok(limits),
            Err(error) => wrong(format!("no kernel accepts it: {error}"), FIX),
        }
    }

    /// A quota of so many thousandths of a CPU, and a burst of so many hundredths of it; nothing
    /// if no kernel accepts that.
    pub(crate) fn of(millicpus: u64, period_ns: Ns, burst_percent: u64) -> Option<Limits> {
        let whole_us = |ns: Ns| ns / 1000 * 1000;
        let quota_ns = whole_us(period_ns * millicpus / 1000);
        let burst_ns = whole_us(quota_ns * burst_percent / 100);
        let limits = Limits { quota_ns: Some(quota_ns), period_ns, burst_ns };
        BandwidthLimits::from(limits).check().is_ok().then_some(limits)
    }

    /// More quota at the same period and burst, in whole microseconds, as far as it may be
    /// reserved. The burst stays: neighbours may have to wait for it, and more quota refills it
    /// sooner.
    pub(crate) fn with_headroom(self, share: f64, most_millicpus: u64) -> Limits {
        let Some(quota_ns) = self.quota_ns else { return self };
        let most_ns = self.period_ns * most_millicpus / 1000;
        let wanted_ns = (quota_ns as f64 * (1.0 + share) / 1000.0 - 1e-6).ceil() as Ns * 1000;
        let advised_ns = wanted_ns.min(most_ns / 1000 * 1000).max(quota_ns);
        Limits { quota_ns: Some(advised_ns), ..self }
    }

    /// CPUs that it reserves; nothing without a quota.
    pub fn cpus(&self) -> Option<f64> {
        self.quota_ns.map(|quota| quota as f64 / self.period_ns as f64)
    }
}

//! Throttling during a recording, by its own counters. A throttled group does not show its full
//! demand.

use reveille_measure::seconds_text;

use crate::{Ns, Usage};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttling {
    /// Periods with runnable tasks; 0 if not counted.
    pub nr_periods: u64,
    /// Throttled periods; 0 if not counted.
    pub nr_throttled: u64,
    /// Throttled time, summed over CPUs; 0 if not counted.
    pub throttled_ns: Ns,
}

impl Usage {
    /// Throttling according to the counters; `None` without any, or without counters.
    pub fn throttling(&self) -> Option<Throttling> {
        let last = self.samples.last()?;
        let seen = last.nr_throttled > 0 || last.throttled_ns > 0;
        seen.then_some(Throttling {
            nr_periods: last.nr_periods,
            nr_throttled: last.nr_throttled,
            throttled_ns: last.throttled_ns,
        })
    }
}

impl Throttling {
    /// Throttled periods divided by periods with runnable tasks; `None` if not counted.
    pub fn share(&self) -> Option<f64> {
        let counted = self.nr_periods > 0 && self.nr_throttled > 0;
        counted.then(|| self.nr_throttled as f64 / self.nr_periods as f64)
    }
}

impl std::fmt::Display for Throttling {
    /// `in 12 of 60 periods, for 1.250 s`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.nr_throttled, self.nr_periods) {
            (0, _) => {}
            (throttled, 0) => write!(f, "in {throttled} periods")?,
            (throttled, periods) => write!(f, "in {throttled} of {periods} periods")?,
        }
        if self.throttled_ns > 0 {
            let comma = if self.nr_throttled > 0 { ", " } else { "" };
            write!(f, "{comma}for {}", seconds_text(self.throttled_ns))?;
        }
        Ok(())
    }
}

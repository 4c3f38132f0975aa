//! A container's raw counters over a long time, read in parts.

use reveille_usage::Usage;

use crate::server::Failed;
use crate::{Container, Server, ServerError, Span};

/// Counters of a container that a recording can hold.
const METRICS: &str = "container_cpu_usage_seconds_total|container_cpu_cfs_periods_total|\
                       container_cpu_cfs_throttled_periods_total|\
                       container_cpu_cfs_throttled_seconds_total|container_spec_cpu_quota|\
                       container_spec_cpu_period";
const S: u64 = 1_000_000_000;
/// Seconds of one part: 5,760 readings at 15 s.
const PART_S: u64 = 86_400;
/// A part is not made shorter.
const SHORTEST_PART_S: u64 = 600;

impl Server<'_> {
    /// What the server keeps of a container.
    ///
    /// Readings are asked for as they were scraped: interpolated ones would show use at the wrong
    /// time. A server that keeps coarser data only answers for [`Span::step_s`].
    ///
    /// # Errors
    /// [`ServerError::Short`] if there is one reading only, and others.
    pub fn recording(&self, container: &Container, span: Span) -> Result<Usage, ServerError> {
        let selector = format!("{{__name__=~\"{METRICS}\",{}}}", container.conditions());
        let mut part_s = PART_S.min(span.length_s);
        let mut answers = Vec::new();
        let mut from_s = span.begin_s();
        while from_s < span.until_s {
            let until_s = span.until_s.min(from_s + part_s);
            match self.part(&selector, from_s, until_s, span.step_s) {
                Ok(bytes) => {
                    answers.push((container.name(), bytes));
                    from_s = until_s;
                }
                Err(Failed::TooMuch(error)) if part_s / 2 < SHORTEST_PART_S => return Err(error),
                Err(Failed::TooMuch(_)) => part_s /= 2,
                Err(Failed::Other(error)) => return Err(error),
            }
        }
        let mut usage =
            Usage::from_prometheus(&container.name(), &answers, &[]).map_err(|error| {
                match Usage::seen_once(&answers) {
                    true => ServerError::Short(error),
                    false => error.into(),
                }
            })?;
        let seen_ns = usage.began_unix_ns.map(|began_ns| began_ns + usage.span_ns);
        usage.unseen_ns = seen_ns.map(|ns| (span.until_s * S).saturating_sub(ns));
        Ok(usage)
    }

    fn part(
        &self,
        selector: &str,
        from_s: u64,
        until_s: u64,
        step_s: Option<u64>,
    ) -> Result<Vec<u8>, Failed> {
        let (from, until) = (from_s.to_string(), until_s.to_string());
        match step_s {
            None => {
                let query = format!("{selector}[{}s]", until_s - from_s);
                self.ask("query", &[("query", &query), ("time", &until)])
            }
            Some(step_s) => {
                let step = step_s.to_string();
                let query =
                    [("query", selector), ("start", &from), ("end", &until), ("step", &step)];
                self.ask("query_range", &query)
            }
        }
    }
}

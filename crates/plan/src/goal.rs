//! Goals such as `p99=20ms` and `throttled<0.1%`: parsing, refusal of goals that the recording
//! cannot judge or no setting can meet, and evaluation of a run.

use reveille_measure::statistics::nearest_rank;
use reveille_measure::{duration_ns, duration_text};
use reveille_place::Mistake;
use reveille_usage::{Origin, Usage};
use serde::{Serialize, Serializer};

use crate::{Ns, PlanError, Result};

const KNOWN: &str = "goals are p99=20ms (any quantile: p50, p99.9), max<50ms, throttled<0.1% \
                     (periods), lost<1% (time) and, with --neighbours, tardiness<5ms";

/// The figure that a goal limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Subject {
    /// This quantile of latency; 1 is the maximum.
    Latency(f64),
    /// Throttled periods divided by periods with runnable tasks.
    Throttled,
    /// Throttled time summed over CPUs, divided by elapsed time.
    Lost,
    /// Worst lateness of a neighbour, against a run without this group.
    Tardiness,
}

/// An upper bound on a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    /// As the user wrote it.
    pub text: String,
    pub subject: Subject,
    /// The bound: nanoseconds, or a share.
    pub limit: f64,
    /// Strictly less than the limit (`<`)?
    pub strict: bool,
}

impl Goal {
    /// Parses a goal.
    ///
    /// # Errors
    /// [`InputError::Option`](reveille_place::InputError::Option) with the mistake and the syntax.
    pub fn parse(text: &str) -> Result<Goal> {
        let wrong = |problem: String, help: &str| {
            Err(PlanError::option("--goal", Mistake::new(problem, help)))
        };
        if text.contains(',') {
            let problem = format!("`{text}` is more than one goal");
            return wrong(problem, "repeat the option: --goal p99=80ms --goal p50=40ms");
        }
        if text.contains('>') {
            let problem = format!("`{text}` is no upper bound");
            return wrong(problem, "write < or =: every goal is the most that a figure may be");
        }
        let Some(at) = text.find(['=', '<']) else {
            return wrong(format!("`{text}` has no limit"), KNOWN);
        };
        let (name, rest) = (text[..at].trim(), &text[at..]);
        let strict = rest.starts_with('<') && !rest.starts_with("<=");
        let value = rest.trim_start_matches("<=").trim_start_matches(['=', '<']).trim();
        let subject = match name {
            "throttled" => Subject::Throttled,
            "lost" => Subject::Lost,
            "tardiness" => Subject::Tardiness,
            "max" => Subject::Latency(1.0),
            _ => match quantile(name) {
                Some(quantile) => Subject::Latency(quantile),
                None => return wrong(format!("there is no goal `{name}`"), KNOWN),
            },
        };
        let limit = match subject {
            Subject::Throttled | Subject::Lost => match share(value) {
                Some(share) => share,
                None => {
                    let problem = format!("`{value}` is no share");
                    return wrong(problem, &format!("write {name}<0.1%; 0% to 100%"));
                }
            },
            Subject::Latency(_) | Subject::Tardiness => match duration_ns(value) {
                Ok(0) => return wrong("no latency is 0".into(), "give a time, such as 20ms"),
                Ok(ns) => ns as f64,
                Err(error) => {
                    return wrong(
                        error.to_string(),
                        &format!("write {name}<20ms; units are us, ms and s"),
                    );
                }
            },
        };
        if strict && limit == 0.0 {
            return wrong("nothing is less than 0%".into(), &format!("write {name}=0%"));
        }
        Ok(Goal { text: text.trim().to_owned(), subject, limit, strict })
    }

    pub(crate) fn is_latency(&self) -> bool {
        matches!(self.subject, Subject::Latency(_))
    }

    /// Does `figure` meet the goal?
    pub fn holds(&self, figure: f64) -> bool {
        if self.strict { figure < self.limit } else { figure <= self.limit }
    }

    /// The figure relative to the limit; the goal fails above 1.
    pub(crate) fn strain(&self, figure: f64) -> f64 {
        if self.limit == 0.0 {
            return if figure == 0.0 { 0.0 } else { f64::INFINITY };
        }
        figure / self.limit
    }

    pub(crate) fn impossible(&self, problem: impl Into<String>, help: &str) -> PlanError {
        PlanError::Impossible { goal: self.text.clone(), mistake: Mistake::new(problem, help) }
    }

    /// Can the recording judge this goal, and could any setting meet it?
    pub(crate) fn check(&self, usage: &Usage, neighbours: bool) -> Result<()> {
        if self.subject == Subject::Tardiness && !neighbours {
            let help = "name them: --neighbours other.parquet";
            return Err(self.impossible("there are no neighbours to be late", help));
        }
        let Subject::Latency(quantile) = self.subject else { return Ok(()) };
        if let Origin::Averaged { step_ns } = usage.origin {
            let step = duration_text(step_ns as f64);
            let help = "record the group itself (`reveille record`), or ask for \
                        throttled<… or lost<…";
            let problem = format!(
                "{} holds averages over {step}, which say nothing about the latency of any work",
                usage.name
            );
            return Err(self.impossible(problem, help));
        }
        let mut times: Vec<Ns> = usage.demands.iter().map(|demand| demand.cpu_ns).collect();
        let at_least = quantile_of(&mut times, quantile);
        if !self.holds(at_least as f64) {
            let which = match quantile {
                1.0 => "the longest piece of work takes".to_owned(),
                q => format!("{} of the work takes", percent_beyond(q)),
            };
            let more = if quantile == 1.0 { "" } else { " or more" };
            let problem = format!(
                "{which} {:.3} ms of CPU time on one thread{more}: no setting makes that shorter",
                at_least as f64 / 1e6
            );
            let help = match usage.origin {
                Origin::Requests => {
                    "ask for a longer time; if no request takes as much, check the unit of `cpu`"
                }
                Origin::Sampled { .. } => {
                    "ask for a longer time. Samples show requests that run at once or back to back \
                     as one piece of work: `reveille record --how trace` tells threads apart, and \
                     `reveille import` takes a table of requests"
                }
                _ => {
                    "ask for a longer time. Requests that arrive together and run back to back on one \
                     thread are one piece of work to a recording: if such batches are the reason, \
                     import a table of requests with `reveille import`"
                }
            };
            return Err(self.impossible(problem, help));
        }
        Ok(())
    }
}

impl Serialize for Goal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

/// 0.999 as `p99.9`.
pub fn quantile_name(quantile: f64) -> String {
    format!("p{}", (quantile * 1e9).round() / 1e7)
}

/// `p99.9` as 0.999.
fn quantile(name: &str) -> Option<f64> {
    let digits = name.strip_prefix('p')?;
    if !digits.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    let percent: f64 = digits.parse().ok()?;
    // In 10^-9: 99.9 / 100 is not quite 0.999.
    (percent > 0.0 && percent < 100.0).then(|| (percent * 1e7).round() / 1e9)
}

/// `0.1%` as 0.001.
fn share(text: &str) -> Option<f64> {
    let number = text.strip_suffix('%')?.trim_end();
    if !number.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    let percent: f64 = number.parse().ok()?;
    (0.0..=100.0).contains(&percent).then_some(percent / 100.0)
}

fn percent_beyond(quantile: f64) -> String {
    let text = format!("{:.4}", 100.0 * (1.0 - quantile));
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

/// The nearest-rank quantile; the default value for an empty slice.
pub(crate) fn quantile_of<T: Ord + Copy + Default>(values: &mut [T], quantile: f64) -> T {
    let index = nearest_rank(values.len(), quantile);
    index.map_or(T::default(), |index| *values.select_nth_unstable(index).1)
}

#[cfg(test)]
mod tests {
    use reveille_place::InputError;

    use super::*;

    fn goal(text: &str) -> Goal {
        Goal::parse(text).unwrap()
    }

    #[test]
    fn goals_are_read_as_they_are_written() {
        let p99 = goal("p99=20ms");
        assert_eq!((p99.subject, p99.limit), (Subject::Latency(0.99), 20e6));
        assert!(p99.holds(20e6) && !p99.holds(20e6 + 1.0));
        assert!(!goal("p99<20ms").holds(20e6));
        assert!(goal("p99 <= 20 ms").holds(20e6));
        assert_eq!(goal("p99.9<1s").subject, Subject::Latency(0.999));
        assert_eq!(goal("max<50ms").subject, Subject::Latency(1.0));
        assert_eq!(goal("throttled<0.1%").limit, 0.001);
        assert_eq!(goal("lost<1%").subject, Subject::Lost);
        assert_eq!(goal("tardiness<5ms").subject, Subject::Tardiness);
        assert!(goal("throttled=0%").holds(0.0));
    }

    #[test]
    fn what_is_no_goal() {
        for text in [
            "",
            "p99",
            "p99=",
            "p99=20",
            "p99=-1ms",
            "p99=0ms",
            "p100=1ms",
            "p0=1ms",
            "pp=1ms",
            "pinf=1ms",
            "pNaN=1ms",
            "p-1=1ms",
            "p1e1=1ms",
            "mean=1ms",
            "throttled<5ms",
            "throttled<101%",
            "throttled<-1%",
            "throttled<nan%",
            "throttled<0%",
            "lost=%",
            "=1ms",
        ] {
            assert!(
                matches!(Goal::parse(text), Err(PlanError::Input(InputError::Option { .. }))),
                "{text}"
            );
        }
    }

    #[test]
    fn a_goal_that_is_not_one_bound_is_told_so() {
        for (text, told) in [
            ("p99=80ms,p50=40ms", "`p99=80ms,p50=40ms` is more than one goal"),
            ("p99>50ms", "`p99>50ms` is no upper bound"),
        ] {
            let error = Goal::parse(text).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_values() {
        let mut values: Vec<u64> = (1..=1000).rev().collect();
        for (quantile, value) in [(0.5, 500), (0.99, 990), (0.999, 999), (1.0, 1000), (0.0001, 1)] {
            assert_eq!(quantile_of(&mut values, quantile), value, "{quantile}");
        }
        assert_eq!(quantile_of(&mut [7u64], 0.5), 7);
        assert_eq!(quantile_of::<u64>(&mut [], 0.5), 0);
    }
}

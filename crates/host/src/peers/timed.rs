//! Runs that last for a time: warm-up, then a window of seconds in which pairs of tasks
//! count what they exchange. The parent looks at their lines at the edges of each second;
//! nobody is stopped for it.

use serde::{Deserialize, Serialize};

use super::crew::Crew;
use super::lines::{Line, Lines, Looks};
use super::tasks::{Tasks, use_of};
use crate::sys::clock;
use crate::{HostError, Ns, TaskUse};

/// Length of a sample.
const SECOND: Ns = 1_000_000_000;
/// How long tasks may take to end.
pub(crate) const PATIENCE: Ns = 5 * SECOND;

/// How long a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Time that does not count.
    pub warmup_ns: Ns,
    /// Time measured.
    pub measure_ns: Ns,
}

impl Span {
    /// Nothing is measured in no time.
    pub(crate) fn check(self, option: &str) -> Result<(), HostError> {
        super::limits::at_least_one(self.measure_ns, option, "time to measure in")
    }
}

/// A second of a run, or the rest of one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// How long it really was.
    pub elapsed_ns: Ns,
    /// Rate of the slowest pair, in operations/s.
    pub min_per_s: f64,
    /// Rate of the fastest pair, in operations/s.
    pub max_per_s: f64,
    /// Of all pairs together, in operations/s.
    pub total_per_s: f64,
    /// The longest exchange that ended in it, where exchanges are timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_ns: Option<Ns>,
}

/// What a pair did in the window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairRate {
    /// Operations.
    pub operations: u64,
    /// Operations/s.
    pub per_s: f64,
    /// How often both sides were seen on one CPU, in percent; none if they were never
    /// compared, since too little passed between them.
    pub same_cpu_pct: Option<f64>,
}

/// What all pairs did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timed {
    /// Seconds of the warm-up.
    pub warmup: Vec<Second>,
    /// Seconds of the window.
    pub seconds: Vec<Second>,
    /// Length of the window.
    pub elapsed_ns: Ns,
    /// Operations of all pairs in the window.
    pub operations: u64,
    /// The same in operations/s.
    pub per_s: f64,
    /// Each pair.
    pub pairs: Vec<PairRate>,
}

/// Pairs of tasks: lines 2i and 2i + 1 belong to one, and the first counts its messages.
pub(crate) struct Pairs<'a> {
    pub lines: &'a Lines,
    /// The process whose threads the tasks are, if they are threads.
    pub process: Option<u32>,
    /// Operations that a message of the first side stands for.
    pub per_message: u64,
    /// Does the first side time its exchanges?
    pub timed: bool,
}

impl<'a> Pairs<'a> {
    fn firsts(&self) -> impl Iterator<Item = Line<'a>> {
        self.lines.iter().step_by(2)
    }

    fn counts(&self) -> Vec<u64> {
        self.firsts().map(|line| line.counted() * self.per_message).collect()
    }

    fn looks(&self) -> Vec<Looks> {
        self.lines.iter().skip(1).step_by(2).map(|line| line.looks()).collect()
    }

    fn uses(&self) -> Result<Vec<TaskUse>, HostError> {
        self.lines.iter().map(|line| use_of(line, self.process)).collect()
    }
}

/// Counts of all pairs at a moment.
struct Moment {
    at: Ns,
    counts: Vec<u64>,
    longest_ns: Option<Ns>,
}

impl Moment {
    fn now(pairs: &Pairs<'_>) -> Moment {
        let longest = || pairs.firsts().map(|line| line.take_longest()).max();
        let longest_ns = if pairs.timed { longest() } else { None };
        Moment { counts: pairs.counts(), longest_ns, at: clock::now() }
    }

    fn second_since(&self, earlier: &Moment) -> Second {
        let elapsed_ns = (self.at - earlier.at).max(1);
        let rates = self.counts.iter().zip(&earlier.counts);
        let rates = rates.map(|(now, then)| per_s(now - then, elapsed_ns));
        let (mut min, mut max, mut total) = (f64::INFINITY, 0.0f64, 0.0);
        for rate in rates {
            min = min.min(rate);
            max = max.max(rate);
            total += rate;
        }
        let longest_ns = self.longest_ns;
        Second { elapsed_ns, min_per_s: min, max_per_s: max, total_per_s: total, longest_ns }
    }
}

/// Operations/s.
fn per_s(operations: u64, elapsed_ns: Ns) -> f64 {
    operations as f64 * SECOND as f64 / elapsed_ns as f64
}

/// Watches a run that has just been started, for its whole span; `edge` is told when the
/// window begins.
pub(crate) fn measure(
    crew: &Crew,
    pairs: &Pairs<'_>,
    span: Span,
    edge: impl FnOnce(),
) -> Result<(Timed, Tasks), HostError> {
    let start = Moment::now(pairs);
    let (warmup, _) = seconds(crew, pairs, start, span.warmup_ns)?;
    let (uses, looks) = (pairs.uses()?, pairs.looks());
    edge();
    let start = Moment::now(pairs);
    let (first, begin) = (start.counts.clone(), start.at);
    let (seconds, end) = seconds(crew, pairs, start, span.measure_ns)?;
    let used: Vec<TaskUse> =
        pairs.uses()?.into_iter().zip(uses).map(|(now, then)| now - then).collect();
    let elapsed_ns = end.at - begin;
    let looked = pairs.looks().into_iter().zip(looks);
    let rate = |((now, then), (l, k)): ((u64, u64), (Looks, Looks))| PairRate {
        operations: now - then,
        per_s: per_s(now - then, elapsed_ns),
        same_cpu_pct: (l.all > k.all)
            .then(|| 100.0 * (l.same - k.same) as f64 / (l.all - k.all) as f64),
    };
    let pairs: Vec<PairRate> = end.counts.into_iter().zip(first).zip(looked).map(rate).collect();
    let operations = pairs.iter().map(|pair| pair.operations).sum();
    let per_s = per_s(operations, elapsed_ns);
    Ok((Timed { warmup, seconds, elapsed_ns, operations, per_s, pairs }, Tasks::of(&used)))
}

/// Looks at the pairs once a second for so long; returns the last look as well.
fn seconds(
    crew: &Crew,
    pairs: &Pairs<'_>,
    start: Moment,
    length: Ns,
) -> Result<(Vec<Second>, Moment), HostError> {
    let end = start.at + length;
    let (mut next, mut last, mut seconds) = (start.at, start, Vec::new());
    while next < end {
        next = (next + SECOND).min(end);
        crew.watch_until(next)?;
        let now = Moment::now(pairs);
        seconds.push(now.second_since(&last));
        last = now;
    }
    Ok((seconds, last))
}

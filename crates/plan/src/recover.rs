//! Requests that a recording does not show apart: those that queued behind each other, and those
//! that throttling held up. What throttling hid is accepted only if a replay under the recorded
//! limits is throttled as the group was.

use std::sync::atomic::{AtomicBool, Ordering};

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use reveille_place::Mistake;
use reveille_policy::BandwidthLimits;
use reveille_usage::{Origin, Throttling, Unthrottled, Usage};

use crate::counters::requests;
use crate::figures::Range;
use crate::inferred::{Inferred, InferredFrom};
use crate::load::Load;
use crate::replay::Phase;
use crate::request::{Request, pool};
use crate::{PlanError, Result};

/// Number of equally likely recordings to infer.
const RECORDINGS: u64 = 4;
/// Replays that check them against the counters, over phases.
const RUNS: u32 = 32;
/// With fewer pieces of work, their sizes say too little about queues.
const FEWEST: usize = 50;
/// Share of requests beyond the pieces of work below which these stand for themselves.
const QUEUED: f64 = 0.01;
/// Tolerance of the throttled share beyond its range over phases, relative.
const OFF_BY: f64 = 0.25;
/// Absolute tolerance; at least two periods.
const OFF_BY_POINTS: f64 = 0.02;

/// Inferred demand of a group.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// Equally likely recordings without a limit.
    pub usages: Vec<Usage>,
    /// How it was inferred, for a throttled group.
    pub inferred: Option<Inferred>,
}

impl Recovered {
    /// Makes the request plan for the inferred demand.
    pub fn replaces<'a>(&'a self, request: &mut Request<'a>) {
        let (first, others) = self.usages.split_first().expect("one is inferred at least");
        (request.usage, request.as_likely) = (first, others);
        request.inferred = self.inferred.as_ref();
    }
}

/// Infers the demand of the request's group on `jobs` threads; `None` if it is known: the group was
/// not throttled, and few requests queued.
///
/// # Errors
/// [`PlanError::Input`] if the recording is insufficient, or if a replay under its limits is
/// not throttled as the group was.
pub fn recovered(
    request: &Request<'_>,
    jobs: usize,
    stop: &AtomicBool,
) -> Result<Option<Recovered>> {
    pool(jobs)?.install(|| recover(request, stop))
}

/// [`recovered`] on the caller's thread pool.
pub(crate) fn recover(request: &Request<'_>, stop: &AtomicBool) -> Result<Option<Recovered>> {
    let usage = request.usage;
    let step_ns = match usage.origin {
        Origin::Averaged { step_ns } => Some(step_ns),
        _ => None,
    };
    let averages = step_ns.is_some();
    let limits = usage.limits.filter(|limits| limits.quota_ns.is_some());
    let Some(throttling) = usage.throttling() else {
        let periods = usage.samples.last().map_or(0, |last| last.nr_periods);
        return match limits {
            Some(limits) if averages && periods > 0 => Err(unidentified(usage, &limits, periods)),
            _ if averages => Ok(None),
            _ => Ok(queued(usage, request.seed)),
        };
    };
    let refuse = |why: String| refusal(usage, throttling, &why, "");
    let limits = limits.ok_or_else(|| {
        let or = "query container_spec_cpu_quota and container_spec_cpu_period too, or give \
                  `reveille plan` the limit by --today; or ";
        refusal(usage, throttling, "its limits are not in it", or)
    })?;
    let seen = throttling.share().ok_or_else(|| {
        let or = "query container_cpu_cfs_periods_total and \
                  container_cpu_cfs_throttled_periods_total too, or ";
        refusal(usage, throttling, "its periods were not counted", or)
    })?;
    let tell = || ();
    let stage = request.stage(stop, &tell)?;
    let (from, mut usages): (_, Vec<Usage>) = if let Some(step_ns) = step_ns {
        let usages = requests(usage, stage.lean(), request.seed, stop);
        if stop.load(Ordering::Relaxed) {
            return Err(PlanError::Interrupted);
        }
        let usages = usages.map_err(refuse)?;
        (InferredFrom::Counters { span_ns: usage.span_ns, step_ns }, usages)
    } else {
        let drawn = (0..RECORDINGS).map(|n| usage.unthrottled(request.seed.wrapping_add(n), n > 0));
        let drawn = drawn.collect::<Result<Vec<Unthrottled>, String>>().map_err(refuse)?;
        let Unthrottled { pieces, held, parts, held_share, .. } = drawn[0];
        let usages = drawn.into_iter().map(|drawn| drawn.usage).collect();
        (InferredFrom::Pieces { pieces, held, parts, held_share }, usages)
    };
    let loads: Vec<Load> = usages.iter().map(|usage| Load::new(&[usage])).collect();
    let phases = (RUNS / usages.len() as u32).max(1);
    let runs: Vec<(usize, u32)> = (0..usages.len())
        .flat_map(|number| (0..phases).map(move |phase| (number, phase)))
        .collect();
    let shares = runs.into_par_iter().map(|(number, phase)| {
        let load = &loads[number];
        let outcome = stage.replay(load, Some(limits), Phase::of_grid(phase, phases))?;
        Ok(stage.figures(load, &outcome, 0.0).throttled_share)
    });
    let shares: Vec<f64> = shares.collect::<Result<_>>()?;
    let replayed = Range::over(&shares);
    let periods = throttling.nr_periods.max(1) as f64;
    let slack = (OFF_BY * seen).max(OFF_BY_POINTS).max(2.0 / periods);
    if seen < replayed.min - slack || seen > replayed.max + slack {
        return Err(refuse(format!(
            "what was inferred is throttled in {:.1}% ({:.1}…{:.1}) of its periods under the same \
             limits, and the group was in {:.1}%",
            100.0 * replayed.median,
            100.0 * replayed.min,
            100.0 * replayed.max,
            100.0 * seen
        )));
    }
    let inferred = Inferred {
        from,
        recordings: usages.len(),
        throttled_share: seen,
        replayed_share: replayed,
    };
    usages[0].warnings.push(inferred.to_string());
    Ok(Some(Recovered { usages, inferred: Some(inferred) }))
}

/// Equally likely recordings of a group that was not throttled; `None` if hardly any of its requests
/// queued, or if the recording is of requests. The first is the recording itself: a long piece may
/// be one request, and another thread may have served what seems to queue. Goals hold either way.
fn queued(usage: &Usage, seed: u64) -> Option<Recovered> {
    let pieces = usage.demands.len();
    if matches!(usage.origin, Origin::Requests) || pieces < FEWEST {
        return None;
    }
    let draw = |number| match number {
        0 => usage.clone(),
        _ => usage.queued(seed.wrapping_add(number)),
    };
    let mut usages: Vec<Usage> = (0..RECORDINGS).into_par_iter().map(draw).collect();
    let requests = usages[1].demands.len();
    if requests as f64 <= (1.0 + QUEUED) * pieces as f64 {
        return None;
    }
    usages[0].warnings.push(format!(
        "Requests that queued behind each other are inferred: {pieces} pieces of work may be \
         about {requests} requests. Goals hold for both; what is shown of a setting's phases is of \
         the pieces. `reveille import` takes a table of requests, which is more certain."
    ));
    Some(Recovered { usages, inferred: None })
}

/// Is this a recording of averages of a group that its limit never throttled?
fn unidentified(usage: &Usage, limits: &BandwidthLimits, periods: u64) -> PlanError {
    let problem = format!(
        "not identified: averages hide how its work comes, and its limit ({limits}) throttled it \
         in none of {periods} periods, which tells nothing of how much less would do"
    );
    let help =
        "keep the limit, or record for 60 s: `reveille record --cgroup NAME -o FILE.parquet`";
    Mistake::new(problem, help).in_file(&usage.name)
}

/// The error for a throttled group whose demand cannot be recovered; `or` is an easier way out.
fn refusal(usage: &Usage, throttling: Throttling, why: &str, or: &str) -> PlanError {
    let problem = format!(
        "it was throttled while it was recorded, {throttling}, and the recording cannot tell what \
         it would have used without its limit: {why}"
    );
    let help = format!(
        "{or}lift the limit and record for 60 s: `reveille record --cgroup NAME -o FILE.parquet`; \
         then set the limit again"
    );
    Mistake::new(problem, help).in_file(&usage.name)
}

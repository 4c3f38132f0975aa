//! Plans for groups that were throttled while they were recorded: the demand is inferred, and
//! trusted only if a replay under the recorded limits is throttled as the group was.

use std::sync::atomic::AtomicBool;

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use reveille_place::Mistake;
use reveille_usage::{Throttling, Usage};
use serde::Serialize;

use crate::load::Load;
use crate::make::stage;
use crate::plan::{Figures, Range};
use crate::replay::Phase;
use crate::{PlanError, Request};

/// Recordings that are inferred; each is as likely as the others.
const RECORDINGS: u64 = 4;
/// Phases at which each is held against the counters.
const PHASES: u32 = 8;
/// A share of throttled periods may be off by this part of itself, beyond the range over phases,
const OFF_BY: f64 = 0.25;
/// and by so many points, or by two periods.
const OFF_BY_POINTS: f64 = 0.02;

/// The demand of a throttled group.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// Recordings as they might have been without the limit.
    pub usages: Vec<Usage>,
    /// What was inferred.
    pub inferred: Inferred,
}

/// What was inferred of a throttled group, and how it was checked.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Inferred {
    /// Pieces of work in the recording.
    pub pieces: usize,
    /// Those of them that throttling touched.
    pub held: usize,
    /// Requests that these are taken for.
    pub parts: usize,
    /// Share of periods that were throttled, by the recording's counters.
    pub throttled_share: f64,
    /// The same in replays under the recorded limits, over phases and inferred recordings.
    pub replayed_share: Range,
}

/// Infers the demand of the request's group if it was throttled; nothing if it was not.
///
/// # Errors
/// [`PlanError::Recording`] if the recording cannot tell, or a replay under its limits is not
/// throttled as the group was.
pub fn recovered(request: &Request<'_>, stop: &AtomicBool) -> Result<Option<Recovered>, PlanError> {
    let Some(throttling) = request.usage.throttling() else { return Ok(None) };
    let usage = request.usage;
    let refuse = |why: String| refusal(usage, throttling, &why);
    let Some(limits) = usage.limits.filter(|limits| limits.quota_ns.is_some()) else {
        return Err(refuse("its limits are not in it".into()));
    };
    let Some(seen) = throttling.share() else {
        return Err(refuse("its periods were not counted".into()));
    };
    let seeds = (0..RECORDINGS).map(|number| request.seed.wrapping_add(number));
    let drawn = seeds.map(|seed| usage.unthrottled(seed));
    let drawn = drawn.collect::<Result<Vec<_>, String>>().map_err(refuse)?;
    let tell = || ();
    let stage = stage(request, stop, &tell)?;
    let runs: Vec<(usize, u32)> =
        (0..drawn.len()).flat_map(|number| (0..PHASES).map(move |phase| (number, phase))).collect();
    let loads: Vec<Load> = drawn.iter().map(|drawn| Load::new(&[&drawn.usage])).collect();
    let shares = runs.into_par_iter().map(|(number, phase)| {
        let load = &loads[number];
        let outcome = stage.replay(load, Some(limits), Phase::of_grid(phase, PHASES))?;
        let figures: Figures<f64> = stage.figures(load, &outcome, 0.0);
        Ok(figures.throttled_share)
    });
    let shares: Vec<f64> = shares.collect::<Result<_, PlanError>>()?;
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
    let first = &drawn[0];
    let inferred = Inferred {
        pieces: first.pieces,
        held: first.held,
        parts: first.parts,
        throttled_share: seen,
        replayed_share: replayed,
    };
    let mut usages: Vec<Usage> = drawn.into_iter().map(|drawn| drawn.usage).collect();
    usages[0].warnings.push(inferred.to_string());
    Ok(Some(Recovered { usages, inferred }))
}

impl std::fmt::Display for Inferred {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Inferred { pieces, held, parts, throttled_share, replayed_share } = self;
        write!(
            f,
            "The group was throttled in {:.1}% of its periods while it was recorded. Requests that \
             queued meanwhile are inferred: {held} of {pieces} pieces of work are taken for {parts} \
             requests. A replay under the recorded limits is throttled in {:.1}% ({:.1}…{:.1}). A \
             recording without the limit is more certain.",
            100.0 * throttled_share,
            100.0 * replayed_share.median,
            100.0 * replayed_share.min,
            100.0 * replayed_share.max,
        )
    }
}

/// Demand of a throttled group that cannot be recovered from its recording.
fn refusal(usage: &Usage, throttling: Throttling, why: &str) -> PlanError {
    let problem = format!(
        "it was throttled while it was recorded, {throttling}, and the recording cannot tell what \
         it would have used without its limit: {why}"
    );
    let help = "lift the limit and record for 60 s: `reveille record --cgroup NAME -o \
                FILE.parquet`; then set the limit again";
    Mistake::new(problem, help).in_file(&usage.name)
}

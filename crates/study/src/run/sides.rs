//! Some sides of a comparison at one load, where one that fails leaves the others alone.

use std::sync::atomic::AtomicBool;

use reveille_sim::SimError;

use crate::judge::change::Runs;
use crate::judge::rows::is_placement;
use crate::model::error::Result;
use crate::model::study::Study;
use crate::run::matrix::{Run, matrix};
use crate::run::runner::{predictable, simulate};

/// By metric of the case, or why the side has failed.
type SideRuns = Result<Vec<Runs>, SimError>;

/// Simulates `sides` (0 is the baseline, variant i is i + 1) of a study with one case and one
/// load, on this thread: by side, then by metric, what [`run`](crate::run()) would compare. `None` once
/// `stop` is set.
///
/// # Errors
/// [`crate::StudyError::Unpredictable`] for a side without a model.
pub fn run_sides(
    study: &Study,
    sides: &[usize],
    stop: &AtomicBool,
) -> Result<Option<Vec<SideRuns>>> {
    study.cases.iter().try_for_each(predictable)?;
    let slots = matrix(0, study);
    let Some(slot) = slots.first() else { return Ok(Some(Vec::new())) };
    let repeats = slot.case.repeats as usize;
    let mut failed: Vec<(usize, SimError)> = Vec::new();
    for repeat in 0..repeats {
        let fails = |side: &usize| failed.iter().any(|(failed, _)| failed == side);
        let mut left: Vec<usize> = sides.iter().copied().filter(|s| !fails(s)).collect();
        let run = Run { slot: 0, repeat, side: 0 };
        while let Err((side, error)) = simulate(slot, &run, &mut left, stop, &|| ()) {
            if error == SimError::Interrupted {
                return Ok(None);
            }
            left.retain(|other| *other != side);
            failed.push((side, error));
        }
    }
    let runs = |side: &usize| {
        if let Some((_, error)) = failed.iter().find(|(failed, _)| failed == side) {
            return Some(Err(error.clone()));
        }
        let finished = slot.finished(*side, repeats)?;
        let variant = side.checked_sub(1).and_then(|index| slot.case.variants.get(index));
        let tracked = variant.is_none_or(is_placement);
        let metrics = slot.case.metrics.iter().enumerate();
        Some(Ok(metrics.map(|(m, measure)| finished.runs(measure, m, tracked)).collect()))
    };
    Ok(sides.iter().map(runs).collect())
}

//! How the search looks at a setting: in the lean replay where that applies, else in the
//! simulator.

use std::sync::atomic::Ordering;

use reveille_policy::BandwidthLimits;

use crate::goal::{Goal, Subject, quantile_of};
use crate::lean::{Lean, LeanLoad, LeanOutcome, LeanSpan};
use crate::load::Load;
use crate::replay::{Phase, Stage, as_f64};
use crate::{Ns, PlanError};

/// What decides about a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// The lean replay: it ranks.
    Lean,
    /// The simulator: what is shown has passed it.
    Simulator,
}

/// The lean replay in the place of a stage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sketch {
    lean: Lean,
}

impl Sketch {
    /// Nothing where other groups matter, which the lean replay does not know. `cpus_used` are
    /// those of a run without limits.
    pub(crate) fn new(stage: &Stage<'_>, load: &Load, cpus_used: f64) -> Option<Sketch> {
        if stage.within.is_some() || !stage.neighbours.is_empty() {
            return None;
        }
        let cpus = stage.machine.topology.n_cpus();
        let lean = Lean { cpus, slice_ns: stage.slice_ns, tick_ns: stage.tick_ns(), more_ns: 0 };
        let mut sketch = Sketch { lean };
        let (free, phase) = (BandwidthLimits::default(), Phase::of_grid(0, 1));
        let (bare, elapsed_ns) = sketch.replay(stage, load, free, phase).ok()?;
        let pieces = load.program.arrivals.count() as f64;
        let came = pieces * elapsed_ns as f64 / load.span_ns() as f64;
        let more_ns = (cpus_used * elapsed_ns as f64 - bare.used_ns as f64) / came;
        sketch.lean.more_ns = more_ns.max(0.0) as Ns;
        Some(sketch)
    }

    /// Replays the load as [`Stage::replay`] does.
    fn replay(
        &self,
        stage: &Stage<'_>,
        load: &Load,
        limits: BandwidthLimits,
        phase: Phase,
    ) -> Result<(LeanOutcome, Ns), PlanError> {
        if stage.stop.load(Ordering::Relaxed) {
            return Err(PlanError::Interrupted);
        }
        let spec = stage.spec(load, &stage.groups(load, Some(limits), phase));
        let span = LeanSpan {
            begin_ns: spec.warmup_ns,
            end_ns: spec.warmup_ns + spec.duration_ns,
            phase_ns: phase.of_period(limits.period_ns),
        };
        let lean = load.lean(|arrivals| LeanLoad::new(&arrivals.of_task, arrivals.span_ns));
        let outcome = self.lean.replay(lean, &limits, span);
        (stage.tell)();
        Ok((outcome.expect("the search looks at limits that a kernel accepts"), spec.duration_ns))
    }

    /// p99 of latency.
    pub(crate) fn p99_ns(
        &self,
        stage: &Stage<'_>,
        load: &Load,
        limits: BandwidthLimits,
        phase: Phase,
    ) -> Result<f64, PlanError> {
        let (mut outcome, _) = self.replay(stage, load, limits, phase)?;
        Ok(as_f64(quantile_of(&mut outcome.latencies, 0.99)))
    }

    /// How much of its limit the worst goal needs; above 1 some goal fails.
    pub(crate) fn strain(
        &self,
        stage: &Stage<'_>,
        load: &Load,
        limits: BandwidthLimits,
        phase: Phase,
    ) -> Result<f64, PlanError> {
        let (mut outcome, elapsed_ns) = self.replay(stage, load, limits, phase)?;
        let figures = stage.goals.iter().map(|goal| match goal.subject {
            Subject::Latency(quantile) => as_f64(quantile_of(&mut outcome.latencies, quantile)),
            Subject::Throttled => outcome.nr_throttled as f64 / outcome.nr_periods.max(1) as f64,
            Subject::Lost => outcome.throttled_ns as f64 / elapsed_ns as f64,
            Subject::Tardiness => 0.0,
        });
        Ok(worst_strain(stage.goals, figures))
    }
}

/// How much of its limit the worst of all goals needs; above 1 some goal fails.
pub(crate) fn worst_strain(goals: &[Goal], figures: impl Iterator<Item = f64>) -> f64 {
    let strain = |(goal, figure): (&Goal, f64)| match goal.holds(figure) {
        true => goal.strain(figure).min(1.0),
        false => goal.strain(figure).max(1.0 + 1e-9),
    };
    goals.iter().zip(figures).map(strain).fold(0.0, f64::max)
}

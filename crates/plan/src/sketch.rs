//! How the search evaluates a setting: by the lean replay where that applies, else by the
//! simulator, which for averages runs only the parts where the group may be throttled.

use std::ops::Range;
use std::sync::atomic::Ordering;

use reveille_policy::BandwidthLimits;

use crate::goal::{Goal, Subject, quantile_of};
use crate::lean::{Lean, LeanOutcome, LeanSpan, SECOND_NS};
use crate::load::Load;
use crate::replay::{Outcome, Phase, Stage, as_f64, warmup_ns};
use crate::{Ns, PlanError, Result};

/// Which replay evaluates a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// The lean replay, to rank.
    Lean,
    /// The simulator, to confirm what is shown.
    Simulator,
}

/// The lean replay's parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sketch {
    lean: Lean,
    /// The recording holds averages.
    averages: bool,
}

/// Averages: simulate what the lean replay throttles under this share of the limits,
const MARGIN: f64 = 0.9;
/// unless that is more than this share of the time.
const MOST_PARTS: f64 = 0.6;

impl Sketch {
    /// Without the kernel's overhead per request.
    pub(crate) fn bare(stage: &Stage<'_>) -> Sketch {
        Sketch { lean: stage.lean(), averages: false }
    }

    /// `None` if other groups matter, which the lean replay does not model. `cpus_used` come from a
    /// run without limits.
    pub(crate) fn new(
        stage: &Stage<'_>,
        load: &Load,
        averages: bool,
        cpus_used: f64,
    ) -> Option<Sketch> {
        if stage.within.is_some() || !stage.neighbours.is_empty() {
            return None;
        }
        let mut sketch = Sketch { averages, ..Sketch::bare(stage) };
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
    ) -> Result<(LeanOutcome, Ns)> {
        if stage.stop.load(Ordering::Relaxed) {
            return Err(PlanError::Interrupted);
        }
        let spec = stage.spec(load, &stage.groups(load, Some(limits), phase));
        let span = LeanSpan {
            begin_ns: spec.warmup_ns,
            end_ns: spec.warmup_ns + spec.duration_ns,
            phase_ns: phase.of_period(limits.period_ns),
            from_ns: stage.begin_ns(phase),
        };
        let lean = load.lean(limits.period_ns, self.averages);
        let outcome = self.lean.replay(lean, &limits, span);
        (stage.tell)();
        Ok((outcome.expect("the search looks at limits that a kernel accepts"), spec.duration_ns))
    }

    /// Runs the simulator. Averages have no latency, so it simulates only the parts in which the
    /// group is or might be throttled, each with a lead-in, and takes the unthrottled rest from the
    /// lean replay. Also returns the load of the run.
    pub(crate) fn simulate(
        &self,
        stage: &Stage<'_>,
        load: &Load,
        limits: BandwidthLimits,
        phase: Phase,
    ) -> Result<Option<(Load, Outcome)>> {
        let less = |ns: Ns| (ns as f64 * MARGIN) as Ns;
        let quota_ns = limits.quota_ns.map(less);
        let tight = BandwidthLimits { quota_ns, burst_ns: less(limits.burst_ns), ..limits };
        if !self.averages || quota_ns.is_none() || tight.check().is_err() {
            return Ok(None);
        }
        let (lean, elapsed_ns) = self.replay(stage, load, tight, phase)?;
        let settled_ns = 4 * warmup_ns(limits.period_ns);
        let parts = parts(&lean.throttled_in, settled_ns, load.span_ns());
        let length_ns: Ns = parts.iter().map(|part| part.end - part.start).sum();
        if length_ns as f64 > MOST_PARTS * load.span_ns() as f64 {
            return Ok(None);
        }
        let cut = load.cut(&parts);
        let outcome = stage.replay(&cut, Some(limits), phase)?;
        let whole = outcome.of_whole(stage.own(), elapsed_ns, lean.nr_periods, lean.used_ns);
        Ok(Some((cut, whole)))
    }

    pub(crate) fn p99_ns(
        &self,
        stage: &Stage<'_>,
        load: &Load,
        limits: BandwidthLimits,
        phase: Phase,
    ) -> Result<f64> {
        let (mut outcome, _) = self.replay(stage, load, limits, phase)?;
        Ok(stage.latency_times * as_f64(quantile_of(&mut outcome.latencies, 0.99)))
    }

    /// The worst goal's figure relative to its limit; a goal fails above 1.
    pub(crate) fn strain(
        &self,
        stage: &Stage<'_>,
        load: &Load,
        limits: BandwidthLimits,
        phase: Phase,
    ) -> Result<f64> {
        let (mut outcome, elapsed_ns) = self.replay(stage, load, limits, phase)?;
        let figures = stage.goals.iter().map(|goal| match goal.subject {
            Subject::Latency(quantile) => {
                stage.latency_times * as_f64(quantile_of(&mut outcome.latencies, quantile))
            }
            Subject::Throttled => outcome.nr_throttled as f64 / outcome.nr_periods.max(1) as f64,
            Subject::Lost => outcome.throttled_ns as f64 / elapsed_ns as f64,
            Subject::Tardiness => 0.0,
        });
        Ok(worst_strain(stage.goals, figures))
    }
}

/// The marked seconds with `around_ns` on either side, in whole seconds; the first ones if none is
/// marked.
fn parts(seconds: &[bool], around_ns: Ns, span_ns: Ns) -> Vec<Range<Ns>> {
    let around_ns = around_ns.next_multiple_of(SECOND_NS);
    let mut parts: Vec<Range<Ns>> = Vec::new();
    for (at_ns, _) in
        (0..span_ns).step_by(SECOND_NS as usize).zip(seconds).filter(|(_, counts)| **counts)
    {
        let (start, end) = (at_ns.saturating_sub(around_ns), at_ns + SECOND_NS + around_ns);
        match parts.last_mut() {
            Some(last) if start <= last.end => last.end = end.min(span_ns),
            _ => parts.push(start..end.min(span_ns)),
        }
    }
    if parts.is_empty() {
        parts.push(0..around_ns.min(span_ns));
    }
    parts
}

/// The worst of all goals' figures relative to its limit; a goal fails above 1.
pub(crate) fn worst_strain(goals: &[Goal], figures: impl Iterator<Item = f64>) -> f64 {
    let strain = |(goal, figure): (&Goal, f64)| match goal.holds(figure) {
        true => goal.strain(figure).min(1.0),
        false => goal.strain(figure).max(1.0 + 1e-9),
    };
    goals.iter().zip(figures).map(strain).fold(0.0, f64::max)
}

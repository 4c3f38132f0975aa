//! Predicts a study, measures it on this host, and compares both.

use std::sync::atomic::AtomicBool;

use reveille_host::kernel_version;
use reveille_measure::{Direction, HostContext, Metric, duration_text};
use reveille_policy::{Baseline, Groups};

use crate::judge::agreement::{Agreement, AgreementKind, AgreementRow};
use crate::judge::modes::Spread;
use crate::judge::rows::Finished;
use crate::judge::verdict::measured::{self, Judged, Pair, Quantity, Runs};
use crate::judge::{score, statistics, verdict};
use crate::model::error::Result;
use crate::model::measure::{Measure, MeasureFrom};
use crate::model::scheduler::Scheduler;
use crate::model::study::{Case, Study};
use crate::run::matrix::{Slot, matrix};
use crate::run::native::{HostRunner, check_host, run_in_turns};
use crate::run::runner::{predictable, run_slots};

/// Least number of predictions under a bandwidth limit: each has a phase of its own, and
/// their range is what a measurement is held against.
const PHASES: u32 = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Simulation, as many runs at a time as there are threads.
    Predicting,
    /// Runs on this host, one at a time.
    Measuring,
}

/// Predicts a study on its machine, `jobs` runs at a time, then measures it on this host,
/// one run at a time. `progress` is told the stage, the number of its finished runs and of
/// all. Once `stop` is set, the rows that have repeats in both worlds are kept.
pub fn agree(
    study: &Study,
    jobs: usize,
    host: &dyn HostRunner,
    stop: &AtomicBool,
    progress: &(dyn Fn(Stage, usize, usize) + Sync),
) -> Result<Agreement> {
    check_both(study, host)?;
    let phased = over_phases(study);
    let predicted = matrix(0, &phased);
    let tell = |done, all| progress(Stage::Predicting, done, all);
    run_slots(&predicted, |slot| slot.shortness(), jobs, stop, &tell)?;
    let measured = matrix(0, study);
    let tell = |done, all| progress(Stage::Measuring, done, all);
    let mut context = run_in_turns(&measured, host, stop, &tell)?;
    context.warnings.extend(doubts(study, &context));
    Ok(agreement(study, &predicted, &measured, context))
}

/// Refuses a study with a side that cannot be predicted, or that this host cannot do;
/// nothing runs.
///
/// # Errors
/// [`crate::StudyError::Unpredictable`], and as [`check_host`](crate::check_host).
pub fn check_both(study: &Study, host: &dyn HostRunner) -> Result<()> {
    study.cases.iter().try_for_each(predictable)?;
    check_host(study, host)
}

/// The study with a range of phases for each case under a limit.
fn over_phases(study: &Study) -> Study {
    let mut study = study.clone();
    for case in study.cases.iter_mut().filter(|c| is_limited(&c.groups)) {
        case.repeats = case.repeats.max(PHASES);
    }
    study
}

fn is_limited(groups: &Groups) -> bool {
    groups.groups.iter().any(|g| g.limits.quota_ns.is_some())
}

/// What a reader should know of how the two worlds differ.
fn doubts(study: &Study, context: &HostContext) -> Vec<String> {
    let mut doubts = Vec::new();
    if let Some(nearest) = Baseline::of_release(kernel_version()) {
        let kernels = study.cases.iter().filter(|c| c.scheduler == Scheduler::Kernel);
        let others = kernels.filter(|c| c.base.release != nearest.release());
        let mut others: Vec<&str> = others.map(|c| c.base.base.as_str()).collect();
        others.dedup();
        for base in others {
            doubts.push(format!(
                "predicted as {base}, although this kernel ({}) is nearest to {}: base = \"host\"",
                context.kernel, nearest.name
            ));
        }
    }
    for case in &study.cases {
        let sides = (0..=case.variants.len()).filter(|s| *case.scheduler(*s) != Scheduler::Kernel);
        let names: Vec<&str> = sides.map(|side| case.side_name(side)).collect();
        if !names.is_empty() {
            doubts.push(format!(
                "{}: {} predicted in the kernel's own order of tasks; scx_reveille has the same \
                 placement, and an order of its own (crates/scx/README.md)",
                case.name,
                names.join(", ")
            ));
        }
    }
    let phase = |c: &Case| c.groups.groups.iter().any(|g| g.phase_ns.is_some());
    for case in study.cases.iter().filter(|c| phase(c)) {
        let text = "predicted at one phase of the period, which cannot be set on a kernel";
        doubts.push(format!("{}: {text}", case.name));
    }
    doubts
}

fn agreement(
    study: &Study,
    predicted: &[Slot<'_>],
    measured: &[Slot<'_>],
    host: HostContext,
) -> Agreement {
    let mut rows = Vec::new();
    let mut partial = false;
    for (predicted, measured) in predicted.iter().zip(measured) {
        let repeats = measured.repeats_done();
        partial |= repeats < measured.case.repeats as usize;
        let worlds = Worlds {
            case: measured.case,
            load: measured.point.load,
            predicted: sides(predicted, predicted.case.repeats as usize),
            measured: sides(measured, repeats),
        };
        partial |= worlds.predicted.iter().any(Option::is_none);
        rows.extend(worlds.rows());
    }
    let (Some(machine), Some(base)) = (study.machine(), &study.base) else {
        unreachable!("what cannot be measured was refused")
    };
    Agreement {
        study: study.name.clone(),
        machine: machine.name.clone(),
        topology: machine.topology.describe(),
        cost_model: machine.cost_model.clone(),
        machine_source: machine.source.clone(),
        base: base.base.clone(),
        seed: study.seed,
        host,
        score: score::count(rows.iter().map(|r: &AgreementRow| r.verdict)),
        rows,
        partial,
    }
}

fn sides(slot: &Slot<'_>, repeats: usize) -> Vec<Option<Finished>> {
    (0..slot.sides()).map(|side| slot.finished(side, repeats)).collect()
}

/// One load of one case in both worlds; by side.
struct Worlds<'a> {
    case: &'a Case,
    load: u64,
    predicted: Vec<Option<Finished>>,
    measured: Vec<Option<Finished>>,
}

/// A metric of one side in both worlds.
struct Both {
    predicted: Spread,
    measured: Spread,
}

impl Worlds<'_> {
    fn rows(&self) -> Vec<AgreementRow> {
        let mut rows = Vec::new();
        for side in 0..self.predicted.len() {
            for (m, measure) in self.case.metrics.iter().enumerate() {
                let Some(both) = self.both(side, m) else { continue };
                let quantity = quantity(self.case, side, measure);
                let judged = measured::value(quantity, &both.predicted, &both.measured);
                rows.push(self.row(side, measure, &both, AgreementKind::Value, judged));
                if let Some(bound) = self.bound(side, quantity) {
                    rows.push(self.runs(side, measure, &both, bound));
                }
                let base = self.both(0, m).filter(|_| side > 0 && quantity == Quantity::Free);
                if let Some(base) = base {
                    rows.push(self.change(side, measure, &base, &both));
                }
            }
        }
        rows
    }

    fn both(&self, side: usize, m: usize) -> Option<Both> {
        let spread = |world: &[Option<Finished>]| {
            let finished = world[side].as_ref()?;
            let samples = &finished.samples[m];
            let too_few = finished.enough_ns[m].map(|ns| Spread::of_too_few(samples, ns));
            Some(too_few.unwrap_or_else(|| Spread::of(samples)))
        };
        Some(Both { predicted: spread(&self.predicted)?, measured: spread(&self.measured)? })
    }

    /// What repeats are counted above: a tenth of the shortest period for a latency, as
    /// the mail about burst counts its long tails; none at all for throttled periods.
    fn bound(&self, side: usize, quantity: Quantity) -> Option<f64> {
        let groups = &self.case.setup(0).1.groups;
        let groups = if groups.is_empty() { &self.case.setup(side).1.groups } else { groups };
        let limited = groups.iter().filter(|g| g.limits.quota_ns.is_some());
        let period = limited.map(|g| g.limits.period_ns).min()?;
        match quantity {
            Quantity::LimitedLatency => Some(period as f64 / 10.0),
            Quantity::ThrottledPct | Quantity::ThrottledPeriods => Some(0.0),
            _ => None,
        }
    }

    fn runs(&self, side: usize, measure: &Measure, both: &Both, bound: f64) -> AgreementRow {
        let predicted = Runs::above(&both.predicted.samples, bound);
        let measured = Runs::above(&both.measured.samples, bound);
        let judged = measured::runs(predicted, measured);
        let mut row = self.row(side, measure, both, AgreementKind::Runs, judged);
        let name = &measure.metric.name;
        let name = match bound {
            0.0 => format!("runs with any {name}"),
            ns => format!("runs with {name} above {}", duration_text(ns)),
        };
        row.metric = Metric::new(name, "runs", Direction::Lower);
        row.ratio = None;
        row.bound = Some(bound);
        (row.predicted_runs, row.measured_runs) = (Some(predicted), Some(measured));
        row
    }

    fn change(&self, side: usize, measure: &Measure, base: &Both, both: &Both) -> AgreementRow {
        let change = |base: &Spread, variant: &Spread| {
            if base.too_few || variant.too_few {
                return f64::NAN;
            }
            let mean = |s: &Spread| statistics::figure(&s.samples).mean;
            statistics::change_pct(measure.metric.direction, mean(base), mean(variant))
        };
        let predicted = change(&base.predicted, &both.predicted);
        let measured = change(&base.measured, &both.measured);
        let judged = measured::change(
            &Pair { base: &base.predicted, variant: &both.predicted, change_pct: predicted },
            &Pair { base: &base.measured, variant: &both.measured, change_pct: measured },
        );
        let mut row = self.row(side, measure, both, AgreementKind::Change, judged);
        row.metric = measure.metric.named(format!("change of {}", measure.metric.name));
        for (of, base) in
            [(&mut row.predicted, &base.predicted), (&mut row.measured, &base.measured)]
        {
            of.too_few |= base.too_few;
            of.enough_ns = of.enough_ns.max(base.enough_ns);
        }
        let ratio = (100.0 + predicted) / (100.0 + measured);
        let modes = [base, both].iter().any(|b| b.is_multimodal());
        row.ratio = Some(ratio).filter(|r| r.is_finite() && !modes);
        // The mean of several modes is a figure that no run had.
        let of_means = |pct: f64, sides: [&Spread; 2]| {
            let one = sides.iter().all(|s| !s.is_multimodal());
            Some(pct).filter(|p| p.is_finite() && one)
        };
        row.predicted_change_pct = of_means(predicted, [&base.predicted, &both.predicted]);
        row.measured_change_pct = of_means(measured, [&base.measured, &both.measured]);
        row
    }

    fn row(
        &self,
        side: usize,
        measure: &Measure,
        both: &Both,
        kind: AgreementKind,
        judged: Judged,
    ) -> AgreementRow {
        let ratio = verdict::ratio(both.predicted.median, both.measured.median);
        AgreementRow {
            case: self.case.name.clone(),
            load: self.load,
            variant: (side > 0).then(|| self.case.side_name(side).to_owned()),
            metric: measure.metric.clone(),
            kind,
            predicted: both.predicted.clone(),
            measured: both.measured.clone(),
            ratio: Some(ratio).filter(|r| r.is_finite() && !both.is_multimodal()),
            bound: None,
            predicted_runs: None,
            measured_runs: None,
            predicted_change_pct: None,
            measured_change_pct: None,
            rule: judged.rule,
            verdict: judged.verdict,
            reason: judged.reason,
        }
    }
}

impl Both {
    fn is_multimodal(&self) -> bool {
        self.predicted.is_multimodal() || self.measured.is_multimodal()
    }
}

/// What the metric of a side is, for the rule.
fn quantity(case: &Case, side: usize, measure: &Measure) -> Quantity {
    match &measure.from {
        MeasureFrom::Group { figure, .. } => match figure.name {
            "throttled_pct" => Quantity::ThrottledPct,
            "nr_throttled" => Quantity::ThrottledPeriods,
            _ => Quantity::Counter,
        },
        _ if measure.is_percentile() && is_limited(case.setup(side).1) => Quantity::LimitedLatency,
        _ => Quantity::Free,
    }
}

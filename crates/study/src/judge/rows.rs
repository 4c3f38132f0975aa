//! Turns finished runs into rows: one for every metric of every load under every variant, and one
//! more for each further figure published for it.

use reveille_measure::statistics::std;
use reveille_measure::{CpuTime, Direction, Explain, Metric, Ns, unit_ns};

use crate::judge::change::{Change, Runs, nothing};
use crate::judge::modes::Mode;
use crate::judge::row::{Detail, Explanation, Row, RowKind, SideDetail};
use crate::judge::statistics::{self, Figure};
use crate::judge::track_record::{TrackRecord, migrations_per_wakeup};
use crate::judge::verdict::{self, Predicted, Verdict};
use crate::model::measure::{Measure, MeasureFrom};
use crate::model::published::{Published, PublishedFigure, Side};
use crate::model::study::{Case, Point, Variant};

/// All repeats of one load on one side.
pub(crate) struct Finished {
    /// By metric of the case and repeat.
    pub(crate) samples: Vec<Vec<f64>>,
    /// By metric: a time long enough for a quantile that some repeat has too few samples for.
    pub(crate) enough_ns: Vec<Option<Ns>>,
    /// Mean over repeats.
    pub(crate) explain: Explain,
    /// Wakeup latency of all repeats together.
    pub(crate) latency_cdf: Vec<(Ns, f64)>,
    /// Sum over repeats, by CPU number.
    pub(crate) cpus: Vec<CpuTime>,
}

/// What the rows of one load under one variant have in common.
struct Pair<'a> {
    machine: &'a str,
    case: &'a Case,
    load: u64,
    tasks: usize,
    variant: &'a str,
    /// Do the tables of the track record have changes of this kind: of placement, without limits?
    tracked: bool,
    base: &'a Finished,
    candidate: &'a Finished,
}

/// The rows of one load under the variant at `index`; of a case without variants, those of
/// its baseline, which stands for both sides.
pub(crate) fn rows(
    machine: &str,
    case: &Case,
    point: &Point,
    index: usize,
    base: &Finished,
    candidate: &Finished,
) -> Vec<Row> {
    let variant = case.variants.get(index);
    let tracked = variant.is_some_and(is_placement);
    let variant = variant.map_or("", |v| v.name.as_str());
    let tasks = point.program.working_tasks();
    let pair = Pair { machine, case, load: point.load, tasks, variant, tracked, base, candidate };
    let mut rows: Vec<Row> = Vec::new();
    for (m, measure) in case.metrics.iter().enumerate() {
        let of_row = |p: &&Published| p.variant == index && p.metric == m;
        let published: Vec<&Published> = point.published.iter().filter(of_row).collect();
        let (of_means, of_runs): (Vec<&Published>, Vec<&Published>) =
            published.into_iter().partition(|p| kind(p) < KIND_OF_RUNS);
        if of_means.is_empty() {
            rows.push(pair.of_means(measure, m, None));
        }
        let mut of_means = of_means;
        of_means.sort_by_key(|p| kind(p));
        rows.extend(of_means.into_iter().map(|p| pair.of_means(measure, m, Some(p))));
        rows.extend(of_runs.into_iter().map(|p| pair.of_runs(measure, m, p)));
    }
    // The distribution and the CPUs are those of the runs, whatever the metric.
    if let Some(first) = rows.first_mut() {
        let whole = |detail: &mut SideDetail, side: &Finished| {
            detail.latency_cdf.clone_from(&side.latency_cdf);
            detail.cpus.clone_from(&side.cpus);
        };
        whole(&mut first.detail.baseline, base);
        whole(&mut first.detail.candidate, candidate);
    }
    rows
}

/// Does a variant only place tasks, as all changes of the track record's tables do?
pub(crate) fn is_placement(variant: &Variant) -> bool {
    variant.groups.groups.is_empty() && variant.cpus.is_empty()
}

impl Finished {
    /// What a change of a metric is judged by; `tracked` unless a side is a variant that does more
    /// than [place tasks](is_placement).
    pub(crate) fn runs(&self, measure: &Measure, m: usize, tracked: bool) -> Runs {
        // What simulator and kernel count is no result of a benchmark, as all of the tables' rows are.
        let tracked = tracked
            && matches!(measure.from, MeasureFrom::Workload(_))
            && measure.metric.direction != Direction::Neither;
        Runs {
            samples: self.samples[m].clone(),
            enough_ns: self.enough_ns[m],
            migrations_per_wakeup: tracked.then(|| migrations_per_wakeup(&self.explain)),
        }
    }
}

/// Order of the rows of one metric; those from [`KIND_OF_RUNS`] on compare something
/// other than means.
fn kind(published: &Published) -> u8 {
    match published.figure {
        PublishedFigure::Change { .. } | PublishedFigure::Pair { .. } => 0,
        PublishedFigure::Side { side: Side::Base, .. } => 1,
        PublishedFigure::Side { side: Side::Variant, .. } => 2,
        PublishedFigure::Std { .. } | PublishedFigure::RunsAbove { .. } => KIND_OF_RUNS,
    }
}

const KIND_OF_RUNS: u8 = 3;

impl Pair<'_> {
    fn of_means(&self, measure: &Measure, m: usize, published: Option<&Published>) -> Row {
        let (base, candidate) = (&self.base.samples[m], &self.candidate.samples[m]);
        let figures = (statistics::figure(base), statistics::figure(candidate));
        let mut row = self.row(measure.metric.clone(), m, figures);
        let runs = [self.base, self.candidate].map(|side| side.runs(measure, m, self.tracked));
        let change = Change::of(measure.metric.direction, runs.each_ref());
        row.change_pct = change.predicted_pct;
        row.uncorrected_change_pct = change.uncorrected_pct;
        row.p_value = change.p_value;
        row.modes = change.modes;
        row.significant = row.p_value.is_some_and(|p| p < 0.05);
        row.identical = self.identical(m);
        if let Some(published) = published {
            let limited = !self.case.groups.groups.is_empty() && measure.is_percentile();
            let within = match (self.case.baselines, limited) {
                (true, _) => Some(verdict::baseline_tolerance(self.tasks)),
                (false, true) => Some(verdict::LIMITED_LATENCY),
                (false, false) => None,
            };
            self.hold(&mut row, published, within);
        } else if row.too_few {
            row.tell_nothing();
        }
        let tracked = runs[0].migrations_per_wakeup.is_some();
        if tracked && row.kind == RowKind::Change && row.p_value.is_some() {
            row.track_record = TrackRecord::of(row.explain.baseline.idle_pct, row.change_pct);
        }
        row
    }

    /// [`Row::identical`]. Two measurements have never all figures in common, if any was observed.
    fn identical(&self, m: usize) -> bool {
        let samples =
            |side: &Finished| side.samples[m].iter().map(|s| s.to_bits()).collect::<Vec<_>>();
        let (base, candidate) = (&self.base.explain, &self.candidate.explain);
        !self.variant.is_empty()
            && base.ttwu_count_per_s > 0.0
            && base == candidate
            && samples(self.base) == samples(self.candidate)
    }

    /// A row that compares how runs are spread.
    fn of_runs(&self, measure: &Measure, m: usize, published: &Published) -> Row {
        let samples = [&self.base.samples[m], &self.candidate.samples[m]];
        let (metric, figures) = match &published.figure {
            PublishedFigure::RunsAbove { above, above_text, .. } => {
                let name = format!("runs with {} above {above_text}", measure.metric.name);
                let count = |s: &Vec<f64>| s.iter().filter(|x| **x > *above).count() as f64;
                (Metric::new(name, "runs", Direction::Lower), samples.map(count))
            }
            _ => {
                let name = format!("std of {}", measure.metric.name);
                let metric = Metric { direction: Direction::Lower, ..measure.metric.named(name) };
                (metric, samples.map(|s| std(s)))
            }
        };
        let [base, candidate] = figures.map(|mean| Figure { mean, rel_std: 0.0 });
        let mut row = self.row(metric, m, (base, candidate));
        self.hold(&mut row, published, None);
        row
    }

    /// [`hold`], but what was published on another machine says nothing of this one.
    fn hold(&self, row: &mut Row, published: &Published, within: Option<f64>) {
        hold(row, published, within);
        if self.case.published_on.is_some() {
            row.verdict = Some(Verdict::Informative);
        }
    }

    fn row(&self, metric: Metric, m: usize, (baseline, candidate): (Figure, Figure)) -> Row {
        let detail = |side: &Finished| SideDetail {
            samples: side.samples[m].clone(),
            ..SideDetail::default()
        };
        let nothing = [baseline, candidate].iter().all(|f| nothing(metric.direction, f.mean));
        let enough_ns = self.base.enough_ns[m].max(self.candidate.enough_ns[m]);
        Row {
            case: self.case.name.clone(),
            machine: self.machine.to_owned(),
            base: self.case.base.base.clone(),
            load: self.load,
            variant: self.variant.to_owned(),
            repeats: self.base.samples[m].len(),
            too_few: enough_ns.is_some() || nothing,
            enough_ns,
            explain: Explanation {
                baseline: self.base.explain.clone(),
                candidate: self.candidate.explain.clone(),
            },
            detail: Detail { baseline: detail(self.base), candidate: detail(self.candidate) },
            ..Row::of(metric, RowKind::Change, baseline, candidate)
        }
    }
}

/// Holds a row against what was published for it.
pub(crate) fn hold(row: &mut Row, published: &Published, within: Option<f64>) {
    // Of one side alone: the figure that a size of this side is held against.
    let mut sided = None;
    match &published.figure {
        PublishedFigure::Change { .. } => {}
        PublishedFigure::Pair { base, variant, unit }
        | PublishedFigure::Std { base, variant, unit } => {
            row.published_baseline = Some(*base);
            row.published_candidate = Some(*variant);
            row.published_unit.clone_from(unit);
            if matches!(published.figure, PublishedFigure::Std { .. }) {
                row.kind = RowKind::Std;
            }
        }
        PublishedFigure::Side { side, value, unit, own } => {
            row.kind = RowKind::Side;
            row.published_unit.clone_from(unit);
            *row.published_of_side(*side) = Some(*value);
            sided = Some((*side, *own));
        }
        PublishedFigure::RunsAbove { side, runs, of, .. } => {
            row.kind = RowKind::Runs;
            row.published_of = Some(*of);
            *row.published_of_side(*side) = Some(f64::from(*runs));
            // Shares, for a study may have another number of repeats.
            let repeats = row.detail.baseline.samples.len() as f64;
            sided = Some((*side, f64::from(*runs) * repeats / f64::from(*of)));
        }
    }
    row.published_change_pct = published.change_pct(row.metric.direction);
    row.published_source = Some(published.source.clone());
    row.noise.clone_from(&published.noise);
    let predicted = |change_pct, side_ratio| Predicted {
        change_pct,
        published_change_pct: row.published_change_pct,
        side_ratio,
        within,
    };
    let states: Vec<(Predicted, f64)> = match sided {
        None => {
            row.changes().iter().map(|c| (predicted(c.change_pct, f64::NAN), c.share)).collect()
        }
        Some((side, published)) => {
            let sizes = row.sizes(side);
            let at = |m: &Mode| (predicted(f64::NAN, verdict::ratio(m.centre, published)), m.share);
            sizes.iter().map(at).collect()
        }
    };
    let ratio = |p: &Predicted| match p.published_change_pct {
        Some(pct) => (100.0 + p.change_pct) / (100.0 + pct),
        None => p.side_ratio,
    };
    row.ratios = states.iter().map(|(p, share)| (ratio(p), *share)).collect();
    row.ratio = match row.ratios[..] {
        [(ratio, _)] => Some(ratio).filter(|r| r.is_finite()),
        _ => None,
    };
    row.half_width = verdict::half_width(published, &states[0].0);
    row.verdict = Some(verdict::judge_states(published, &states));
}

impl Published {
    pub fn change_pct(&self, direction: Direction) -> Option<f64> {
        match &self.figure {
            PublishedFigure::Change { change_pct } => Some(*change_pct),
            PublishedFigure::Pair { base, variant, unit } => {
                // Seconds for a given amount of work are the inverse of work per second.
                let time = unit.as_deref().and_then(unit_ns).is_some();
                let direction = match direction {
                    Direction::Higher if time => Direction::Lower,
                    direction => direction,
                };
                Some(statistics::change_pct(direction, *base, *variant))
            }
            PublishedFigure::Std { base, variant, .. } => {
                Some(statistics::change_pct(Direction::Lower, *base, *variant))
            }
            PublishedFigure::Side { .. } | PublishedFigure::RunsAbove { .. } => None,
        }
    }
}

impl Row {
    /// Of too few samples there is no figure.
    fn tell_nothing(&mut self) {
        let nothing = Figure { mean: f64::NAN, rel_std: f64::NAN };
        (self.baseline, self.candidate) = (nothing, nothing);
        (self.change_pct, self.uncorrected_change_pct) = (f64::NAN, f64::NAN);
        (self.p_value, self.significant, self.modes) = (None, false, None);
    }

    fn published_of_side(&mut self, side: Side) -> &mut Option<f64> {
        match side {
            Side::Base => &mut self.published_baseline,
            Side::Variant => &mut self.published_candidate,
        }
    }

    /// What is predicted for one side: its modes, or its mean.
    fn sizes(&self, side: Side) -> Vec<Mode> {
        let modes = self.modes.as_ref();
        let (figure, modes) = match side {
            Side::Base => (self.baseline, modes.map(|m| &m.baseline)),
            Side::Variant => (self.candidate, modes.map(|m| &m.candidate)),
        };
        match modes {
            Some(modes) if modes.len() > 1 => modes.clone(),
            _ => vec![Mode { centre: figure.mean, share: 1.0 }],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_beside_a_throughput_is_its_inverse() {
        let pair = |unit: &str| Published {
            variant: 0,
            metric: 0,
            figure: PublishedFigure::Pair { base: 10.0, variant: 8.0, unit: Some(unit.into()) },
            std_base_pct: None,
            std_variant_pct: None,
            noise: None,
            source: "a mail".into(),
        };
        let pct = |unit, direction| pair(unit).change_pct(direction).unwrap().round();
        assert_eq!(pct("MB/s", Direction::Higher), -20.0);
        for time in ["ns", "us", "ms", "s"] {
            assert_eq!(pct(time, Direction::Higher), 25.0, "{time}");
        }
        assert_eq!(pct("us", Direction::Lower), 25.0);
    }
}

//! Turns finished runs of groups that share CPUs into rows.

use crate::judge::row::{Detail, Row, RowKind, SideDetail};
use crate::judge::{statistics, verdict};
use crate::model::interference::{FLUID, InterferenceCase, JointMeasure, JointPublished, NO_BURST};
use crate::model::published::Side;

/// The row of one metric of one load under one burst.
pub(crate) fn row(
    case: &InterferenceCase,
    load: u64,
    variant: usize,
    m: usize,
    samples: [Vec<f64>; 2],
) -> Row {
    let measure = case.metrics[m];
    let [baseline, figure] = [&samples[0], &samples[1]].map(|s| statistics::figure(s));
    let repeats = samples[0].len();
    let p_value = statistics::welch_p(&samples[0], &samples[1]);
    let [base_detail, candidate_detail] =
        samples.map(|samples| SideDetail { samples, ..SideDetail::default() });
    let mut row = Row {
        case: case.name.clone(),
        machine: FLUID.to_owned(),
        base: NO_BURST.to_owned(),
        load,
        variant: case.variants[variant].name.clone(),
        repeats,
        p_value,
        significant: p_value.is_some_and(|p| p < 0.05),
        detail: Detail { baseline: base_detail, candidate: candidate_detail },
        ..Row::of(measure.metric(), RowKind::Interference, baseline, figure)
    };
    let published = case
        .published
        .iter()
        .find(|p| case.loads[p.load] == load && p.variant == variant && p.metric == m);
    if let Some(published) = published {
        hold(&mut row, measure, published);
    }
    row
}

/// Holds a row against what was published for it.
fn hold(row: &mut Row, measure: &JointMeasure, published: &JointPublished) {
    let predicted = match published.side {
        Side::Base => {
            row.published_baseline = Some(published.value);
            row.baseline.mean
        }
        Side::Variant => {
            row.published_candidate = Some(published.value);
            row.candidate.mean
        }
    };
    row.published_source = Some(published.source.clone());
    let (value, predicted) = (published.value - measure.rest, predicted - measure.rest);
    let ratio = verdict::ratio(predicted, value);
    row.ratio = ratio.is_finite().then_some(ratio);
    row.ratios = vec![(ratio, 1.0)];
    row.half_width = verdict::INTERFERENCE_SHARE.ln_1p();
    row.verdict = Some(verdict::judge_interference(value, predicted, measure.floor));
}

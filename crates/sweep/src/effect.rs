//! What each edit does over all conditions, in a line.

use serde::Serialize;

use crate::design::Design;
use crate::table::Table;

/// An edit's changes of one metric of one workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Effect {
    pub edits: String,
    pub workload: String,
    pub metric: String,
    /// Those with a change.
    pub cells: usize,
    /// Those that ran for too short a time to measure anything.
    pub not_measured: usize,
    /// A duration that is enough for all of these, where that is known.
    pub enough_ns: Option<i64>,
    /// Of these, better and worse by more than the noise of the repeats.
    pub better: usize,
    pub worse: usize,
    /// Geometric mean of the changes, in percent.
    pub mean_change_pct: Option<f64>,
    pub worst_change_pct: Option<f64>,
    /// Id of its cell.
    pub worst_cell: Option<String>,
    /// Machine, base and load there.
    pub worst_at: Option<String>,
}

/// In the order of the design.
pub fn effects(design: &Design, table: &Table) -> Vec<Effect> {
    let (cells, edits) = (table.texts("cell"), table.texts("edits"));
    let (workloads, metrics) = (table.texts("workload"), table.texts("metric"));
    let (changes, enough) = (table.numbers("change_pct"), table.wholes("enough_ns"));
    let mut effects = Vec::new();
    for edit in design.edits.iter().skip(1) {
        for workload in &design.workloads {
            for metric in &workload.metrics {
                let is = |texts: &[Option<String>], row: usize, text: &str| {
                    texts[row].as_deref() == Some(text)
                };
                let rows = (0..table.rows()).filter(|&row| {
                    is(edits, row, &edit.text)
                        && is(workloads, row, &workload.name)
                        && is(metrics, row, &metric.name)
                });
                let (short, long): (Vec<usize>, Vec<usize>) =
                    rows.partition(|&row| table.has_too_few(row));
                let found: Vec<(usize, f64)> =
                    long.into_iter().filter_map(|row| Some((row, changes[row]?))).collect();
                let logs: f64 = found.iter().map(|(_, change)| (1.0 + change / 100.0).ln()).sum();
                let mean = 100.0 * ((logs / found.len() as f64).exp() - 1.0);
                let count = |sign: f64| found.iter().filter(|(_, c)| c * sign > 0.0).count();
                let place = |row: usize| {
                    let text = |name| table.texts(name)[row].clone().unwrap_or_default();
                    format!("{}, {}, load {}", text("machine"), text("base"), text("load_given"))
                };
                // Of several the same one whatever their ids, which change with the model.
                let worst = found
                    .iter()
                    .min_by(|a, b| a.1.total_cmp(&b.1).then_with(|| place(a.0).cmp(&place(b.0))));
                effects.push(Effect {
                    edits: edit.text.clone(),
                    workload: workload.name.clone(),
                    metric: metric.name.clone(),
                    cells: found.len(),
                    not_measured: short.len(),
                    enough_ns: short.iter().filter_map(|&row| enough[row]).max(),
                    better: count(1.0),
                    worse: count(-1.0),
                    mean_change_pct: Some(mean).filter(|mean| mean.is_finite()),
                    worst_change_pct: worst.map(|(_, change)| *change),
                    worst_cell: worst.and_then(|(row, _)| cells[*row].clone()),
                    worst_at: worst.map(|(row, _)| place(*row)),
                });
            }
        }
    }
    effects
}

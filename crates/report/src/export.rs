//! CSV: every figure at full precision, for programs to read.

use reveille_measure::Explain;
use reveille_study::{Comparison, Mode, Row, RowModes};
use serde::Serialize;

/// One line per row under one line of column names.
///
/// Each line repeats what names the comparison (study, mechanism and whether it is
/// partial) and what it was run on (machine, its cost model, base), so that files of several studies can be joined. After the
/// row's own figures come the explaining numbers of both sides as
/// `baseline_<name>` and `candidate_<name>`, with the names of
/// [`Explain::figures`], then the modes and what is likely by the track record. A figure that is
/// absent or not finite is an empty cell.
///
/// # Errors
///
/// Passes on an error of the CSV writer, which writes to memory.
pub fn csv(cs: &[Comparison]) -> csv::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(columns())?;
    for c in cs {
        for row in &c.rows {
            writer.write_record(cells(c, row))?;
        }
    }
    written(writer)
}

/// The text that a writer of cells has made.
pub(crate) fn written(writer: csv::Writer<Vec<u8>>) -> csv::Result<String> {
    let bytes = writer.into_inner().map_err(|e| csv::Error::from(e.into_error()))?;
    Ok(String::from_utf8(bytes).expect("every cell is UTF-8"))
}

/// A column: its name, and what it has for a row.
type Column = (&'static str, fn(&Comparison, &Row) -> String);

/// The columns before the explaining numbers.
const OWN_COLUMNS: [Column; 28] = [
    ("study", |c, _| c.study.clone()),
    ("machine", |_, row| row.machine.clone()),
    ("cost_model", |c, row| cost_model(c, row).to_owned()),
    ("base", |_, row| row.base.clone()),
    ("partial", |c, _| c.partial.to_string()),
    ("case", |_, row| row.case.clone()),
    ("load", |_, row| row.load.to_string()),
    ("variant", |_, row| row.variant.clone()),
    ("metric", |_, row| row.metric.to_string()),
    ("baseline_mean", |_, row| number(row.baseline.mean)),
    ("baseline_rel_std", |_, row| number(row.baseline.rel_std)),
    ("candidate_mean", |_, row| number(row.candidate.mean)),
    ("candidate_rel_std", |_, row| number(row.candidate.rel_std)),
    ("change_pct", |_, row| number(row.change_pct)),
    ("p_value", |_, row| optional(row.p_value)),
    ("significant", |_, row| row.significant.to_string()),
    ("published_change_pct", |_, row| optional(row.published_change_pct)),
    ("published_source", |_, row| row.published_source.clone().unwrap_or_default()),
    ("verdict", |_, row| key(row.verdict)),
    ("mechanism", |c, _| c.mechanism.clone().unwrap_or_default()),
    ("direction", |_, row| key(row.metric.direction)),
    ("kind", |_, row| key(row.kind)),
    ("published_baseline", |_, row| optional(row.published_baseline)),
    ("published_candidate", |_, row| optional(row.published_candidate)),
    ("published_unit", |_, row| row.published_unit.clone().unwrap_or_default()),
    ("published_of", |_, row| row.published_of.map_or_else(String::new, |of| of.to_string())),
    ("ratio", |_, row| optional(row.ratio)),
    ("noise", |_, row| row.noise.clone().unwrap_or_default()),
];

fn columns() -> Vec<String> {
    let mut names: Vec<String> = OWN_COLUMNS.map(|(name, _)| name.into()).into();
    for side in ["baseline", "candidate"] {
        names.extend(Explain::FIGURES.iter().map(|figure| format!("{side}_{}", figure.name)));
    }
    names.extend(["baseline_modes", "candidate_modes", "change_modes"].map(String::from));
    names.extend(["likely_low_pct", "likely_high_pct", "uncorrected_change_pct"].map(String::from));
    names
}

fn cells(c: &Comparison, row: &Row) -> Vec<String> {
    let mut cells: Vec<String> = OWN_COLUMNS.iter().map(|(_, cell)| cell(c, row)).collect();
    for side in [&row.explain.baseline, &row.explain.candidate] {
        cells.extend(side.figures().map(|(_, value)| number(value)));
    }
    let modes = row.modes.as_ref();
    let of_side = |m: &[Mode]| shares(m.iter().map(|m| (m.centre, m.share)));
    let changes = |m: &RowModes| shares(m.changes.iter().map(|c| (c.change_pct, c.share)));
    cells.push(modes.map_or_else(String::new, |m| of_side(&m.baseline)));
    cells.push(modes.map_or_else(String::new, |m| of_side(&m.candidate)));
    cells.push(modes.map_or_else(String::new, changes));
    cells.push(optional(row.track_record.map(|record| record.low_pct)));
    cells.push(optional(row.track_record.map(|record| record.high_pct)));
    cells.push(number(row.uncorrected_change_pct));
    cells
}

/// Values with their shares, separated by blanks.
pub(crate) fn shares(values: impl Iterator<Item = (f64, f64)>) -> String {
    values.map(|(value, share)| format!("{value}:{share}")).collect::<Vec<_>>().join(" ")
}

fn cost_model<'a>(c: &'a Comparison, row: &Row) -> &'a str {
    let used = c.machines.iter().find(|m| m.name == row.machine);
    used.map_or(&c.cost_model, |m| &m.cost_model)
}

pub(crate) fn optional(value: Option<f64>) -> String {
    value.map_or_else(String::new, number)
}

/// The shortest text that reads back as the same number.
pub(crate) fn number(value: f64) -> String {
    if value.is_finite() { value.to_string() } else { String::new() }
}

/// The name that JSON has for it; nothing for `None`.
pub(crate) fn key(value: impl Serialize) -> String {
    let value = serde_json::to_value(value).expect("a name is text");
    value.as_str().unwrap_or_default().to_owned()
}

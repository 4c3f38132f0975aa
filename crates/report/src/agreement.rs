//! Views of an [`Agreement`]: predicted and measured side by side, for a terminal and for
//! programs. Where repeats form several modes, the modes are shown and no single figure.

use reveille_study::{Agreement, AgreementKind, AgreementRow, Spread, Verdict};

use crate::export::{key, number as cell, optional, shares, written};
use crate::number::{self, UNDEFINED, Unit};
use crate::printed::{host_facts, too_few, verdict_word};
use crate::table::{NARROWEST, Page, grid, printable, warnings};

/// Renders `a` for a terminal of `width` columns (less than 60 is taken as 60). With
/// `explain`, every row that is no hit says why.
pub fn agreement_table(a: &Agreement, width: usize, explain: bool) -> String {
    let mut page = Page { text: String::new(), width: width.max(NARROWEST) };
    for (name, text) in facts(a) {
        page.wrapped(&format!("{:<12}", name.to_lowercase()), &text);
    }
    warnings(&mut page, &a.host);
    page.partial(a.partial, "repeats");
    for block in blocks(a) {
        page.line("");
        page.wrapped("", &format!("{}, {}", block[0].case, block[0].metric));
        let heads = ["load", "policy", "predicted", "measured", "ratio", "verdict"];
        page.table(grid(heads, block.iter().map(|row| cells(row)), &[0, 2, 3, 4]));
        for row in block.iter().filter(|r| explain && r.verdict != Verdict::Hit) {
            let label = format!("  {} at {}: ", verdict_word(row.verdict), row.load);
            page.wrapped(&label, &format!("{}: {}", side(row), row.reason));
        }
    }
    page.line("");
    page.line(&score(a));
    page.wrapped("", LEGEND);
    if let Some(text) = too_few_of(a) {
        page.wrapped("", &text);
    }
    page.partial(a.partial, "repeats");
    page.text
}

const LEGEND: &str = "median [least..largest] over repeats; where repeats form several modes, the \
                      centre of each (and its share); ratio: predicted by measured; info: shown, not \
                      counted";

pub(crate) fn facts(a: &Agreement) -> Vec<(&'static str, String)> {
    let mut facts = vec![("Study", a.study.clone())];
    facts.extend(host_facts(&a.host));
    facts.push(("Predicted", format!("as {} on {}, {}", a.base, a.machine, a.topology)));
    facts.push(("Costs", format!("{}; {}", a.cost_model, a.machine_source)));
    facts
}

pub(crate) fn too_few_of(a: &Agreement) -> Option<String> {
    let rows = a.rows.iter().filter(|row| row.has_too_few());
    too_few(&a.study, rows.flat_map(|row| [row.predicted.enough_ns, row.measured.enough_ns]))
}

pub(crate) fn score(a: &Agreement) -> String {
    match a.score.counted {
        0 => "score: nothing to compare".to_owned(),
        counted => format!("score: {} of {counted} counted rows hit", a.score.hits),
    }
}

/// Rows of one case and metric, in the order in which the first of each appears.
pub(crate) fn blocks(a: &Agreement) -> Vec<Vec<&AgreementRow>> {
    let mut blocks: Vec<Vec<&AgreementRow>> = Vec::new();
    for row in &a.rows {
        let same = |b: &&mut Vec<&AgreementRow>| {
            b[0].case == row.case && b[0].metric == row.metric && b[0].kind == row.kind
        };
        match blocks.iter_mut().find(same) {
            Some(block) => block.push(row),
            None => blocks.push(vec![row]),
        }
    }
    blocks
}

fn cells(row: &AgreementRow) -> [String; 6] {
    let [predicted, measured] = figures(row);
    let verdict = verdict_word(row.verdict).to_owned();
    [row.load.to_string(), printable(side(row)), predicted, measured, ratio(row), verdict]
}

pub(crate) fn side(row: &AgreementRow) -> &str {
    row.variant.as_deref().unwrap_or("baseline")
}

pub(crate) fn ratio(row: &AgreementRow) -> String {
    row.ratio.map_or("-".into(), number::si)
}

pub(crate) fn figures(row: &AgreementRow) -> [String; 2] {
    match row.kind {
        AgreementKind::Value => {
            let unit = Unit::of(&row.metric);
            [spread(unit, &row.predicted), spread(unit, &row.measured)]
        }
        AgreementKind::Runs => [row.predicted_runs, row.measured_runs]
            .map(|runs| runs.map_or("-".into(), |r| format!("{} of {}", r.above, r.of))),
        AgreementKind::Change => {
            let change = |s: &Spread, pct: Option<f64>| match s.too_few {
                true => number::TOO_FEW.into(),
                false => pct.map_or("-".into(), number::change),
            };
            [
                change(&row.predicted, row.predicted_change_pct),
                change(&row.measured, row.measured_change_pct),
            ]
        }
    }
}

/// `4.90k 60% | 33.0k 40%`, or `34.1k [33.0k..34.9k]` where there is one mode.
fn spread(unit: Unit, s: &Spread) -> String {
    let figure = |value: f64| match unit {
        // The heading says per what.
        Unit::Rate => number::si(value),
        unit => unit.format(value),
    };
    if s.is_multimodal() {
        let mode = |m: &reveille_study::Mode| {
            format!("{} ({:.0}%)", figure(m.centre), 100.0 * m.share).replace(' ', "\u{a0}")
        };
        return s.modes.iter().map(mode).collect::<Vec<_>>().join(" | ");
    }
    match s.samples.len() {
        _ if s.too_few => number::TOO_FEW.into(),
        0 => UNDEFINED.into(),
        _ if s.min == s.max || !s.median.is_finite() => figure(s.median),
        _ => format!("{} [{}..{}]", figure(s.median), figure(s.min), figure(s.max)),
    }
}

/// One line per row under one line of column names; a figure that is absent or not finite
/// is an empty cell. Modes are written as `centre:share`, separated by blanks.
///
/// # Errors
///
/// Passes on an error of the CSV writer, which writes to memory.
pub fn agreement_csv(a: &Agreement) -> csv::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let worlds = ["predicted", "measured"];
    let spread = ["median", "q1", "q3", "min", "max", "samples", "modes", "above", "change_pct"];
    let mut columns: Vec<String> = COLUMNS.iter().map(|(name, _)| (*name).into()).collect();
    columns.extend(worlds.iter().flat_map(|w| spread.iter().map(move |s| format!("{w}_{s}"))));
    writer.write_record(columns)?;
    for row in &a.rows {
        let mut cells: Vec<String> = COLUMNS.iter().map(|(_, cell)| cell(a, row)).collect();
        let predicted = (&row.predicted, row.predicted_runs, row.predicted_change_pct);
        for (s, runs, change) in
            [predicted, (&row.measured, row.measured_runs, row.measured_change_pct)]
        {
            cells.extend([s.median, s.q1, s.q3, s.min, s.max].map(cell));
            cells.push(s.samples.len().to_string());
            cells.push(shares(s.modes.iter().map(|m| (m.centre, m.share))));
            cells.push(runs.map_or_else(String::new, |r| r.above.to_string()));
            cells.push(optional(change));
        }
        writer.write_record(cells)?;
    }
    written(writer)
}

/// A column: its name, and what it has for a row.
type Column = (&'static str, fn(&Agreement, &AgreementRow) -> String);

/// The columns before the figures of both worlds.
const COLUMNS: [Column; 14] = [
    ("study", |a, _| a.study.clone()),
    ("machine", |a, _| a.machine.clone()),
    ("base", |a, _| a.base.clone()),
    ("kernel", |a, _| a.host.kernel.clone()),
    ("partial", |a, _| a.partial.to_string()),
    ("case", |_, row| row.case.clone()),
    ("load", |_, row| row.load.to_string()),
    ("variant", |_, row| row.variant.clone().unwrap_or_default()),
    ("metric", |_, row| row.metric.to_string()),
    ("direction", |_, row| key(row.metric.direction)),
    ("kind", |_, row| key(row.kind)),
    ("ratio", |_, row| optional(row.ratio)),
    ("verdict", |_, row| key(row.verdict)),
    ("reason", |_, row| row.reason.clone()),
];

//! The "why" of a score, in words for a person or a language model, within a size.

use std::collections::BTreeMap;

use reveille_measure::{Explain, three_digits};

use crate::cell::{Cell, Guarded, Status};

/// Bytes of all artifacts together, unless the user says otherwise.
pub const DEFAULT_ARTIFACT_BYTES: usize = 8192;

/// Cells named as worst and as best.
const CELLS: usize = 8;
/// Counters named for each.
const COUNTERS: usize = 4;
/// A counter that changes by less than this factor explains nothing.
const TELLING: f64 = 1.15;

/// Keys from what tells most to what tells least.
const ORDER: [&str; 6] =
    ["error", "guardrails", "worst_cells", "not_run", "best_cells", "compiler"];

pub(crate) fn artifacts(
    status: Status,
    guardrails: &[Guarded],
    cells: &[Cell],
    not_run: &[String],
) -> BTreeMap<&'static str, String> {
    let failed = guardrails.iter().filter(|g| !g.passed).map(|g| {
        let failures: String = g.failures.iter().map(|f| format!("  {f}\n")).collect();
        format!("{} failed: {}\n{failures}", g.name, g.about)
    });
    let mut order: Vec<&Cell> = cells.iter().collect();
    order.sort_by(|a, b| a.gain.gain.total_cmp(&b.gain.gain));
    let lines = |cells: &mut dyn Iterator<Item = &&Cell>| -> String {
        cells.take(CELLS).map(|cell| line(cell)).collect()
    };
    let mut left: String = not_run.iter().map(|label| format!("{label}\n")).collect();
    if status == Status::Rejected {
        left = "the full stage: the cheap cells fail a guardrail\n".to_owned();
    }
    let all = [
        ("guardrails", failed.collect::<String>()),
        ("worst_cells", lines(&mut order.iter().filter(|c| c.gain.gain < 0.9995))),
        ("best_cells", lines(&mut order.iter().rev().filter(|c| c.gain.gain > 1.0005))),
        ("not_run", left),
    ];
    all.into_iter().filter(|(_, text)| !text.is_empty()).collect()
}

/// A cell, and the counters that changed most.
fn line(cell: &Cell) -> String {
    let mut text = format!("{}: {}", cell.label(), cell.gain_text());
    let [base, candidate] = cell.sides.each_ref().map(|side| &side.explain);
    let pairs = counters(base).into_iter().zip(counters(candidate));
    let mut changed: Vec<(f64, String)> = pairs
        .filter(|((.., from), (.., to))| from.is_finite() && to.is_finite())
        .map(|((name, least, from), (.., to))| {
            let factor = ((to + least) / (from + least)).ln().abs();
            (factor, format!("{name} {} -> {}", three_digits(from), three_digits(to)))
        })
        .filter(|(factor, _)| *factor > TELLING.ln())
        .collect();
    changed.sort_by(|a, b| b.0.total_cmp(&a.0));
    let changed: Vec<String> = changed.into_iter().take(COUNTERS).map(|(_, text)| text).collect();
    if !changed.is_empty() {
        text = format!("{text}; {}", changed.join(", "));
    }
    text + "\n"
}

/// Name, noise floor and value of each counter. Rates follow throughput, so they are per wakeup.
fn counters(explain: &Explain) -> Vec<(String, f64, f64)> {
    let per_s = explain.ttwu_count_per_s.max(1.0);
    let of = |(figure, value): (&reveille_measure::ExplainFigure, f64)| match figure.unit {
        "1/s" => (figure.name.replace("_per_s", "_per_wakeup"), 0.05, value / per_s),
        "ns" => (figure.name.to_owned(), 500.0, value),
        "%" => (figure.name.to_owned(), 2.0, value),
        _ => (figure.name.to_owned(), 1.0, value),
    };
    // The same under another name, or the yardstick itself.
    let again = ["ttwu_count_per_s", "ttwu_local_per_s", "ttwu_wake_remote_per_s", "idle_task_pct"];
    let figures = Explain::FIGURES.iter().filter(|f| !again.contains(&f.name));
    figures.map(|f| of((f, (f.value)(explain)))).collect()
}

/// Cuts artifacts to `bytes`, keys and texts together, whole lines at a time.
pub(crate) fn limit(artifacts: &mut BTreeMap<&'static str, String>, bytes: usize) {
    let mut left = bytes;
    for key in ORDER {
        let Some(mut text) = artifacts.remove(key) else { continue };
        let room = left.saturating_sub(key.len());
        if text.len() > room {
            text = cut(&text, room);
        }
        if !text.is_empty() {
            left = room - text.len();
            artifacts.insert(key, text);
        }
    }
}

/// The lines that fit with a note of how many do not; none if that does not fit.
fn cut(text: &str, room: usize) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    for kept in (0..lines.len()).rev() {
        let note = format!("({} more lines)\n", lines.len() - kept);
        let size: usize = lines[..kept].iter().map(|line| line.len()).sum();
        if size + note.len() <= room {
            return lines[..kept].concat() + &note;
        }
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn artifacts_fit_and_say_what_is_cut() {
        let text = "one\n".repeat(9);
        let whole = BTreeMap::from([("guardrails", text.clone()), ("best_cells", text)]);
        for bytes in 0..80 {
            let mut cut = whole.clone();
            limit(&mut cut, bytes);
            let size: usize = cut.iter().map(|(k, v)| k.len() + v.len()).sum();
            assert!(size <= bytes, "{bytes}: {cut:?}");
        }
        let mut cut = whole.clone();
        limit(&mut cut, 30);
        assert_eq!(cut, BTreeMap::from([("guardrails", "one\n(8 more lines)\n".to_owned())]));
        let mut all = whole.clone();
        limit(&mut all, 100);
        assert_eq!(all, whole);
    }
}

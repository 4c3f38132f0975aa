//! Repeated runs of a command, and two such sets side by side: tables and JSON.

use std::fmt::Write as _;

use reveille_measure::needed_for;
use reveille_place::counted;
use reveille_study::{BENCH_FORMAT, BenchChange, BenchFigure, BenchRuns, Figure};
use serde::Serialize;

use crate::made::json_text;
use crate::number::{TOO_FEW, UNDEFINED, Unit, change, figure, has_star};

#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    runs: &'a BenchRuns,
    figures: Vec<BenchFigure>,
}

pub fn bench_json(runs: &BenchRuns) -> String {
    json_text(&Document { runs, figures: runs.figures() })
}

/// Reads what [`bench_json`] wrote.
///
/// # Errors
/// What is wrong with it, in words.
pub fn read_bench(text: &str) -> Result<BenchRuns, String> {
    let value: serde_json::Value =
        serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))?;
    match value["format"].as_u64() {
        Some(format) if format == u64::from(BENCH_FORMAT) => {}
        Some(other) => return Err(format!("its format is {other}, and this reads {BENCH_FORMAT}")),
        None => return Err("it has no `format`".to_owned()),
    }
    let runs: BenchRuns = serde_json::from_value(value).map_err(|error| error.to_string())?;
    if runs.runs.is_empty() { Err("it has no runs".to_owned()) } else { Ok(runs) }
}

pub fn bench_table(runs: &BenchRuns) -> String {
    let head = ["", "p50", "p90", "p99", "mean", "min", "max"].map(str::to_owned);
    let row = |f: &BenchFigure| {
        let unit = Unit::of(&f.metric);
        let at = |q: Option<f64>| quantile(unit, q);
        [
            f.metric.name.to_string(),
            at(f.p50),
            at(f.p90),
            at(f.p99),
            figure(unit, f.figure, runs.runs.len() > 1),
            unit.format(f.min),
            unit.format(f.max),
        ]
    };
    let rows: Vec<_> = std::iter::once(head).chain(runs.figures().iter().map(row)).collect();
    let mut text = aligned(&rows);
    text += &too_few(&[runs.runs.len()]);
    text += &hardly_split(&[runs]);
    let left: u32 = runs.runs.iter().map(|run| run.left_running).sum();
    let mut statuses: Vec<_> = runs.runs.iter().map(|run| run.exit_status.to_string()).collect();
    statuses.dedup();
    let _ = writeln!(
        text,
        "exit status {} in {}",
        statuses.join(", "),
        counted(runs.runs.len(), "run")
    );
    if left > 0 {
        let _ =
            writeln!(text, "warning: the command left {left} processes running; they were killed");
    }
    text
}

/// Means of both and how they changed, each with its medians below if both can be told.
pub fn bench_change_table(before: &BenchRuns, after: &BenchRuns) -> String {
    let comparison = before.compare(after);
    let runs = [before.runs.len(), after.runs.len()];
    let head = ["mean", "before", "after", "change", "p"];
    let row = |change_of: &BenchChange| {
        let BenchChange { metric, before, after, change_pct, p_value, significant } = change_of;
        let unit = Unit::of(metric);
        let mean = |f: Figure, n: usize| figure(unit, f, n > 1);
        let star = if has_star(*significant, *change_pct) { "*" } else { "" };
        let means = [
            metric.name.to_string(),
            mean(before.figure, runs[0]),
            mean(after.figure, runs[1]),
            format!("{}{star}", change(*change_pct)),
            p_value.map_or(UNDEFINED.to_owned(), |p| format!("{p:.3}")),
        ];
        let told =
            before.p50.zip(after.p50).filter(|both| both.0.is_finite() && both.1.is_finite());
        let medians = told.map(|(before, after)| {
            let [before, after] = [before, after].map(|p50| unit.format(p50));
            ["  p50".to_owned(), before, after, String::new(), String::new()]
        });
        std::iter::once(means).chain(medians)
    };
    let rows = comparison.rows.iter().flat_map(row);
    let rows: Vec<_> = std::iter::once(head.map(str::to_owned)).chain(rows).collect();
    let mut text = aligned(&rows);
    text += "* p < 0.05 (Welch's t-test)\n";
    text += &too_few(&runs);
    text += &hardly_split(&[before, after]);
    let _ = writeln!(text, "before: {} of {}", counted(runs[0], "run"), before.command.join(" "));
    let _ = writeln!(text, "after:  {} of {}", counted(runs[1], "run"), after.command.join(" "));
    for difference in &comparison.differences {
        let _ = writeln!(text, "warning: {difference}");
    }
    for (when, runs) in [("before", before), ("after", after)] {
        for warning in &runs.host.warnings {
            let _ = writeln!(text, "warning: {when}, {warning}");
        }
    }
    text
}

fn quantile(unit: Unit, value: Option<f64>) -> String {
    value.map_or_else(|| TOO_FEW.to_owned(), |value| unit.format(value))
}

/// How many runs the quantiles that are not shown need.
fn too_few(runs: &[usize]) -> String {
    let least = runs.iter().copied().min().unwrap_or(0) as u64;
    let shown: &[(&str, f64)] = match runs {
        [_] => &[("p50", 0.5), ("p90", 0.9), ("p99", 0.99)],
        _ => &[("p50", 0.5)],
    };
    let needs = shown.iter().map(|(name, q)| (name, needed_for(*q)));
    let needs = needs.filter(|(_, needed)| least < *needed);
    let needs: Vec<_> = needs.map(|(name, needed)| format!("{name} needs {needed} runs")).collect();
    if needs.is_empty() { String::new() } else { format!("{TOO_FEW}: {}\n", needs.join(", ")) }
}

/// Why user and system time are not shown.
fn hardly_split(sides: &[&BenchRuns]) -> String {
    let short = sides.iter().filter(|runs| runs.is_hardly_split());
    let Some(from_ns) = short.map(|runs| runs.split_from_ns()).max() else { return String::new() };
    let from = Unit::Time { to_ns: 1.0 }.format(from_ns as f64);
    format!("{UNDEFINED}: the kernel splits CPU time by samples; a run needs {from} of it\n")
}

/// The first column to the left, the others to the right.
fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |i: usize| rows.iter().map(|row| row[i].chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for row in rows {
        let _ = write!(text, "{:<w$}", row[0], w = width(0));
        for (i, cell) in row.iter().enumerate().skip(1) {
            let _ = write!(text, "  {cell:>w$}", w = width(i));
        }
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
    }
    text
}

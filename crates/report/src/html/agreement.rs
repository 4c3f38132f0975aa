//! The page of an agreement: tables, and for each figure a strip with every repeat of both
//! worlds, so that modes are seen and not only told. It needs no script.

use reveille_study::{Agreement, AgreementKind, AgreementRow, Spread};

use super::markup::{self, CLOSE_TABLE, badge, escape, numbers, open_table, partial, table_row};
use super::page;
use crate::agreement::{blocks, facts, figures, ratio, score, side, too_few_of};
use crate::made::{Made, push};
use crate::number::Unit;
use crate::printed::capitalised;

/// Renders a page with the host, the score, and every figure predicted and measured. It
/// fetches nothing.
pub fn agreement_html(a: &Agreement, made: &Made) -> String {
    let title = format!("Reveille: {}, predicted and measured", a.study);
    let mut body = format!("<article>\n<h1>{}: predicted and measured</h1>\n", escape(&a.study));
    partial(&mut body, a.partial, "repeats");
    let repeats = a.rows.iter().flat_map(|r| [&r.predicted, &r.measured]).map(|s| s.samples.len());
    let more = [("Seed", a.seed.to_string()), ("Repeats", numbers(repeats))];
    markup::facts(&mut body, facts(a).into_iter().chain(more));
    for warning in &a.host.warnings {
        push!(body, "<p class=\"partial\">{}</p>\n", escape(warning));
    }
    push!(body, "<p class=\"score\">{}</p>\n", escape(&score(a)));
    let mut case = "";
    for block in blocks(a) {
        if block[0].case != case {
            case = &block[0].case;
            push!(body, "<h2>{}</h2>\n", escape(case));
        }
        table(&mut body, &block);
    }
    body += LEGEND;
    if let Some(text) = too_few_of(a) {
        push!(body, "<p class=\"quiet\">{}.</p>\n", capitalised(&text));
    }
    body += "</article>\n";
    page(&title, &body, None, made)
}

const LEGEND: &str = "<p class=\"quiet\">Median [least..largest] over repeats; where repeats form \
    several modes, the centre and share of each. Strips show every repeat on a logarithmic axis: \
    predicted above, measured below. <b>ratio</b>: predicted by measured. <b>info</b>: shown, not \
    counted.</p>\n";

fn table(out: &mut String, block: &[&AgreementRow]) {
    let strips = block[0].kind == AgreementKind::Value;
    let range = strips.then(|| range(block)).flatten();
    let mut heads = vec!["load", "policy", "predicted", "measured", "ratio", "verdict", "reason"];
    if range.is_some() {
        heads.insert(4, "repeats");
    }
    open_table(out, &block[0].metric.to_string(), &heads);
    for row in block {
        let [predicted, measured] = figures(row).map(|figure| escape(&figure));
        let mut cells = vec![escape(side(row)), predicted, measured];
        cells.extend(range.map(|range| strip(row, range)));
        cells.extend([ratio(row), badge(Some(row.verdict)).to_owned()]);
        table_row(out, &row.load.to_string(), cells, Some(&escape(&row.reason)));
    }
    *out += CLOSE_TABLE;
}

fn range(block: &[&AgreementRow]) -> Option<(f64, f64)> {
    let told = block.iter().flat_map(|r| [&r.predicted, &r.measured]).filter(|s| !s.too_few);
    let samples = told.flat_map(|s| &s.samples);
    let logs = samples.filter(|x| x.is_finite() && **x > 0.0).map(|x| x.ln());
    let (low, high) =
        logs.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
    (high > low).then_some((low, high))
}

/// Width of a strip, and its margin at either end.
const WIDTH: f64 = 220.0;
const EDGE: f64 = 6.0;

fn strip(row: &AgreementRow, (low, high): (f64, f64)) -> String {
    let unit = Unit::of(&row.metric);
    let mut out = format!(
        "<svg viewBox=\"0 0 {WIDTH} 28\" width=\"{WIDTH}\" height=\"28\" role=\"img\" \
         aria-label=\"Repeats, predicted above and measured below\">\
         <line class=\"grid\" x1=\"0\" x2=\"{WIDTH}\" y1=\"14\" y2=\"14\"/>"
    );
    let dots = |out: &mut String, world: &str, spread: &Spread, y: f64, class: &str| {
        let told = spread.samples.iter().filter(|x| x.is_finite() && !spread.too_few);
        for value in told {
            // Nothing lies left of everything.
            let place = (value.max(low.exp()).ln() - low) / (high - low);
            let x = EDGE + place * (WIDTH - 2.0 * EDGE);
            push!(
                out,
                "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y}\" r=\"3\" \
                     fill-opacity=\"0.6\"><title>{world} {}</title></circle>",
                escape(&unit.format(*value))
            );
        }
    };
    dots(&mut out, "predicted", &row.predicted, 7.0, "busy");
    dots(&mut out, "measured", &row.measured, 21.0, "cost");
    out + "</svg>"
}

//! The page of a sensitivity analysis: a tornado plot and the tables of its rows. It
//! needs no script, since there is nothing to choose.

use reveille_study::Sensitivity;

use super::markup::{CLOSE_TABLE, escape, facts, open_table, partial, table_row};
use super::page;
use crate::made::{Made, push};
use crate::sensitivity::{
    changes, factor, heading, hits, place, range, shipped, standing, summary, values,
};

pub fn sensitivity_html(s: &Sensitivity, made: &Made) -> String {
    let title = format!("Reveille: sensitivity of {}", s.study);
    let mut body = format!("<article>\n<h1>Sensitivity of {}</h1>\n", escape(&s.study));
    partial(&mut body, s.partial, "constants");
    let about = [
        ("Machines", s.machines.join(", ")),
        ("Points across each range", s.points.to_string()),
        ("Repeats", s.repeats.to_string()),
        ("Seed", s.seed.to_string()),
    ];
    facts(&mut body, about);
    push!(body, "<p class=\"score\">At the shipped values {}</p>\n", shipped(s));
    if !s.constants.is_empty() {
        plot(&mut body, s);
        overview(&mut body, s);
    }
    rows(&mut body, s);
    facts(&mut body, summary(s).into_iter().map(|(name, text)| (name.trim_end(), text)));
    body += LEGEND;
    body += "</article>\n";
    page(&title, &body, None, made)
}

const LEGEND: &str = "<p class=\"quiet\">Each constant is moved over its plausible range while \
    all others stay. A bar ends where the row that moves furthest has its predicted ratio \
    multiplied or divided by that factor. <b>fragile</b>: hits at the shipped value, but at fewer \
    than half of the points of a range. <b>near</b>: misses, but hits at more than half.</p>\n";

/// Width of the column of names, of half of the plot, and height of a line.
const NAMES: f64 = 170.0;
const HALF: f64 = 260.0;
const LINE: f64 = 22.0;

/// Bars to the left for the low end, to the right for the high end.
fn plot(out: &mut String, s: &Sensitivity) {
    let widest = s.constants.iter().fold(0.0, |a: f64, c| a.max(c.reach_low).max(c.reach_high));
    let scale = if widest > 0.0 { HALF / widest } else { 0.0 };
    let height = LINE * (s.constants.len() as f64 + 1.5);
    let (middle, width) = (NAMES + HALF + 40.0, NAMES + 2.0 * HALF + 80.0);
    push!(
        out,
        "<figure>\n<figcaption>How far each constant moves a prediction</figcaption>\n\
             <svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"Tornado plot; its \
             figures are in the table below\">\n\
             <text x=\"{}\" y=\"14\" text-anchor=\"end\">at the low end</text>\n\
             <text x=\"{}\" y=\"14\">at the high end</text>\n",
        middle - 8.0,
        middle + 8.0
    );
    for (i, c) in s.constants.iter().enumerate() {
        let y = LINE * (i as f64 + 1.0);
        let (low, high) = (c.reach_low * scale, c.reach_high * scale);
        let text = y + 14.0;
        push!(
            out,
            "<text x=\"{}\" y=\"{text}\" text-anchor=\"end\">{}</text>\n\
                 <rect class=\"busy\" x=\"{:.1}\" y=\"{}\" width=\"{low:.1}\" height=\"14\"/>\n\
                 <rect class=\"cost\" x=\"{middle}\" y=\"{}\" width=\"{high:.1}\" height=\"14\"/>\n\
                 <text x=\"{:.1}\" y=\"{text}\" text-anchor=\"end\">{}</text>\n\
                 <text x=\"{:.1}\" y=\"{text}\">{}</text>\n",
            NAMES - 8.0,
            escape(&c.key),
            middle - low,
            y + 3.0,
            y + 3.0,
            middle - low - 4.0,
            factor(c.reach_low),
            middle + high + 4.0,
            factor(c.reach_high),
        );
    }
    push!(
        out,
        "<line class=\"axis\" x1=\"{middle}\" x2=\"{middle}\" y1=\"{LINE}\" y2=\"{height}\"/>\n\
             </svg>\n</figure>\n"
    );
}

fn overview(out: &mut String, s: &Sensitivity) {
    let heads = ["constant", "unit", "shipped [range]", "furthest", "in row", "hits, low..high"];
    open_table(out, "Constants that change a row", &heads);
    for c in &s.constants {
        let row = c.reach_row.map_or("–".into(), |i| escape(&place(&s.rows[i])));
        let cells = [c.unit.to_owned(), range(c), factor(c.reach), row, hits(c)];
        table_row(out, &escape(&c.key), cells, None);
    }
    *out += CLOSE_TABLE;
}

fn rows(out: &mut String, s: &Sensitivity) {
    for (i, row) in s.rows.iter().enumerate() {
        let changes = changes(s, i);
        if changes.is_empty() {
            continue;
        }
        open_table(out, &heading(row), &["constant", "unit", "hits at", "misses at", "standing"]);
        for (c, changed) in changes {
            let [hits, misses] = [&changed.hit_at, &changed.miss_at].map(|at| values(c, at));
            let cells = [c.unit, &hits, &misses, standing(changed.standing)];
            table_row(out, &escape(&c.key), cells, None);
        }
        *out += CLOSE_TABLE;
    }
}

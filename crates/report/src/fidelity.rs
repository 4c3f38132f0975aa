//! The record of fidelity: every published figure beside what is predicted for it,
//! with every miss and everything that is left out. A Markdown page without a date,
//! so that it changes only when a prediction or a source does.

use reveille_study::{Comparison, Fragility, Row, Summary, Verdict};

use crate::fragile;
use crate::group::unique;
use crate::made::push;
use crate::printed::{
    capitalised, claim_predicted, claimed, predicted, published, score, verdict_word,
};
use crate::summary::{SCORE_HEADS, score_lines};

const HEAD: &str = "\
# Fidelity

What Reveille predicts, beside what was published. This page is written by
`reveille study --all` and is not edited by hand; the same model, machine files and
studies give the same bytes.

Let r be the published ratio of variant to baseline on a scale where higher is better
(times and latencies inverted), r̂ the predicted one, and s the larger published relative
standard deviation. A row is a hit if |ln r̂ − ln r| ≤ max(½·|ln r|, 0.05, 2·s). A figure of
one side alone is a hit within a factor of two, a latency percentile under bandwidth limits
within 10%; the ratio is then that of the figures themselves. What groups that share CPUs do
to each other is a hit within 25% or one point (of a mean number of periods, within 25% of
what it is above 1, or 0.01). A figure is shown but not
counted where its published standard deviation is above 30%, where its source calls it
noise, and where it is a standard deviation itself. Changes are positive where better.
Claims about whole curves have verdicts of their own and no part in the score.

Where the repeats of a side fall into states a factor of 1.5 or more apart, the row shows
every state with its share, `x (60%) or y (40%)`. Its prediction is then each change from a
state of the baseline to a state of the variant, with the product of their shares, and it is
a hit if changes within the tolerance have at least half of all probability. Such a row has
no single r̂/r.

";

const SCORE: &str = "\
\"Hits\" is the score. Rows whose published figure is a change are held against the trivial
prediction as well: \"no change\" is what predicting 0% for each of them hits. Big changes are
published ones of 10% or more, either way: how many go the right way by 1% or more, and how
many are hits. \"Quiet\" are those published below 5% that are predicted below 5% too.

";

const FRAGILE: &str = "\
A row is fragile if its verdict is another one in a quarter or more of twelve draws of all
constants from their plausible ranges (\"one repeat\": fewer repeats than the study's turn it as
well). From sensitivity.json, which `reveille sensitivity --all` writes: ";

/// Renders the record of `cs`, whose score is `summary`. Rows that are fragile say so,
/// where it is known.
pub fn fidelity(cs: &[Comparison], summary: &Summary, fragile: Option<&Fragility>) -> String {
    let mut page = HEAD.to_owned();
    scores(&mut page, summary);
    if let Some(f) = fragile {
        push!(page, "{FRAGILE}{}.\n\n", fragile::count(f));
    }
    for c in cs {
        study(&mut page, c, fragile);
    }
    page
}

fn scores(page: &mut String, summary: &Summary) {
    *page += "## Score\n\n";
    *page += SCORE;
    let heads = SCORE_HEADS.map(|head| head.replace('\n', " "));
    open(page, &heads.each_ref().map(String::as_str));
    for cells in score_lines(summary, " of ") {
        line(page, &cells);
    }
    page.push('\n');
}

fn study(page: &mut String, c: &Comparison, fragile: Option<&Fragility>) {
    push!(page, "## {}\n\n", escape(&c.study));
    let machines = c.machines.iter().map(|m| format!("{} ({})", m.name, m.topology));
    let machines: Vec<String> = machines.collect();
    push!(page, "On {}.\n", escape(&machines.join("; ")));
    push!(page, "{}.\n\n", capitalised(&score(c)));
    let of = |verdicts: &[Verdict]| -> Vec<&Row> {
        let one_of = |r: &&Row| r.verdict.is_some_and(|v| verdicts.contains(&v));
        c.rows.iter().filter(one_of).collect()
    };
    rows(page, c, "Counted rows", &of(&[Verdict::Hit, Verdict::Miss]), fragile);
    misses(page, c, &of(&[Verdict::Miss]));
    rows(page, c, "Informative rows", &of(&[Verdict::Informative]), None);
    claim_table(page, c);
    unpredicted(page, c);
    let sources = unique(c.rows.iter().filter_map(|r| r.published_source.as_deref()));
    if !sources.is_empty() {
        *page += "Sources:\n\n";
        for source in sources {
            push!(page, "- {}\n", escape(source));
        }
        page.push('\n');
    }
}

fn rows(
    page: &mut String,
    c: &Comparison,
    title: &str,
    rows: &[&Row],
    fragile: Option<&Fragility>,
) {
    if rows.is_empty() {
        return;
    }
    push!(page, "### {title}\n\n");
    open(page, &["case", "load", "variant", "metric", "published", "predicted", "r̂/r", "verdict"]);
    for row in rows {
        let verdict = row.verdict.map_or("", verdict_word);
        let mark = fragile.and_then(|f| fragile::mark(f, c, row));
        let verdict = match (&row.noise, mark) {
            (Some(noise), _) => format!("{verdict}: {noise}"),
            (None, Some(mark)) => format!("{verdict}, {mark}"),
            (None, None) => verdict.to_owned(),
        };
        line(
            page,
            &[
                case(c, row),
                row.load.to_string(),
                row.variant.clone(),
                row.metric.to_string(),
                published(row),
                predicted(row),
                ratio(row),
                verdict,
            ],
        );
    }
    page.push('\n');
}

fn misses(page: &mut String, c: &Comparison, rows: &[&Row]) {
    if rows.is_empty() {
        return;
    }
    *page += "### Misses\n\n";
    for row in rows {
        let text = format!(
            "{} at load {}, {}, {}: published {}, predicted {}, r̂/r {}",
            case(c, row),
            row.load,
            row.variant,
            row.metric,
            published(row),
            predicted(row),
            ratio(row)
        );
        push!(page, "- {}\n", escape(&text));
    }
    page.push('\n');
}

fn claim_table(page: &mut String, c: &Comparison) {
    if c.claims.is_empty() {
        return;
    }
    *page += "### Claims\n\n";
    open(page, &["claim", "published", "predicted", "verdict", "source"]);
    for claim in &c.claims {
        line(
            page,
            &[
                claim.claim.clone(),
                claimed(claim),
                claim_predicted(claim),
                verdict_word(claim.verdict).to_owned(),
                claim.source.clone(),
            ],
        );
    }
    page.push('\n');
}

fn unpredicted(page: &mut String, c: &Comparison) {
    if c.unpredicted.is_empty() {
        return;
    }
    *page += "### Published, but not predicted\n\n";
    open(page, &["what", "figures", "why not", "source"]);
    for u in &c.unpredicted {
        line(page, &[u.what.clone(), u.figures.clone(), u.reason.clone(), u.source.clone()]);
    }
    page.push('\n');
}

/// The case, with machine and baseline where they are not the study's own.
fn case(c: &Comparison, row: &Row) -> String {
    let mut own = Vec::new();
    if row.machine != c.machine {
        own.push(row.machine.as_str());
    }
    if row.base != c.base {
        own.push(row.base.as_str());
    }
    if own.is_empty() { row.case.clone() } else { format!("{} ({})", row.case, own.join(", ")) }
}

pub(crate) fn ratio(row: &Row) -> String {
    row.ratio.map_or_else(|| "-".into(), |ratio| format!("{ratio:.3}"))
}

pub(crate) fn open(page: &mut String, heads: &[&str]) {
    push!(page, "| {} |\n|{}\n", heads.join(" | "), "---|".repeat(heads.len()));
}

pub(crate) fn line(page: &mut String, cells: &[String]) {
    let cells: Vec<String> = cells.iter().map(|cell| escape(cell)).collect();
    push!(page, "| {} |\n", cells.join(" | "));
}

pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for ch in text.chars() {
        match ch {
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' => out.extend(['\\', ch]),
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            ch if ch.is_control() => out.push(' '),
            ch => out.push(ch),
        }
    }
    out
}

//! How far a study hangs on the constants of its machines, as text for a terminal.
//! Plain characters, as in the table of a comparison.

use reveille_study::{
    ChangedRow, MovedConstant, RangeOnMachine, SensitiveRow, Sensitivity, Standing, Verdict,
};

use crate::group::unique;
use crate::number;
use crate::printed;
use crate::table::{NARROWEST, Page, grid};

/// Columns of one half of a bar.
const HALF_BAR: usize = 12;

/// The result for a terminal of `width` columns (less than 60 is taken as 60): how far
/// each constant moves a prediction, the rows whose verdict one changes with the values
/// at which they hit, and which rows are fragile or near.
pub fn sensitivity_table(s: &Sensitivity, width: usize) -> String {
    let mut page = Page { text: String::new(), width: width.max(NARROWEST) };
    page.wrapped("study       ", &s.study);
    page.wrapped("machines    ", &s.machines.join(", "));
    let sampling =
        format!("{} points across each range, repeats {}, seed {}", s.points, s.repeats, s.seed);
    page.wrapped("sampled     ", &sampling);
    page.wrapped("shipped     ", &shipped(s));
    page.partial(s.partial, "constants");
    tornado(&mut page, s);
    for (i, row) in s.rows.iter().enumerate() {
        changed_row(&mut page, s, i, row);
    }
    page.line("");
    for (label, text) in summary(s) {
        page.wrapped(label, &text);
    }
    page.line("");
    page.wrapped("", LEGEND);
    page.partial(s.partial, "constants");
    page.text
}

const LEGEND: &str = "furthest: the largest change of a predicted ratio, as a factor; bars: at \
    the low end, at the high end; hits: low end .. high end; fragile: hits at the shipped value, \
    but at fewer than half of the points of a range; near: misses, but hits at more than half";

pub(crate) fn shipped(s: &Sensitivity) -> String {
    printed::skill(s.score, &s.skill)
}

/// What is said below the tables: label and text.
pub(crate) fn summary(s: &Sensitivity) -> Vec<(&'static str, String)> {
    let of = |standing| {
        let rows = s.rows.iter().filter(move |r| r.standing == standing);
        let texts = rows.map(|r| format!("{} (by {})", place(r), r.because_of.join(", ")));
        list(texts.collect())
    };
    let mut parts = vec![
        ("fragile            ", of(Standing::Fragile)),
        ("near               ", of(Standing::Near)),
        ("without influence  ", list(s.without_influence.clone())),
    ];
    if !s.without_range.is_empty() {
        parts.push(("without a range    ", list(s.without_range.clone())));
    }
    parts
}

fn list(items: Vec<String>) -> String {
    if items.is_empty() { "none".into() } else { items.join("; ") }
}

/// A row in few words.
pub(crate) fn place(row: &SensitiveRow) -> String {
    format!("{} {}", row.case, row.load)
}

/// Shipped value between the ends of its range; one such group for each machine.
pub(crate) fn range(c: &MovedConstant) -> String {
    let group = |m: &RangeOnMachine| format!("{} [{}, {}]", m.value, m.low, m.high);
    // Machines often have the numbers of one cost model.
    unique(c.machines.iter().map(group)).join(", ")
}

/// `x1.25`: e to the power of a difference of logarithms.
pub(crate) fn factor(ln: f64) -> String {
    format!("x{}", number::si(ln.exp()))
}

fn tornado(page: &mut Page, s: &Sensitivity) {
    if s.constants.is_empty() {
        return;
    }
    let widest = s.constants.iter().fold(0.0, |a: f64, c| a.max(c.reach_low).max(c.reach_high));
    let columns = |reach: f64| {
        // The least influence is still one sign wide.
        let share = if widest > 0.0 { reach / widest } else { 0.0 };
        let columns = (share * HALF_BAR as f64).round() as usize;
        if reach > 0.0 { columns.max(1) } else { 0 }
    };
    let rows = s.constants.iter().map(|c| {
        let (low, high) = ("#".repeat(columns(c.reach_low)), "#".repeat(columns(c.reach_high)));
        let bar = format!("{low:>HALF_BAR$}|{high:<HALF_BAR$}").replace(' ', "\u{a0}");
        let row = c.reach_row.map_or("-".into(), |i| place(&s.rows[i]));
        [c.key.clone(), range(c), factor(c.reach), bar, hits(c), row]
    });
    page.line("");
    page.line("how far each constant moves a prediction");
    let heads = ["constant", "shipped [range]", "furthest", "low | high", "hits", "in row"];
    page.table(grid(heads, rows, &[2, 4]));
}

pub(crate) fn hits(c: &MovedConstant) -> String {
    let at = |s: Option<&reveille_study::Sample>| s.map_or(0, |s| s.hits);
    format!("{}..{}", at(c.samples.first()), at(c.samples.last()))
}

/// A row that changes its verdict somewhere, as a heading.
pub(crate) fn heading(row: &SensitiveRow) -> String {
    let verdict = if row.verdict == Verdict::Hit { "hit" } else { "MISS" };
    let published = match (row.published_change_pct, row.predicted_change_pct) {
        (Some(published), Some(predicted)) => {
            let changes = [published, predicted].map(number::change);
            format!("published {}, predicted {}", changes[0], changes[1])
        }
        _ => format!("predicted by published {}", number::si(row.ratio.unwrap_or(f64::NAN))),
    };
    format!(
        "{}, {}: {} against {} at load {}: {published}, {verdict}",
        row.case, row.metric, row.variant, row.base, row.load
    )
}

/// The constants that change the verdict of a row.
pub(crate) fn changes(s: &Sensitivity, row: usize) -> Vec<(&MovedConstant, &ChangedRow)> {
    let of = |c| {
        let c: &MovedConstant = c;
        Some((c, c.changed.iter().find(|r| r.row == row)?))
    };
    s.constants.iter().filter_map(of).collect()
}

/// The values of a constant at some of its samples.
pub(crate) fn values(c: &MovedConstant, samples: &[usize]) -> String {
    let value = |i: &usize| unique(c.samples[*i].values.iter().map(f64::to_string)).join("/");
    if samples.is_empty() {
        "-".into()
    } else {
        samples.iter().map(value).collect::<Vec<_>>().join(" ")
    }
}

/// What to call a standing in a table.
pub(crate) fn standing(standing: Standing) -> &'static str {
    match standing {
        Standing::Firm => "",
        Standing::Fragile => "fragile",
        Standing::Near => "near",
    }
}

fn changed_row(page: &mut Page, s: &Sensitivity, i: usize, row: &SensitiveRow) {
    let changes = changes(s, i);
    if changes.is_empty() {
        return;
    }
    page.line("");
    page.wrapped("", &heading(row));
    let rows = changes.into_iter().map(|(c, changed)| {
        [
            format!("{} ({})", c.key, c.unit),
            range(c),
            values(c, &changed.hit_at),
            values(c, &changed.miss_at),
            standing(changed.standing).to_owned(),
        ]
    });
    page.table(grid(["constant", "shipped [range]", "hits at", "misses at", ""], rows, &[]));
}

//! Which verdicts of many studies one constant turns: as text for a terminal, and as the
//! JSON that the record of fidelity marks its rows by.

use reveille_study::{Comparison, End, FragileRow, Fragility, Row, RowPlace, Side, Turn, Verdict};

use crate::made::json_text;
use crate::printed::verdict_word;
use crate::table::{NARROWEST, Page};

pub fn fragility_json(f: &Fragility) -> String {
    json_text(f)
}

/// Reads what [`fragility_json`] wrote.
///
/// # Errors
/// What is wrong with the text, and where.
pub fn read_fragility(text: &str) -> Result<Fragility, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// The result for a terminal of `width` columns (less than 60 is taken as 60).
pub fn fragility_table(f: &Fragility, width: usize) -> String {
    let mut page = Page { text: String::new(), width: width.max(NARROWEST) };
    page.wrapped("studies     ", &f.studies.join(", "));
    let moved = format!("{} constants, to both ends of their ranges; {} runs", f.constants, f.runs);
    page.wrapped("moved       ", &moved);
    let whole = f.rows.iter().filter(|r| r.length == 1.0).count();
    let shorter = f.rows.len() - whole;
    let length = format!(
        "one repeat; {shorter} of {} rows over 1/2 to 1/16 of their study's time, where that \
         predicts the same within 2%",
        f.rows.len()
    );
    page.wrapped("run         ", &length);
    page.wrapped("fragile     ", &count(f));
    if f.partial {
        page.wrapped("!!! ", "PARTIAL RESULT: the run was interrupted !!!");
    }
    page.line("");
    for row in &f.rows {
        if let Some(turn) = &row.turn {
            let place = &row.place;
            let side = match place.side {
                Some(Side::Base) => " of the baseline",
                Some(Side::Variant) => " of the variant",
                None => "",
            };
            let text = format!(
                "{}: {} {}, {}, {}{side}: {}",
                place.study,
                place.case,
                place.load,
                place.variant,
                place.metric,
                words(turn)
            );
            page.wrapped(&format!("  {:4}  ", verdict_word(row.verdict)), &text);
        }
    }
    page.line("");
    page.wrapped(
        "",
        "fragile: another verdict at an end of the range of the constant named, the \
                      first that is found",
    );
    page.text
}

pub(crate) fn count(f: &Fragility) -> String {
    let hits = |rows: &[&FragileRow]| rows.iter().filter(|r| r.verdict == Verdict::Hit).count();
    let all: Vec<&FragileRow> = f.rows.iter().collect();
    let fragile: Vec<&FragileRow> = f.rows.iter().filter(|r| r.turn.is_some()).collect();
    format!(
        "{} of {} rows: {} of {} hits, {} of {} misses",
        fragile.len(),
        all.len(),
        hits(&fragile),
        hits(&all),
        fragile.len() - hits(&fragile),
        all.len() - hits(&all)
    )
}

/// `noise, high end`.
fn words(turn: &Turn) -> String {
    let end = if turn.end == End::Low { "low" } else { "high" };
    format!("{}, {end} end", turn.constant)
}

/// What to write beside the verdict of a row, if it is fragile.
pub(crate) fn mark(f: &Fragility, c: &Comparison, row: &Row) -> Option<String> {
    let place = RowPlace::of(&c.study, row);
    let known = f.rows.iter().find(|r| r.place == place)?;
    match (&known.turn, row.verdict) {
        (_, Some(verdict)) if verdict != known.verdict => Some("fragile: one repeat".to_owned()),
        (Some(turn), _) => Some(format!("fragile: {}", words(turn))),
        (None, _) => None,
    }
}

//! Which verdicts of many studies hang on the constants: as text for a terminal, and as the
//! JSON that the record of fidelity marks its rows by.

use reveille_study::{Comparison, FragileRow, Fragility, Row, RowPlace, Side, Verdict};

use crate::printed::verdict_word;
use crate::table::{NARROWEST, Page};

/// Reads what [`json_text`](crate::json_text) wrote.
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
    let drawn = format!(
        "{} constants at once, {} times, from their plausible ranges; {} runs",
        f.constants, f.draws, f.runs
    );
    page.wrapped("drawn       ", &drawn);
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
        if f.is_fragile(row) {
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
                words(f, row)
            );
            page.wrapped(&format!("  {:4}  ", verdict_word(row.verdict)), &text);
        }
    }
    page.line("");
    page.wrapped("", "fragile: another verdict in a quarter of the draws or more");
    page.text
}

/// How many rows are fragile.
pub(crate) fn count(f: &Fragility) -> String {
    let hits = |rows: &[&FragileRow]| rows.iter().filter(|r| r.verdict == Verdict::Hit).count();
    let all: Vec<&FragileRow> = f.rows.iter().collect();
    let fragile: Vec<&FragileRow> = f.rows.iter().filter(|r| f.is_fragile(r)).collect();
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

/// `turns in 5 of 12 draws`.
fn words(f: &Fragility, row: &FragileRow) -> String {
    format!("turns in {} of {} draws", row.turned, f.draws)
}

/// What to write beside the verdict of a row, if it is fragile.
pub(crate) fn mark(f: &Fragility, c: &Comparison, row: &Row) -> Option<String> {
    let place = RowPlace::of(&c.study, row);
    let known = f.rows.iter().find(|r| r.place == place)?;
    if row.verdict.is_some_and(|verdict| verdict != known.verdict) {
        return Some("fragile: one repeat".to_owned());
    }
    f.is_fragile(known).then(|| format!("fragile: {}", words(f, known)))
}

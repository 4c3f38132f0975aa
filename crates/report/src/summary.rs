//! The score of several studies, for a terminal and for programs.

use reveille_study::{Comparison, Summary};
use serde::Serialize;

/// Several results under one score.
#[derive(Serialize)]
struct All<'a> {
    studies: &'a [Comparison],
    #[serde(flatten)]
    summary: &'a Summary,
}

/// All comparisons and their score as indented JSON, ending in a newline; each
/// comparison as [`json`](crate::json) has it.
pub fn json_all(cs: &[Comparison], summary: &Summary) -> String {
    let mut text = serde_json::to_string_pretty(&All { studies: cs, summary })
        .expect("comparisons have only text keys, so they can be serialised");
    text.push('\n');
    text
}

/// The score by mechanism and overall, as text for a terminal.
pub fn score_table(summary: &Summary) -> String {
    let mut rows =
        vec![["mechanism", "studies", "hits", "counted", "share", "claims"].map(String::from)];
    for m in &summary.mechanisms {
        rows.push([
            printable(&m.mechanism),
            printable(&m.studies.join(", ")),
            m.hits.to_string(),
            m.counted.to_string(),
            share(m.pct),
            format!("{} of {}", m.claim_hits, m.claims),
        ]);
    }
    let claims = |get: fn(&reveille_study::MechanismScore) -> usize| {
        summary.mechanisms.iter().map(get).sum::<usize>()
    };
    rows.push([
        "all".to_owned(),
        String::new(),
        summary.score.hits.to_string(),
        summary.score.counted.to_string(),
        share(summary.score.pct),
        format!("{} of {}", claims(|m| m.claim_hits), claims(|m| m.claims)),
    ]);
    let mut text = String::new();
    for row in &rows {
        for (i, cell) in row.iter().enumerate() {
            let width = rows.iter().map(|r| r[i].chars().count()).max().unwrap_or(0);
            // Names from the left, figures from the right.
            let padding = " ".repeat(width - cell.chars().count());
            match i {
                0 => text += &format!("{cell}{padding}"),
                1 => text += &format!("  {cell}{padding}"),
                _ => text += &format!("  {padding}{cell}"),
            }
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

/// Hits in percent.
pub(crate) fn share(pct: Option<f64>) -> String {
    pct.map_or_else(|| "-".into(), |pct| format!("{pct:.0}%"))
}

/// A control character in a name could drive the terminal.
fn printable(text: &str) -> String {
    text.chars().map(|ch| if ch.is_control() { '?' } else { ch }).collect()
}

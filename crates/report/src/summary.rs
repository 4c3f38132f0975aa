//! The score of several studies, for a terminal and for programs.

use reveille_study::{Comparison, MechanismScore, Skill, Summary};
use serde::Serialize;

use crate::made::json_text;
use crate::printed;
use crate::table::{NARROWEST, Page, grid, printable};

/// Several results under one score.
#[derive(Serialize)]
struct All<'a> {
    studies: &'a [Comparison],
    #[serde(flatten)]
    summary: &'a Summary,
}

/// All comparisons and their score as indented JSON, ending in a newline; each
/// comparison as [`json_text`] has it.
pub fn json_all(cs: &[Comparison], summary: &Summary) -> String {
    json_text(&All { studies: cs, summary })
}

/// The score by mechanism and overall, as text for a terminal of `width` columns (less
/// than 60 is taken as 60), each beside that of "nothing ever changes".
pub fn score_table(summary: &Summary, width: usize) -> String {
    let mut page = Page { text: String::new(), width: width.max(NARROWEST) };
    // Fractions are not broken; names are.
    let lines = score_lines(summary, "/").into_iter();
    let rows = lines.map(|line| line.map(|cell| printable(&cell)));
    page.table(grid(SCORE_HEADS, rows, &[2, 3, 4, 5, 6, 7, 8]));
    if let Some(legend) = printed::skill_legend(&summary.skill) {
        page.wrapped("", legend);
    }
    page.text
}

/// The columns of [`score_lines`]; with two lines, a table has room for names at 80 columns.
pub(crate) const SCORE_HEADS: [&str; 9] = [
    "mechanism",
    "studies",
    "hits",
    "changes\nhit",
    "no\nchange",
    "big:\nsign",
    "big:\nhit",
    "quiet",
    "claims",
];

/// A line for each mechanism and one for all: hits of what counts, and its parts. `of`
/// stands between a number and what it is of.
pub(crate) fn score_lines(summary: &Summary, of: &str) -> Vec<[String; 9]> {
    let line =
        |name: &str, studies: &[String], hits, counted, skill: &Skill, claims: [usize; 2]| {
            let fraction = |part: usize, whole: usize| match whole {
                0 => "-".to_owned(),
                whole => format!("{part}{of}{whole}"),
            };
            [
                name.to_owned(),
                studies.join(", "),
                fraction(hits, counted),
                fraction(skill.hits, skill.changes),
                fraction(skill.null_hits, skill.changes),
                fraction(skill.big_sign, skill.big),
                fraction(skill.big_hits, skill.big),
                fraction(skill.small_quiet, skill.small),
                fraction(claims[0], claims[1]),
            ]
        };
    let of_mechanism = |m: &MechanismScore| {
        let claims = [m.claim_hits, m.claims];
        line(&m.mechanism, &m.studies, m.hits, m.counted, &m.skill, claims)
    };
    let mut lines: Vec<_> = summary.mechanisms.iter().map(of_mechanism).collect();
    let (score, claims) = (summary.score, [summary.claim_hits, summary.claims]);
    lines.push(line("all", &[], score.hits, score.counted, &summary.skill, claims));
    lines
}

//! What each edit of a sweep does over all conditions, as text for a terminal.

use reveille_sweep::Effect;

use crate::number;
use crate::table::{NARROWEST, Page, grid};

pub(crate) const HEADS: [&str; 8] =
    ["edits", "workload", "cells", "better", "worse", "mean change", "worst", "at"];

/// The effects for a terminal of `width` columns (less than 60 is taken as 60); nothing without
/// an edit.
pub fn effects_table(effects: &[Effect], width: usize) -> String {
    let mut page = Page { text: String::new(), width: width.max(NARROWEST) };
    if effects.is_empty() {
        return page.text;
    }
    page.line("");
    page.table(grid(HEADS, effects.iter().map(cells), &[2, 3, 4, 5, 6]));
    page.line("");
    page.wrapped("", LEGEND);
    page.text
}

pub(crate) const LEGEND: &str = "+ is better; better, worse: cells whose change exceeds the \
    noise of their repeats (of one repeat, any change); mean change: geometric mean over all cells";

/// A line of the table, under [`HEADS`].
pub(crate) fn cells(effect: &Effect) -> [String; 8] {
    let change = |pct: Option<f64>| pct.map_or(number::UNDEFINED.into(), number::change);
    [
        effect.edits.clone(),
        format!("{}: {}", effect.workload, effect.metric),
        effect.cells.to_string(),
        effect.better.to_string(),
        effect.worse.to_string(),
        change(effect.mean_change_pct),
        change(effect.worst_change_pct),
        effect.worst_at.clone().unwrap_or_default(),
    ]
}

//! What each edit of a sweep does over all conditions, as text for a terminal.

use reveille_sweep::Effect;

use crate::number;
use crate::printed::measure_longer;
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
    if let Some(legend) = too_few(effects) {
        page.wrapped("", &legend);
    }
    page.text
}

pub(crate) const LEGEND: &str = "+ is better; better, worse: cells whose change exceeds the \
    noise of their repeats (of one repeat, any change); mean change: geometric mean over all cells; \
    changes are those that reveille compare predicts";

/// Said where cells ran for too short a time.
pub(crate) fn too_few(effects: &[Effect]) -> Option<String> {
    let short: Vec<&Effect> = effects.iter().filter(|e| e.not_measured > 0).collect();
    let enough_ns = short.iter().filter_map(|e| e.enough_ns?.try_into().ok()).max();
    (!short.is_empty()).then(|| measure_longer(enough_ns, " (duration)"))
}

/// A line of the table, under [`HEADS`].
pub(crate) fn cells(effect: &Effect) -> [String; 8] {
    let none = if effect.not_measured > 0 { number::TOO_FEW } else { number::UNDEFINED };
    let change = |pct: Option<f64>| pct.map_or(none.into(), number::change);
    let cells = match effect.not_measured {
        0 => effect.cells.to_string(),
        n => format!("{} of {}", effect.cells, effect.cells + n),
    };
    [
        effect.edits.clone(),
        format!("{}: {}", effect.workload, effect.metric),
        cells,
        effect.better.to_string(),
        effect.worse.to_string(),
        change(effect.mean_change_pct),
        change(effect.worst_change_pct),
        effect.worst_at.clone().unwrap_or_default(),
    ]
}

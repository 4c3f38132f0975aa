//! A score as text for a terminal: the number, the guardrails, its parts, and why.

use reveille_score::{Cell, Score, Status};

use crate::group::unique;
use crate::table::{NARROWEST, Page, grid};

/// The score for a terminal of `width` columns (less than 60 is taken as 60).
pub fn score_page(score: &Score, width: usize) -> String {
    let mut page = Page { text: String::new(), width: width.max(NARROWEST) };
    let candidate = Some(&*score.candidate).filter(|name| !name.is_empty());
    page.wrapped("candidate   ", candidate.unwrap_or("the baseline itself"));
    page.wrapped("base        ", &score.base);
    let cells = score.cells.len();
    page.wrapped("suite       ", &format!("{}, {cells} cells ran", score.suite));
    let text = match (cells, score.status) {
        (0, Status::TimeLimit) => "none: the time limit ended it before a cell had run".to_owned(),
        (0, Status::Interrupted) => "none: interrupted before a cell had run".to_owned(),
        (0, _) => format!("{:.3}: {}", score.combined(), end(score)),
        _ => {
            let [gain, low, high] =
                ["gain", "gain_low", "gain_high"].map(|name| percent(score.metric(name)));
            let text = format!("{:.3}: mean gain {gain}", score.combined());
            format!("{text} (95%: {low} to {high}), {}", end(score))
        }
    };
    page.wrapped("score       ", &text);
    if let Some(error) = score.artifacts.get("error") {
        page.line("");
        error.lines().for_each(|line| page.wrapped("  ", line));
    }
    if !score.guardrails.is_empty() {
        page.line("");
        guardrails(&mut page, score);
    }
    if cells > 0 {
        page.line("");
        parts(&mut page, score);
    }
    for (key, title) in [
        ("worst_cells", "worst cells, and what changed most there"),
        ("best_cells", "best cells"),
        ("not_run", "did not run"),
    ] {
        if let Some(text) = score.artifacts.get(key) {
            page.line("");
            page.line(title);
            text.lines().for_each(|line| page.wrapped("  ", line));
        }
    }
    page.text
}

fn end(score: &Score) -> String {
    let failed = score.guardrails.iter().filter(|g| !g.passed).count();
    let of = format!("{failed} of {} guardrails fail", score.guardrails.len());
    match score.status {
        Status::Passed => "every guardrail holds".to_owned(),
        Status::GuardrailFailed => of,
        Status::Rejected => format!("{of} in the cheap cells, so the rest did not run"),
        Status::NotCompiled => "the policy does not compile".to_owned(),
        Status::PolicyFailed => "the policy breaks its run".to_owned(),
        Status::TimeLimit => format!("PARTIAL: the time limit ended it; {of}"),
        Status::Interrupted => format!("PARTIAL: interrupted; {of}"),
    }
}

fn guardrails(page: &mut Page, score: &Score) {
    for guardrail in &score.guardrails {
        let verdict = if guardrail.passed { "holds" } else { "FAILS" };
        page.wrapped(&format!("{verdict}  {:<13} ", guardrail.name), &guardrail.about);
        guardrail.failures.iter().for_each(|failure| page.wrapped("         ", failure));
    }
}

/// Gains by workload and by machine, side by side with how many cells are behind each.
fn parts(page: &mut Page, score: &Score) {
    let of: [fn(&Cell) -> &str; 2] = [|c| &c.workload, |c| &c.machine];
    let rows = of.into_iter().flat_map(|of| {
        unique(score.cells.iter().map(of)).into_iter().map(move |name| {
            let cells = score.cells.iter().filter(|c| of(c) == name).count();
            let gain = score.metric(&format!("gain_{name}").replace('-', "_"));
            [name.to_owned(), cells.to_string(), percent(gain)]
        })
    });
    page.table(grid(["part", "cells", "gain"], rows, &[1, 2]));
}

fn percent(ratio: f64) -> String {
    format!("{:+.1}%", 100.0 * (ratio - 1.0))
}

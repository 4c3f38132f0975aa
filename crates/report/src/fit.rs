//! A fit, as text for a terminal.

use reveille_study::{Fit, Objective, Verdict};

use crate::table::{NARROWEST, Page, grid};

/// The fit for a terminal of `width` columns (less than 60 is taken as 60): the
/// objective before and after, every step, the constants, and the rows whose verdict
/// changed.
pub fn fit_table(fit: &Fit, width: usize) -> String {
    let mut page = Page { text: String::new(), width: width.max(NARROWEST) };
    page.wrapped("machine     ", &fit.machine);
    page.wrapped("studies     ", &fit.studies.join(", "));
    page.wrapped("before      ", &objective(&fit.before));
    page.wrapped("after       ", &objective(&fit.after));
    let end = match (fit.partial, fit.converged) {
        (true, _) => "PARTIAL RESULT: interrupted; the best values until then",
        (_, true) => "no move of one constant to another position gains anything",
        _ => "all rounds done; more may find more",
    };
    page.wrapped("end         ", end);
    steps(&mut page, fit);
    constants(&mut page, fit);
    rows(&mut page, fit);
    page.text
}

fn objective(o: &Objective) -> String {
    format!(
        "objective {:.4} = misfit {:.4} + penalty {:.4}; {} of {} counted rows hit",
        o.total, o.misfit, o.penalty, o.hits, o.counted
    )
}

fn steps(page: &mut Page, fit: &Fit) {
    page.line("");
    if fit.steps.is_empty() {
        page.line("no step: the shipped values are best");
        return;
    }
    let rows = fit.steps.iter().map(|step| {
        [
            step.round.to_string(),
            step.key.clone(),
            step.from.to_string(),
            step.to.to_string(),
            format!("{:.4}", step.objective),
            step.hits.to_string(),
        ]
    });
    page.line("steps");
    let heads = ["round", "constant", "from", "to", "objective", "hits"];
    page.table(grid(heads, rows, &[0, 2, 3, 4, 5]));
}

fn constants(page: &mut Page, fit: &Fit) {
    let rows = fit.constants.iter().map(|c| {
        let note = match (c.influence, c.value == c.shipped) {
            (false, _) => "without influence",
            (_, true) => "stays",
            _ => "moved",
        };
        [
            c.key.clone(),
            c.unit.to_owned(),
            format!("[{}, {}]", c.low, c.high),
            c.shipped.to_string(),
            c.value.to_string(),
            note.to_owned(),
        ]
    });
    page.line("");
    page.line("constants that may move");
    page.table(grid(["constant", "unit", "range", "shipped", "value", ""], rows, &[3, 4]));
}

fn rows(page: &mut Page, fit: &Fit) {
    let changed: Vec<_> = fit.rows.iter().filter(|r| r.verdict_before != r.verdict_after).collect();
    page.line("");
    if changed.is_empty() {
        page.line("no row changed its verdict");
        return;
    }
    let word = |verdict| if verdict == Verdict::Hit { "hit" } else { "MISS" };
    let ratio = |r: Option<f64>| r.map_or_else(|| "n/a".to_owned(), |r| format!("{r:.3}"));
    let rows = changed.into_iter().map(|r| {
        [
            r.study.clone(),
            r.case.clone(),
            r.load.to_string(),
            r.variant.clone(),
            r.metric.clone(),
            format!("{} {}", ratio(r.ratio_before), word(r.verdict_before)),
            format!("{} {}", ratio(r.ratio_after), word(r.verdict_after)),
        ]
    });
    page.line("rows that changed their verdict, with predicted by published");
    let heads = ["study", "case", "load", "variant", "metric", "before", "after"];
    page.table(grid(heads, rows, &[2, 5, 6]));
}

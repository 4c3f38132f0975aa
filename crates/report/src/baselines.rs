//! The page of baselines: published absolute figures beside the model's, case by case, with
//! a count. A Markdown page without a date, as the record of fidelity.

use reveille_study::{Case, Comparison, PublishedFigure, Row, Study, Verdict};

use crate::fidelity::{escape, line, open, ratio};
use crate::group::unique;
use crate::made::push;
use crate::number::Unit;
use crate::printed::{printed, sides};

const HEAD: &str = "\
# Baselines

Absolute figures that tables print for their baseline, beside what the model has for the same
machine, kernel and load. This page is written by `reveille study --baselines` and is not
edited by hand. What two tasks alone do counts as right within 20%, anything else within 30%.
The ratio is model by published: of a throughput, above 1 is too fast; of a latency, too slow.
Times of hackbench are turned into messages per second, means of clients into their sum.

";

/// Renders the page of `c`, which `study` came to.
pub fn baselines(study: &Study, c: &Comparison) -> String {
    let mut page = HEAD.to_owned();
    let rows = |case: &Case| -> Vec<&Row> {
        let held = |r: &&Row| r.case == case.name && r.verdict.is_some();
        c.rows.iter().filter(held).collect()
    };
    open(&mut page, &["workload", "one pair", "more", "all"]);
    let workloads = unique(study.cases.iter().map(|case| case.workload.as_str()));
    for workload in workloads.iter().copied().map(Some).chain([None]) {
        let mut counts = [[0; 2]; 2];
        for case in study.cases.iter().filter(|case| workload.is_none_or(|w| w == case.workload)) {
            for row in rows(case) {
                let of = &mut counts[usize::from(tasks(case, row.load) > 2)];
                of[0] += usize::from(row.verdict == Some(Verdict::Hit));
                of[1] += 1;
            }
        }
        let [pair, more] = counts;
        let count = |[within, all]: [usize; 2]| match all {
            0 => "-".to_owned(),
            all => format!("{within} of {all}"),
        };
        let all = count([pair[0] + more[0], pair[1] + more[1]]);
        line(&mut page, &[workload.unwrap_or("all").to_owned(), count(pair), count(more), all]);
    }
    for case in &study.cases {
        let machine = &study.machines[case.machine];
        push!(page, "\n## {}\n\n", escape(&case.name));
        let place =
            format!("{} on {}: {}.", case.base.base, machine.name, machine.topology.describe());
        push!(page, "{}\n\n", escape(&place));
        let rows = rows(case);
        let heads = ["load", "tasks per CPU", "metric", "printed", "is", "model", "ratio", ""];
        open(&mut page, &heads);
        for row in &rows {
            let share = tasks(case, row.load) as f64 / machine.topology.n_cpus() as f64;
            let [model, _] = sides(row);
            let within = row.verdict == Some(Verdict::Hit);
            let figures = [
                row.load.to_string(),
                format!("{share:.2}"),
                row.metric.to_string(),
                printed(row).unwrap_or_default().trim_start_matches("base ").to_owned(),
                own(case, row).unwrap_or_default(),
                model.join(", "),
                ratio(row),
                if within { "within" } else { "off" }.to_owned(),
            ];
            line(&mut page, &figures);
        }
        for source in unique(rows.iter().filter_map(|r| r.published_source.as_deref())) {
            push!(page, "\nSource: {}\n", escape(source));
        }
    }
    page
}

/// The published figure in the metric's unit.
fn own(case: &Case, row: &Row) -> Option<String> {
    let point = case.points.iter().find(|p| p.load == row.load)?;
    point.published.iter().find_map(|p| match p.figure {
        PublishedFigure::Side { own, .. } if case.metrics[p.metric].metric == row.metric => {
            Some(Unit::of(&row.metric).format(own))
        }
        _ => None,
    })
}

/// How many tasks a load is.
fn tasks(case: &Case, load: u64) -> usize {
    case.points.iter().find(|p| p.load == load).map_or(0, |p| p.program.working_tasks())
}

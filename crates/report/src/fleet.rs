//! The ranking of many containers, those at risk first: a table, a page and CSV of the same cells.

use reveille_place::counted;
use reveille_plan::{Container, Fleet};

use crate::export::{optional, written};
use crate::html::markup::{CLOSE_TABLE, escape, open_table, table_row};
use crate::html::page;
use crate::made::{Made, push};
use crate::number;
use crate::table::{NARROWEST, Page, printable, wrap};

/// Heads of the columns behind the name.
const HEADS: [&str; 8] =
    ["limit", "used", "peak", "throttled", "worst hour", "p99 now", "needs", "spare"];
/// Rows of the table in a terminal; the page and JSON have all.
const SHOWN: usize = 40;
/// Width of a column of figures, and of the gap before it.
const COLUMN: usize = 11;

const LEGEND: &str = "Figures are CPUs. throttled: share of all periods, and of those in the worst \
    hour. p99 now: latency under today's limit, with the range of 90%, inferred from counters \
    where there is no more. needs: the quota that meets the goals with head-room. spare: what the \
    limit has beyond that or, without goals, beyond the busiest step; at most, since averages hide \
    bursts. These are estimates: before setting a limit, `reveille record` the container and \
    `reveille plan` for it.";

/// A latency; work beyond the quota is never done.
fn time(ns: f64) -> String {
    if ns.is_infinite() { "endless".into() } else { number::time(ns) }
}

fn cpus(value: Option<f64>) -> String {
    value.map_or("-".into(), |cpus| format!("{cpus:.2}"))
}

fn percent(share: Option<f64>) -> String {
    share.map_or("-".into(), |share| format!("{:.1}%", 100.0 * share))
}

fn cells(container: &Container) -> [String; 8] {
    let p99 = container.p99_ns.map_or("-".into(), |p99| time(p99.median));
    let limit = match container.limits {
        None => "?".into(),
        Some(limits) => limits.cpus().map_or("none".into(), |cpus| format!("{cpus:.2}")),
    };
    [
        limit,
        cpus(Some(container.mean_cpus)),
        cpus(Some(container.peak_cpus)),
        percent(container.throttled_share),
        percent(container.worst_hour_share),
        p99,
        cpus(container.needed_cpus),
        cpus(container.spare_cpus),
    ]
}

/// Lines below a row: the range of its p99, missed goals, and what is not known.
fn remarks(container: &Container) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(p99) = container.p99_ns {
        remarks.push(format!("p99 {} to {}", time(p99.low), time(p99.high)));
    }
    if let Some(risk) = container.risk.filter(|risk| *risk > 0.0) {
        remarks.push(format!("risk of missing the goals {:.0}%", 100.0 * risk));
    }
    if let Some(ns) = container.unseen_ns.filter(|_| container.gone) {
        remarks.push(format!("last seen {:.1} h before the end", ns as f64 / 3.6e12));
    }
    remarks.extend(container.note.clone());
    remarks
}

/// The containers that are not gone.
fn running(fleet: &Fleet) -> impl Iterator<Item = &Container> {
    fleet.containers.iter().filter(|c| !c.gone)
}

/// How many of them have no counters of throttling that could tell what a limit does.
fn unknown(fleet: &Fleet) -> usize {
    running(fleet).filter(|c| c.throttling_unknown()).count()
}

/// How to get the counters, if a container lacks them.
fn how_to_count(fleet: &Fleet) -> Option<&'static str> {
    (unknown(fleet) > 0).then_some(
        "Throttling is unknown where it was not counted. Averages then offer no CPUs to give back: \
         a throttled container looks as if it needed no more than its limit. From Prometheus, query \
         container_cpu_cfs_periods_total and container_cpu_cfs_throttled_periods_total over the \
         same range; `reveille record --cgroup` counts by itself.",
    )
}

/// What all of them say together.
fn summary(fleet: &Fleet) -> String {
    let count = running(fleet).count();
    let throttled = running(fleet).filter(|c| c.throttled_share.is_some_and(|share| share > 0.0));
    let unknown = match unknown(fleet) {
        0 => String::new(),
        n => format!(", {n} whose throttling is unknown"),
    };
    // From 0: the sum of no floats is -0.
    let spare = running(fleet).filter_map(|c| c.spare_cpus).fold(0.0, |sum, cpus| sum + cpus);
    let mut text = format!(
        "{}, {} throttled{unknown}, at most {spare:.1} CPUs of limits to give back",
        counted(count, "container"),
        throttled.count()
    );
    if !fleet.goals.is_empty() {
        let at_risk = running(fleet).filter(|c| c.risk.is_some_and(|risk| risk > 0.5)).count();
        text += &format!("; {at_risk} probably miss {}", fleet.goals.join(", "));
    }
    let gone = fleet.containers.len() - count;
    if gone > 0 {
        text += &format!("; {gone} more, gone by the end, listed last");
    }
    if !fleet.failed.is_empty() {
        text += &format!("; {} could not be read", fleet.failed.len());
    }
    if !fleet.skipped.is_empty() {
        text += &format!("; {} skipped", counted(fleet.skipped.len(), "file"));
    }
    if fleet.missing > 0 {
        text += &format!("; PARTIAL RESULT: interrupted, {} recordings are missing", fleet.missing);
    }
    text
}

/// Renders a fleet for a terminal of `width` columns: each container has a line of figures under
/// its name.
pub fn fleet_table(fleet: &Fleet, width: usize) -> String {
    let mut page = Page { text: String::new(), width: width.max(NARROWEST) };
    page.wrapped("", &summary(fleet));
    if let Some(how) = how_to_count(fleet) {
        page.wrapped("", how);
    }
    page.line("");
    let line = |cells: [&str; 8], width: usize| {
        cells.iter().fold(String::new(), |line, cell| format!("{line}{cell:>width$}"))
    };
    // Names are long: figures stand below them where one line has no room for both.
    let names = page.width.saturating_sub(HEADS.len() * COLUMN);
    let longest = fleet.containers.iter().map(|c| printable(&c.name).chars().count()).max();
    let beside = longest.unwrap_or(0) <= names;
    let narrow = (page.width / HEADS.len()).min(COLUMN);
    match beside {
        true => page.line(&format!("{:names$}{}", "", line(HEADS, COLUMN))),
        false => page.line(&line(HEADS, narrow)),
    }
    page.line(&"-".repeat(page.width));
    for container in fleet.containers.iter().take(SHOWN) {
        let (name, cells) = (printable(&container.name), cells(container));
        let cells = cells.each_ref().map(String::as_str);
        match beside {
            true => page.line(&format!("{name:names$}{}", line(cells, COLUMN))),
            false => {
                page.line(&name);
                page.line(&line(cells, narrow));
            }
        }
        let remarks = remarks(container).join("; ");
        for line in wrap(&printable(&remarks), page.width - 4) {
            page.line(&format!("    {line}"));
        }
    }
    if fleet.containers.len() > SHOWN {
        let more = fleet.containers.len() - SHOWN;
        page.line(&format!("and {more} more: --html, --csv and --json have all"));
    }
    for failed in &fleet.failed {
        let text = format!("{}: {}; {}", failed.name, failed.mistake.problem, failed.mistake.help);
        page.wrapped("failed  ", &text);
    }
    for skipped in fleet.skipped.iter().take(SHOWN) {
        page.wrapped("skipped  ", &format!("{}: {}", skipped.name, skipped.why));
    }
    if fleet.skipped.len() > SHOWN {
        let more = fleet.skipped.len() - SHOWN;
        page.line(&format!("and {more} more: --html and --json have all"));
    }
    page.line("");
    page.wrapped("", LEGEND);
    page.text
}

/// Renders a fleet as a page of its own. It fetches nothing.
pub fn fleet_html(fleet: &Fleet, made: &Made) -> String {
    let title = "CPU limits of containers";
    let mut body = format!("<article>\n<h1>{title}</h1>\n");
    push!(body, "<p class=\"score\">{}.</p>\n", escape(&summary(fleet)));
    if let Some(how) = how_to_count(fleet) {
        push!(body, "<p>{}</p>\n", escape(how));
    }
    let mut heads = vec!["container"];
    heads.extend(HEADS);
    heads.push("remarks");
    open_table(&mut body, "Those at risk first", &heads);
    for container in &fleet.containers {
        let cells = cells(container).map(|cell| escape(&cell));
        let remarks = escape(&remarks(container).join("; "));
        table_row(&mut body, &escape(&container.name), cells, Some(&remarks));
    }
    body += CLOSE_TABLE;
    list(&mut body, "Failed", fleet.failed.iter().map(|f| (&f.name, &f.mistake.problem)));
    list(&mut body, "Skipped", fleet.skipped.iter().map(|s| (&s.name, &s.why)));
    push!(body, "<p class=\"quiet\">{}</p>\n</article>\n", escape(LEGEND));
    page(title, &body, None, made)
}

fn list<'a>(out: &mut String, head: &str, files: impl Iterator<Item = (&'a String, &'a String)>) {
    let line = |(name, why)| format!("<li>{}</li>\n", escape(&format!("{name}: {why}")));
    let lines: String = files.map(line).collect();
    if !lines.is_empty() {
        push!(out, "<h2>{head}</h2>\n<ul>\n{lines}</ul>\n");
    }
}

/// A figure in CSV: its name, and what it is of a container.
type Column = (&'static str, fn(&Container) -> Option<f64>);

const COLUMNS: [Column; 11] = [
    ("limit_cpus", |c| c.limits.and_then(|limits| limits.cpus())),
    ("mean_cpus", |c| Some(c.mean_cpus)),
    ("peak_cpus", |c| Some(c.peak_cpus)),
    ("throttled_share", |c| c.throttled_share),
    ("worst_hour_share", |c| c.worst_hour_share),
    ("p99_low_ms", |c| c.p99_ns.map(|p99| p99.low / 1e6)),
    ("p99_ms", |c| c.p99_ns.map(|p99| p99.median / 1e6)),
    ("p99_high_ms", |c| c.p99_ns.map(|p99| p99.high / 1e6)),
    ("risk", |c| c.risk),
    ("needed_cpus", |c| c.needed_cpus),
    ("spare_cpus", |c| c.spare_cpus),
];

/// Renders a fleet as CSV, a line per container, in CPUs, shares and milliseconds. What is not
/// known or not finite is an empty cell.
///
/// # Errors
/// Passes on an error of the CSV writer, which writes to memory.
pub fn fleet_csv(fleet: &Fleet) -> csv::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let names = COLUMNS.map(|(name, _)| name);
    writer.write_record(["container"].into_iter().chain(names).chain(["note"]))?;
    for c in &fleet.containers {
        let figures = COLUMNS.map(|(_, figure)| optional(figure(c)));
        let ends = [c.note.clone().unwrap_or_default()];
        writer.write_record([c.name.clone()].into_iter().chain(figures).chain(ends))?;
    }
    written(writer)
}

//! The comparison as text for a terminal. Plain characters without colours or
//! cursor movement, so that a pipe, a mail and a screen show the same bytes.

use std::borrow::Cow;

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};
use reveille_measure::HostContext;
use reveille_study::{Claim, Comparison, Row, RowKind, Unpredicted, Verdict};

use crate::explain;
use crate::group::{Group, groups};
use crate::number;
use crate::printed::{self, claim_predicted, claimed, host_facts, score, verdict_word};

/// Below this width the table of rows itself would have to break its cells.
pub(crate) const NARROWEST: usize = 60;

/// No frame: a rule under the header is all that a reader needs, and lines stay
/// easy to cut with text tools.
const PLAIN: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('-'));

/// Renders `c` for a terminal of `width` columns (less than 60 is taken as 60).
///
/// Rows form one block per case, metric and variant. With `explain`, each
/// block is followed by the numbers that explain it, baseline `->` candidate,
/// one column per load; a block that looks at the same runs as an earlier one
/// does not repeat them.
pub fn table(c: &Comparison, width: usize, explain: bool) -> String {
    let mut page = Page { text: String::new(), width: width.max(NARROWEST) };
    header(&mut page, c);
    for group in groups(c) {
        page.line("");
        heading(&mut page, c, &group);
        page.table(rows_table(&group));
        for source in group.sources() {
            page.wrapped("  published: ", source);
        }
        if explain && !group.explained_above {
            explanation(&mut page, &group);
        }
    }
    claims(&mut page, &c.claims);
    unpredicted(&mut page, &c.unpredicted);
    footer(&mut page, c);
    page.text
}

/// Text that grows line by line and never gets wider than `width`.
pub(crate) struct Page {
    pub(crate) text: String,
    pub(crate) width: usize,
}

impl Page {
    pub(crate) fn line(&mut self, line: &str) {
        // Cells keep their places with no-break spaces, which the layout does not
        // trim; text tools want ordinary ones.
        self.text.push_str(line.replace('\u{a0}', " ").trim_end());
        self.text.push('\n');
    }

    /// `text` after `label`, broken at spaces; further lines hang under the first.
    pub(crate) fn wrapped(&mut self, label: &str, text: &str) {
        let indent = label.chars().count();
        let room = self.width.saturating_sub(indent).max(20);
        for (i, part) in wrap(&printable(text), room).iter().enumerate() {
            let start = if i == 0 { label.to_string() } else { " ".repeat(indent) };
            self.line(&(start + part));
        }
    }

    /// Printed at both ends: the top scrolls away, the bottom may be cut by `head`.
    pub(crate) fn partial(&mut self, is_partial: bool, missing: &str) {
        if is_partial {
            self.line("");
            let text =
                format!("PARTIAL RESULT: the run was interrupted, {missing} are missing !!!");
            self.wrapped("!!! ", &text);
        }
    }

    pub(crate) fn table(&mut self, mut table: Table) {
        table
            .load_style(PLAIN)
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(u16::try_from(self.width).unwrap_or(u16::MAX));
        for (i, column) in table.column_iter_mut().enumerate() {
            // The gap between columns stands before each but the first.
            column.set_padding((if i == 0 { 2 } else { 1 }, 1));
        }
        for line in table.lines() {
            self.line(&line);
        }
    }
}

/// A table of `rows`; the columns `right` are aligned to the right.
pub(crate) fn grid<const N: usize>(
    heads: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
    right: &[usize],
) -> Table {
    let mut table = Table::new();
    table.set_header(heads).add_rows(rows);
    for i in right {
        if let Some(column) = table.column_mut(*i) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// What may have disturbed the figures.
pub(crate) fn warnings(page: &mut Page, host: &HostContext) {
    for warning in &host.warnings {
        page.wrapped("! ", warning);
    }
}

fn header(page: &mut Page, c: &Comparison) {
    page.wrapped("study       ", &c.study);
    page.wrapped("machine     ", &c.machine);
    page.wrapped("topology    ", &c.topology);
    match &c.host {
        Some(host) => {
            for (name, text) in host_facts(host) {
                page.wrapped(&format!("{:<12}", name.to_lowercase()), &text);
            }
            warnings(page, host);
        }
        None => page.wrapped("cost model  ", &c.cost_model),
    }
    if let Some(what) = &c.not_judged {
        page.wrapped("! ", what);
    }
    page.wrapped("base        ", &c.base);
    for machine in c.machines.iter().skip(1) {
        let text =
            format!("{}: {}; cost model {}", machine.name, machine.topology, machine.cost_model);
        page.wrapped("also on     ", &text);
    }
    page.partial(c.partial, "rows");
}

fn heading(page: &mut Page, c: &Comparison, group: &Group<'_>) {
    let row = group.first();
    let text = format!("{}, {}: {}", row.case, row.metric, printed::heading(c, row));
    page.wrapped("", &text);
}

fn rows_table(group: &Group<'_>) -> Table {
    let mut table = Table::new();
    // Figures as their source prints them take a column only where there are any.
    let as_printed = group.rows.iter().any(|row| printed::printed(row).is_some());
    // A study without variants has a baseline alone.
    let alone = group.first().variant.is_empty();
    let sides = ["baseline", "candidate", "change"];
    let mut heads = vec!["load"];
    heads.extend(&sides[..if alone { 1 } else { 3 }]);
    heads.extend(as_printed.then_some("printed"));
    let likely = group.shows_likely();
    heads.extend(if likely { &["likely"][..] } else { &["published", "verdict"] });
    let figures = heads.len() - usize::from(!likely);
    table.set_header(heads);
    for row in &group.rows {
        let [baseline, candidate] = printed::sides(row).map(|states| in_lines(&states));
        let mut cells = vec![row.load.to_string(), baseline];
        if !alone {
            cells.extend([candidate, change_with_star(row)]);
        }
        if as_printed {
            cells.push(printed::printed(row).map_or("-".into(), |text| printable(&text)));
        }
        if likely {
            cells.push(printed::likely(row).unwrap_or("-".into()));
        } else {
            cells.push(row.published_change_pct.map_or("-".into(), number::change));
            cells.push(row.verdict.map_or("-", verdict_word).into());
        }
        table.add_row(cells);
    }
    for column in table.column_iter_mut().take(figures) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// The star has a place of its own, so that signs and digits stay in line.
fn change_with_star(row: &Row) -> String {
    let line =
        |(change, mark): (String, Option<char>)| format!("{change}{}", mark.unwrap_or('\u{a0}'));
    in_lines(&printed::marked_changes(row).into_iter().map(line).collect::<Vec<_>>())
}

/// States stand one below the other, each unbroken.
fn in_lines(states: &[String]) -> String {
    states.join("\n").replace("or ", "or\u{a0}").replace(" (", "\u{a0}(")
}

/// The explaining numbers with one column per load, in as many tables as the
/// width asks for.
fn explanation(page: &mut Page, group: &Group<'_>) {
    let lines = explain::lines(group.rows.iter().copied());
    let label_width =
        lines.iter().map(|l| l.label.len() + if l.part { 2 } else { 0 }).max().unwrap_or(0) + 3;
    let cell = |line: &explain::Line, row: &Row| {
        let (before, after) = (&row.explain.baseline, &row.explain.candidate);
        match row.variant.as_str() {
            "" => (line.value)(before),
            _ => format!("{} -> {:>6}", (line.value)(before), (line.value)(after)),
        }
    };
    let columns = group.loads().into_iter().map(|row| {
        let cells: Vec<String> = lines.iter().map(|line| cell(line, row)).collect();
        let width = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
        (row.load.to_string(), cells, width + 2)
    });
    let mut tables: Vec<Vec<(String, Vec<String>)>> = Vec::new();
    let mut room = 0;
    for (load, cells, width) in columns {
        if width > room || tables.is_empty() {
            tables.push(Vec::new());
            room = page.width.saturating_sub(label_width);
        }
        room = room.saturating_sub(width);
        tables.last_mut().expect("one was pushed").push((load, cells));
    }
    for columns in tables {
        let mut table = Table::new();
        let loads = columns.iter().map(|(load, _)| load.clone());
        table.set_header(std::iter::once("at load".to_string()).chain(loads));
        for (n, line) in lines.iter().enumerate() {
            let label = format!("{}{}", if line.part { "\u{a0}\u{a0}" } else { "" }, line.label);
            let cells = columns.iter().map(|(_, cells)| cells[n].clone());
            table.add_row(std::iter::once(label).chain(cells));
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        page.line("");
        page.table(table);
    }
}

fn claims(page: &mut Page, claims: &[Claim]) {
    if claims.is_empty() {
        return;
    }
    page.line("");
    page.line("claims");
    for claim in claims {
        let text = format!(
            "{}: published {}, predicted {} ({})",
            claim.claim,
            claimed(claim),
            claim_predicted(claim),
            claim.source
        );
        page.wrapped(&format!("  {:4}  ", verdict_word(claim.verdict)), &text);
    }
}

fn unpredicted(page: &mut Page, unpredicted: &[Unpredicted]) {
    if unpredicted.is_empty() {
        return;
    }
    page.line("");
    page.line("published, but not predicted");
    for u in unpredicted {
        page.wrapped("  ", &format!("{}: {} ({})", u.what, u.figures, u.reason));
    }
}

fn footer(page: &mut Page, c: &Comparison) {
    page.line("");
    // Broken between its parts only.
    page.wrapped("", &score(c).replace(' ', "\u{a0}").replace(";\u{a0}", "; "));
    page.wrapped("", &legend(c));
    page.partial(c.partial, "rows");
}

/// Explains only the signs that the comparison uses.
fn legend(c: &Comparison) -> String {
    let mut parts = Vec::new();
    let with_p = || c.rows.iter().filter(|r| r.p_value.is_some());
    if c.rows.iter().any(|r| !r.variant.is_empty()) {
        parts.push("+ is better");
        parts.extend(with_p().next().map(|_| "* p<0.05 (Welch's t-test)"));
    }
    parts.extend(with_p().next().map(|_| "± standard deviation over repeats"));
    // A spread and a number of runs have no spread of their own.
    let of_means = |r: &&Row| !matches!(r.kind, RowKind::Std | RowKind::Runs);
    if c.rows.iter().filter(of_means).any(|r| r.p_value.is_none() && !r.too_few) {
        parts.push("without ±: fewer than two repeats");
    }
    let too_few = printed::too_few_of(c);
    parts.extend(too_few.as_deref());
    if c.rows.iter().any(Row::is_corrected) {
        parts.push(printed::CORRECTED);
    }
    if c.rows.iter().any(|r| r.identical) {
        parts.push(printed::IDENTICAL);
    }
    if c.rows.iter().any(|r| r.modes.is_some()) {
        parts.push(printed::STATES);
    }
    parts.extend(printed::skill_legend(&c.skill));
    if c.rows.iter().any(|r| r.verdict == Some(Verdict::Informative)) {
        parts.push(match c.not_judged {
            Some(_) => "info: published figure of another machine, too noisy to count, or a spread",
            None => "info: published figure too noisy to count, or a spread",
        });
    }
    let groups = groups(c);
    let likely = printed::likely_legend(&groups);
    if let Some(likely) = &likely {
        parts.push(likely);
        parts.extend(printed::misleads(&c.rows).then_some(printed::MISLED));
    }
    let unpublished = |g: &Group<'_>| g.rows.iter().any(|r| r.verdict.is_none());
    if groups.iter().any(|g| !g.shows_likely() && unpublished(g)) {
        parts.push("- nothing published");
    }
    parts.join("; ")
}

/// Names come from untrusted files, whose control characters could drive the terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|ch| if ch.is_control() { '?' } else { ch }).collect()
}

/// Breaks at spaces, runs of which collapse into one; cuts a word longer than `room`.
pub(crate) fn wrap(text: &str, room: usize) -> Vec<String> {
    let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
    let options = textwrap::Options::new(room)
        .wrap_algorithm(textwrap::WrapAlgorithm::FirstFit)
        .word_separator(textwrap::WordSeparator::AsciiSpace)
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::wrap(&words.join(" "), options).into_iter().map(Cow::into_owned).collect()
}

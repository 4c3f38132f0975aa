//! The plan as one screen of a terminal: the answer, a column per setting, what ranges mean,
//! warnings, and how to apply it. Colours repeat what words say; a pipe gets none.

use reveille_plan::Plan;

use super::rows::{Block, Cell, Column, Row, THREADS, Tone, blocks, by_thread, columns};
use super::words::{
    ABOUT_NEIGHBOURS, about_latency, answer, by_hand, cost, footnote, goals, observed, recorded,
    simulated_on, today,
};
use crate::table::{NARROWEST, Page, printable, wrap};

/// How closely columns stand.
#[derive(Clone, Copy)]
struct Density {
    /// Between two columns.
    gap: usize,
    /// Labels wider than this are broken.
    label: usize,
    /// Below this width of a cell, the table is cut into several.
    cell: usize,
}

/// Taken where it has room for all columns.
const ROOMY: Density = Density { gap: 2, label: 18, cell: 11 };
/// A range such as `(46.3…47.5)` just fits.
const DENSE: Density = Density { gap: 1, label: 15, cell: 11 };

/// Renders `plan` for a terminal of `width` columns (less than 60 is taken as 60).
///
/// With `colour`, bold, dim, green and red repeat what the text says anyway, by escape
/// sequences that only a terminal understands.
pub fn plan_table(plan: &Plan, width: usize, colour: bool) -> String {
    let mut page = Page { text: String::new(), width: width.max(NARROWEST) };
    page.wrapped("recording  ", &format!("{}, {}", plan.recording.name, recorded(plan)));
    page.wrapped("goals      ", &format!("{}, {}", goals(plan), simulated_on(plan)));
    if let Some(text) = about_latency(plan) {
        page.wrapped("latency    ", &text);
    }
    page.wrapped("today      ", &today(plan));
    if let Some(text) = observed(plan) {
        page.wrapped("recorded   ", &text);
    }
    let cost = cost(plan).map_or(String::new(), |cost| format!(" {cost}"));
    let ink = Ink { colour };
    let mut answer_page = Page { text: String::new(), width: page.width };
    answer_page.wrapped("answer     ", &format!("{}.{cost}", answer(plan)));
    for line in answer_page.text.lines() {
        page.text.push_str(&ink.paint("1", line));
        page.text.push('\n');
    }
    table(&mut page, plan, ink);
    if !columns(plan).is_empty() {
        page.line("");
        page.wrapped("", &footnote(plan));
        if !plan.neighbours.is_empty() {
            page.wrapped("", ABOUT_NEIGHBOURS);
        }
    }
    by_threads(&mut page, plan);
    if !plan.warnings.is_empty() {
        page.line("");
    }
    for warning in &plan.warnings {
        let from = page.text.len();
        page.wrapped("warning  ", warning);
        let painted = ink.paint("33", "warning");
        page.text.replace_range(from..from + "warning".len(), &painted);
    }
    if let Some(shown) = plan.to_apply() {
        page.line("");
        page.wrapped("cgroup v2  ", &by_hand(&shown.limits));
        page.wrapped(
            "or again   ",
            "with --apply cgroup:NAME (v1 and v2), which compares first and reads back, or --emit \
             cgroup1, k8s, oci, koordinator or systemd",
        );
    }
    page.text
}

/// Puts escape sequences around text, or does not.
#[derive(Clone, Copy)]
struct Ink {
    colour: bool,
}

impl Ink {
    fn paint(self, code: &str, text: &str) -> String {
        if self.colour && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// A line for each number of threads.
fn by_threads(page: &mut Page, plan: &Plan) {
    if plan.threads.is_empty() {
        return;
    }
    page.line("");
    page.wrapped("", "By the number of threads that may run at once (GOMAXPROCS, workers):");
    let line = |cells: [String; 5]| {
        let [threads, rest @ ..] = cells;
        rest.iter().fold(format!("{threads:>8}"), |line, cell| format!("{line}  {cell:>14}"))
    };
    page.line(&line(THREADS.map(str::to_owned)));
    for of in &plan.threads {
        match &of.problem {
            Some(problem) => page.wrapped(&format!("{:>8}  ", of.threads), problem),
            None => page.line(&line(by_thread(of))),
        }
    }
    let best = plan.model.cpus;
    page.wrapped("", &format!("The answer and the table above are for {best} threads."));
}

type Piece = (String, &'static str);

const PLAIN: &str = "0";
const BOLD: &str = "1";
const DIM: &str = "2";

/// The table, in as many parts as the width asks for.
fn table(page: &mut Page, plan: &Plan, ink: Ink) {
    let (columns, blocks) = (columns(plan), blocks(plan));
    if columns.is_empty() {
        return;
    }
    let longest =
        blocks.iter().flat_map(|b| &b.rows).map(|r| r.indent() + r.label.chars().count()).max();
    let label = |density: Density| longest.unwrap_or(0).min(density.label) + density.gap;
    let fit = |density: Density| (page.width - label(density)) / (density.cell + density.gap);
    let density = if fit(ROOMY) >= columns.len() { ROOMY } else { DENSE };
    let (label, gap, at_once) = (label(density), density.gap, fit(density).max(1));
    let room = (page.width - label) / columns.len().min(at_once) - gap;
    let room = room.min(widest(&columns, &blocks));
    for first in (0..columns.len()).step_by(at_once) {
        let part = first..columns.len().min(first + at_once);
        let grid = Grid { label, gap, room, ink };
        page.line("");
        let heads = columns[part.clone()].iter().map(|c| pieces(&[(c.name.into(), BOLD)], room));
        grid.lines(page, ("", 0), &heads.collect::<Vec<_>>());
        for (number, block) in blocks.iter().enumerate() {
            if let Some(title) = &block.title {
                page.line("");
                let from = page.text.len();
                page.wrapped("", title);
                let painted = ink.paint(BOLD, page.text[from..].trim_end());
                page.text.replace_range(from.., &(painted + "\n"));
            } else if number > 0 {
                page.line("");
            }
            for row in &block.rows {
                grid.row(page, row, &row.cells[part.clone()]);
            }
        }
    }
}

/// Columns are no wider than their widest cell asks for: a wide terminal makes lines fewer,
/// not sparser.
fn widest(columns: &[Column<'_>], blocks: &[Block]) -> usize {
    let cells = blocks.iter().flat_map(|block| &block.rows).flat_map(|row| &row.cells);
    let heads = columns.iter().map(|column| column.name.len());
    cells.map(|cell| chars(&whole(cell))).chain(heads).max().unwrap_or(0)
}

fn chars(pieces: &[Piece]) -> usize {
    let sum: usize = pieces.iter().map(|(text, _)| text.chars().count()).sum();
    sum + pieces.len().saturating_sub(1)
}

/// The value with its range, and its interval.
fn parts(cell: &Cell) -> [Vec<Piece>; 2] {
    let tone = match cell.tone {
        Tone::Plain => PLAIN,
        Tone::Good => "32",
        Tone::Bad => "31",
    };
    let mut first = vec![(cell.value.clone(), tone)];
    first.extend(cell.range.clone().map(|range| (range, DIM)));
    [first, cell.interval.clone().map(|interval| (interval, DIM)).into_iter().collect()]
}

fn whole(cell: &Cell) -> Vec<Piece> {
    parts(cell).concat()
}

/// Pieces as lines of at most `room` columns, broken between pieces and at spaces.
fn pieces(of: &[Piece], room: usize) -> Vec<Vec<Piece>> {
    let mut lines: Vec<Vec<Piece>> = Vec::new();
    for (text, code) in of {
        match lines.last_mut() {
            Some(line) if chars(line) + 1 + text.chars().count() <= room => {
                line.push((text.clone(), code));
            }
            _ => lines.extend(wrap(text, room).into_iter().map(|part| vec![(part, *code)])),
        }
    }
    lines
}

struct Grid {
    /// Columns for labels, the gap included.
    label: usize,
    /// Between two columns.
    gap: usize,
    /// Columns for a cell, without the gap.
    room: usize,
    ink: Ink,
}

impl Grid {
    /// All cells of a row are broken at the same places: all in one line, or the interval in
    /// the next, or each part in its own.
    fn row(&self, page: &mut Page, row: &Row, cells: &[Cell]) {
        let fits = |of: &dyn Fn(&Cell) -> usize| cells.iter().all(|cell| of(cell) <= self.room);
        let one = fits(&|cell| chars(&whole(cell)));
        let two = fits(&|cell| parts(cell).iter().map(|part| chars(part)).max().unwrap_or(0));
        let broken = |cell: &Cell| -> Vec<Vec<Piece>> {
            if one {
                return vec![whole(cell)];
            }
            let [first, second] = parts(cell);
            let first =
                if two { vec![first] } else { first.into_iter().map(|p| vec![p]).collect() };
            let lines = first.into_iter().chain((!second.is_empty()).then_some(second));
            lines.flat_map(|line| pieces(&line, self.room)).collect()
        };
        self.lines(page, (&row.label, row.indent()), &cells.iter().map(broken).collect::<Vec<_>>());
    }

    /// A row of cells that have several lines each.
    fn lines(&self, page: &mut Page, (label, indent): (&str, usize), cells: &[Vec<Vec<Piece>>]) {
        let labels = wrap(&printable(label), self.label - self.gap - indent);
        let count = cells.iter().map(Vec::len).chain([labels.len()]).max().unwrap_or(0);
        for number in 0..count {
            let text = labels.get(number).map_or("", String::as_str);
            let mut line = format!("{:indent$}{text}", "");
            // What is written so far, painted and as columns.
            let mut at = line.chars().count();
            for (column, cell) in cells.iter().enumerate() {
                let Some(pieces) = cell.get(number).filter(|pieces| !pieces.is_empty()) else {
                    continue;
                };
                let from = self.label + column * (self.room + self.gap);
                line.push_str(&" ".repeat(from.saturating_sub(at)));
                let painted = pieces.iter().map(|(text, code)| match *code {
                    PLAIN => text.clone(),
                    code => self.ink.paint(code, text),
                });
                line.push_str(&painted.collect::<Vec<_>>().join(" "));
                at = from.max(at) + chars(pieces);
            }
            page.line(&line);
        }
    }
}

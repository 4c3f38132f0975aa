//! The table of a plan: a column per setting, a row per figure. The terminal and the page
//! differ only in how they draw it.

use reveille_plan::{
    Brief, ClosedForm, Figures, Goal, Interval, NeighbourEffect, OfThreads, Pair, Plan, Range,
    Shown, Subject, quantile_name,
};

use super::words::{change, cpus, files, growth, ms, of_draws, percent, setting, with_ms};

/// What a value means for the reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tone {
    #[default]
    Plain,
    Good,
    Bad,
}

/// A value, its range over phases and its interval over draws, each as it is written.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    pub(super) value: String,
    pub(super) range: Option<String>,
    pub(super) interval: Option<String>,
    pub(super) tone: Tone,
}

pub(super) struct Row {
    pub(super) label: String,
    /// Is it a part of the row above?
    pub(super) part: bool,
    pub(super) cells: Vec<Cell>,
}

impl Row {
    /// Of its label in a terminal.
    pub(super) fn indent(&self) -> usize {
        if self.part { 2 } else { 0 }
    }
}

pub(super) struct Block {
    pub(super) title: Option<String>,
    pub(super) rows: Vec<Row>,
}

#[derive(Clone, Copy)]
pub(super) struct Column<'a> {
    pub(super) name: &'static str,
    pub(super) shown: &'a Shown,
}

pub(super) const THREADS: [&str; 5] =
    ["threads", "p99 today", "needs", "p99 then", "throttled then"];

/// Results for one number of threads, as short cells.
pub(super) fn by_thread(of: &OfThreads) -> [String; 5] {
    let dash = || "-".to_owned();
    let p99 = |brief: Option<Brief>| brief.map_or_else(dash, |brief| with_ms(brief.p99_ns));
    let needs = of.recommended.map_or_else(dash, |brief| match brief.limits.cpus() {
        Some(reserved) => format!("{} CPUs", cpus(reserved)),
        None => "no quota".into(),
    });
    let throttled = |brief: Brief| format!("{}%", percent(brief.throttled_share));
    [
        of.threads.to_string(),
        p99(of.today),
        needs,
        p99(of.recommended),
        of.recommended.map_or_else(dash, throttled),
    ]
}

/// Today's, the recommended and the alternative settings that there are.
pub(super) fn columns(plan: &Plan) -> Vec<Column<'_>> {
    let today = plan.today.iter().map(|shown| Column { name: "today", shown });
    let best = plan.recommended.iter().map(|shown| Column { name: "recommended", shown });
    let others =
        plan.alternatives.iter().map(|a| Column { name: change(a.change), shown: &a.shown });
    today.chain(best).chain(others).collect()
}

pub(super) fn blocks(plan: &Plan) -> Vec<Block> {
    let columns = columns(plan);
    if columns.is_empty() {
        return Vec::new();
    }
    let mut blocks = vec![
        Block { title: None, rows: settings(&columns) },
        Block { title: None, rows: effects(plan, &columns) },
    ];
    for (number, given) in plan.neighbours.iter().enumerate() {
        let limits = given.limits.as_ref().map_or("no quota".into(), setting);
        let mean = cpus(given.recording.mean_cpus);
        let effect = columns.iter().find_map(|column| column.shown.neighbours.get(number));
        let alone = effect.map_or(String::new(), |effect| {
            format!(", p99 {} without this group", with_ms(effect.p99_without_ns.median))
        });
        let name = &given.recording.name;
        let title = format!("neighbour {name}: {limits}, {mean} CPUs on average{alone}");
        blocks.push(Block { title: Some(title), rows: neighbour(plan, &columns, number) });
    }
    if columns.iter().any(|column| column.shown.closed_form.is_some()) {
        let title = Some("all groups, as a fluid".to_owned());
        blocks.push(Block { title, rows: closed_form(plan, &columns) });
    }
    blocks
}

fn plain(value: String) -> Cell {
    Cell { value, ..Cell::default() }
}

/// A row of values without ranges.
fn row(label: &str, columns: &[Column<'_>], cell: impl Fn(&Shown) -> Cell) -> Row {
    Row { label: label.into(), part: false, cells: columns.iter().map(|c| cell(c.shown)).collect() }
}

fn settings(columns: &[Column<'_>]) -> Vec<Row> {
    let in_ms = |ns: u64| (ns as f64 / 1e6).to_string();
    let with_quota = |text: &dyn Fn(&Shown) -> String, shown: &Shown| {
        plain(if shown.limits.quota_ns.is_some() { text(shown) } else { "-".into() })
    };
    vec![
        row("quota/period ms", columns, |shown| {
            plain(match shown.limits.quota_ns {
                Some(quota) => format!("{}/{}", in_ms(quota), in_ms(shown.limits.period_ns)),
                None => "no quota".into(),
            })
        }),
        row("burst ms", columns, |shown| with_quota(&|s| in_ms(s.limits.burst_ns), shown)),
        row("cpu.max", columns, |shown| plain(files(&shown.limits)[0].clone())),
        row("cpu.max.burst", columns, |shown| with_quota(&|s| files(&s.limits)[1].clone(), shown)),
        row("CPUs reserved", columns, |shown| {
            plain(shown.reserved_cpus.map_or("all".into(), cpus))
        }),
    ]
}

/// A figure over phases and draws.
fn figure(range: Range, interval: Option<Interval>, text: impl Fn(f64) -> String) -> Cell {
    let value = text(range.median);
    let (min, max) = (text(range.min), text(range.max));
    let spread = (min != value || max != value).then(|| format!("({min}…{max})"));
    let interval = interval.and_then(|of| {
        let (low, high) = (text(of.low), text(of.high));
        // A figure that is the same everywhere needs no more words.
        let same = spread.is_none() && low == value && high == value;
        (!same).then(|| format!("[{low}…{high}]"))
    });
    Cell { value, range: spread, interval, tone: Tone::Plain }
}

/// The name of a goal's subject in this table, and its limit as its row writes it.
fn goal_of(plan: &Plan, subject: Subject) -> Option<&Goal> {
    plan.goals.iter().find(|goal| goal.subject == subject)
}

fn effects(plan: &Plan, columns: &[Column<'_>]) -> Vec<Row> {
    let share = |shown: &Shown| Cell {
        value: of_draws(shown.holds_share),
        tone: if shown.meets_goals { Tone::Good } else { Tone::Bad },
        ..Cell::default()
    };
    let mut rows = vec![row("goals met", columns, share)];
    rows.push(row("work may grow", columns, |shown| plain(growth(shown.growth))));
    type Of = (fn(&Figures<Range>) -> Range, fn(&Figures<Interval>) -> Interval);
    let shares: [(&str, Subject, Of); 2] = [
        ("throttled %", Subject::Throttled, (|f| f.throttled_share, |f| f.throttled_share)),
        ("time lost %", Subject::Lost, (|f| f.lost_share, |f| f.lost_share)),
    ];
    let times: [(&str, Subject, Of); 3] = [
        ("p50 ms", Subject::Latency(0.5), (|f| f.p50_ns, |f| f.p50_ns)),
        ("p99 ms", Subject::Latency(0.99), (|f| f.p99_ns, |f| f.p99_ns)),
        ("max ms", Subject::Latency(1.0), (|f| f.max_ns, |f| f.max_ns)),
    ];
    let mut add = |label: &str, subject, (of, within): Of, text: fn(f64) -> String| {
        let goal = goal_of(plan, subject);
        let label = match goal {
            Some(goal) => format!("{label} {}{}", sign(goal), limit(goal, text)),
            None => label.to_owned(),
        };
        rows.push(row(&label, columns, |shown| {
            let mut cell = figure(of(&shown.effect), Some(within(&shown.intervals)), text);
            if let Some(goal) = goal {
                cell.tone = held(goal, of(&shown.effect).median);
            }
            cell
        }));
    };
    for (label, subject, of) in shares {
        add(label, subject, of, percent);
    }
    for (label, subject, of) in times {
        add(label, subject, of, ms);
    }
    rows.extend(other_goals(plan, columns));
    let worst = |shown: &Shown| match &shown.worst_case {
        Some(case) => Cell {
            value: ms(case.simulated_ns),
            range: case.bound_ns.map(|bound| format!("≤ {}", ms(bound as f64))),
            ..Cell::default()
        },
        None => plain("-".into()),
    };
    rows.push(row("worst case ms", columns, worst));
    rows
}

fn sign(goal: &Goal) -> char {
    if goal.strict { '<' } else { '≤' }
}

/// A limit is given by a person: no digit is added.
fn limit(goal: &Goal, text: fn(f64) -> String) -> String {
    let written = text(goal.limit);
    match written.strip_prefix('<') {
        Some(_) => written,
        None if written.contains('.') => {
            written.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        None => written,
    }
}

fn held(goal: &Goal, figure: f64) -> Tone {
    match figure {
        unknown if unknown.is_nan() => Tone::Plain,
        figure if goal.holds(figure) => Tone::Good,
        _ => Tone::Bad,
    }
}

/// Goals about what has no row of its own, such as `p99.9` and `tardiness`.
fn other_goals(plan: &Plan, columns: &[Column<'_>]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (number, goal) in plan.goals.iter().enumerate() {
        let label = match goal.subject {
            Subject::Latency(quantile) if ![0.5, 0.99, 1.0].contains(&quantile) => {
                format!("{} ms {}{}", quantile_name(quantile), sign(goal), limit(goal, ms))
            }
            Subject::Tardiness => format!("tardiness ms {}{}", sign(goal), limit(goal, ms)),
            _ => continue,
        };
        rows.push(row(&label, columns, |shown| {
            let range = shown.effect.goals.get(number).copied().unwrap_or_default();
            let interval = shown.intervals.goals.get(number).copied();
            Cell { tone: held(goal, range.median), ..figure(range, interval, ms) }
        }));
    }
    rows
}

/// What the settings do to a neighbour.
fn neighbour(plan: &Plan, columns: &[Column<'_>], number: usize) -> Vec<Row> {
    type Of = fn(&NeighbourEffect) -> Range;
    type Text = fn(f64) -> String;
    let figures: [(&str, bool, Of, Text); 6] = [
        ("P(miss) %", false, |n| n.missed_share, percent),
        ("by burst", true, |n| n.missed_by_burst_share, percent),
        ("late, mean ms", false, |n| n.mean_tardiness_ns, ms),
        ("late, worst ms", false, |n| n.worst_tardiness_ns, ms),
        ("by burst", true, |n| n.worst_tardiness_by_burst_ns, ms),
        ("its p99 ms", false, |n| n.p99_ns, ms),
    ];
    let any_burst = plan_has_burst(columns);
    let mut rows = Vec::new();
    for (label, by_burst, of, text) in figures {
        if by_burst && !any_burst {
            continue;
        }
        let row = row(label, columns, |shown| match shown.neighbours.get(number) {
            Some(_) if by_burst && shown.limits.burst_ns == 0 => plain("-".into()),
            Some(effect) => figure(of(effect), None, text),
            None => plain("-".into()),
        });
        rows.push(Row { part: by_burst, ..row });
    }
    rows.extend(pairs(plan, columns, &plan.neighbours[number].recording.name));
    rows
}

/// Only a burst can be to blame for what a burst does.
fn plan_has_burst(columns: &[Column<'_>]) -> bool {
    columns.iter().any(|column| column.shown.limits.burst_ns > 0)
}

fn closed_form(plan: &Plan, columns: &[Column<'_>]) -> Vec<Row> {
    let of = |shown: &Shown, text: &dyn Fn(&ClosedForm) -> Cell| {
        shown.closed_form.as_ref().map_or_else(|| plain("-".into()), text)
    };
    let total = plan.model.cpus;
    vec![
        row(&format!("quotas, of {total} CPUs"), columns, |shown| {
            of(shown, &|form| plain(cpus(form.reserved_cpus)))
        }),
        row("overcommitted %", columns, |shown| {
            of(shown, &|form| plain(percent(form.overcommitted_share)))
        }),
        row("owed, worst ms", columns, |shown| {
            of(shown, &|form| {
                let bound = form.tardiness_bound_ns.map(|bound| format!("≤ {}", ms(bound as f64)));
                let tone = if bound.is_some() { Tone::Plain } else { Tone::Bad };
                let bound = bound.or(Some("no bound".into()));
                Cell { value: ms(form.worst_owed_ns as f64), range: bound, interval: None, tone }
            })
        }),
    ]
}

/// This group and a neighbour, without a simulation; what neighbours are to each other does not
/// depend on this group's setting.
fn pairs(plan: &Plan, columns: &[Column<'_>], name: &str) -> Vec<Row> {
    let own = &plan.recording.name;
    let pair = |shown: &Shown, text: fn(&Pair) -> (f64, f64)| {
        let mut pairs = shown.closed_form.iter().flat_map(|form| &form.pairs);
        let pair = pairs.find(|pair| &pair.groups[0] == own && pair.groups[1] == name);
        pair.map_or_else(
            || plain("-".into()),
            |pair| {
                let (independent, seen) = text(pair);
                let range = Some(format!("seen {}", percent(seen)));
                Cell { value: percent(independent), range, ..Cell::default() }
            },
        )
    };
    let rows = vec![
        row("both within %", columns, |s| pair(s, |p| (p.both_within, p.both_within_seen))),
        row("both beyond %", columns, |s| pair(s, |p| (p.both_beyond, p.both_beyond_seen))),
    ];
    // A group without a quota is never beyond it.
    let any = |row: &Row| row.cells.iter().any(|cell| cell.range.is_some());
    rows.into_iter().filter(any).collect()
}

//! Reads `[[task]]`: how many tasks of a role an instance has, whose address space
//! they live in, and the operations that they repeat.

use std::ops::Range;

use reveille_place::Mistake;

use crate::amount::{Amount, Kind};
use crate::channels::{choice, meanings};
use crate::error::Result;
use crate::names::Names;
use crate::operation::{Code, OpSource, PROGRAM, amount, flatten, program};
use crate::program::FOR_EVER;
use crate::table::{Entry, Table};

/// One `[[task]]` of a file.
#[derive(Clone, Debug)]
pub(crate) struct TaskSource {
    pub(crate) name: String,
    pub(crate) span: Range<usize>,
    pub(crate) count: Amount,
    pub(crate) process: ProcessSource,
    pub(crate) ops: Vec<OpSource>,
}

/// Which tasks share an address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Process {
    /// One of its own.
    Own,
    /// Shared by all such tasks of the instance.
    Instance,
    /// Shared by all such tasks of the run.
    Run,
}

/// A [`Process`], fixed or selected by a parameter: its index and its choices.
#[derive(Clone, Debug)]
pub(crate) enum ProcessSource {
    Fixed(Process),
    Param(usize, Vec<Process>),
}

impl ProcessSource {
    pub(crate) fn param(&self) -> Option<usize> {
        match self {
            ProcessSource::Fixed(_) => None,
            ProcessSource::Param(param, _) => Some(*param),
        }
    }

    pub(crate) fn value(&self, values: &[u64]) -> Process {
        match self {
            ProcessSource::Fixed(process) => *process,
            ProcessSource::Param(param, all) => all[values[*param] as usize],
        }
    }
}

const TASK: &str = "[{ name = \"worker\", program = [{ run = \"1ms\" }] }]";
/// Names of all tasks, which operations of any of them may use.
pub(crate) fn role_names(top: &Table) -> Result<Vec<String>> {
    let entry = top.require("task", TASK)?;
    let mut names: Vec<String> = Vec::new();
    for item in entry.array(TASK)? {
        let name = item.table(TASK)?.require("name", "\"worker\"")?;
        let text = name.text("\"worker\"")?;
        if names.iter().any(|n| n == text) {
            let problem = format!("`{text}` names two tasks");
            return Err(name.error(Mistake::new(problem, "give each [[task]] its own name")));
        }
        names.push(text.to_owned());
    }
    if names.is_empty() {
        return Err(entry.error(Mistake::new("is empty", "a workload has at least one [[task]]")));
    }
    entry.few(names.len())?;
    Ok(names)
}

pub(crate) fn read(top: &Table, names: &Names) -> Result<Vec<TaskSource>> {
    let items = top.require("task", TASK)?.array(TASK)?;
    items.into_iter().zip(names.roles).map(|(item, name)| task(item, name, names)).collect()
}

fn task(item: Entry, name: &str, names: &Names) -> Result<TaskSource> {
    let table = item.table(TASK)?;
    table.only("a task", &["name", "count", "process", "setup", "release", "before", "program"])?;
    let count = match table.get("count") {
        Some(count) => amount(count, Kind::Count, names)?,
        None => Amount::Fixed(1),
    };
    let process = match table.get("process") {
        Some(entry) => process(entry, names)?,
        None => ProcessSource::Fixed(Process::Own),
    };
    let ops = ops(&table, names)?;
    let span = table.get("name").map_or(item.span(), |name| name.span());
    Ok(TaskSource { name: name.to_owned(), span, count, process, ops })
}

/// What stands there, to be done once.
fn once(table: &Table, key: &str, names: &Names) -> Result<Vec<OpSource>> {
    let Some(entry) = table.get(key) else { return Ok(Vec::new()) };
    let ops = program(entry, names, 0)?;
    if flatten(&ops, 1).iter().any(|op| matches!(op.code, Code::Respawn)) {
        let help = format!("respawn in `program`: each successor does what stands in `{key}`");
        return Err(entry.error(Mistake::new("would be done again and again", help)));
    }
    Ok(ops)
}

/// `program`, which is repeated, behind what the task does once: what stands in `setup`, it awaits
/// its `release`, and does what stands in `before`.
fn ops(table: &Table, names: &Names) -> Result<Vec<OpSource>> {
    let repeated = table.require("program", PROGRAM)?;
    let mut first = once(table, "setup", names)?;
    if let Some(entry) = table.get("release") {
        const WAYS: [(&str, bool); 2] = [("together", false), ("together-sync", true)];
        let text = entry.text("\"together\"")?;
        let way = WAYS.iter().find(|(name, _)| *name == text).ok_or_else(|| {
            entry.error(Mistake::unknown("way to release", text, WAYS.iter().map(|w| w.0)))
        })?;
        let code = Code::AwaitRelease { sync: way.1 };
        first.push(OpSource { key: "release".into(), span: entry.span(), code });
    }
    first.extend(once(table, "before", names)?);
    if first.is_empty() {
        return program(repeated, names, 0);
    }
    let times = Amount::Fixed(FOR_EVER.into());
    let code = Code::Repeat { times, ops: program(repeated, names, 1)? };
    first.push(OpSource { key: "program".into(), span: repeated.span(), code });
    Ok(first)
}

fn process(entry: Entry, names: &Names) -> Result<ProcessSource> {
    const KINDS: [(&str, Process); 3] =
        [("own", Process::Own), ("instance", Process::Instance), ("run", Process::Run)];
    let text = entry.text("\"instance\"")?;
    let known = |text: &str| KINDS.iter().find(|(name, _)| *name == text).map(|(_, p)| *p);
    if let Some((param, choices)) = choice(entry, text, names.params)? {
        let all = meanings(entry, "kind of process", choices, known)?;
        return Ok(ProcessSource::Param(param, all));
    }
    known(text).map(ProcessSource::Fixed).ok_or_else(|| {
        entry.error(Mistake::unknown("kind of process", text, KINDS.iter().map(|k| k.0)))
    })
}

//! Reads `[[task]]`: how many tasks of a role an instance has, whose address space
//! they live in, and the operations that they repeat.

use std::ops::Range;

use crate::WorkloadError;
use crate::amount::{Amount, Kind};
use crate::error::Mistake;
use crate::file::{Names, few};
use crate::table::{Entry, Table};

/// One `[[task]]` of a file.
#[derive(Clone, Debug)]
pub(crate) struct TaskSource {
    pub(crate) name: String,
    pub(crate) span: Range<usize>,
    pub(crate) count: Amount,
    pub(crate) process: Process,
    pub(crate) ops: Vec<OpSource>,
}

/// With whom tasks share an address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Process {
    /// With nobody.
    Own,
    /// With all such tasks of their instance.
    Instance,
    /// With all such tasks of the run.
    Run,
}

/// An operation and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct OpSource {
    pub(crate) key: &'static str,
    pub(crate) span: Range<usize>,
    pub(crate) code: Code,
}

/// An operation whose amounts may depend on parameters. Channels, lists and roles
/// are indices into the file's.
#[derive(Clone, Debug)]
pub(crate) enum Code {
    Run(Amount),
    Spin(Amount),
    Send { channel: usize, bytes: Amount },
    Recv { channel: usize },
    Sleep { time: Amount, jitter: Amount },
    Wait { timeout: Option<Amount>, jitter: Amount },
    Post { role: usize },
    Join { list: usize },
    WakeList { list: usize },
    Record,
    Count(Amount),
}

impl Code {
    /// The amounts in it.
    pub(crate) fn amounts(&self) -> Vec<&Amount> {
        match self {
            Code::Run(a) | Code::Spin(a) | Code::Count(a) | Code::Send { bytes: a, .. } => vec![a],
            Code::Sleep { time, jitter } => vec![time, jitter],
            Code::Wait { timeout, jitter } => timeout.iter().chain([jitter]).collect(),
            _ => Vec::new(),
        }
    }
}

const TASK: &str = "[{ name = \"worker\", program = [{ run = \"1ms\" }] }]";
const OPERATIONS: [&str; 11] = [
    "run",
    "spin",
    "send",
    "recv",
    "sleep",
    "wait",
    "post",
    "join",
    "wake_list",
    "record",
    "count",
];
const MODIFIERS: [&str; 2] = ["bytes", "jitter"];

/// Names of all tasks, which operations of any of them may use.
pub(crate) fn role_names(top: &Table) -> Result<Vec<String>, WorkloadError> {
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
    few(entry, names.len())?;
    Ok(names)
}

/// All tasks.
pub(crate) fn read(top: &Table, names: &Names) -> Result<Vec<TaskSource>, WorkloadError> {
    let items = top.require("task", TASK)?.array(TASK)?;
    items.into_iter().zip(names.roles).map(|(item, name)| task(item, name, names)).collect()
}

fn task(item: Entry, name: &str, names: &Names) -> Result<TaskSource, WorkloadError> {
    let table = item.table(TASK)?;
    table.only("a task", &["name", "count", "process", "program"])?;
    let count = match table.get("count") {
        Some(count) => amount(count, Kind::Count, names)?,
        None => Amount::fixed(1),
    };
    let process = table.get("process").map(process).transpose()?.unwrap_or(Process::Own);
    let program = table.require("program", "[{ run = \"1ms\" }]")?;
    let mut ops = Vec::new();
    for op in program.array("[{ run = \"1ms\" }]")? {
        ops.push(operation(op, names)?);
    }
    if ops.is_empty() {
        return Err(program.error(Mistake::new("is empty", "give the task something to do")));
    }
    let span = table.get("name").map_or(item.span(), |name| name.span());
    Ok(TaskSource { name: name.to_owned(), span, count, process, ops })
}

fn process(entry: Entry) -> Result<Process, WorkloadError> {
    const KINDS: [(&str, Process); 3] =
        [("own", Process::Own), ("instance", Process::Instance), ("run", Process::Run)];
    let text = entry.text("\"instance\"")?;
    let found = KINDS.iter().find(|(name, _)| *name == text).map(|(_, process)| *process);
    found.ok_or_else(|| {
        entry.error(Mistake::unknown("kind of process", text, KINDS.iter().map(|k| k.0)))
    })
}

/// A table with one operation and what modifies it.
fn operation(item: Entry, names: &Names) -> Result<OpSource, WorkloadError> {
    let table = item.table("[{ run = \"1ms\" }]")?;
    let known: Vec<&'static str> = OPERATIONS.into_iter().chain(MODIFIERS).collect();
    table.only("an operation", &known)?;
    let mut found = OPERATIONS.into_iter().filter_map(|key| Some((key, table.get(key)?)));
    let Some((key, value)) = found.next() else {
        let fix = format!("name one of {}", OPERATIONS.join(", "));
        return Err(item.error(Mistake::new("an operation is missing", fix)));
    };
    if let Some((second, _)) = found.next() {
        let problem = format!("`{key}` and `{second}` stand in one table");
        return Err(item.error(Mistake::new(problem, "write one operation per table")));
    }
    let modifier = |name: &str, kind: Kind, default: u64, of: &str| match table.get(name) {
        None => Ok(Amount::fixed(default)),
        Some(entry) if of.split(' ').any(|k| k == key) => amount(entry, kind, names),
        Some(entry) => {
            let mistake = Mistake::new(
                format!("does not belong to `{key}`"),
                format!("leave it out, or use it with {}", of.replace(' ', " or ")),
            );
            Err(entry.error(mistake))
        }
    };
    let bytes = modifier("bytes", Kind::Count, 1, "send")?;
    let jitter = modifier("jitter", Kind::Time, 0, "sleep wait")?;
    let code = code(key, value, bytes, jitter, names)?;
    Ok(OpSource { key, span: value.span(), code })
}

fn code(
    key: &str,
    value: Entry,
    bytes: Amount,
    jitter: Amount,
    names: &Names,
) -> Result<Code, WorkloadError> {
    let time = || amount(value, Kind::Time, names);
    let channel = || one_of("channel", value, names.channels.iter().map(|c| c.0.as_str()));
    let list = || one_of("list", value, names.lists.iter().map(String::as_str));
    Ok(match key {
        "run" => Code::Run(time()?),
        "spin" => Code::Spin(time()?),
        "send" => Code::Send { channel: channel()?, bytes },
        "recv" => Code::Recv { channel: channel()? },
        "sleep" => Code::Sleep { time: time()?, jitter },
        "wait" if value.is_boolean() => {
            value.yes()?;
            if jitter != Amount::fixed(0) {
                let fix = "leave `jitter` out, or give `wait` a time";
                return Err(value.error(Mistake::new("has no limit that could jitter", fix)));
            }
            Code::Wait { timeout: None, jitter }
        }
        "wait" => Code::Wait { timeout: Some(time()?), jitter },
        "post" => {
            Code::Post { role: one_of("task", value, names.roles.iter().map(String::as_str))? }
        }
        "join" => Code::Join { list: list()? },
        "wake_list" => Code::WakeList { list: list()? },
        "record" => value.yes().map(|()| Code::Record)?,
        _ => Code::Count(amount(value, Kind::Count, names)?),
    })
}

/// Index of the name that the value is.
fn one_of<'a>(
    what: &str,
    value: Entry,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Result<usize, WorkloadError> {
    let name = value.text("\"…\"")?;
    let index = known.clone().position(|k| k == name);
    index.ok_or_else(|| value.error(Mistake::unknown(what, name, known)))
}

fn amount(entry: Entry, kind: Kind, names: &Names) -> Result<Amount, WorkloadError> {
    let example = match kind {
        Kind::Count => "16",
        Kind::Time => "\"30ms\"",
    };
    let text = entry.scalar(example)?;
    Amount::parse(&text, kind, names.params).map_err(|m| entry.error(m))
}

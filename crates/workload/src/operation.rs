//! Reads the operations of a task's program, as a file writes them.

use std::borrow::Cow;
use std::ops::Range;

use reveille_place::Mistake;

use crate::amount::{Amount, Kind};
use crate::channels::{ChannelRef, reference};
use crate::error::Result;
use crate::names::Names;
use crate::program::MAX_DEPTH;
use crate::table::{Entry, Table};

/// An operation and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct OpSource {
    /// As messages name it.
    pub(crate) key: Cow<'static, str>,
    pub(crate) span: Range<usize>,
    pub(crate) code: Code,
}

/// An operation whose amounts may depend on parameters. Lists, locks and roles are
/// indices into the file's.
#[derive(Clone, Debug)]
pub(crate) enum Code {
    Run { time: Amount, random: bool },
    Spin(Amount),
    Send { to: ChannelRef, bytes: Amount },
    Recv { from: ChannelRef, framed: bool, discard: bool },
    Syscall(Amount),
    Sleep { time: Amount, jitter: Amount, random: bool },
    Period { period: Amount, restart: bool },
    Wait { timeout: Option<Amount>, jitter: Amount },
    Post { role: usize },
    Join { list: usize },
    WakeList { list: usize },
    Request { role: usize, batch: Amount },
    Serve,
    Note,
    Record { record: String, less: Amount },
    LockCpu,
    UnlockCpu,
    Lock { lock: usize },
    Unlock { lock: usize },
    Count(Amount),
    Repeat { times: Amount, ops: Vec<OpSource> },
    Respawn,
    AwaitRelease { sync: bool },
}

impl Code {
    /// The amounts in it, without those of operations in it.
    pub(crate) fn amounts(&self) -> Vec<&Amount> {
        match self {
            Code::Run { time: a, .. }
            | Code::Spin(a)
            | Code::Syscall(a)
            | Code::Count(a)
            | Code::Send { bytes: a, .. }
            | Code::Period { period: a, .. }
            | Code::Request { batch: a, .. }
            | Code::Record { less: a, .. }
            | Code::Repeat { times: a, .. } => vec![a],
            Code::Sleep { time, jitter, .. } => vec![time, jitter],
            Code::Wait { timeout, jitter } => timeout.iter().chain([jitter]).collect(),
            _ => Vec::new(),
        }
    }
}

/// All operations of a program; those in a loop occur `rounds` times, so that
/// with 2 each operation meets each that can follow it.
pub(crate) fn flatten(ops: &[OpSource], rounds: usize) -> Vec<&OpSource> {
    let mut all = Vec::new();
    for op in ops {
        all.push(op);
        if let Code::Repeat { ops, .. } = &op.code {
            for _ in 0..rounds {
                all.extend(flatten(ops, rounds));
            }
        }
    }
    all
}

pub(crate) const PROGRAM: &str = "[{ run = \"1ms\" }]";
const OPERATIONS: [&str; 22] = [
    "run",
    "spin",
    "send",
    "recv",
    "syscall",
    "sleep",
    "period",
    "wait",
    "post",
    "join",
    "wake_list",
    "request",
    "serve",
    "note",
    "record",
    "lock_cpu",
    "unlock_cpu",
    "lock",
    "unlock",
    "count",
    "repeat",
    "respawn",
];
const MODIFIERS: [&str; 9] =
    ["bytes", "framed", "discard", "jitter", "random", "restart", "batch", "less", "program"];
/// The name of a latency that `record = true` records.
const UNNAMED: &str = "latency";

pub(crate) fn program(entry: Entry, names: &Names, depth: usize) -> Result<Vec<OpSource>> {
    let ops = entry.array(PROGRAM)?.into_iter().map(|op| operation(op, names, depth));
    let ops = ops.collect::<Result<Vec<_>, _>>()?;
    if ops.is_empty() {
        return Err(entry.error(Mistake::new("is empty", "give the task something to do")));
    }
    Ok(ops)
}

/// What stands beside the operation in its table.
struct Modifiers<'a> {
    table: &'a Table<'a>,
    key: &'a str,
    names: &'a Names<'a>,
}

impl Modifiers<'_> {
    /// A modifier that may stand beside the operations in `of`.
    fn get(&self, name: &str, of: &str) -> Result<Option<Entry<'_>>> {
        match self.table.get(name) {
            Some(entry) if !of.split(' ').any(|k| k == self.key) => {
                let mistake = Mistake::new(
                    format!("does not belong to `{}`", self.key),
                    format!("leave it out, or use it with {}", of.replace(' ', " or ")),
                );
                Err(entry.error(mistake))
            }
            entry => Ok(entry),
        }
    }

    fn amount(&self, name: &str, kind: Kind, default: u64, of: &str) -> Result<Amount> {
        match self.get(name, of)? {
            None => Ok(Amount::Fixed(default)),
            Some(entry) => amount(entry, kind, self.names),
        }
    }

    fn flag(&self, name: &str, of: &str) -> Result<bool> {
        let Some(entry) = self.get(name, of)? else { return Ok(false) };
        entry.yes().map(|()| true)
    }
}

/// A table with one operation and what modifies it.
fn operation(item: Entry, names: &Names, depth: usize) -> Result<OpSource> {
    let table = item.table(PROGRAM)?;
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
    let code = code(key, value, &Modifiers { table: &table, key, names }, depth)?;
    Ok(OpSource { key: key.into(), span: value.span(), code })
}

fn code(key: &str, value: Entry, with: &Modifiers, depth: usize) -> Result<Code> {
    let names = with.names;
    let bytes = with.amount("bytes", Kind::Count, 1, "send")?;
    let framed = with.flag("framed", "recv")?;
    let discard = with.flag("discard", "recv")?;
    let jitter = with.amount("jitter", Kind::Time, 0, "sleep wait")?;
    let random = with.flag("random", "run sleep")?;
    let restart = with.flag("restart", "period")?;
    let batch = with.amount("batch", Kind::Count, 1, "request")?;
    let less = with.amount("less", Kind::Time, 0, "record")?;
    let inner = with.get("program", "repeat")?;
    let time = || amount(value, Kind::Time, names);
    let role = || one_of("task", value, names.roles.iter().map(String::as_str));
    let list = || one_of("list", value, names.lists.iter().map(String::as_str));
    let lock = || one_of("lock", value, names.locks.iter().map(String::as_str));
    let plain = |code: Code| value.yes().map(|()| code);
    Ok(match key {
        "run" => Code::Run { time: time()?, random },
        "spin" => Code::Spin(time()?),
        "send" => Code::Send { to: reference(value, names.channels)?, bytes },
        "recv" => Code::Recv { from: reference(value, names.channels)?, framed, discard },
        "syscall" => Code::Syscall(time()?),
        "sleep" if random && jitter != Amount::Fixed(0) => {
            let fix = "leave `jitter` out, or `random`";
            return Err(value.error(Mistake::new("is random in two ways", fix)));
        }
        "sleep" => Code::Sleep { time: time()?, jitter, random },
        "period" => Code::Period { period: time()?, restart },
        "wait" if value.is_boolean() => {
            value.yes()?;
            if jitter != Amount::Fixed(0) {
                let fix = "leave `jitter` out, or give `wait` a time";
                return Err(value.error(Mistake::new("has no limit that could jitter", fix)));
            }
            Code::Wait { timeout: None, jitter }
        }
        "wait" => Code::Wait { timeout: Some(time()?), jitter },
        "post" => Code::Post { role: role()? },
        "join" => Code::Join { list: list()? },
        "wake_list" => Code::WakeList { list: list()? },
        "request" => Code::Request { role: role()?, batch },
        "serve" => plain(Code::Serve)?,
        "note" => plain(Code::Note)?,
        "record" => {
            let record = if value.is_boolean() {
                value.yes().map(|()| UNNAMED)?
            } else {
                value.text("\"wakeup\"")?
            };
            Code::Record { record: record.to_owned(), less }
        }
        "lock_cpu" => plain(Code::LockCpu)?,
        "unlock_cpu" => plain(Code::UnlockCpu)?,
        "lock" => Code::Lock { lock: lock()? },
        "unlock" => Code::Unlock { lock: lock()? },
        "repeat" => {
            let Some(inner) = inner else {
                let fix = "add `program = [{ run = \"1ms\" }]`";
                return Err(value.error(Mistake::new("has nothing to repeat", fix)));
            };
            if depth == MAX_DEPTH {
                let problem = format!("stands in more than {MAX_DEPTH} loops");
                return Err(value.error(Mistake::new(problem, "write it with fewer")));
            }
            let times = amount(value, Kind::Count, names)?;
            Code::Repeat { times, ops: program(inner, names, depth + 1)? }
        }
        "respawn" => plain(Code::Respawn)?,
        _ => Code::Count(amount(value, Kind::Count, names)?),
    })
}

/// Index of the name that the value is.
fn one_of<'a>(
    what: &str,
    value: Entry,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Result<usize> {
    let name = value.text("\"…\"")?;
    let index = known.clone().position(|k| k == name);
    index.ok_or_else(|| value.error(Mistake::unknown(what, name, known)))
}

pub(crate) fn amount(entry: Entry, kind: Kind, names: &Names) -> Result<Amount> {
    let example = match kind {
        Kind::Count => "16",
        _ => "\"30ms\"",
    };
    let text = entry.scalar(example)?;
    Amount::parse(&text, kind, names.params).map_err(|m| entry.error(m))
}

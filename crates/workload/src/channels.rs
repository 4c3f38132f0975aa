//! Reads `channels`, alone or as arrays, and the places where operations name them:
//! `to`, `to[own]` for the one with the task's own number, `to[*]` for each in turn.

use std::ops::Range;

use reveille_place::Mistake;

use crate::amount::{Amount, Kind, ParamKind};
use crate::error::Result;
use crate::program::ChannelKind;
use crate::table::{Entry, Table};

/// One name under `channels`.
#[derive(Clone, Debug)]
pub(crate) struct ChannelSource {
    pub(crate) name: String,
    pub(crate) kind: KindSource,
    /// How many channels the name stands for.
    pub(crate) count: Amount,
    /// Where its value stands in the file.
    pub(crate) span: Range<usize>,
}

/// How its messages travel.
#[derive(Clone, Debug)]
pub(crate) enum KindSource {
    Fixed(ChannelKind),
    /// As a parameter chooses: its index, and what each choice means.
    Param(usize, Vec<ChannelKind>),
}

impl KindSource {
    pub(crate) fn value(&self, values: &[u64]) -> ChannelKind {
        match self {
            KindSource::Fixed(kind) => *kind,
            KindSource::Param(param, kinds) => kinds[values[*param] as usize],
        }
    }

    /// The parameter that chooses it.
    pub(crate) fn param(&self) -> Option<usize> {
        match self {
            KindSource::Fixed(_) => None,
            KindSource::Param(param, _) => Some(*param),
        }
    }
}

/// A channel as an operation names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChannelRef {
    /// Index of the name.
    pub(crate) channel: usize,
    pub(crate) which: Which,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    One,
    /// That with the number of the task among those of its role.
    Own,
    /// Each, one after the other.
    Each,
}

const EXAMPLE: &str = "{ request = \"pipe\" }";
const KINDS: [(&str, ChannelKind); 4] = [
    ("pipe", ChannelKind::Pipe),
    ("udp", ChannelKind::Udp),
    ("tcp", ChannelKind::Tcp),
    ("unix", ChannelKind::Unix),
];

/// `channels = { NAME = "pipe", NAME = { kind = "$transport", count = "$fds" } }`.
pub(crate) fn read(top: &Table, params: &[ParamKind]) -> Result<Vec<ChannelSource>> {
    let Some(entry) = top.get("channels") else { return Ok(Vec::new()) };
    let mut channels = Vec::new();
    for (span, channel) in entry.table(EXAMPLE)?.entries() {
        if channel.key.contains(['[', ']']) {
            let mistake = Mistake::new("is no name for a channel", "leave the brackets out");
            return Err(top.source.error(&span, Some(channel.key), mistake));
        }
        let (kind, count) = if channel.is_table() {
            let table = channel.table("{ kind = \"pipe\", count = 2 }")?;
            table.only("a channel", &["kind", "count"])?;
            let count = match table.get("count") {
                Some(count) => {
                    let text = count.scalar("2")?;
                    Amount::parse(&text, Kind::Count, params).map_err(|m| count.error(m))?
                }
                None => Amount::Fixed(1),
            };
            (kind(table.require("kind", "\"pipe\"")?, params)?, count)
        } else {
            (kind(channel, params)?, Amount::Fixed(1))
        };
        let span = channel.span();
        channels.push(ChannelSource { name: channel.key.to_owned(), kind, count, span });
    }
    entry.few(channels.len())?;
    Ok(channels)
}

fn kind(entry: Entry, params: &[ParamKind]) -> Result<KindSource> {
    let text = entry.text("\"pipe\"")?;
    let known = |text: &str| KINDS.iter().find(|(name, _)| *name == text).map(|(_, kind)| *kind);
    if let Some((param, choices)) = choice(entry, text, params)? {
        return Ok(KindSource::Param(param, meanings(entry, "kind of channel", choices, known)?));
    }
    let unknown = || Mistake::unknown("kind of channel", text, KINDS.iter().map(|k| k.0));
    known(text).map(KindSource::Fixed).ok_or_else(|| entry.error(unknown()))
}

/// Index of a parameter with choices, and the choices.
type Choosing<'a> = (usize, &'a [(String, String)]);

/// The choices of the parameter that `text` names, if it begins with `$`.
pub(crate) fn choice<'a>(
    entry: Entry,
    text: &str,
    params: &'a [ParamKind],
) -> Result<Option<Choosing<'a>>> {
    let Some(name) = text.strip_prefix('$') else { return Ok(None) };
    let choosing = params.iter().enumerate().filter(|(_, p)| p.kind == Kind::Choice);
    let names = choosing.clone().map(|(_, p)| p.name.as_str());
    match choosing.clone().find(|(_, p)| p.name == name) {
        Some((index, param)) => Ok(Some((index, &param.choices))),
        None => Err(entry.error(Mistake::unknown("parameter with choices", name, names))),
    }
}

/// What each choice of a parameter means where `entry` stands.
pub(crate) fn meanings<T>(
    entry: Entry,
    what: &str,
    choices: &[(String, String)],
    known: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>> {
    let meaning = |(name, word): &(String, String)| {
        known(word).ok_or_else(|| {
            let problem = format!("choice `{name}` stands for `{word}`, which is no {what}");
            entry.error(Mistake::new(problem, "mend `choices` of the parameter"))
        })
    };
    choices.iter().map(meaning).collect()
}

/// Reads the channel that an operation names.
pub(crate) fn reference(entry: Entry, channels: &[ChannelSource]) -> Result<ChannelRef> {
    let text = entry.text("\"…\"")?;
    let (name, which) = match text.split_once('[') {
        None => (text, Which::One),
        Some((name, "own]")) => (name, Which::Own),
        Some((name, "*]")) => (name, Which::Each),
        Some(_) => {
            let fix = "write NAME[own] for the one with the task's number, NAME[*] for all";
            return Err(entry.error(Mistake::new(format!("`{text}` names no channel"), fix)));
        }
    };
    let known = channels.iter().map(|c| c.name.as_str());
    match known.clone().position(|k| k == name) {
        Some(channel) => Ok(ChannelRef { channel, which }),
        None => Err(entry.error(Mistake::unknown("channel", name, known))),
    }
}

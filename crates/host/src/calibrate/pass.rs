//! A message from one task to another that does not sleep: what moves between two CPUs with it.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use reveille_machine::CpuId;
use reveille_measure::Ns;
use reveille_workload::ChannelKind;

use super::calls::{channel, receive, send};
use super::pairs::{PATIENCE_NS, time_trips};
use super::samples::{Samples, Sketch};
use super::{Cpus, pin};
use crate::error::{HostError, Result};
use crate::sys::clock;
use crate::sys::shared::OwnLine;

pub(super) const KINDS: [ChannelKind; 4] =
    [ChannelKind::Pipe, ChannelKind::Unix, ChannelKind::Udp, ChannelKind::Tcp];

/// A channel's name in measurements, and the bytes of its message: those of the constants' sources.
pub(super) fn name(kind: ChannelKind) -> (&'static str, usize) {
    match kind {
        ChannelKind::Pipe => ("pipe", 1),
        ChannelKind::Unix => ("unix", 100),
        ChannelKind::Udp => ("udp", 1),
        ChannelKind::Tcp => ("tcp", 1),
    }
}

/// One end of a conversation.
struct End {
    to: OwnedFd,
    from: OwnedFd,
    buffer: Vec<u8>,
}

impl End {
    fn send(&self) -> io::Result<()> {
        send(&self.to, &self.buffer)
    }

    fn receive(&mut self) -> io::Result<()> {
        receive(&self.from, &mut self.buffer)
    }
}

/// Both ends. TCP answers on the connection that asked, as programs do, and as its acknowledgements
/// ride on answers; the others have a channel each way.
fn ends(kind: ChannelKind) -> io::Result<(End, End)> {
    let (there, there_from) = channel(kind)?;
    let (back, back_from) = match kind {
        ChannelKind::Tcp => (there_from.try_clone()?, there.try_clone()?),
        _ => channel(kind)?,
    };
    let buffer = vec![0; name(kind).1];
    let here = End { to: there, from: back_from, buffer: buffer.clone() };
    Ok((here, End { to: back, from: there_from, buffer }))
}

/// Half a round trip: a send and a receipt, by one task on one CPU, or by two that watch a line in
/// memory for their turn, so that the message is there when its receiver asks for it.
pub(crate) fn pass(
    kind: ChannelKind,
    (here, there): Cpus,
    place: &str,
    time: Ns,
) -> Result<Vec<Sketch>> {
    let (name, _) = name(kind);
    let help = format!(
        "is the loopback interface up, are there free file descriptors, and does CPU {there} have \
         time for a task?"
    );
    let failed = |error| HostError::system(format!("pass a message by {name}"), error, &help);
    let (mut asker, mut answerer) = ends(kind).map_err(failed)?;
    pin(here)?;
    let samples = match here == there {
        true => time_trips(time, 0, || {
            asker.send()?;
            answerer.receive()?;
            answerer.send()?;
            asker.receive()
        })
        .map_err(failed)?,
        false => over_two_cpus(asker, answerer, there, time, &failed)?,
    };
    let by = if here == there { "one task" } else { "two tasks that do not sleep" };
    let about = format!("send and receipt of a message by {name}, by {by}");
    Ok(vec![samples.0.sketch(&format!("{name}_pass_{place}"), &about)])
}

/// Whose turn it is: even for the one that asks, odd for the one that answers.
#[derive(Default)]
struct Turns {
    turn: OwnLine<AtomicU64>,
    over: OwnLine<AtomicBool>,
}

impl Turns {
    /// Watches the line until `mine` comes. Returns false if the exchange is over.
    fn wait(&self, mine: u64) -> io::Result<bool> {
        let mut since = None;
        for looks in 1u64.. {
            if self.turn.load(Ordering::Acquire) == mine {
                return Ok(true);
            }
            std::hint::spin_loop();
            if looks.is_multiple_of(1 << 10) && self.over.load(Ordering::Acquire) {
                return Ok(false);
            }
            if looks.is_multiple_of(1 << 20) {
                let now = clock::now();
                if now > *since.get_or_insert(now) + PATIENCE_NS {
                    break;
                }
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }
}

fn over_two_cpus(
    mut asker: End,
    mut answerer: End,
    there: CpuId,
    time: Ns,
    failed: &(dyn Fn(io::Error) -> HostError + Sync),
) -> Result<(Samples, Samples)> {
    let turns = Turns::default();
    let trouble = OnceLock::new();
    let trips = std::thread::scope(|scope| {
        let (turns, trouble) = (&turns, &trouble);
        scope.spawn(move || {
            let mut mine = 1;
            let mut answer = || {
                while turns.wait(mine)? {
                    answerer.receive()?;
                    answerer.send()?;
                    turns.turn.store(mine + 1, Ordering::Release);
                    mine += 2;
                }
                Ok(())
            };
            if let Err(error) = pin(there).and_then(|()| answer().map_err(failed)) {
                let _ = trouble.set(error);
            }
            turns.over.store(true, Ordering::Release);
        });
        let mut mine = 0;
        let trips = time_trips(time, 0, || {
            asker.send()?;
            turns.turn.store(mine + 1, Ordering::Release);
            mine += 2;
            if turns.wait(mine)? { asker.receive() } else { Err(io::ErrorKind::BrokenPipe.into()) }
        });
        turns.over.store(true, Ordering::Release);
        trips
    });
    // The partner's trouble is the cause of this one's.
    match trouble.into_inner() {
        Some(error) => Err(error),
        None => trips.map_err(failed),
    }
}

//! A message from one task to another that does not sleep: what moves between two CPUs with it.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use reveille_machine::CpuId;
use reveille_measure::Ns;
use reveille_workload::ChannelKind;
use rustix::io::{read, write};

use super::calls::whole;
use super::pairs::{PATIENCE_NS, time_trips};
use super::samples::{Samples, Sketch};
use super::{Cpus, pin};
use crate::error::HostError;
use crate::sys::channel::connect;
use crate::sys::clock;
use crate::sys::shared::OwnLine;

/// Value of the turn that ends the exchange.
const OVER: u64 = u64::MAX;

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
        whole(write(&self.to, &self.buffer))
    }

    fn receive(&mut self) -> io::Result<()> {
        whole(read(&self.from, &mut self.buffer[..]))
    }
}

/// Both ends. TCP answers on the connection that asked, as programs do, and as its acknowledgements
/// ride on answers; the others have a channel each way.
fn ends(kind: ChannelKind) -> io::Result<(End, End)> {
    let (there, there_from) = connect(kind)?;
    let (back, back_from) = match kind {
        ChannelKind::Tcp => (there_from.try_clone()?, there.try_clone()?),
        _ => connect(kind)?,
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
) -> Result<Vec<Sketch>, HostError> {
    let (name, _) = name(kind);
    let help = "is the loopback interface up, and are there free file descriptors?";
    let failed = |error| HostError::system(format!("pass a message by {name}"), error, help);
    let (mut asker, mut answerer) = ends(kind).map_err(failed)?;
    pin(here)?;
    let trips = match here == there {
        true => time_trips(time, 0, || {
            asker.send()?;
            answerer.receive()?;
            answerer.send()?;
            asker.receive()
        }),
        false => over_two_cpus(asker, answerer, there, time),
    };
    let by = if here == there { "one task" } else { "two tasks, neither of which sleeps" };
    let about = format!("send and receipt of a message by {name}, by {by}");
    Ok(vec![trips.map_err(failed)?.0.sketch(&format!("{name}_pass_{place}"), &about)])
}

fn over_two_cpus(
    mut asker: End,
    mut answerer: End,
    there: CpuId,
    time: Ns,
) -> io::Result<(Samples, Samples)> {
    let turn = OwnLine(AtomicU64::new(0));
    let turn = &turn;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut mine = 1;
            let mut answer = || {
                wait(turn, mine)?;
                answerer.receive()?;
                answerer.send()?;
                turn.store(mine + 1, Ordering::Release);
                mine += 2;
                io::Result::Ok(())
            };
            let pinned = pin(there).is_ok();
            while pinned && answer().is_ok() {}
            turn.store(OVER, Ordering::Release);
        });
        let mut mine = 0;
        let trips = time_trips(time, 0, || {
            asker.send()?;
            turn.store(mine + 1, Ordering::Release);
            mine += 2;
            wait(turn, mine)?;
            asker.receive()
        });
        turn.store(OVER, Ordering::Release);
        trips
    })
}

/// Watches the line until its owner's turn comes, or the partner gives up or does not run.
fn wait(turn: &AtomicU64, mine: u64) -> io::Result<()> {
    let mut since = None;
    for looks in 1u64.. {
        match turn.load(Ordering::Acquire) {
            now if now == mine => return Ok(()),
            OVER => break,
            _ => std::hint::spin_loop(),
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

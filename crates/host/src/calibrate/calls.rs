//! Costs within one task: system calls, futexes without a sleeper, and messages to itself, none of
//! which wake a task.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicU32;

use reveille_measure::Ns;
use reveille_workload::ChannelKind;
use rustix::io::{read, retry_on_intr, write};
use rustix::net::sockopt;
use rustix::process::getppid;
use serde::{Deserialize, Serialize};

use super::samples::{Samples, Sketch, alone};
use crate::error::{HostError, Result};
use crate::sys::channel::connect;
use crate::sys::futex::{self, Scope};
use crate::sys::{clock, usage};

const BATCH: u32 = 64;
/// Messages queued in a channel at a time.
const QUEUED: u32 = 16;
/// Mean number of messages still queued after a receive.
pub(super) const LEFT: f64 = (QUEUED - 1) as f64 / 2.0;
/// Messages that stay in a deep queue; [`QUEUED`] more still fit the default buffer.
pub(super) const DEEP: f64 = 200.0;
/// Number of deep queues: together they exceed a core's private caches.
const DEEP_QUEUES: usize = 20;
/// A page: the larger of the two sizes that the cost of copying is derived from.
const PAGE: usize = 4096;

/// A way to send a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// A pipe, one byte.
    Pipe,
    PipePage,
    /// A Unix stream socket, 100 bytes.
    Unix,
    /// A Unix stream socket, 100 bytes, alternating between deep queues.
    UnixDeep,
    /// UDP over loopback, one byte.
    Udp,
    /// TCP over loopback, one byte each way.
    Tcp,
}

/// The clock, an empty system call, and futex calls without a sleeper.
pub(crate) fn calls(time: Ns) -> Vec<Sketch> {
    let word = AtomicU32::new(1);
    let each = time / 4;
    let repeat = |call: &dyn Fn()| alone(each, BATCH, || (0..BATCH).for_each(|_| call()));
    let clock = repeat(&|| {
        std::hint::black_box(clock::now());
    });
    let syscall = repeat(&|| {
        std::hint::black_box(getppid());
    });
    let wake = repeat(&|| {
        std::hint::black_box(futex::wake(&word, 1, Scope::Private));
    });
    let wait = repeat(&|| {
        std::hint::black_box(futex::wait(&word, 0, Scope::Private, None));
    });
    vec![
        clock.sketch("clock", "clock_gettime(CLOCK_MONOTONIC) in a loop"),
        syscall.sketch("syscall", "getppid in a loop"),
        wake.sketch("futex_wake", "FUTEX_WAKE without a waiter, entry included"),
        wait.sketch("futex_wait", "FUTEX_WAIT that finds another value, entry included"),
    ]
}

/// Costs of sending and receiving, each including its system call.
pub(crate) fn messages(kind: Kind, time: Ns) -> Result<Vec<Sketch>> {
    let (pipe, unix, udp) = (ChannelKind::Pipe, ChannelKind::Unix, ChannelKind::Udp);
    let (name, about, sides) = match kind {
        Kind::Pipe => ("pipe", "1 byte, a pipe", simple(pipe, 1, QUEUED, time)),
        Kind::PipePage => ("pipe_page", "4096 bytes, a pipe", simple(pipe, PAGE, QUEUED / 2, time)),
        Kind::Unix => ("unix", "100 bytes, a Unix stream socket", simple(unix, 100, QUEUED, time)),
        Kind::UnixDeep => {
            let about = "100 bytes, a Unix stream socket that holds 200 messages";
            ("unix_deep", about, unix_deep(time))
        }
        Kind::Udp => ("udp", "1 byte, UDP over loopback", simple(udp, 1, QUEUED, time)),
        Kind::Tcp => ("tcp", "1 byte, TCP over loopback, each way in turn", tcp(time)),
    };
    let (send, receive) = sides.map_err(|e| {
        let help = "is the loopback interface up, and are there free file descriptors?";
        HostError::system(format!("send {about}"), e, help)
    })?;
    Ok(vec![
        send.sketch(&format!("{name}_send"), &format!("send of {about}, by one task alone")),
        receive.sketch(&format!("{name}_recv"), &format!("receipt of {about}, by one task alone")),
    ])
}

/// Two turns of warm-up; a clock's reading is nothing among that many messages.
const BRIEF: (u64, f64) = (2, 0.0);

/// Samples of sending and receiving, or the error of creating the channel.
type Sides = io::Result<(Samples, Samples)>;

/// Repeats `queued` sends followed by as many receives. The first `warmup` turns do not count,
/// and reading the clock takes `clock_ns` of each.
fn in_turns(
    time: Ns,
    queued: u32,
    (warmup, clock_ns): (u64, f64),
    mut send: impl FnMut() -> io::Result<()>,
    mut receive: impl FnMut() -> io::Result<()>,
) -> Sides {
    let (mut sends, mut receipts) = (Samples::default(), Samples::default());
    let end = clock::now() + time;
    for turn in 0u64.. {
        let before = usage::switches();
        let start = clock::now();
        (0..queued).try_for_each(|_| send())?;
        let sent = clock::now();
        (0..queued).try_for_each(|_| receive())?;
        let received = clock::now();
        if turn >= warmup {
            if usage::switches() == before {
                sends.push((sent - start) as f64 / f64::from(queued) - clock_ns);
                receipts.push((received - sent) as f64 / f64::from(queued) - clock_ns);
            } else {
                sends.discard();
                receipts.discard();
            }
        }
        if received >= end {
            break;
        }
    }
    Ok((sends, receipts))
}

/// A new channel's sending and receiving end. A lost datagram ends a receipt after a second.
pub(super) fn channel(kind: ChannelKind) -> io::Result<(OwnedFd, OwnedFd)> {
    let (to, from) = connect(kind)?;
    if kind == ChannelKind::Udp {
        let second = Some(std::time::Duration::from_secs(1));
        sockopt::set_socket_timeout(&from, sockopt::Timeout::Recv, second)?;
    }
    Ok((to, from))
}

/// Messages that a task sends to itself, `queued` at a time.
fn simple(kind: ChannelKind, bytes: usize, queued: u32, time: Ns) -> Sides {
    let (to, from) = channel(kind)?;
    let message = vec![0; bytes];
    let mut buffer = message.clone();
    in_turns(time, queued, BRIEF, || send(&to, &message), || receive(&from, &mut buffer))
}

/// Sends a message; less of it is an error, as no message here exceeds what a channel takes at once.
pub(super) fn send(to: &OwnedFd, message: &[u8]) -> io::Result<()> {
    whole(retry_on_intr(|| write(to, message))?, message.len())
}

/// Receives a message of the buffer's length.
pub(super) fn receive(from: &OwnedFd, buffer: &mut [u8]) -> io::Result<()> {
    whole(retry_on_intr(|| read(from, &mut *buffer))?, buffer.len())
}

fn whole(moved: usize, bytes: usize) -> io::Result<()> {
    if moved == bytes { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Alternates between pairs of sockets with [`DEEP`] messages queued in each. Returns no samples if
/// the buffer is too small.
fn unix_deep(time: Ns) -> Sides {
    let pairs = (0..DEEP_QUEUES).map(|_| UnixStream::pair()).collect::<io::Result<Vec<_>>>()?;
    pairs.iter().try_for_each(|(here, _)| here.set_nonblocking(true))?;
    let mut buffer = [0; 100];
    let (mut sent, mut received) = (0, 0);
    let in_turn = |n: &mut usize| {
        *n += 1;
        &pairs[(*n - 1) / QUEUED as usize % DEEP_QUEUES]
    };
    let fill =
        |here: &mut &UnixStream| (0..DEEP as u32).try_for_each(|_| here.write_all(&[0; 100]));
    let filled = pairs.iter().try_for_each(|(here, _)| fill(&mut &*here));
    let sides = filled.and_then(|()| {
        let send = || (&in_turn(&mut sent).0).write_all(&[0; 100]);
        in_turns(time, QUEUED, BRIEF, send, || (&in_turn(&mut received).1).read_exact(&mut buffer))
    });
    match sides {
        Err(full) if full.kind() == io::ErrorKind::WouldBlock => Ok(Default::default()),
        sides => sides,
    }
}

/// Alternates one message each way, like requests and replies: acknowledgements piggyback on them.
fn tcp(time: Ns) -> Sides {
    let ends: [OwnedFd; 2] = connect(ChannelKind::Tcp)?.into();
    let clock = alone(time / 20, BATCH, || {
        (0..BATCH).for_each(|_| _ = std::hint::black_box(clock::now()));
    });
    let (mut sent, mut received) = (0, 0);
    let send_in_turn = || {
        sent += 1;
        send(&ends[sent % 2], &[0])
    };
    in_turns(time, 1, (100, clock.quantile(0.5)), send_in_turn, || {
        received += 1;
        receive(&ends[(received + 1) % 2], &mut [0])
    })
}

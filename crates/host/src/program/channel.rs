//! A program's channels: who uses which end, and where a message ends.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use reveille_workload::{ChannelKind, Op, Program};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use rustix::process::{Resource, getrlimit, setrlimit};

use crate::error::{HostError, Result};
use crate::sys::channel::connect;

/// Writes to a pipe up to this size are atomic: PIPE_BUF.
const ATOMIC_PIPE: u32 = 4096;
/// A Unix stream socket keeps messages up to this size contiguous.
const ATOMIC_UNIX: u32 = 32_768;
/// Longest UDP datagram: 65535 minus the IP and UDP headers.
const LONGEST_DATAGRAM: u32 = 65_507;
/// Size of the length prefix of messages without a common size.
const LENGTH: u32 = 4;
/// Largest part of a message sent or received by one call.
const LONGEST_PART: u32 = 1 << 20;

/// How a receiver finds the end of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// The kernel preserves message boundaries.
    Datagram,
    /// All have this size.
    Fixed(u32),
    /// A length prefix, read by a separate call.
    Length,
}

#[derive(Debug)]
pub(super) struct Channel {
    sender: Arc<OwnedFd>,
    receiver: Arc<OwnedFd>,
    framing: Framing,
    /// Size of the longest message.
    longest: u32,
    /// Several tasks send messages that could interleave, so they take turns.
    pub(super) senders_take_turns: bool,
    /// Several tasks receive and could each get part of a message, so they take turns.
    pub(super) receivers_take_turns: bool,
}

impl Channel {
    /// Buffer size that a sender or receiver needs.
    pub(super) fn buffer(&self) -> usize {
        self.longest.clamp(LENGTH, LONGEST_PART) as usize
    }

    /// Sends a message of `bytes`, all of it.
    #[inline]
    pub(super) fn send(&self, bytes: u32, buffer: &mut [u8]) -> Result<(), Errno> {
        let mut left = bytes as usize;
        if self.framing == Framing::Length {
            left = left.max(LENGTH as usize);
            buffer[..LENGTH as usize].copy_from_slice(&(left as u32).to_ne_bytes());
        }
        let mut at = 0;
        loop {
            let end = buffer.len().min(at + left);
            let sent = match rustix::io::write(self.sender.as_fd(), &buffer[at..end]) {
                Err(Errno::INTR) => continue,
                sent => sent?,
            };
            left = left.saturating_sub(sent);
            if left == 0 {
                return Ok(());
            }
            at += sent;
            if at == buffer.len() {
                // After the first part, send any bytes but the length prefix.
                at = LENGTH as usize % buffer.len();
            }
        }
    }

    /// Receives a message; blocks while there is none. With `discard` the kernel copies only the
    /// length prefix.
    #[inline]
    pub(super) fn receive(&self, buffer: &mut [u8], discard: bool) -> Result<(), Errno> {
        match self.framing {
            Framing::Datagram => self.read(buffer, discard).map(drop),
            Framing::Fixed(bytes) => self.read_all(bytes as usize, buffer, discard),
            Framing::Length => {
                self.read_all(LENGTH as usize, buffer, false)?;
                let mut length = [0; LENGTH as usize];
                length.copy_from_slice(&buffer[..LENGTH as usize]);
                let rest = u32::from_ne_bytes(length).saturating_sub(LENGTH);
                if rest > self.longest {
                    return Err(Errno::BADMSG);
                }
                self.read_all(rest as usize, buffer, discard)
            }
        }
    }

    fn read_all(&self, bytes: usize, buffer: &mut [u8], discard: bool) -> Result<(), Errno> {
        // The length prefix is at the start of the buffer; it may arrive in several parts.
        let mut got = 0;
        while got < bytes {
            let at = if bytes <= buffer.len() { got } else { 0 };
            let end = buffer.len().min(at + bytes - got);
            got += self.read(&mut buffer[at..end], discard)?;
        }
        Ok(())
    }

    fn read(&self, buffer: &mut [u8], discard: bool) -> Result<usize, Errno> {
        let from = self.receiver.as_fd();
        loop {
            let received = match discard {
                true => recv(from, &mut *buffer, RecvFlags::TRUNC).map(|(_, bytes)| bytes),
                false => rustix::io::read(from, &mut *buffer),
            };
            match received {
                Err(Errno::INTR) => {}
                Ok(0) => return Err(Errno::PIPE),
                received => return received,
            }
        }
    }
}

/// The tasks at one end of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum End {
    #[default]
    Nobody,
    One(u32),
    Several,
}

impl End {
    fn add(&mut self, task: u32) {
        *self = match *self {
            End::Nobody => End::One(task),
            End::One(other) if other == task => return,
            _ => End::Several,
        };
    }
}

/// How a program uses a channel.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    senders: End,
    receivers: End,
    shortest: u32,
    longest: u32,
    /// A receiver reads the length by a separate call.
    framed: bool,
}

fn usages(program: &Program) -> Vec<Usage> {
    let mut usages = vec![Usage::default(); program.channels.len()];
    for (number, task) in program.tasks.iter().enumerate() {
        for op in &program.roles[usize::from(task.role)].ops {
            match *op {
                Op::Send { channel, bytes } => {
                    let usage = &mut usages[task.channel(channel)];
                    usage.senders.add(number as u32);
                    let first = usage.longest == 0;
                    usage.shortest = if first { bytes } else { usage.shortest.min(bytes) };
                    usage.longest = usage.longest.max(bytes);
                }
                Op::Recv { channel, framed, .. } => {
                    let usage = &mut usages[task.channel(channel)];
                    usage.receivers.add(number as u32);
                    usage.framed |= framed;
                }
                _ => {}
            }
        }
    }
    usages
}

pub(super) fn open(program: &Program) -> Result<Vec<Channel>> {
    raise_file_limit();
    let usages = usages(program);
    // By pair of tasks: a connection with one direction still unused.
    let mut half_used: HashMap<(ChannelKind, u32, u32), Ends> = HashMap::new();
    let mut channels = Vec::with_capacity(usages.len());
    for (number, (usage, &kind)) in usages.iter().zip(&program.channels).enumerate() {
        if kind == ChannelKind::Udp && usage.longest > LONGEST_DATAGRAM {
            let problem = format!(
                "workload `{}`: a message of {} bytes is sent by udp",
                program.name, usage.longest
            );
            let help = format!("a datagram holds {LONGEST_DATAGRAM} bytes at most; use tcp");
            return Err(HostError::input(problem, help));
        }
        let pair = match (usage.senders, usage.receivers) {
            (End::One(from), End::One(to)) if from != to && kind != ChannelKind::Pipe => {
                Some((from, to))
            }
            _ => None,
        };
        let other_way = pair.and_then(|(from, to)| half_used.remove(&(kind, to, from)));
        let ends = match other_way {
            Some((theirs, own)) => (own, theirs),
            None => {
                let ends = connect(kind).map_err(|error| {
                    let doing = format!("open channel {number} of {}", program.channels.len());
                    HostError::system(doing, error, "allow more open files (ulimit -n)")
                })?;
                let ends = shared(ends);
                if let Some((from, to)) = pair {
                    half_used.insert((kind, from, to), ends.clone());
                }
                ends
            }
        };
        channels.push(channel(kind, usage, ends));
    }
    Ok(channels)
}

fn channel(kind: ChannelKind, usage: &Usage, (sender, receiver): Ends) -> Channel {
    let framing = match kind {
        ChannelKind::Udp => Framing::Datagram,
        _ if usage.shortest == usage.longest && !usage.framed => Framing::Fixed(usage.longest),
        _ => Framing::Length,
    };
    let fixed = matches!(framing, Framing::Fixed(_));
    let whole = match kind {
        ChannelKind::Udp => true,
        ChannelKind::Pipe => usage.longest <= ATOMIC_PIPE,
        ChannelKind::Unix => usage.longest <= ATOMIC_UNIX,
        ChannelKind::Tcp => usage.longest == 1,
    };
    Channel {
        sender,
        receiver,
        framing,
        longest: usage.longest,
        // Without a length prefix all bytes of a message are alike.
        senders_take_turns: usage.senders == End::Several && !whole && !fixed,
        receivers_take_turns: usage.receivers == End::Several
            && kind != ChannelKind::Udp
            && !(whole && fixed),
    }
}

/// The two ends of a connection.
type Ends = (Arc<OwnedFd>, Arc<OwnedFd>);

fn shared((one, other): (OwnedFd, OwnedFd)) -> Ends {
    (Arc::new(one), Arc::new(other))
}

/// Raises the soft limit of open files to the hard limit.
fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KINDS: [ChannelKind; 4] =
        [ChannelKind::Pipe, ChannelKind::Unix, ChannelKind::Udp, ChannelKind::Tcp];

    fn open_one(kind: ChannelKind, sizes: &[u32], framed: bool) -> Channel {
        let usage = Usage {
            senders: End::One(0),
            receivers: End::One(1),
            shortest: *sizes.iter().min().unwrap(),
            longest: *sizes.iter().max().unwrap(),
            framed,
        };
        channel(kind, &usage, shared(connect(kind).unwrap()))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        /// Each message is taken by as many receives as there were sends, and none is left:
        /// a message in excess would be a part of another.
        #[test]
        fn messages_arrive_whole_and_none_is_lost(
            kind in prop::sample::select(&KINDS[..]),
            sizes in prop::collection::vec(
                prop_oneof![1..10u32, 1..9000u32, Just(60_000u32), Just(3_000_000)], 1..12
            ),
            framed: bool,
            discard: bool,
        ) {
            let datagrams = kind == ChannelKind::Udp;
            let most = if datagrams { 9000 } else { u32::MAX };
            let sizes: Vec<u32> = sizes.iter().map(|&size| size.min(most)).collect();
            let framed = framed && !datagrams;
            let discard = discard && kind == ChannelKind::Tcp;
            let channel = open_one(kind, &sizes, framed);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let mut buffer = vec![1; channel.buffer()];
                    for &bytes in &sizes {
                        channel.send(bytes, &mut buffer).unwrap();
                    }
                });
                let mut buffer = vec![0; channel.buffer()];
                for _ in &sizes {
                    channel.receive(&mut buffer, discard).unwrap();
                }
            });
            rustix::io::ioctl_fionbio(&*channel.receiver, true).unwrap();
            prop_assert_eq!(channel.receive(&mut [0; 8], false), Err(Errno::AGAIN));
        }
    }

    #[test]
    fn two_channels_between_two_tasks_are_one_connection() {
        let program = |kind: &str| {
            let text = format!(
                "name = \"t\"\nabout = \"t\"\nload = \"n\"\n\
                 channels = {{ there = \"{kind}\", back = \"{kind}\" }}\n\
                 [[metric]]\nname = \"n (1/s)\"\nthroughput = true\n\
                 [[task]]\nname = \"a\"\n\
                 program = [{{ send = \"there\" }}, {{ recv = \"back\" }}, {{ count = 1 }}]\n\
                 [[task]]\nname = \"b\"\n\
                 program = [{{ recv = \"there\" }}, {{ send = \"back\" }}]\n"
            );
            let workload = reveille_workload::Workload::parse("t.toml", &text).unwrap();
            workload.build(2, &Default::default()).unwrap()
        };
        for (kind, shared) in [("pipe", false), ("unix", true), ("udp", true), ("tcp", true)] {
            let channels = open(&program(kind)).unwrap();
            for pair in channels.chunks(2) {
                assert_eq!(Arc::ptr_eq(&pair[0].sender, &pair[1].receiver), shared, "{kind}");
                assert_eq!(Arc::ptr_eq(&pair[0].receiver, &pair[1].sender), shared, "{kind}");
            }
            assert!(!Arc::ptr_eq(&channels[0].sender, &channels[2].sender));
        }
    }

    #[test]
    fn turns_are_taken_only_where_parts_could_mix() {
        let several = |kind, shortest, longest| {
            let (senders, receivers) = (End::Several, End::Several);
            let usage = Usage { senders, receivers, shortest, longest, framed: false };
            let channel = channel(kind, &usage, shared(connect(kind).unwrap()));
            (channel.senders_take_turns, channel.receivers_take_turns)
        };
        assert_eq!(several(ChannelKind::Unix, 100, 100), (false, false));
        assert_eq!(several(ChannelKind::Pipe, 100, 100), (false, false));
        assert_eq!(several(ChannelKind::Udp, 1, 100), (false, false));
        assert_eq!(several(ChannelKind::Tcp, 3, 3), (false, true));
        assert_eq!(several(ChannelKind::Tcp, 3, 36), (true, true));
        assert_eq!(several(ChannelKind::Pipe, 5000, 5000), (false, true));
        assert_eq!(several(ChannelKind::Pipe, 1, 5000), (true, true));
    }
}

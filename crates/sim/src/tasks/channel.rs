//! Messages between tasks: how many a channel holds, who waits for one or for room,
//! and whom a message or a read wakes. The pages and buffers are the kernel's, because
//! they decide how many messages one wakeup stands for.

use crate::ids::TaskVec;
use std::collections::VecDeque;

use reveille_measure::Ns;
use reveille_policy::{CpuId, TaskId};
use reveille_workload::ChannelKind;

use crate::hw::contention::Lock;
use crate::hw::distance::Near;
use crate::tasks::pipe::{PAGE, Pages};
use crate::tasks::task::Task;
use crate::tasks::waiters::Waiters;

/// Send and receive buffer of Unix and UDP sockets: net.core.wmem_default.
const SOCKET_BUFFER: u32 = 212_992;

/// Send buffer of a TCP socket once it has grown: the third of net.ipv4.tcp_wmem.
const TCP_BUFFER: u32 = 4 << 20;

/// sk_buff with its shared info, and the least memory of its data.
const SKB: u32 = 256;

const SKB_SHARED_INFO: u32 = 320;

const SKB_LEAST_DATA: u32 = 512;

/// Equal messages that follow each other.
#[derive(Clone, Copy, Debug)]
struct Run {
    bytes: u32,
    count: u32,
}

/// What the messages of a channel take up.
#[derive(Clone, Debug)]
enum Store {
    Pages(Pages),
    /// Bytes of socket buffer, with what the kernel needs to keep them.
    Buffer {
        used: u32,
        limit: u32,
    },
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// It is there; wakes up to one reader if so, and a further writer if so.
    Put { wakes_reader: bool, wakes_writer: bool },
    /// There is no room: the sender waits.
    Full,
    /// There is no room, and the datagram is lost.
    Lost,
}

/// A message taken from a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) bytes: u32,
    pub(crate) wakes: Wakes,
}

/// Whom a read wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wakes {
    None,
    /// A reader of a pipe that had slept leaves more behind: the next one is woken.
    Reader,
    /// Writers that wait for room in a pipe are exclusive.
    Writer,
    ReaderAndWriter,
    /// Writers of a socket are not.
    Writers,
}

/// One channel: its unread messages, and the tasks that wait.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    pub(crate) kind: ChannelKind,
    pub(crate) unread: u32,
    /// Its lock; the CPU that held it last has the channel's lines.
    pub(crate) lock: Lock,
    /// Where the last message was sent, and where the last one was taken.
    pub(crate) sender: CpuId,
    pub(crate) receiver: CpuId,
    /// The reader that was woken last, until it takes a message.
    pub(crate) woken: TaskId,
    /// Until when the wakeup of that reader holds the lock of its wait queue, once it is known.
    pub(crate) woken_until: Ns,
    readers: Waiters,
    writers: Waiters,
    /// PIPE_WAKE_FREED (v6.14).
    pub(crate) wakes_when_freed: bool,
    /// The oldest messages; `more` follow.
    oldest: Run,
    more: VecDeque<Run>,
    store: Store,
}

impl Channel {
    pub(crate) fn new(kind: ChannelKind) -> Channel {
        let store = match kind {
            ChannelKind::Pipe => Store::Pages(Pages::EMPTY),
            ChannelKind::Tcp => Store::Buffer { used: 0, limit: TCP_BUFFER },
            ChannelKind::Udp | ChannelKind::Unix => Store::Buffer { used: 0, limit: SOCKET_BUFFER },
        };
        Channel {
            kind,
            unread: 0,
            lock: Lock::default(),
            sender: CpuId(0),
            receiver: CpuId(0),
            woken: TaskId::NONE,
            woken_until: 0,
            readers: Waiters::EMPTY,
            writers: Waiters::EMPTY,
            wakes_when_freed: false,
            oldest: Run { bytes: 0, count: 0 },
            more: VecDeque::new(),
            store,
        }
    }

    /// `cpu` takes the lock, holds it for `locked` and for as long as it takes to pull `lines` of the
    /// channel from the CPU that used it last. Returns the time that it waits and stalls.
    #[inline(always)]
    pub(crate) fn taken_by(
        &mut self,
        cpu: CpuId,
        now: Ns,
        near: &Near,
        lines: Ns,
        locked: Ns,
    ) -> Ns {
        let line = near.line(self.lock.owner(), cpu);
        let wait = self.lock.acquire(cpu, now, now, |_, _| line) + lines * line;
        self.lock.hold(now, lines * line + locked);
        wait
    }

    /// Would [`Channel::send`] leave a message of `bytes` now?
    #[inline]
    pub(crate) fn has_room(&self, bytes: u32, slept: bool) -> bool {
        match &self.store {
            Store::Pages(pages) => pages.fits(bytes, !slept),
            Store::Buffer { used, limit } => used < limit,
        }
    }

    /// Leaves a message of `bytes`, if there is room. `slept`: the sender has waited for
    /// room; to a pipe it then writes new pages only, and passes room that is left on.
    #[inline(always)]
    pub(crate) fn send(&mut self, bytes: u32, slept: bool) -> Sent {
        let was_empty = self.unread == 0;
        let (wakes_reader, wakes_writer) = match &mut self.store {
            Store::Pages(pages) => {
                if !pages.put(bytes, !slept) {
                    return Sent::Full;
                }
                (was_empty, slept && !pages.full())
            }
            Store::Buffer { used, limit } => {
                // The last one may reach beyond the limit: memory is asked for below it.
                if *used >= *limit {
                    let lost = self.kind == ChannelKind::Udp;
                    return if lost { Sent::Lost } else { Sent::Full };
                }
                *used = used.saturating_add(truesize(bytes));
                (true, false)
            }
        };
        if was_empty {
            self.oldest = Run { bytes, count: 1 };
        } else {
            let newest = self.more.back_mut().unwrap_or(&mut self.oldest);
            if newest.bytes == bytes {
                newest.count += 1;
            } else {
                self.more.push_back(Run { bytes, count: 1 });
            }
        }
        self.unread += 1;
        Sent::Put { wakes_reader, wakes_writer }
    }

    /// Takes the oldest message; there must be one. `slept`: the receiver has waited for it.
    #[inline(always)]
    pub(crate) fn receive(&mut self, slept: bool) -> Received {
        debug_assert!(self.unread > 0, "a receiver runs on only with a message");
        let bytes = self.oldest.bytes;
        self.unread -= 1;
        self.oldest.count -= 1;
        if self.oldest.count == 0 && self.unread > 0 {
            self.oldest = self.more.pop_front().expect("unread messages are in a run");
        }
        let some_waits = self.writers.any();
        let wakes = match &mut self.store {
            Store::Pages(pages) => {
                let (was_full, used) = (pages.full(), pages.used);
                pages.take(bytes);
                // Before v6.14 a reader of a full pipe wakes a writer even if it frees no page.
                let frees = pages.used < used || !self.wakes_when_freed;
                let had_no_room = frees && (was_full | std::mem::take(&mut pages.refused));
                match (slept && self.unread > 0, had_no_room && some_waits) {
                    (false, false) => Wakes::None,
                    (true, false) => Wakes::Reader,
                    (false, true) => Wakes::Writer,
                    (true, true) => Wakes::ReaderAndWriter,
                }
            }
            Store::Buffer { used, limit } => {
                *used = used.saturating_sub(truesize(bytes));
                let enough = match self.kind {
                    ChannelKind::Tcp => *used <= *limit / 3 * 2,
                    _ => *used <= *limit / 4,
                };
                if enough && some_waits { Wakes::Writers } else { Wakes::None }
            }
        };
        Received { bytes, wakes }
    }

    /// `reader` waits for a message, behind those that already do.
    #[inline]
    pub(crate) fn wait_to_receive(&mut self, tasks: &mut TaskVec<Task>, reader: TaskId) {
        self.readers.push(tasks, reader);
    }

    /// `writer` waits for room, behind those that already do.
    pub(crate) fn wait_to_send(&mut self, tasks: &mut TaskVec<Task>, writer: TaskId) {
        self.writers.push(tasks, writer);
    }

    /// The reader that a message wakes; it no longer waits.
    #[inline]
    pub(crate) fn wake_reader(&mut self, tasks: &mut TaskVec<Task>) -> Option<TaskId> {
        self.readers.pop(tasks)
    }

    /// The writer that room wakes; it no longer waits.
    #[inline]
    pub(crate) fn wake_writer(&mut self, tasks: &mut TaskVec<Task>) -> Option<TaskId> {
        self.writers.pop(tasks)
    }

    /// All writers that wait, as a chain by `next_waiter`; they no longer wait.
    pub(crate) fn wake_writers(&mut self) -> Option<TaskId> {
        self.writers.take()
    }

    /// Fails if there is more in the channel than it can hold, or its parts disagree.
    #[cfg(any(test, debug_assertions))]
    pub(crate) fn check(&self) {
        let runs = || [self.oldest].into_iter().chain(self.more.iter().copied());
        let count: u32 = runs().map(|run| run.count).sum();
        assert_eq!(count, self.unread, "messages of {self:?}");
        let bytes: u64 = runs().map(|run| u64::from(run.bytes) * u64::from(run.count)).sum();
        let largest = runs().map(|run| truesize(run.bytes)).max().unwrap_or(0);
        match &self.store {
            Store::Pages(pages) => assert_eq!(pages.bytes(), bytes, "bytes of {self:?}"),
            Store::Buffer { used, limit } => {
                assert!(*used < limit.saturating_add(largest), "{self:?}");
                assert!((self.unread == 0) == (*used == 0), "{self:?}");
            }
        }
    }
}

/// Memory that a message takes in a socket buffer: the sk_buff, and the message rounded
/// up as the allocator does; 768 bytes for a small one.
fn truesize(bytes: u32) -> u32 {
    let linear = bytes.saturating_add(SKB_SHARED_INFO);
    if linear <= PAGE {
        return SKB + linear.next_power_of_two().max(SKB_LEAST_DATA);
    }
    (SKB + SKB_LEAST_DATA).saturating_add(bytes.div_ceil(PAGE).saturating_mul(PAGE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(channel: &mut Channel, bytes: u32) -> u32 {
        let mut n = 0;
        while matches!(channel.send(bytes, false), Sent::Put { .. }) {
            n += 1;
            channel.check();
        }
        n
    }

    #[test]
    fn a_pipe_holds_sixteen_pages_of_whole_small_messages() {
        for (bytes, messages) in
            [(1, 65_536), (100, 640), (4096, 16), (4097, 10), (65_536, 1), (3000, 16)]
        {
            assert_eq!(fill(&mut Channel::new(ChannelKind::Pipe), bytes), messages, "{bytes} B");
        }
    }

    #[test]
    fn sockets_hold_their_buffer_by_the_memory_that_messages_take() {
        // 277 messages of 768 bytes are below 212992, so that one more is let in.
        assert_eq!(fill(&mut Channel::new(ChannelKind::Unix), 100), 278);
        assert_eq!(fill(&mut Channel::new(ChannelKind::Udp), 1), 278);
        assert_eq!(
            Channel::new(ChannelKind::Udp).send(u32::MAX, false),
            Sent::Put { wakes_reader: true, wakes_writer: false }
        );
    }

    #[test]
    fn only_the_first_write_to_a_pipe_wakes_and_only_a_read_of_a_full_one() {
        let mut pipe = Channel::new(ChannelKind::Pipe);
        pipe.writers = Waiters { first: TaskId(7), last: TaskId(7) };
        let put = |wakes_reader| Sent::Put { wakes_reader, wakes_writer: false };
        assert_eq!(pipe.send(100, false), put(true));
        assert_eq!(pipe.send(100, false), put(false));
        assert_eq!(pipe.receive(false).wakes, Wakes::None);
        fill(&mut pipe, 100);
        // The first read of a page frees none of it; a writer is woken all the same.
        assert_eq!(pipe.receive(false).wakes, Wakes::Writer);
        assert_eq!(pipe.send(100, true), Sent::Full);
        while pipe.unread > 0 {
            pipe.receive(false);
            pipe.check();
        }
        assert_eq!(pipe.send(100, true), Sent::Put { wakes_reader: true, wakes_writer: true });
    }

    #[test]
    fn a_pipe_may_wake_its_writers_only_when_a_page_is_free() {
        let mut pipe = Channel { wakes_when_freed: true, ..Channel::new(ChannelKind::Pipe) };
        pipe.writers = Waiters { first: TaskId(7), last: TaskId(7) };
        fill(&mut pipe, 100);
        // 40 messages are on a page.
        for _ in 1..40 {
            assert_eq!(pipe.receive(false).wakes, Wakes::None);
        }
        assert_eq!(pipe.receive(false).wakes, Wakes::Writer);
        assert_eq!(pipe.receive(false).wakes, Wakes::None);
        // A write that found too few pages waits until one more is free.
        assert_eq!(pipe.send(8192, false), Sent::Full);
        for _ in 2..40 {
            assert_eq!(pipe.receive(false).wakes, Wakes::None);
        }
        assert_eq!(pipe.receive(false).wakes, Wakes::Writer);
    }

    #[test]
    fn writers_of_a_unix_socket_wake_when_a_quarter_is_left() {
        let mut unix = Channel::new(ChannelKind::Unix);
        unix.writers = Waiters { first: TaskId(7), last: TaskId(7) };
        fill(&mut unix, 100);
        while unix.unread > 70 {
            assert_eq!(unix.receive(false).wakes, Wakes::None, "{}", unix.unread);
        }
        assert_eq!(unix.receive(false).wakes, Wakes::Writers);
    }

    #[test]
    fn messages_keep_their_order_and_size() {
        for kind in [ChannelKind::Pipe, ChannelKind::Unix, ChannelKind::Tcp, ChannelKind::Udp] {
            let mut channel = Channel::new(kind);
            let sizes = [1, 1, 5000, 100, 100, 4096, 1];
            for round in 0..50 {
                for bytes in sizes {
                    assert!(matches!(channel.send(bytes, false), Sent::Put { .. }), "{round}");
                }
                for bytes in sizes {
                    assert_eq!(channel.receive(false).bytes, bytes);
                    channel.check();
                }
            }
        }
    }
}

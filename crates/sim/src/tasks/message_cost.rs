//! What sending and receiving a message costs on a machine, by kind of channel.

use reveille_machine::CostModel;
use reveille_measure::Ns;
use reveille_workload::ChannelKind;

/// Kernel work of one message, system calls included, wake-up and switch not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageCost {
    pub(crate) send: Ns,
    /// Sending after a wait for room: the system call has been paid.
    pub(crate) send_again: Ns,
    /// Part of a send that holds the channel's lock.
    pub(crate) send_locked: Ns,
    /// Receiving up to the point where the task blocks if there is no message.
    pub(crate) receive_begin: Ns,
    /// The rest.
    pub(crate) receive_end: Ns,
    /// Part of a receipt that holds the channel's lock.
    pub(crate) receive_locked: Ns,
    /// Extra of a receipt for each message that is still queued, if the core has sent it.
    pub(crate) receive_queued: Ns,
    /// Lines besides the lock's that a message moves between CPUs under the lock, at either end.
    pub(crate) lines: Ns,
    /// Lines of the message's buffer, which is filled at one end and freed at the other.
    pub(crate) buffer_lines: Ns,
    /// Bytes of a message's data, besides the first, that a copy waits for.
    data_bytes: u32,
}

impl MessageCost {
    /// Time to fetch a message's data from `line` ns away: at most one line.
    #[inline]
    pub(crate) fn data(&self, bytes: u32, line: Ns) -> Ns {
        line * Ns::from(bytes.saturating_sub(1).min(self.data_bytes)) / Ns::from(LINE_BYTES)
    }
}

/// Bytes of a cache line. A pipe's copy waits for one line, or the message's share of one without the first
/// byte, which `pipe_lines` has; docs/model.md says what longer messages lack.
const LINE_BYTES: u32 = 64;

/// Lines of a Unix socket that move under its lock: the receive queue, and the account of memory that
/// all senders share. The rest of `unix_lines` are the message's sk_buff and data.
const UNIX_QUEUE_LINES: u32 = 2;

/// By kind of channel, and for futexes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageCosts {
    /// In the order of the kinds.
    of_kind: [MessageCost; 4],
    pub(crate) futex: MessageCost,
    pub(crate) syscall: Ns,
    copy_kib: Ns,
}

impl MessageCosts {
    pub(crate) fn new(cost: &CostModel) -> MessageCosts {
        let syscall = Ns::from(cost.syscall_ns);
        let message = |send: u32, receive: u32, lines: u32| {
            let (send, whole) = (Ns::from(send), syscall + Ns::from(receive));
            MessageCost {
                send: syscall + send,
                send_again: send,
                send_locked: 0,
                receive_begin: whole / 2,
                receive_end: whole - whole / 2,
                receive_locked: 0,
                receive_queued: 0,
                lines: Ns::from(lines),
                buffer_lines: 0,
                data_bytes: 0,
            }
        };
        let of_kind = [ChannelKind::Pipe, ChannelKind::Udp, ChannelKind::Tcp, ChannelKind::Unix]
            .map(|kind| match kind {
                // pipe_write() and pipe_read() hold the pipe's mutex from end to end.
                ChannelKind::Pipe => MessageCost {
                    send_locked: Ns::from(cost.pipe_write_ns),
                    receive_locked: Ns::from(cost.pipe_read_ns),
                    data_bytes: LINE_BYTES,
                    ..message(cost.pipe_write_ns, cost.pipe_read_ns, cost.pipe_lines)
                },
                ChannelKind::Udp => message(cost.udp_send_ns, cost.udp_recv_ns, cost.udp_lines),
                ChannelKind::Tcp => message(cost.tcp_send_ns, cost.tcp_recv_ns, cost.tcp_lines),
                ChannelKind::Unix => {
                    let lines = cost.unix_lines.min(UNIX_QUEUE_LINES);
                    MessageCost {
                        receive_queued: Ns::from(cost.unix_queued_ns),
                        buffer_lines: Ns::from(cost.unix_lines - lines),
                        ..message(cost.unix_send_ns, cost.unix_recv_ns, lines)
                    }
                }
            });
        MessageCosts {
            of_kind,
            futex: message(cost.futex_wake_ns, cost.futex_wait_ns, 0),
            syscall,
            copy_kib: Ns::from(cost.copy_kib_ns),
        }
    }

    #[inline]
    pub(crate) fn of(&self, kind: ChannelKind) -> &MessageCost {
        &self.of_kind[kind as usize]
    }

    /// Copying a message across the kernel boundary.
    #[inline]
    pub(crate) fn copy(&self, bytes: u32) -> Ns {
        self.copy_kib * Ns::from(bytes) / 1024
    }
}

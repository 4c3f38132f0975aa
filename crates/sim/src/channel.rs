//! Messages between tasks: what sending and receiving cost, and who waits.

use reveille_machine::CostModel;
use reveille_measure::Ns;
use reveille_policy::{NONE, TaskId};
use reveille_workload::ChannelKind;

use crate::cpu::{at, some_task};
use crate::task::Task;

/// One channel: its unread messages and the tasks that wait for one, first come first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Channel {
    pub(crate) kind: ChannelKind,
    pub(crate) unread: u32,
    first_reader: TaskId,
    last_reader: TaskId,
}

impl Channel {
    pub(crate) fn new(kind: ChannelKind) -> Channel {
        Channel { kind, unread: 0, first_reader: NONE, last_reader: NONE }
    }

    /// `reader` waits for a message, behind those that already do.
    #[inline]
    pub(crate) fn wait(&mut self, tasks: &mut [Task], reader: TaskId) {
        tasks[at(reader)].next_reader = NONE;
        match self.last_reader {
            NONE => self.first_reader = reader,
            last => tasks[at(last)].next_reader = reader,
        }
        self.last_reader = reader;
    }

    /// The reader that a message wakes; it no longer waits.
    #[inline]
    pub(crate) fn wake_one(&mut self, tasks: &[Task]) -> Option<TaskId> {
        let first = some_task(self.first_reader)?;
        self.first_reader = tasks[at(first)].next_reader;
        if self.first_reader == NONE {
            self.last_reader = NONE;
        }
        Some(first)
    }
}

/// Kernel work of one message, system calls included, wake-up and switch not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageCost {
    pub(crate) send: Ns,
    /// Receiving up to the point where the task blocks if there is no message.
    pub(crate) receive_begin: Ns,
    /// The rest.
    pub(crate) receive_end: Ns,
}

/// By kind of channel, and for futexes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageCosts {
    kinds: [MessageCost; 3],
    pub(crate) futex: MessageCost,
    pub(crate) syscall: Ns,
    copy_kib: Ns,
}

impl MessageCosts {
    pub(crate) fn new(cost: &CostModel) -> MessageCosts {
        let syscall = Ns::from(cost.syscall_ns);
        let message = |send: u32, receive: u32| {
            let receive = syscall + Ns::from(receive);
            MessageCost {
                send: syscall + Ns::from(send),
                receive_begin: receive / 2,
                receive_end: receive - receive / 2,
            }
        };
        MessageCosts {
            kinds: [
                message(cost.pipe_write_ns, cost.pipe_read_ns),
                message(cost.udp_send_ns, cost.udp_recv_ns),
                message(cost.tcp_send_ns, cost.tcp_recv_ns),
            ],
            futex: message(cost.futex_wake_ns, cost.futex_wait_ns),
            syscall,
            copy_kib: Ns::from(cost.copy_kib_ns),
        }
    }

    #[inline]
    pub(crate) fn of(&self, kind: ChannelKind) -> &MessageCost {
        &self.kinds[kind as usize]
    }

    /// Copying a message across the kernel boundary.
    #[inline]
    pub(crate) fn copy(&self, bytes: u32) -> Ns {
        self.copy_kib * Ns::from(bytes) / 1024
    }
}

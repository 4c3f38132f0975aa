//! What happens when a message is sent or taken: who is woken, in which order, and
//! with which flags.

use reveille_measure::Ns;
use reveille_policy::{CpuId, TaskId, WAKE_IN_TASK, WAKE_SYNC};
use reveille_workload::{ChannelKind, Port};

use crate::hw::cpu::Toll;
use crate::ids::At;
use crate::sim::Sim;
use crate::tasks::channel::{Sent, Wakes};

impl Sim<'_> {
    /// `cpu` takes the channel's lock, holds it for `locked`, and pulls `lines` of the channel
    /// from the CPU that used it last. Returns the time that it waits and stalls.
    #[inline(always)]
    pub(crate) fn use_channel(&mut self, cpu: CpuId, index: At, lines: Ns, locked: Ns) -> Ns {
        let channel = &mut self.work.channels[index];
        let line = self.hw.near.line(channel.lock.owner(), cpu);
        let wait = channel.lock.acquire(cpu, self.now, |_, _| line);
        let stall = lines * line;
        let hold = stall + self.cpus[cpu].stretch(locked);
        channel.lock.release(self.now + wait + hold);
        wait + stall
    }

    /// What a send costs that begins now: its wait for the channel, and its work. A sender
    /// that finds no room only looks.
    #[inline(always)]
    pub(crate) fn send_cost(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        channel: Port,
        bytes: u32,
    ) -> (Ns, Ns) {
        let t = &self.tasks[task];
        let index = At(t.spec.channel(channel));
        let (resumed, room) = (t.resumed, self.work.channels[index].has_room(bytes, t.slept));
        let cost = *self.work.messages.of(self.work.channels[index].kind);
        if !room {
            let call = if resumed { 0 } else { self.work.messages.syscall };
            return (self.use_channel(cpu, index, 0, 0), call);
        }
        let copy = self.work.messages.copy(bytes);
        let wait = self.use_channel(cpu, index, self.work.messages.lines, cost.send_locked + copy);
        (wait, copy + if resumed { cost.send_again } else { cost.send })
    }

    /// The time of a send is over: the message is there, or the sender waits for room.
    #[inline(always)]
    pub(crate) fn send(&mut self, cpu: CpuId, task: TaskId, channel: Port, bytes: u32) {
        let t = &mut self.tasks[task];
        let index = At(t.spec.channel(channel));
        let channel = &mut self.work.channels[index];
        match channel.send(bytes, t.slept) {
            Sent::Full => {
                (t.resumed, t.slept) = (true, true);
                channel.wait_to_send(&mut self.tasks, task);
                self.block(cpu);
                return;
            }
            Sent::Lost => self.next_op(task),
            Sent::Put { wakes_reader, wakes_writer } => {
                let flags = WAKE_SYNC | in_task(channel.kind);
                let reader = if wakes_reader { channel.wake_reader(&mut self.tasks) } else { None };
                let writer = if wakes_writer { channel.wake_writer(&mut self.tasks) } else { None };
                self.next_op(task);
                if let (Some(_), Some(writer)) = (reader, writer) {
                    self.wake_later(task, writer, flags);
                }
                if let Some(first) = reader.or(writer) {
                    self.wake(cpu, first, flags);
                    return;
                }
            }
        }
        self.proceed(cpu, Toll::default());
    }

    /// Takes a message; returns its size. Whom that wakes is left to [`Sim::wake_next`].
    #[inline]
    pub(crate) fn take_message(&mut self, task: TaskId, channel: Port) -> u32 {
        let t = &self.tasks[task];
        let channel = &mut self.work.channels[At(t.spec.channel(channel))];
        let received = channel.receive(t.slept);
        if received.wakes_reader || received.wakes_writers != Wakes::None {
            // A TCP sender's room is reported by an acknowledgement, in softirq and not sync.
            let flags = match channel.kind {
                ChannelKind::Tcp => 0,
                kind => WAKE_SYNC | in_task(kind),
            };
            let writer = match received.wakes_writers {
                Wakes::None => None,
                Wakes::One => channel.wake_writer(&mut self.tasks),
                Wakes::All => channel.wake_writers(),
            };
            let reader =
                if received.wakes_reader { channel.wake_reader(&mut self.tasks) } else { None };
            // Only a pipe wakes both, and of its writers one.
            for woken in [reader, writer].into_iter().flatten() {
                self.wake_later(task, woken, flags);
            }
        }
        received.bytes
    }

    /// Puts `woken`, and the chain behind it, before those that `task` still has to wake.
    pub(crate) fn wake_later(&mut self, task: TaskId, woken: TaskId, flags: u32) {
        let before = std::mem::replace(&mut self.tasks[task].to_wake, woken);
        self.tasks[task].to_wake_flags = flags;
        if before != TaskId::NONE {
            debug_assert_eq!(self.tasks[woken].next_waiter, TaskId::NONE, "a chain comes first");
            self.tasks[woken].next_waiter = before;
        }
    }

    /// Wakes the next task that the finished operation has to wake.
    pub(crate) fn wake_next(&mut self, cpu: CpuId, task: TaskId) {
        let woken = self.tasks[task].to_wake;
        let next = std::mem::replace(&mut self.tasks[woken].next_waiter, TaskId::NONE);
        self.tasks[task].to_wake = next;
        let flags = self.tasks[task].to_wake_flags;
        self.wake(cpu, woken, flags);
    }
}

/// Pipes and Unix sockets wake in the context of the task, loopback in softirq.
#[inline]
fn in_task(kind: ChannelKind) -> u32 {
    match kind {
        ChannelKind::Pipe | ChannelKind::Unix => WAKE_IN_TASK,
        ChannelKind::Udp | ChannelKind::Tcp => 0,
    }
}

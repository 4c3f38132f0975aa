//! What happens when a message is sent or taken: who is woken, in which order, and
//! with which flags.

use reveille_machine::Distance;
use reveille_measure::Ns;
use reveille_policy::{CpuId, TaskId, WAKE_IN_TASK, WAKE_SYNC};
use reveille_workload::{ChannelKind, Op, Port};

use crate::hw::cpu::{Step, Toll};
use crate::ids::At;
use crate::sim::Sim;
use crate::tasks::channel::{Sent, Wakes};
use crate::tasks::task::Place;
use crate::tasks::work::Work;

impl Sim<'_> {
    /// What a send costs that begins now: its wait for the channel, and its work. A sender
    /// that finds no room only looks.
    #[inline(always)]
    pub(crate) fn send_cost(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        port: Port,
        bytes: u32,
    ) -> (Ns, Ns) {
        let (t, c, Work { channels, messages, .. }) =
            (&self.tasks[task], &self.cpus[cpu], &mut self.work);
        let channel = &mut channels[At(t.spec.channel(port))];
        if !channel.has_room(bytes, t.slept) {
            let call = if t.resumed { 0 } else { messages.syscall };
            return (channel.taken_by(cpu, self.now, &self.hw.near, 0, 0), call);
        }
        let (cost, copy) = (messages.of(channel.kind), messages.copy(bytes));
        let line = self.hw.near.line(channel.receiver, cpu);
        let data = cost.data(bytes, line);
        let locked = c.stretch(cost.send_locked + copy) + data;
        let wait = channel.taken_by(cpu, self.now, &self.hw.near, cost.lines, locked)
            + data
            + cost.buffer_lines * line;
        channel.sender = cpu;
        (wait, copy + if t.resumed { cost.send_again } else { cost.send })
    }

    /// sock_def_readable() takes the lock of the wait queue if a reader is in it. The waker of that
    /// reader holds the lock, and leaves the reader in the queue, until it has enqueued it. Does `cpu`,
    /// which sends, spin until then? The send is done again afterwards.
    #[cold]
    fn waits_for_wakeup(&mut self, cpu: CpuId, index: At) -> bool {
        let channel = &self.work.channels[index];
        let woken = &self.tasks[channel.woken];
        let until = if woken.place == Place::Waking {
            // Its waker is still selecting: what follows that is known when it ends.
            self.cpus[woken.waker_cpu].end.max(self.now) + 1
        } else {
            channel.woken_until
        };
        let spin = Toll { stall: until.saturating_sub(self.now), cost: 0 };
        if spin.stall > 0 {
            self.begin(cpu, Step::Op, spin, 0, None);
        }
        spin.stall > 0
    }

    /// `wakee`, which may have waited for a message, has been enqueued by `cpu`, which is through
    /// with that after `toll`.
    #[inline]
    pub(crate) fn reader_enqueued(&mut self, cpu: CpuId, wakee: TaskId, toll: Toll) {
        if !self.work.has_unix {
            return;
        }
        if let Op::Recv { channel, .. } = *self.op(wakee) {
            let until = self.after(cpu, toll);
            let channel = &mut self.work.channels[At(self.tasks[wakee].spec.channel(channel))];
            if channel.woken == wakee {
                channel.woken_until = until;
            }
        }
    }

    /// The time of a send is over: the message is there, or the sender waits for room. Returns whether
    /// the sender proceeds at once.
    #[inline(always)]
    pub(crate) fn send(&mut self, cpu: CpuId, task: TaskId, port: Port, bytes: u32) -> bool {
        let index = At(self.tasks[task].spec.channel(port));
        if self.work.channels[index].woken != TaskId::NONE && self.waits_for_wakeup(cpu, index) {
            return false;
        }
        let t = &mut self.tasks[task];
        let channel = &mut self.work.channels[index];
        match channel.send(bytes, t.slept) {
            Sent::Full => {
                (t.resumed, t.slept) = (true, true);
                channel.wait_to_send(&mut self.tasks, task);
                self.block(cpu);
                return false;
            }
            Sent::Lost | Sent::Put { wakes_reader: false, wakes_writer: false } => {
                self.next_op(task);
            }
            Sent::Put { wakes_reader, wakes_writer } => {
                let flags = WAKE_SYNC | in_task(channel.kind);
                let reader = if wakes_reader { channel.wake_reader(&mut self.tasks) } else { None };
                if let (Some(reader), ChannelKind::Unix) = (reader, channel.kind) {
                    (channel.woken, channel.woken_until) = (reader, 0);
                }
                let writer = if wakes_writer { channel.wake_writer(&mut self.tasks) } else { None };
                self.next_op(task);
                if let (Some(_), Some(writer)) = (reader, writer) {
                    self.wake_later(task, writer, flags);
                }
                if let Some(first) = reader.or(writer) {
                    self.wake(cpu, first, flags);
                    return false;
                }
            }
        }
        true
    }

    /// Receives a message that is there, after a call that has begun. Returns the wait for the
    /// channel, and the work. Whom it wakes is left to [`Sim::wake_next`].
    #[inline(always)]
    pub(crate) fn receive(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        index: At,
        (framed, discard): (bool, bool),
    ) -> (Ns, Ns) {
        let (t, c, Work { channels, messages, .. }) =
            (&self.tasks[task], &self.cpus[cpu], &mut self.work);
        let channel = &mut channels[index];
        let cost = messages.of(channel.kind);
        let mut work = cost.receive_end;
        if framed {
            // The call for the rest finds it there.
            work += cost.receive_begin + cost.receive_end;
        }
        let received = channel.receive(t.slept);
        let line = self.hw.near.line(channel.sender, cpu);
        let data = cost.data(received.bytes, line);
        let locked = c.stretch(cost.receive_locked) + data;
        let wait = channel.taken_by(cpu, self.now, &self.hw.near, cost.lines, locked)
            + data
            + cost.buffer_lines * line;
        if channel.kind == ChannelKind::Unix {
            // A buffer that another core has filled comes from there, however long it has waited.
            let from = self.hw.near.distance(channel.sender, cpu);
            if matches!(from, Distance::Same | Distance::Smt) {
                work += cost.receive_queued * Ns::from(channel.unread);
            }
            channel.woken = TaskId::NONE;
        }
        channel.receiver = cpu;
        if !discard {
            work += messages.copy(received.bytes);
        }
        if received.wakes != Wakes::None {
            self.wake_for_room(task, index, received.wakes);
        }
        (wait, work)
    }

    fn wake_for_room(&mut self, task: TaskId, index: At, wakes: Wakes) {
        let channel = &mut self.work.channels[index];
        // A TCP sender's room is reported by an acknowledgement, in softirq and not sync.
        let flags = match channel.kind {
            ChannelKind::Tcp => 0,
            kind => WAKE_SYNC | in_task(kind),
        };
        let writer = match wakes {
            Wakes::None | Wakes::Reader => None,
            Wakes::Writer | Wakes::ReaderAndWriter => channel.wake_writer(&mut self.tasks),
            Wakes::Writers => channel.wake_writers(),
        };
        let reader = match wakes {
            Wakes::Reader | Wakes::ReaderAndWriter => channel.wake_reader(&mut self.tasks),
            _ => None,
        };
        // Only a pipe wakes both, and of its writers one.
        for woken in [reader, writer].into_iter().flatten() {
            self.wake_later(task, woken, flags);
        }
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

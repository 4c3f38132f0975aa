//! hackbench of rt-tests 2.x: in each group every sender writes to every receiver of the
//! group in turn; what counts is the time from the start of all to the end of the last.
//! <https://git.kernel.org/pub/scm/utils/rt-tests/rt-tests.git>

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::io::{Errno, read, write};
use serde::{Deserialize, Serialize};

use super::channel::Transport;
use super::crew::{Crew, Mode};
use super::gate::Gate;
use super::limits::{allow_files, allow_tasks, at_least_one};
use super::lines::Lines;
use super::tasks::{Spread, Tasks, use_of};
use crate::child::{AnyJob, Job};
use crate::sys::{clock, realtime};
use crate::{HostError, Ns, TaskUse};

/// The original keeps the message on its stack, which ends here by default.
const MAX_BYTES: u32 = 8 << 20;
/// The fix for most that can go wrong.
const FEWER: &str = "use fewer groups (-g) or receivers (-f)";

/// What to run; the options of the original.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hackbench {
    /// Groups.
    pub groups: u32,
    /// Senders of each group, and receivers.
    pub fds: u32,
    /// Messages that each sender sends to each receiver.
    pub loops: u32,
    /// Size of a message in bytes.
    pub bytes: u32,
    /// How messages travel.
    pub transport: Transport,
    /// What senders and receivers are.
    pub mode: Mode,
    /// Is the main task to be under `SCHED_FIFO` once all are started?
    pub fifo: bool,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HackbenchRun {
    /// From the start of all until the last has ended.
    pub elapsed_ns: Ns,
    /// Messages that senders wrote.
    pub sent: u64,
    /// Messages that receivers read.
    pub received: u64,
    /// Messages received per second.
    pub messages_per_s: f64,
    /// When each sender had sent its last message, in ns since the start.
    pub senders_end_ns: Spread,
    /// When each receiver had received its last message, in ns since the start.
    pub receivers_end_ns: Spread,
    /// What the tasks used from their beginning to their end.
    pub tasks: Tasks,
}

impl Job for Hackbench {
    type Output = HackbenchRun;

    fn tasks(run: &HackbenchRun) -> Option<&TaskUse> {
        Some(&run.tasks.total)
    }
}

impl From<Hackbench> for AnyJob {
    fn from(job: Hackbench) -> AnyJob {
        AnyJob::Hackbench(job)
    }
}

/// What every task of a run has in hand.
struct Common {
    job: Hackbench,
    gate: Gate,
    lines: Lines,
}

impl Hackbench {
    pub(crate) fn run(self) -> Result<HackbenchRun, HostError> {
        self.check()?;
        let (groups, fds) = (self.groups as usize, self.fds as usize);
        let (mode, fifo) = (self.mode, self.fifo);
        let gate = Gate::new(self.transport)?;
        let common = Arc::new(Common { job: self, gate, lines: Lines::new(2 * groups * fds)? });
        let mut crew = Crew::new()?;
        for group in 0..groups {
            match mode {
                Mode::Process => processes(&mut crew, &common, group)?,
                Mode::Thread => threads(&mut crew, &common, group)?,
            }
        }
        crew.complete();
        if fifo {
            realtime::become_fifo().map_err(|error| {
                let help = "run as root, or leave out `-F`";
                HostError::system("become a real-time task (`-F`)", error, help)
            })?;
        }
        common.gate.await_ready(crew.len(), &crew)?;
        let start = common.gate.open()?;
        crew.wait(None)?;
        let elapsed_ns = (clock::now() - start).max(1);
        let run = common.account(start, elapsed_ns)?;
        crew.dismiss()?;
        Ok(run)
    }

    fn check(&self) -> Result<(), HostError> {
        at_least_one(self.groups.into(), "-g", "group")?;
        at_least_one(self.fds.into(), "-f", "sender and no receiver")?;
        at_least_one(self.loops.into(), "-l", "message")?;
        at_least_one(self.bytes.into(), "-s", "byte to send")?;
        if self.bytes > MAX_BYTES {
            let problem = format!("`-s {}`: a message is at most {MAX_BYTES} bytes", self.bytes);
            return Err(HostError::input(problem, "send smaller messages"));
        }
        let receivers = u64::from(self.groups) * u64::from(self.fds);
        allow_tasks(receivers.saturating_mul(2), FEWER)?;
        match self.mode {
            // Of its own group a process has the ends to write to, and one to read from.
            Mode::Process => allow_files(u64::from(self.fds) + 1, FEWER),
            Mode::Thread => allow_files(2 * receivers, &format!("{FEWER}, or processes (-P)")),
        }
    }
}

/// Starts a group, each task a process. In the order of the original: whatever has been
/// opened so far is inherited.
fn processes(crew: &mut Crew, common: &Arc<Common>, group: usize) -> Result<(), HostError> {
    let fds = common.job.fds as usize;
    let mut writers = Vec::with_capacity(fds);
    for i in 0..fds {
        let (reader, writer) = common.job.transport.pair()?;
        let mut writer = Some(writer);
        let closed = &mut writer;
        crew.process(common.name("receiver", group, i), || {
            // A process has memory of its own: the parent keeps what is closed here.
            drop(closed.take());
            common.receive(&reader, group, i)
        })?;
        writers.extend(writer);
    }
    for i in 0..fds {
        crew.process(common.name("sender", group, i), || common.send(&writers, group, i))?;
    }
    Ok(())
}

/// Starts a group, each task a thread.
fn threads(crew: &mut Crew, common: &Arc<Common>, group: usize) -> Result<(), HostError> {
    let fds = common.job.fds as usize;
    let mut writers = Vec::with_capacity(fds);
    for i in 0..fds {
        let (reader, writer) = common.job.transport.pair()?;
        writers.push(writer);
        let own = Arc::clone(common);
        crew.thread(common.name("receiver", group, i), move || own.receive(&reader, group, i))?;
    }
    let writers = Arc::new(writers);
    for i in 0..fds {
        let (own, writers) = (Arc::clone(common), Arc::clone(&writers));
        crew.thread(common.name("sender", group, i), move || own.send(&writers, group, i))?;
    }
    Ok(())
}

impl Common {
    fn name(&self, role: &str, group: usize, i: usize) -> String {
        format!("{role} {} of group {}", i + 1, group + 1)
    }

    /// The line of a task; receivers come first in each group.
    fn line(&self, group: usize, i: usize) -> usize {
        group * 2 * self.job.fds as usize + i
    }

    fn receive(&self, channel: &OwnedFd, group: usize, i: usize) -> Result<(), Errno> {
        let line = self.lines.of(self.line(group, i));
        line.introduce();
        let mut data = vec![0; self.job.bytes as usize];
        self.gate.pass()?;
        let messages = u64::from(self.job.fds) * u64::from(self.job.loops);
        let channel = channel.as_fd();
        for _ in 0..messages {
            let mut done = 0;
            while done < data.len() {
                match read(channel, &mut data[done..]) {
                    // Nobody is left who writes.
                    Ok(0) => return Err(Errno::PIPE),
                    Ok(n) => done += n,
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        line.finish(messages);
        Ok(())
    }

    fn send(&self, channels: &[OwnedFd], group: usize, i: usize) -> Result<(), Errno> {
        let line = self.lines.of(self.line(group, self.job.fds as usize + i));
        line.introduce();
        let mut data = vec![0; self.job.bytes as usize];
        self.gate.pass()?;
        data.fill(b'-');
        let mut messages = 0;
        for _ in 0..self.job.loops {
            for channel in channels {
                let mut done = 0;
                while done < data.len() {
                    match write(channel, &data[done..]) {
                        Ok(n) => done += n,
                        Err(Errno::INTR) => {}
                        Err(error) => return Err(error),
                    }
                }
                messages += 1;
            }
        }
        line.finish(messages);
        Ok(())
    }

    fn account(&self, start: Ns, elapsed_ns: Ns) -> Result<HackbenchRun, HostError> {
        let process = (self.job.mode == Mode::Thread).then(std::process::id);
        let uses: Result<Vec<_>, _> = self.lines.iter().map(|line| use_of(line, process)).collect();
        let fds = self.job.fds as usize;
        let (mut receivers, mut senders) = (Vec::new(), Vec::new());
        for (i, line) in self.lines.iter().enumerate() {
            if i % (2 * fds) < fds { &mut receivers } else { &mut senders }.push(line);
        }
        let end = |line: &super::lines::Line<'_>| line.finished().saturating_sub(start) as f64;
        let received: u64 = receivers.iter().map(|line| line.counted()).sum();
        Ok(HackbenchRun {
            elapsed_ns,
            sent: senders.iter().map(|line| line.counted()).sum(),
            received,
            messages_per_s: received as f64 * 1e9 / elapsed_ns as f64,
            senders_end_ns: Spread::of(senders.iter().map(end)),
            receivers_end_ns: Spread::of(receivers.iter().map(end)),
            tasks: Tasks::of(&uses?),
        })
    }
}

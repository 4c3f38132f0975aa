//! context_switch1 of will-it-scale: pairs of tasks pass a byte through two pipes, each
//! pair bound to a core unless told otherwise. The first of a pair starts the second.
//! <https://github.com/antonblanchard/will-it-scale> (main.c, tests/context_switch1.c)

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use reveille_machine::CpuId;
use rustix::io::{Errno, read, retry_on_intr, write};
use rustix::process::{WaitOptions, waitpid};
use serde::{Deserialize, Serialize};

use super::channel::Transport;
use super::crew::{Crew, Mode};
use super::gate::Gate;
use super::limits::{allow_files, allow_tasks, at_least_one};
use super::lines::Lines;
use super::phase::{Phase, PhaseWord};
use super::tasks::Tasks;
use super::timed::{PATIENCE, Pairs, Span, Timed, measure};
use crate::child::{AnyJob, Job};
use crate::sys::{cpu, process};
use crate::{HostError, TaskUse};

/// The fix for most that can go wrong.
const FEWER: &str = "use fewer pairs (-t)";
/// Switches that a round trip stands for, as the original counts.
const PER_TRIP: u64 = 2;

/// To what a pair is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Binding {
    /// To all threads of a core.
    Core,
    /// To one thread of a core.
    Thread,
    /// To nothing.
    None,
}

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextSwitch {
    /// Pairs of tasks; the original calls them tasks.
    pub pairs: u32,
    /// What they are.
    pub mode: Mode,
    /// To what each pair is bound; pairs go round the cores in turn.
    pub binding: Binding,
    /// How long.
    pub span: Span,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContextSwitchRun {
    /// The original's figures: it counts two operations for each round trip.
    #[serde(flatten)]
    pub timed: Timed,
    /// Bytes that the first tasks of all pairs sent and got back, warm-up included.
    pub round_trips: u64,
    /// Bytes that the second tasks got and sent back.
    pub answered: u64,
    /// What the tasks used in the time measured.
    pub tasks: Tasks,
}

impl Job for ContextSwitch {
    type Output = ContextSwitchRun;

    fn tasks(run: &ContextSwitchRun) -> Option<&TaskUse> {
        Some(&run.tasks.total)
    }
}

impl From<ContextSwitch> for AnyJob {
    fn from(job: ContextSwitch) -> AnyJob {
        AnyJob::ContextSwitch(job)
    }
}

/// What every task has in hand.
struct Common {
    gate: Gate,
    lines: Lines,
    phase: PhaseWord,
}

impl ContextSwitch {
    pub(crate) fn run(self) -> Result<ContextSwitchRun, HostError> {
        at_least_one(self.pairs.into(), "-t", "pair")?;
        self.span.check("-s")?;
        let pairs = self.pairs as usize;
        allow_tasks(2 * u64::from(self.pairs), FEWER)?;
        if self.mode == Mode::Thread {
            allow_files(4 * u64::from(self.pairs), FEWER)?;
        }
        let places = places(self.binding)?;
        let (gate, lines) = (Gate::new(Transport::Pipe)?, Lines::new(2 * pairs)?);
        let common = Arc::new(Common { gate, lines, phase: PhaseWord::new()? });
        let mut crew = Crew::new()?;
        for pair in 0..pairs {
            let place = places.get(pair % places.len().max(1)).cloned().unwrap_or_default();
            let (who, own) = (format!("pair {}", pair + 1), Arc::clone(&common));
            match self.mode {
                Mode::Process => crew.process(who, || own.first(pair, &place, Mode::Process))?,
                Mode::Thread => {
                    crew.thread(who, move || own.first(pair, &place, Mode::Thread))?;
                }
            }
        }
        crew.complete();
        common.gate.await_ready(pairs, &crew)?;
        common.gate.open()?;
        common.await_seconds(&crew)?;
        let process = (self.mode == Mode::Thread).then(std::process::id);
        let watched = Pairs { lines: &common.lines, process, per_message: PER_TRIP, timed: false };
        let (timed, tasks) = measure(&crew, &watched, self.span, || {})?;
        common.phase.set(Phase::Stop);
        crew.wait(Some(PATIENCE))?;
        crew.dismiss()?;
        let count = |side| common.lines.iter().skip(side).step_by(2).map(|l| l.counted()).sum();
        Ok(ContextSwitchRun { timed, round_trips: count(0), answered: count(1), tasks })
    }
}

impl Common {
    /// Waits until the second task of each pair is there.
    fn await_seconds(&self, crew: &Crew) -> Result<(), HostError> {
        while self.lines.iter().any(|line| line.task() == 0) {
            crew.watch_until(crate::sys::clock::now() + 1_000_000)?;
        }
        Ok(())
    }

    /// The first task of a pair, which starts the second one.
    fn first(self: &Arc<Self>, pair: usize, place: &[CpuId], mode: Mode) -> Result<(), Errno> {
        let line = self.lines.of(2 * pair);
        line.introduce();
        if !place.is_empty() {
            cpu::pin(place).map_err(as_errno)?;
        }
        self.gate.pass()?;
        let ((their_reader, writer), (reader, their_writer)) =
            (rustix::pipe::pipe()?, rustix::pipe::pipe()?);
        match mode {
            Mode::Process => {
                let mut ends = Some((reader, writer));
                let not_theirs = &mut ends;
                let second = process::spawn(move || {
                    drop(not_theirs.take());
                    let result = self.second(pair, &their_reader, &their_writer);
                    result.map_or_else(|error| error.raw_os_error(), |()| 0)
                });
                let second = second.map_err(as_errno)?;
                let (reader, writer) = ends.expect("taken in the other process alone");
                self.begin(pair, &reader, writer)?;
                match retry_on_intr(|| waitpid(Some(second), WaitOptions::empty()))? {
                    Some((_, status)) if status.exit_status() == Some(0) => Ok(()),
                    _ => Err(Errno::CHILD),
                }
            }
            Mode::Thread => {
                let own = Arc::clone(self);
                let second = std::thread::Builder::new()
                    .stack_size(super::crew::STACK_BYTES)
                    .spawn(move || own.second(pair, &their_reader, &their_writer))
                    .map_err(as_errno)?;
                self.begin(pair, &reader, writer)?;
                second.join().map_err(|_| Errno::CHILD)?
            }
        }
    }

    /// The first task's loop; closes the pipe when told to stop.
    fn begin(&self, pair: usize, reader: &OwnedFd, writer: OwnedFd) -> Result<(), Errno> {
        let line = self.lines.of(2 * pair);
        let mut byte = [0];
        let mut trips = 0;
        let (from, to) = (reader.as_fd(), writer.as_fd());
        while self.phase.goes_on() {
            if retry_on_intr(|| write(to, &byte))? != 1
                || retry_on_intr(|| read(from, &mut byte))? != 1
            {
                return Err(Errno::PIPE);
            }
            trips += 1;
            line.count(trips);
            line.look(trips);
        }
        Ok(())
    }

    /// The second task's loop, until the pipe is closed.
    fn second(&self, pair: usize, reader: &OwnedFd, writer: &OwnedFd) -> Result<(), Errno> {
        let (line, first) = (self.lines.of(2 * pair + 1), self.lines.of(2 * pair));
        line.introduce();
        let mut byte = [0];
        let mut trips = 0;
        let (from, to) = (reader.as_fd(), writer.as_fd());
        while retry_on_intr(|| read(from, &mut byte))? == 1 {
            if retry_on_intr(|| write(to, &byte))? != 1 {
                return Err(Errno::PIPE);
            }
            trips += 1;
            line.count(trips);
            line.compare(trips, first);
        }
        Ok(())
    }
}

/// The sets of CPUs that pairs are bound to in turn: cores in the order of the topology,
/// as far as this process may use them. None if pairs are not bound.
fn places(binding: Binding) -> Result<Vec<Vec<CpuId>>, HostError> {
    let allowed = cpu::allowed()
        .map_err(|e| HostError::system("read the affinity", e, "leave pairs unbound (-n)"))?;
    let cores = || -> Result<Vec<Vec<CpuId>>, HostError> {
        let machine = reveille_machine::read_sysfs(Path::new("/sys"))
            .map_err(|e| HostError::input(e.to_string(), "leave pairs unbound (-n)"))?;
        let topology = &machine.topology;
        let os_cpu = |&cpu: &CpuId| topology.cpus()[cpu as usize].os_cpu;
        let core = |core| topology.core_cpus(core).iter().map(os_cpu).collect::<Vec<CpuId>>();
        Ok((0..topology.n_cores() as u32).map(core).collect())
    };
    let places = match binding {
        Binding::None => return Ok(Vec::new()),
        Binding::Thread => cores()?.concat().into_iter().map(|cpu| vec![cpu]).collect(),
        Binding::Core => cores()?,
    };
    let usable = |mut place: Vec<CpuId>| {
        place.retain(|cpu| allowed.contains(cpu));
        (!place.is_empty()).then_some(place)
    };
    Ok(places.into_iter().filter_map(usable).collect())
}

fn as_errno(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

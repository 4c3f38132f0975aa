//! `perf bench sched pipe`: two tasks pass a number back and forth through two pipes. The
//! time includes starting one (as a process) or both (as threads) and their end.
//! <https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/tools/perf/bench/sched-pipe.c>

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::io::{Errno, read, write};
use serde::{Deserialize, Serialize};

use super::channel::Transport;
use super::crew::{Crew, Mode};
use super::limits::at_least_one;
use super::lines::{LOOK_EVERY, Lines};
use super::tasks::{Tasks, use_of};
use super::timed::PATIENCE;
use crate::child::{AnyJob, Job};
use crate::sys::clock;
use crate::{HostError, Ns, TaskUse};

/// What to run; the options of the original.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedPipe {
    /// Round trips.
    pub loops: u64,
    /// What the two are.
    pub mode: Mode,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SchedPipeRun {
    /// From before the start of the tasks until both have ended.
    pub elapsed_ns: Ns,
    /// Messages that the first one sent and got back.
    pub round_trips: u64,
    /// Messages that the second one got and sent back.
    pub answered: u64,
    /// Time of a round trip in µs.
    pub us_per_op: f64,
    /// Round trips per second.
    pub ops_per_s: f64,
    /// How often both were seen on one CPU, in percent; none if they were never compared,
    /// since too little passed between them.
    pub same_cpu_pct: Option<f64>,
    /// What the tasks used.
    pub tasks: Tasks,
}

impl Job for SchedPipe {
    type Output = SchedPipeRun;

    fn tasks(run: &SchedPipeRun) -> Option<&TaskUse> {
        Some(&run.tasks.total)
    }
}

impl From<SchedPipe> for AnyJob {
    fn from(job: SchedPipe) -> AnyJob {
        AnyJob::SchedPipe(job)
    }
}

/// What both tasks have in hand.
struct Common {
    loops: u64,
    lines: Lines,
}

/// One task's ends of the two pipes. It must have no others: the end of the other task
/// would not be noticed.
struct Ends {
    reader: OwnedFd,
    writer: OwnedFd,
}

const BEGINS: usize = 0;
const ANSWERS: usize = 1;

impl SchedPipe {
    pub(crate) fn run(self) -> Result<SchedPipeRun, HostError> {
        at_least_one(self.loops, "-l", "round trip")?;
        let common = Arc::new(Common { loops: self.loops, lines: Lines::new(2)? });
        let mut crew = Crew::new()?;
        let before = match self.mode {
            Mode::Thread => TaskUse::default(),
            Mode::Process => TaskUse::of_this_thread().map_err(no_figures)?,
        };
        let start = clock::now();
        let (there, back) = (Transport::Pipe.pair()?, Transport::Pipe.pair()?);
        let (begins, answers) =
            (Ends { reader: back.0, writer: there.1 }, Ends { reader: there.0, writer: back.1 });
        match self.mode {
            Mode::Thread => in_threads(&mut crew, &common, begins, answers)?,
            Mode::Process => in_processes(&mut crew, &common, begins, answers)?,
        }
        crew.wait(None)?;
        let elapsed_ns = (clock::now() - start).max(1);
        let run = common.account(self.mode, elapsed_ns, before)?;
        crew.dismiss()?;
        Ok(run)
    }
}

fn in_threads(
    crew: &mut Crew,
    common: &Arc<Common>,
    begins: Ends,
    answers: Ends,
) -> Result<(), HostError> {
    let own = Arc::clone(common);
    crew.thread("the answering thread".to_owned(), move || own.answer(&answers))?;
    let own = Arc::clone(common);
    crew.thread("the beginning thread".to_owned(), move || own.begin(&begins))?;
    crew.complete();
    Ok(())
}

/// As in the original, this process is one of the two.
fn in_processes(
    crew: &mut Crew,
    common: &Arc<Common>,
    begins: Ends,
    answers: Ends,
) -> Result<(), HostError> {
    let mut begins = Some(begins);
    let not_mine = &mut begins;
    crew.process("the answering process".to_owned(), move || {
        drop(not_mine.take());
        common.answer(&answers)
    })?;
    crew.complete();
    let begins = begins.expect("taken in the other process alone");
    common.begin(&begins).or_else(|error| {
        // That process has ended, or soon will have.
        crew.wait(Some(PATIENCE))?;
        let help = "report it with the command line";
        Err(HostError::system("pass a message", error, help))
    })
}

fn no_figures(error: std::io::Error) -> HostError {
    HostError::system("read /proc", error, "mount it")
}

impl Common {
    fn begin(&self, ends: &Ends) -> Result<(), Errno> {
        let line = self.lines.of(BEGINS);
        line.introduce();
        let (reader, writer) = (ends.reader.as_fd(), ends.writer.as_fd());
        let mut number = [0; 4];
        let message = || {
            whole(|| write(writer, &number))?;
            whole(|| read(reader, &mut number))
        };
        in_stretches(self.loops, 1, message, || line.note_cpu())?;
        line.count(self.loops);
        Ok(())
    }

    fn answer(&self, ends: &Ends) -> Result<(), Errno> {
        let (line, first) = (self.lines.of(ANSWERS), self.lines.of(BEGINS));
        line.introduce();
        let (reader, writer) = (ends.reader.as_fd(), ends.writer.as_fd());
        let mut number = [0; 4];
        let message = || {
            whole(|| read(reader, &mut number))?;
            whole(|| write(writer, &number))
        };
        in_stretches(self.loops, 2, message, || line.compare_cpu(first))?;
        line.count(self.loops);
        Ok(())
    }

    fn account(
        &self,
        mode: Mode,
        elapsed_ns: Ns,
        before: TaskUse,
    ) -> Result<SchedPipeRun, HostError> {
        let process = (mode == Mode::Thread).then(std::process::id);
        let (begins, answers) = (self.lines.of(BEGINS), self.lines.of(ANSWERS));
        let uses = [use_of(begins, process)? - before, use_of(answers, process)?];
        let looks = answers.looks();
        let trips = begins.counted();
        Ok(SchedPipeRun {
            elapsed_ns,
            round_trips: trips,
            answered: answers.counted(),
            us_per_op: elapsed_ns as f64 / 1e3 / trips as f64,
            ops_per_s: trips as f64 * 1e9 / elapsed_ns as f64,
            same_cpu_pct: (looks.all > 0).then(|| 100.0 * looks.same as f64 / looks.all as f64),
            tasks: Tasks::of(&uses),
        })
    }
}

/// Passes so many messages, and looks after the first `stretch` of them and from then on
/// every so often. The loop itself has nothing else to do.
#[inline(always)]
fn in_stretches(
    messages: u64,
    stretch: u64,
    mut message: impl FnMut() -> Result<(), Errno>,
    look: impl Fn(),
) -> Result<(), Errno> {
    let (mut left, mut stretch) = (messages, stretch);
    while left >= stretch {
        for _ in 0..stretch {
            message()?;
        }
        look();
        left -= stretch;
        stretch = LOOK_EVERY;
    }
    for _ in 0..left {
        message()?;
    }
    Ok(())
}

/// The number travels whole, or the other side is gone.
#[inline(always)]
fn whole(mut call: impl FnMut() -> Result<usize, Errno>) -> Result<(), Errno> {
    loop {
        match call() {
            Ok(4) => return Ok(()),
            Ok(_) => return Err(Errno::PIPE),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

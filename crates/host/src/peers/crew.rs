//! The tasks of a run: processes or threads that sign off when their work is done, and a
//! parent that learns of it when one dies instead.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;

use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, WaitIdStatus, WaitOptions, waitid, waitpid};
use rustix::time::Timespec;
use serde::{Deserialize, Serialize};

use crate::sys::clock;
use crate::sys::futex::{self, Doorbell, Scope};
use crate::sys::process::{PANICKED, kill_and_reap, spawn};
use crate::sys::shared::{OwnLine, SharedSlice};
use crate::{HostError, Ns};

/// How long a death without a word may go unnoticed.
const LOOK_AFTER_NS: Ns = 250_000_000;
/// As [`LOOK_AFTER_NS`].
pub(crate) const LOOK_AFTER: Timespec = Timespec { tv_sec: 0, tv_nsec: LOOK_AFTER_NS as i64 };
/// As much as Rust's own set-up of a thread needs, and a page for the loop.
pub(crate) const STACK_BYTES: usize = 64 << 10;

/// What tasks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// A process each, by fork.
    Process,
    /// Threads of one process.
    Thread,
}

/// Shared by all tasks, and written when one ends.
struct Board {
    /// Rung by the last task that signs off, and by one that fails.
    bell: SharedSlice<OwnLine<Doorbell>>,
    cells: SharedSlice<OwnLine<AtomicU32>>,
}

/// Tasks that have signed off.
const SIGNED_OFF: usize = 0;
/// Tasks there are, once all are started.
const EXPECTED: usize = 1;
/// Number of the error of a task that failed.
const FAILED: usize = 2;
/// 1 when threads may exit.
const RELEASED: usize = 3;
const N_CELLS: usize = 4;

/// The tasks that this process has started. The processes among them die with it.
pub(crate) struct Crew {
    board: Arc<Board>,
    members: Vec<Member>,
}

struct Member {
    who: String,
    handle: Handle,
}

enum Handle {
    Process(Pid),
    Thread(JoinHandle<()>),
}

impl Board {
    fn sign_off(&self) {
        let signed = self.cells[SIGNED_OFF].fetch_add(1, Ordering::SeqCst) + 1;
        if signed == self.cells[EXPECTED].load(Ordering::SeqCst) {
            self.bell[0].post(Scope::Shared);
        }
    }

    fn fail(&self, error: Errno) {
        self.cells[FAILED].store(error.raw_os_error() as u32, Ordering::SeqCst);
        self.bell[0].post(Scope::Shared);
    }
}

impl Crew {
    /// Nobody yet.
    pub fn new() -> Result<Crew, HostError> {
        let board = || -> io::Result<Board> {
            Ok(Board { bell: SharedSlice::new(1)?, cells: SharedSlice::new(N_CELLS)? })
        };
        let board =
            board().map_err(|e| HostError::system("map shared memory", e, "free some memory"))?;
        Ok(Crew { board: Arc::new(board), members: Vec::new() })
    }

    /// Starts a process that does `work`.
    pub fn process(
        &mut self,
        who: String,
        work: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), HostError> {
        let board = Arc::clone(&self.board);
        let pid = spawn(move || match work() {
            Ok(()) => {
                board.sign_off();
                0
            }
            Err(error) => {
                board.fail(error);
                error.raw_os_error()
            }
        });
        let pid = pid.map_err(|error| self.refused(&who, error))?;
        self.members.push(Member { who, handle: Handle::Process(pid) });
        Ok(())
    }

    /// Starts a thread that does `work`, and then stays until it is released, so that its
    /// figures can be read.
    pub fn thread(
        &mut self,
        who: String,
        work: impl FnOnce() -> Result<(), Errno> + Send + 'static,
    ) -> Result<(), HostError> {
        let board = Arc::clone(&self.board);
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
            match work() {
                Ok(()) => board.sign_off(),
                Err(error) => board.fail(error),
            }
            while board.cells[RELEASED].load(Ordering::SeqCst) == 0 {
                futex::wait(&board.cells[RELEASED], 0, Scope::Shared, None);
            }
        });
        let thread = thread.map_err(|error| self.refused(&who, error))?;
        self.members.push(Member { who, handle: Handle::Thread(thread) });
        Ok(())
    }

    fn refused(&self, who: &str, error: io::Error) -> HostError {
        let doing = format!("start {who} after {} other tasks", self.members.len());
        HostError::system(doing, error, "use fewer, or raise the limit of tasks (ulimit -u)")
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Tells the tasks how many they are; to be called before the first may end.
    pub fn complete(&self) {
        self.board.cells[EXPECTED].store(self.len() as u32, Ordering::SeqCst);
    }

    /// Waits until all have signed off, and processes have ended as well. They can be
    /// asked for their figures until [`Crew::dismiss`].
    ///
    /// # Errors
    /// [`HostError::Died`] if one ends otherwise, or if it takes longer than `patience`.
    pub fn wait(&self, patience: Option<Ns>) -> Result<(), HostError> {
        let end = patience.map(|time| clock::now() + time);
        while self.signed_off() < self.len() {
            self.board.bell[0].wait(Scope::Shared, Some(LOOK_AFTER_NS));
            self.check()?;
            if end.is_some_and(|end| clock::now() > end) && self.signed_off() < self.len() {
                let missing = self.len() - self.signed_off();
                let who = format!("{missing} of {} tasks", self.len());
                return Err(HostError::Died { who, how: "did not end when told to".to_owned() });
            }
        }
        for (member, pid) in self.processes() {
            // Not reaped: a zombie's figures can still be read.
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while let Err(error) = waitid(WaitId::Pid(pid), options) {
                if error != Errno::INTR {
                    return Err(lost(&member.who, error));
                }
            }
        }
        self.check()
    }

    fn signed_off(&self) -> usize {
        self.board.cells[SIGNED_OFF].load(Ordering::SeqCst) as usize
    }

    /// Sleeps until `end`, or until something has gone wrong.
    ///
    /// # Errors
    /// As [`Crew::check`].
    pub fn watch_until(&self, end: Ns) -> Result<(), HostError> {
        loop {
            let left = end.saturating_sub(clock::now());
            if left == 0 {
                return self.check();
            }
            self.board.bell[0].wait(Scope::Shared, Some(left));
            self.check()?;
        }
    }

    /// Has a task failed or died?
    ///
    /// # Errors
    /// [`HostError::Died`] if so.
    pub fn check(&self) -> Result<(), HostError> {
        for (member, pid) in self.processes() {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            let status = waitid(WaitId::Pid(pid), options).map_err(|e| lost(&member.who, e))?;
            if let Some(how) = status.as_ref().and_then(bad_end) {
                return Err(HostError::Died { who: member.who.clone(), how });
            }
        }
        match self.board.cells[FAILED].load(Ordering::SeqCst) {
            0 => Ok(()),
            error => Err(HostError::Died { who: "a task".to_owned(), how: failed(error as i32) }),
        }
    }

    fn processes(&self) -> impl Iterator<Item = (&Member, Pid)> {
        self.members.iter().filter_map(|member| match member.handle {
            Handle::Process(pid) => Some((member, pid)),
            Handle::Thread(_) => None,
        })
    }

    /// Lets threads exit and takes the remains of processes, after [`Crew::wait`].
    pub fn dismiss(mut self) -> Result<(), HostError> {
        self.board.cells[RELEASED].store(1, Ordering::SeqCst);
        futex::wake(&self.board.cells[RELEASED], u32::MAX >> 1, Scope::Shared);
        for member in std::mem::take(&mut self.members) {
            match member.handle {
                Handle::Process(pid) => {
                    waitpid(Some(pid), WaitOptions::empty()).map_err(|e| lost(&member.who, e))?;
                }
                Handle::Thread(thread) => thread
                    .join()
                    .map_err(|_| HostError::Died { who: member.who, how: "panicked".to_owned() })?,
            }
        }
        Ok(())
    }
}

/// A run that fails leaves no process, not even a dead one for init to reap. Threads end
/// with the process.
impl Drop for Crew {
    fn drop(&mut self) {
        for (_, pid) in self.processes() {
            kill_and_reap(pid);
        }
    }
}

fn lost(who: &str, error: Errno) -> HostError {
    HostError::Died { who: who.to_owned(), how: format!("was lost ({error})") }
}

/// How a process ended, unless well.
fn bad_end(status: &WaitIdStatus) -> Option<String> {
    match (status.terminating_signal(), status.exit_status()) {
        (Some(signal), _) => Some(format!("was killed by signal {signal}")),
        (None, Some(0) | None) => None,
        (None, Some(PANICKED)) => Some("panicked".to_owned()),
        (None, Some(error)) => Some(failed(error)),
    }
}

fn failed(error: i32) -> String {
    let text = io::Error::from_raw_os_error(error).to_string();
    format!("failed: {}", text.split(" (os error").next().unwrap_or(&text))
}

//! Why a task could not continue: one word in shared memory, since the task may be the last one in
//! a process.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use reveille_workload::Program;
use rustix::io::Errno;

use crate::error::HostError;
use crate::sys::shared::shareable;

/// Maximum number of requests in a task's queue. schbench has no limit; at 30 ms each this is two
/// minutes of work.
pub(super) const MAX_REQUESTS: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Doing {
    Enter = 1,
    StartThread,
    Send,
    Receive,
    /// Sending a request to a task whose queue is full.
    Request,
    Respawn,
}

const DOINGS: [Doing; 6] =
    [Doing::Enter, Doing::StartThread, Doing::Send, Doing::Receive, Doing::Request, Doing::Respawn];

/// A failed task, what it was doing, and the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) doing: Doing,
    pub(super) task: u32,
    /// The system's error number; 0 if no call failed.
    pub(super) errno: u16,
}

impl Fault {
    /// A failed system call of a task.
    pub(super) fn system(doing: Doing, task: u32, error: &io::Error) -> Fault {
        Fault { doing, task, errno: error.raw_os_error().unwrap_or(0) as u16 }
    }

    /// As an error for the user.
    pub(super) fn error(self, program: &Program) -> HostError {
        let role = usize::from(program.tasks[self.task as usize].role);
        let who = format!("task {} ({})", self.task, program.roles[role].name);
        let (what, help) = match self.doing {
            Doing::Request => {
                let problem = format!("{who} is {MAX_REQUESTS} requests behind: it is overloaded");
                let help = "send requests at a lower rate, or to more tasks";
                return HostError::input(problem, help);
            }
            Doing::Enter => ("put into its task group", "run as root, or delegate the group"),
            Doing::StartThread | Doing::Respawn => {
                ("started", "allow more processes (ulimit -u), or run fewer tasks")
            }
            Doing::Send => ("given room for a message", "run it again; if it recurs, report it"),
            Doing::Receive => ("given a message", "run it again; if it recurs, report it"),
        };
        let reason = io::Error::from(Errno::from_raw_os_error(self.errno.into()));
        HostError::system(format!("have {who} {what}"), reason, help)
    }
}

shareable! {
    /// The first fault of a run, in shared memory.
    pub(super) struct FaultCell {
        word: AtomicU64,
    }
}

impl FaultCell {
    pub(super) fn set(&self, fault: Fault) {
        let word = u64::from(fault.doing as u8) << 48
            | u64::from(fault.errno) << 32
            | u64::from(fault.task);
        let _ = self.word.compare_exchange(0, word, Ordering::AcqRel, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> Option<Fault> {
        let word = self.word.load(Ordering::Acquire);
        let doing = *DOINGS.iter().find(|doing| **doing as u64 == word >> 48)?;
        Some(Fault { doing, task: word as u32, errno: (word >> 32) as u16 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_fault_is_the_one_that_counts() {
        let cell = FaultCell::default();
        assert_eq!(cell.get(), None);
        for (doing, task) in DOINGS.into_iter().zip([7, 1, 2, 3, 4, 5]) {
            let fault = Fault { doing, task, errno: 104 };
            FaultCell::default().set(fault);
            cell.set(fault);
            let own = FaultCell::default();
            own.set(fault);
            assert_eq!(own.get(), Some(fault));
        }
        assert_eq!(cell.get().map(|fault| fault.task), Some(7));
    }
}

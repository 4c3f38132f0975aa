//! The start of all tasks at once, as hackbench has it: each says that it is ready by a
//! byte, then polls for one byte that nobody ever takes.

use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, read, retry_on_intr, write};

use super::channel::Transport;
use super::crew::Crew;
use crate::HostError;
use crate::sys::clock;

/// A closed gate; tasks hold it by reference or, as threads, by `Arc`.
pub(crate) struct Gate {
    ready: (OwnedFd, OwnedFd),
    go: (OwnedFd, OwnedFd),
}

impl Gate {
    /// A gate whose bytes travel like the messages of the run.
    pub fn new(transport: Transport) -> Result<Gate, HostError> {
        Ok(Gate { ready: transport.pair()?, go: transport.pair()? })
    }

    /// A task says that it is ready, without waiting.
    pub fn ready(&self) -> Result<(), Errno> {
        if retry_on_intr(|| write(&self.ready.1, b"*"))? == 1 { Ok(()) } else { Err(Errno::PIPE) }
    }

    /// A task says that it is ready, and waits until the gate is opened.
    pub fn pass(&self) -> Result<(), Errno> {
        self.ready()?;
        let mut polled = [PollFd::new(&self.go.0, PollFlags::IN)];
        retry_on_intr(|| poll(&mut polled, None)).map(drop)
    }

    /// Waits for so many tasks to be ready.
    pub fn await_ready(&self, tasks: usize, crew: &Crew) -> Result<(), HostError> {
        let mut byte = [0];
        for _ in 0..tasks {
            // Nearly always a task is ready, or will be soon; if none is, one may have died.
            let mut polled = [PollFd::new(&self.ready.0, PollFlags::IN)];
            while retry_on_intr(|| poll(&mut polled, Some(&super::crew::LOOK_AFTER)))
                .map_err(broken)?
                == 0
            {
                crew.check()?;
            }
            retry_on_intr(|| read(&self.ready.0, &mut byte)).map_err(broken)?;
        }
        Ok(())
    }

    /// Opens it; returns the moment just before.
    pub fn open(&self) -> Result<crate::Ns, HostError> {
        let now = clock::now();
        retry_on_intr(|| write(&self.go.1, b"*")).map_err(broken)?;
        Ok(now)
    }
}

fn broken(error: Errno) -> HostError {
    HostError::system("start all tasks at once", error, "run it again")
}

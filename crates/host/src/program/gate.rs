//! Gates that release tasks together: by one futex call, or by one write to a pipe that they poll.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use reveille_workload::{Op, Program};
use rustix::event::{PollFd, PollFlags, poll};

use crate::error::{HostError, Result};
use crate::sys::futex::{self, Scope};
use crate::sys::shared::shareable;

shareable! {
    /// Words shared by all processes.
    pub(super) struct GateWords {
        /// Tasks that have arrived.
        come: AtomicU32,
        /// 1 once they are released.
        open: AtomicU32,
    }
}

/// State of a gate in each process.
#[derive(Debug)]
pub(super) struct Gate {
    /// Tasks to wait for.
    expected: u32,
    /// Read and write end, if tasks poll.
    pipe: Option<(OwnedFd, OwnedFd)>,
}

impl Gate {
    pub(super) fn new(program: &Program) -> Result<Gate> {
        let has =
            |role: u16, is: fn(&Op) -> bool| program.roles[usize::from(role)].ops.iter().any(is);
        let awaits = |op: &Op| matches!(op, Op::AwaitRelease { .. });
        let expected = program.tasks.iter().filter(|task| has(task.role, awaits)).count() as u32;
        let polled =
            program.tasks.iter().any(|t| has(t.role, |op| *op == Op::Release { sync: true }));
        let pipe = match polled {
            true => Some(rustix::pipe::pipe().map_err(|error| {
                HostError::system("open a pipe", error, "allow more open files (ulimit -n)")
            })?),
            false => None,
        };
        Ok(Gate { expected, pipe })
    }

    /// Arrives at the gate; returns once it opens.
    pub(super) fn wait(&self, words: &GateWords) {
        if words.come.fetch_add(1, Ordering::AcqRel) + 1 == self.expected {
            futex::wake(&words.come, 1, Scope::Shared);
        }
        while words.open.load(Ordering::Acquire) == 0 {
            match &self.pipe {
                Some((read, _)) => {
                    let _ = poll(&mut [PollFd::new(read, PollFlags::IN)], None);
                }
                None => {
                    futex::wait(&words.open, 0, Scope::Shared, None);
                }
            }
        }
    }

    /// Waits for all tasks to arrive, and opens the gate.
    pub(super) fn release(&self, words: &GateWords) {
        loop {
            let come = words.come.load(Ordering::Acquire);
            if come >= self.expected {
                break;
            }
            futex::wait(&words.come, come, Scope::Shared, None);
        }
        words.open.store(1, Ordering::Release);
        match &self.pipe {
            // The pipe is empty, so this cannot block.
            Some((_, write)) => drop(rustix::io::write(write.as_fd(), &[0])),
            None => drop(futex::wake(&words.open, i32::MAX as u32, Scope::Shared)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;
    use std::time::Duration;

    use super::*;

    #[test]
    fn none_is_released_before_all_have_come() {
        const TASKS: u32 = 20;
        for pipe in [None, Some(rustix::pipe::pipe().unwrap())] {
            let gate = Gate { expected: TASKS, pipe };
            let (words, passed) = (GateWords::default(), AtomicU32::new(0));
            std::thread::scope(|scope| {
                let parent = scope.spawn(|| gate.release(&words));
                for _ in 1..TASKS {
                    scope.spawn(|| {
                        gate.wait(&words);
                        passed.fetch_add(1, Ordering::SeqCst);
                    });
                }
                std::thread::sleep(Duration::from_millis(20));
                assert_eq!(passed.load(Ordering::SeqCst), 0);
                assert!(!parent.is_finished());
                gate.wait(&words);
            });
            assert_eq!(passed.load(Ordering::SeqCst), TASKS - 1);
            // Who comes late, in the place of another, does not wait.
            gate.wait(&words);
        }
    }
}

//! Scheduling classes that need no privilege. `rustix` has no call for them.

use std::io;

/// How a thread is treated beside normal ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// SCHED_BATCH: as a normal one, but its wake-up preempts nobody.
    Batch,
    /// SCHED_IDLE: runs if nobody else wants to, and any other's wake-up preempts it.
    Idle,
}

/// Puts this thread, and those that it starts, in a class.
pub fn enter(class: Class) -> io::Result<()> {
    let policy = match class {
        Class::Batch => libc::SCHED_BATCH,
        Class::Idle => libc::SCHED_IDLE,
    };
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: reads `parameters` alone, which lives until after the call.
    match unsafe { libc::sched_setscheduler(0, policy, &parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

//! Scheduling classes that need no privilege. `rustix` has no call for them.

use std::io;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// SCHED_BATCH: as SCHED_OTHER, but a wakeup does not preempt.
    Batch,
    /// SCHED_IDLE: runs when no other task is runnable; any other task's wakeup preempts it.
    Idle,
}

/// Sets the policy of this thread and of those it starts.
pub fn enter(class: Class) -> io::Result<()> {
    let policy = match class {
        Class::Batch => libc::SCHED_BATCH,
        Class::Idle => libc::SCHED_IDLE,
    };
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: only reads `parameters`, which outlives the call.
    match unsafe { libc::sched_setscheduler(0, policy, &parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

//! Real-time scheduling of the thread that asks.

use std::io;

/// Puts this thread under `SCHED_FIFO` with the lowest priority, as hackbench's `-F` does
/// with its main thread.
pub fn become_fifo() -> io::Result<()> {
    // SAFETY: reads the integers of a struct that lives until it returns.
    let result = unsafe {
        let lowest =
            libc::sched_param { sched_priority: libc::sched_get_priority_min(libc::SCHED_FIFO) };
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &lowest)
    };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

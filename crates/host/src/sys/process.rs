//! Processes: fork, the end with the parent, signals to a whole group.

use std::io;

use rustix::process::{self, Pid, Signal, WaitOptions};

/// Which side of a fork this is.
pub enum Fork {
    /// The new process.
    Child,
    /// The old one, with the new one's id.
    Parent(Pid),
}

/// Starts a copy of this process.
///
/// # Safety
/// This process must have a single thread: a copy has the memory of all threads and runs
/// one, so a lock that another held would stay taken for ever.
pub unsafe fn fork() -> io::Result<Fork> {
    // SAFETY: the caller answers for there being no other thread.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        pid => Ok(Fork::Parent(Pid::from_raw(pid).expect("fork gives a child's id above 0"))),
    }
}

/// Has the kernel kill this process when `parent` ends; at once if it has ended.
pub fn die_with(parent: Pid) -> io::Result<()> {
    process::set_parent_process_death_signal(Some(Signal::KILL))?;
    if process::getppid() != Some(parent) {
        std::process::exit(1);
    }
    Ok(())
}

/// Ends this process at once: no destructors, no buffers, no handlers.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: ends the process; nothing runs after it.
    unsafe { libc::_exit(code) }
}

/// Kills a child and takes its remains.
pub fn kill_and_reap(pid: Pid) {
    let _ = process::kill_process(pid, Signal::KILL);
    let _ = process::waitpid(Some(pid), WaitOptions::empty());
}

//! Processes: fork, death with the parent, signals to a whole group.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{self, Pid, Signal, WaitOptions};

/// Polling interval for killed processes to become zombies.
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

pub enum Fork {
    Child,
    /// The old one, with the new one's id.
    Parent(Pid),
}

/// Starts a copy of this process.
///
/// # Safety
/// This process must have a single thread: a copy has the memory of all threads and runs
/// one, so a lock that another held would stay taken for ever.
unsafe fn fork() -> io::Result<Fork> {
    // SAFETY: the caller answers for there being no other thread.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        pid => Ok(Fork::Parent(Pid::from_raw(pid).expect("fork gives a child's id above 0"))),
    }
}

/// Proof that this process is single-threaded; starting a thread consumes it.
#[derive(Debug)]
pub struct Alone(());

impl Alone {
    /// Counts the threads.
    ///
    /// # Errors
    /// There are several, or the kernel does not say.
    pub fn check() -> io::Result<Alone> {
        match std::fs::read_dir("/proc/self/task")?.count() {
            1 => Ok(Alone(())),
            n => Err(io::Error::other(format!("the process has {n} threads"))),
        }
    }

    /// Starts a copy of this process. The copy, too, is alone.
    pub fn fork(&self) -> io::Result<Fork> {
        // SAFETY: no other thread holds a lock, because there is none.
        unsafe { fork() }
    }

    /// Forks a sibling instead of a child (CLONE_PARENT): it outlives this process, and their
    /// common parent reaps it. The C library does not know about it, so it should not start
    /// threads.
    pub fn fork_sibling(&self) -> io::Result<Fork> {
        let flags = libc::CLONE_PARENT | libc::SIGCHLD;
        // SAFETY: without CLONE_VM this is a fork, on a copy of this stack; there is no other
        // thread whose locks would stay taken.
        match unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) } {
            -1 => Err(io::Error::last_os_error()),
            0 => Ok(Fork::Child),
            pid => Ok(Fork::Parent(Pid::from_raw(pid as i32).expect("an id above 0"))),
        }
    }
}

/// Forks a process that runs `body`, dies with this one, and exits with `body`'s result; it never
/// returns from this call. The parent drops what `body` owns.
///
/// # Errors
/// Fork's error, or this process has more than one thread.
pub fn spawn(body: impl FnOnce() -> i32) -> io::Result<Pid> {
    let parent = process::getpid();
    match Alone::check()?.fork()? {
        Fork::Parent(pid) => Ok(pid),
        Fork::Child => {
            if die_with(parent).is_err() {
                exit_now(PANICKED);
            }
            // A panic must not run on into the parent's code.
            exit_now(catch_unwind(AssertUnwindSafe(body)).unwrap_or(PANICKED))
        }
    }
}

/// Exits the process when dropped in a panic: unwinding a forked copy must not run the original's
/// destructors.
#[derive(Debug)]
pub struct NoUnwinding;

impl Drop for NoUnwinding {
    fn drop(&mut self) {
        if std::thread::panicking() {
            exit_now(PANICKED);
        }
    }
}

/// Lets a fault of memory end the process as any program's, without what Rust's runtime prints of an
/// overflowing stack.
pub fn end_at_faults() {
    for signal in [libc::SIGSEGV, libc::SIGBUS] {
        // SAFETY: it replaces the runtime's handler by the default action.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Exit code of a process whose body panicked, as that of any Rust program.
pub const PANICKED: i32 = 101;

/// Makes the kernel kill this process when `parent` ends; immediately if it already has.
pub fn die_with(parent: Pid) -> io::Result<()> {
    process::set_parent_process_death_signal(Some(Signal::KILL))?;
    if process::getppid() != Some(parent) {
        std::process::exit(1);
    }
    Ok(())
}

/// Starts a program that the kernel kills when the calling thread or its process ends, in whatever
/// way. `join` are `cgroup.procs` files of the groups to start in.
///
/// # Errors
/// As [`Command::spawn`], and the kernel's error on entering a group.
pub fn spawn_bound(command: &mut Command, join: Vec<File>) -> io::Result<Child> {
    let parent = process::getpid();
    let bind = move || {
        process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // Its parent may have ended before it was bound.
        if process::getppid() != Some(parent) {
            return Err(Errno::SRCH.into());
        }
        // 0 means the writing process.
        join.iter().try_for_each(|procs| rustix::io::write(procs, b"0").map(drop))?;
        Ok(())
    };
    // SAFETY: between fork and exec `bind` makes system calls only, and neither allocates nor
    // takes a lock that another thread may have held at the fork.
    unsafe { command.pre_exec(bind) };
    command.spawn()
}

/// Lets this process outlive its parent, and makes it the subreaper of its descendants, so that
/// [`end_descendants`] finds orphans.
pub fn adopt_orphans() -> io::Result<()> {
    process::set_child_subreaper(Some(process::getpid()))?;
    process::set_parent_process_death_signal(None)?;
    Ok(())
}

/// Kills and reaps every descendant of this process, after [`adopt_orphans`]. Returns how many were
/// still running.
pub fn end_descendants() -> u32 {
    let mut killed = 0;
    loop {
        match process::wait(WaitOptions::NOHANG) {
            Ok(Some((_, status))) => {
                let signal = status.terminating_signal();
                killed += u32::from(signal == Some(Signal::KILL.as_raw()));
            }
            Ok(None) => {
                // Children of killed processes are reparented to this one for the next round.
                let list = std::fs::read_to_string("/proc/thread-self/children");
                let list = list.unwrap_or_default();
                let pids = list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok());
                for child in pids.filter_map(Pid::from_raw) {
                    let _ = process::kill_process(child, Signal::KILL);
                }
                std::thread::sleep(BETWEEN_LOOKS);
            }
            Err(Errno::INTR) => {}
            Err(_) => return killed,
        }
    }
}

/// Exits at once: no destructors, no flushing, no handlers.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: ends the process; nothing runs after it.
    unsafe { libc::_exit(code) }
}

pub fn kill_and_reap(pid: Pid) {
    let _ = process::kill_process(pid, Signal::KILL);
    let _ = process::waitpid(Some(pid), WaitOptions::empty());
}

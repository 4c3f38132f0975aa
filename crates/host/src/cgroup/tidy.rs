//! A process that outlives this one, however it ends, and removes the task groups that it left.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::Pid;

use super::hierarchy::Hierarchy;
use super::remove;

/// The first argument that makes a command run [`tidy_main`]; for internal use.
pub const TIDY_COMMAND: &str = "__host-tidy";

/// Does this command run [`tidy_main`] for [`TIDY_COMMAND`]?
static ABLE: AtomicBool = AtomicBool::new(false);

/// The process, and this end of the socket that tells it when this process ends.
static TIDIER: Mutex<Option<(Child, UnixStream)>> = Mutex::new(None);

/// Once it is dropped, the process beside this one has ended.
#[must_use]
pub struct Tidied(());

impl Drop for Tidied {
    fn drop(&mut self) {
        let tidier = TIDIER.lock().ok().and_then(|mut tidier| tidier.take());
        if let Some((mut child, ours)) = tidier {
            drop(ours);
            let _ = child.wait();
        }
    }
}

/// From its first task group on, this process has another of its command beside it, which removes what a
/// SIGKILL leaves. The command calls [`tidy_main`] if its first argument is [`TIDY_COMMAND`], and keeps
/// what is returned to its end.
pub fn can_tidy() -> Tidied {
    ABLE.store(true, Ordering::Relaxed);
    Tidied(())
}

/// Before a task group is made. Without the process the next command removes what is left.
pub(super) fn start() {
    let Ok(mut tidier) = TIDIER.lock() else { return };
    if ABLE.load(Ordering::Relaxed) && tidier.is_none() {
        *tidier = beside().ok();
    }
}

fn beside() -> io::Result<(Child, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(TIDY_COMMAND).arg(std::process::id().to_string());
    command.stdin(OwnedFd::from(theirs));
    // No Ctrl-C reaches it, and it keeps no pipe open.
    command.process_group(0).stdout(Stdio::null()).stderr(Stdio::null());
    Ok((command.spawn()?, ours))
}

/// Waits until the process that started this one has ended, and removes its groups and those of others
/// that are gone.
pub fn tidy_main() -> ExitCode {
    // Nothing is ever sent: reading ends with the other end of the socket.
    let _ = io::stdin().read(&mut [0]);
    let ended = std::env::args().nth(2).and_then(|pid| Pid::from_raw(pid.parse().ok()?));
    if let Ok(hierarchy) = Hierarchy::find() {
        remove::remove_stale(&hierarchy, ended);
    }
    ExitCode::SUCCESS
}

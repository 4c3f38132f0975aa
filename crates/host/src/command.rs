//! Runs a user's command once for `reveille bench`, and kills everything it leaves behind.
//!
//! The child outlives a killed supervisor: as a subreaper it adopts the command's orphans, notices
//! that its socket has closed, kills them, and removes the task group.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use reveille_measure::Ns;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::{Deserialize, Serialize};

use crate::cgroup::GroupFiles;
use crate::error::{HostError, Result};
use crate::supervise::{Job, Runner, ended};
use crate::sys::{clock, process, usage};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunCommand {
    /// The program, then its arguments.
    pub words: Vec<OsString>,
    pub group: Option<GroupFiles>,
    /// Pass its output to standard error? Otherwise it is discarded.
    pub show_output: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandRun {
    /// From before the fork to the command's exit.
    pub wall_ns: Ns,
    /// User CPU time of the command and all its descendants.
    pub user_ns: Ns,
    /// System CPU time of the command and all its descendants.
    pub system_ns: Ns,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
    pub exit_status: i32,
    /// Processes that it left running, which were killed.
    pub left_running: u32,
}

inventory::submit!(Runner::of::<RunCommand>());

impl Job for RunCommand {
    const NAME: &'static str = "command";
    const GRACE: Duration = Duration::from_secs(2);
    type Output = CommandRun;

    fn run(self) -> Result<CommandRun> {
        let adopted = process::adopt_orphans();
        adopted.map_err(|e| HostError::system("adopt what the command leaves", e, "report it"))?;
        let run = self.run_once();
        let left_running = process::end_descendants();
        if let (Err(HostError::Interrupted), Some(group)) = (&run, &self.group) {
            group.remove();
        }
        let (status, wall_ns) = run?;
        let Some(exit_status @ 0) = status.code() else {
            return Err(HostError::Failed { command: self.text(), how: ended(status) });
        };
        let used = usage::of_ended_children();
        Ok(CommandRun {
            wall_ns,
            user_ns: used.user_ns,
            system_ns: used.system_ns,
            voluntary_switches: used.switches.voluntary,
            involuntary_switches: used.switches.involuntary,
            exit_status,
            left_running,
        })
    }
}

impl RunCommand {
    /// The command as typed, but without quotes.
    pub fn text(&self) -> String {
        let words: Vec<_> = self.words.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }

    fn run_once(&self) -> Result<(ExitStatus, Ns)> {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]).stdin(Stdio::null());
        if self.show_output {
            command.stdout(io::stderr());
        } else {
            command.stdout(Stdio::null()).stderr(Stdio::null());
        }
        let join = self.group.iter().flat_map(|group| &group.procs).map(|procs| {
            File::options().write(true).open(procs).map_err(|error| {
                let help = "run as root, or below a group that was delegated to you";
                HostError::system(format!("open {}", procs.display()), error, help)
            })
        });
        let join = join.collect::<Result<_, _>>()?;
        let began = clock::now();
        let mut child =
            process::spawn_bound(&mut command, join).map_err(|error| self.refused(error))?;
        let pid = Pid::from_raw(child.id() as i32).expect("a child's id is above 0");
        wait_for(pid)?;
        let wall_ns = clock::now() - began;
        let status =
            child.wait().map_err(|e| HostError::system("reap the command", e, "report it"))?;
        Ok((status, wall_ns))
    }

    fn refused(&self, error: io::Error) -> HostError {
        let help = match error.kind() {
            ErrorKind::NotFound => "check its name, or give its path",
            ErrorKind::PermissionDenied => "make the file executable (chmod +x)",
            _ => "see that it starts from a shell",
        };
        HostError::system(format!("start `{}`", self.words[0].to_string_lossy()), error, help)
    }
}

/// Waits until the command has ended.
///
/// # Errors
/// [`HostError::Interrupted`] if the supervisor has closed the socket or ended.
fn wait_for(pid: Pid) -> Result<()> {
    let refused =
        |error| HostError::system("wait for the command", error, "use Linux 5.3 or later");
    let command = pidfd_open(pid, PidfdFlags::empty()).map_err(refused)?;
    let supervisor = io::stdin();
    // POLLHUP is reported even without requested events.
    let mut polled =
        [PollFd::new(&command, PollFlags::IN), PollFd::new(&supervisor, PollFlags::empty())];
    retry_on_intr(|| poll(&mut polled, None)).map_err(refused)?;
    if polled[1].revents().is_empty() { Ok(()) } else { Err(HostError::Interrupted) }
}

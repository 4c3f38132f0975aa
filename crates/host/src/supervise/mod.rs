//! The parent's side: starts a child for one job, waits for its result, and kills it with all its
//! descendants on a stop.

mod child;

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use reveille_machine::CpuId;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::error::{HostError, Result};
use crate::sys::cpu;

use child::Order;
pub(crate) use child::Runner;
pub use child::{CHILD_COMMAND, Job, child_main};

/// Interval for checking `stop`.
const POLL: Duration = Duration::from_millis(20);
/// Interval for checking whether a child has finished cleaning up.
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

#[derive(Clone, Debug, Default)]
pub struct Place {
    /// CPUs to run on; empty for all that are allowed.
    pub cpus: Vec<CpuId>,
    /// `cgroup.procs` files of the groups to run in.
    pub join: Vec<PathBuf>,
}

/// May this process use these CPUs?
///
/// # Errors
/// [`HostError::Input`] with a CPU that it may not use, and those that it may.
pub fn check_cpus(cpus: &[CpuId]) -> Result<()> {
    let allowed = cpu::allowed().map_err(|error| {
        HostError::system("read the CPUs of this process", error, "run without --cpus")
    })?;
    match cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        None => Ok(()),
        Some(cpu) => {
            let allowed: Vec<String> = allowed.iter().map(CpuId::to_string).collect();
            let problem = format!("CPU {cpu} is not online, or not allowed here");
            Err(HostError::input(problem, format!("use some of {}", allowed.join(","))))
        }
    }
}

/// Runs `job` in a child of `program`, the path of `reveille`, and returns its result. Once `stop`
/// is set, kills everything that the child started.
///
/// # Errors
/// The child's error; [`HostError::Died`] if it ends without a result; [`HostError::Interrupted`]
/// after a stop.
pub fn run<J: Job>(program: &Path, place: &Place, job: J, stop: &AtomicBool) -> Result<J::Output> {
    let order = Order {
        supervisor: std::process::id() as i32,
        cpus: place.cpus.clone(),
        join: place.join.clone(),
        name: J::NAME.to_owned(),
        job: serde_json::to_value(job).expect("jobs are plain data"),
    };
    let mut family = Family::start(program, J::GRACE)?;
    family.tell(&order)?;
    let answer = family.listen(stop)?;
    if answer.is_empty() {
        return Err(family.died());
    }
    let answer: Result<serde_json::Value> = family.parse(&answer)?;
    serde_json::from_value(answer?).map_err(|e| HostError::Died {
        who: "the child".to_owned(),
        how: format!("answered with something else ({e})"),
    })
}

/// A child and its descendants: whatever leaves its process group dies with it. Killed on drop.
struct Family {
    child: Child,
    socket: UnixStream,
    grace: Duration,
}

impl Family {
    fn start(program: &Path, grace: Duration) -> Result<Family> {
        let refused = |error| {
            let doing = format!("start {}", program.display());
            HostError::system(doing, error, "free memory or processes (ulimit -u)")
        };
        let (socket, theirs) = UnixStream::pair().map_err(refused)?;
        let mut command = Command::new(program);
        command.arg(CHILD_COMMAND).stdin(OwnedFd::from(theirs));
        // In its own process group: Ctrl-C reaches only this process, which kills the rest.
        command.process_group(0);
        let child = command.spawn().map_err(refused)?;
        Ok(Family { child, socket, grace })
    }

    fn tell(&mut self, order: &Order) -> Result<()> {
        let text = serde_json::to_vec(order).expect("orders are plain data");
        let sent = self.socket.write_all(&text).and_then(|()| {
            self.socket.shutdown(Shutdown::Write)?;
            self.socket.set_read_timeout(Some(POLL))
        });
        // The child's exit explains more than a broken pipe.
        if sent.is_err() { Err(self.died()) } else { Ok(()) }
    }

    /// Reads until the child has closed its end.
    fn listen(&mut self, stop: &AtomicBool) -> Result<Vec<u8>> {
        let mut answer = Vec::new();
        let mut part = vec![0; 1 << 16];
        let mut over = false;
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(HostError::Interrupted);
            }
            match self.socket.read(&mut part) {
                Ok(0) => return Ok(answer),
                Ok(n) => answer.extend_from_slice(&part[..n]),
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    // Grandchildren may hold the socket open after the child has died. Read once
                    // more first: output may have arrived since the last check.
                    if over {
                        return Ok(answer);
                    }
                    over = self.has_ended();
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Ok(answer),
            }
        }
    }

    /// Has the child ended? Does not reap it, so its id, which is the group's, stays reserved.
    fn has_ended(&self) -> bool {
        let child = Pid::from_raw(self.child.id() as i32).expect("a child's id is above 0");
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(child), look), Ok(None))
    }

    fn parse<T: serde::de::DeserializeOwned>(&mut self, answer: &[u8]) -> Result<T> {
        serde_json::from_slice(answer).map_err(|_| self.died())
    }

    /// The error for a child that ended without a result.
    fn died(&mut self) -> HostError {
        let how = match self.child.wait() {
            Ok(status) => ended(status),
            Err(error) => format!("was lost ({error})"),
        };
        HostError::Died { who: "the measuring process".to_owned(), how }
    }
}

/// An exit status in words.
pub(crate) fn ended(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("was killed by signal {signal}"),
        (None, Some(code)) => format!("ended with exit code {code}"),
        (None, None) => "ended".to_owned(),
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        let _ = self.socket.shutdown(Shutdown::Both);
        let end = Instant::now() + self.grace;
        while Instant::now() < end && !self.has_ended() {
            sleep(BETWEEN_LOOKS);
        }
        // The group's id stays reserved until the child is reaped, so this cannot hit another
        // process; it fails if all have ended.
        if let Some(group) = Pid::from_raw(self.child.id() as i32) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

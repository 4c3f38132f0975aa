//! The child's side: reads an order from standard input, runs it, and answers there. The child is
//! `reveille` re-executed under a hidden name. It is single-threaded until the job starts threads,
//! so a job may fork.

use std::fs;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use reveille_machine::CpuId;
use rustix::process::Pid;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{HostError, Result};
use crate::sys::{cpu, process};

/// The first argument that makes the command a child; for internal use.
pub const CHILD_COMMAND: &str = "__host-child";

/// A job for a child process. The file that implements it registers it for [`child_main`] with
/// `inventory::submit!`.
pub trait Job: Serialize + DeserializeOwned {
    /// Name in an order; unique among jobs.
    const NAME: &'static str;
    /// How long the child may take to clean up after the supervisor closes its socket; then its
    /// process group is killed.
    const GRACE: Duration = Duration::ZERO;

    type Output: Serialize + DeserializeOwned;

    /// Runs it, in the child.
    fn run(self) -> Result<Self::Output>;
}

/// A job's name and function.
pub(crate) struct Runner {
    name: &'static str,
    run: fn(Value) -> Result<Value>,
}

inventory::collect!(Runner);

impl Runner {
    pub(crate) const fn of<J: Job>() -> Runner {
        Runner { name: J::NAME, run: run::<J> }
    }
}

fn run<J: Job>(job: Value) -> Result<Value> {
    let job: J = serde_json::from_value(job).map_err(|error| no_order(&error.to_string()))?;
    job.run().map(|output| serde_json::to_value(output).expect("results are plain data"))
}

/// A supervisor's order to its child.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// Process that the child must not outlive.
    pub supervisor: i32,
    /// CPUs to run on; empty for all that are allowed.
    pub cpus: Vec<CpuId>,
    /// `cgroup.procs` files of the groups to run in.
    pub join: Vec<PathBuf>,
    pub name: String,
    pub job: Value,
}

/// Runs one job: `main` of a command whose first argument is [`CHILD_COMMAND`].
pub fn child_main() -> ExitCode {
    let Ok(socket) = std::io::stdin().as_fd().try_clone_to_owned() else {
        return ExitCode::FAILURE;
    };
    let mut socket = UnixStream::from(socket);
    let answer = take_order(&mut socket).and_then(obey);
    let answer = serde_json::to_vec(&answer).expect("answers are plain data");
    match socket.write_all(&answer) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn take_order(socket: &mut UnixStream) -> Result<Order> {
    let mut text = String::new();
    let read = socket.read_to_string(&mut text).map_err(|e| e.to_string());
    let order = read.and_then(|_| serde_json::from_str(&text).map_err(|e| e.to_string()));
    order.map_err(|reason| no_order(&reason))
}

fn no_order(reason: &str) -> HostError {
    let problem = format!("`{CHILD_COMMAND}` without an order on standard input: {reason}");
    HostError::input(problem, "it is not for users; see `reveille --help`")
}

fn obey(order: Order) -> Result<Value> {
    if let Some(supervisor) = Pid::from_raw(order.supervisor) {
        let bound = process::die_with(supervisor);
        bound.map_err(|e| HostError::system("bind the child to its parent", e, "report it"))?;
    }
    for file in &order.join {
        fs::write(file, std::process::id().to_string()).map_err(|error| {
            let help = "run as root, or in a group that was delegated to you";
            HostError::system(format!("join {}", file.display()), error, help)
        })?;
    }
    if !order.cpus.is_empty() {
        cpu::pin(&order.cpus).map_err(|error| {
            let doing = format!("run on CPUs {:?}", order.cpus);
            HostError::system(doing, error, "name CPUs that `lscpu` shows online")
        })?;
    }
    let job = inventory::iter::<Runner>().find(|job| job.name == order.name);
    (job.ok_or_else(|| no_order(&format!("no job is named `{}`", order.name)))?.run)(order.job)
}

//! The child's side: takes its order from standard input, runs it, answers there. It is
//! the `reveille` command itself under a hidden name, with a single thread until the job
//! starts more, so that a job may fork.

use std::fs;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;

use reveille_machine::CpuId;
use rustix::process::Pid;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::calibrate::Probe;
use crate::program::RunProgram;
use crate::schbench::Schbench;
use crate::sys::{cpu, process};
use crate::{HostError, TaskUse, peers};

/// The command's first argument that makes it a child; no user types it.
pub const CHILD_COMMAND: &str = "__host-child";

/// Something that a child can do.
pub trait Job: Into<AnyJob> {
    /// What it answers.
    type Output: DeserializeOwned;

    /// What its tasks used, if the answer says so.
    fn tasks(_output: &Self::Output) -> Option<&TaskUse> {
        None
    }
}

/// Every job.
#[derive(Debug, Serialize, Deserialize)]
pub enum AnyJob {
    /// Does nothing, for tests of the way there and back.
    Nothing(Nothing),
    /// Runs a workload.
    RunProgram(Box<RunProgram>),
    /// hackbench.
    Hackbench(peers::Hackbench),
    /// `perf bench sched pipe`.
    SchedPipe(peers::SchedPipe),
    /// context_switch1 of will-it-scale.
    ContextSwitch(peers::ContextSwitch),
    /// TCP_RR and UDP_RR of netperf.
    RequestResponse(peers::RequestResponse),
    /// tbench.
    Tbench(peers::Tbench),
    /// Runs schbench.
    Schbench(Schbench),
    /// Measures one thing for `reveille calibrate`.
    Probe(Probe),
}

impl AnyJob {
    /// Does it.
    fn run(self) -> Result<serde_json::Value, HostError> {
        match self {
            AnyJob::Nothing(job) => job.run().map(value),
            AnyJob::RunProgram(job) => job.run().map(value),
            AnyJob::Hackbench(job) => job.run().map(value),
            AnyJob::SchedPipe(job) => job.run().map(value),
            AnyJob::ContextSwitch(job) => job.run().map(value),
            AnyJob::RequestResponse(job) => job.run().map(value),
            AnyJob::Tbench(job) => job.run().map(value),
            AnyJob::Schbench(job) => job.run().map(value),
            AnyJob::Probe(job) => job.run().map(value),
        }
    }
}

/// What a supervisor asks of its child.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// Process that the child must not outlive.
    pub supervisor: i32,
    /// CPUs to run on; all that are allowed if there are none.
    pub cpus: Vec<CpuId>,
    /// `cgroup.procs` files of the groups to run in.
    pub join: Vec<PathBuf>,
    /// The job itself.
    pub job: AnyJob,
}

/// Runs one order; the command's `main` when [`CHILD_COMMAND`] is its first argument.
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

fn take_order(socket: &mut UnixStream) -> Result<Order, HostError> {
    let mut text = String::new();
    let read = socket.read_to_string(&mut text).map_err(|e| e.to_string());
    let order = read.and_then(|_| serde_json::from_str(&text).map_err(|e| e.to_string()));
    order.map_err(|reason| {
        let problem = format!("`{CHILD_COMMAND}` without an order on standard input: {reason}");
        HostError::input(problem, "it is not for users; see `reveille --help`")
    })
}

fn obey(order: Order) -> Result<serde_json::Value, HostError> {
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
    order.job.run()
}

/// A result as it travels.
fn value<T: Serialize>(output: T) -> serde_json::Value {
    serde_json::to_value(output).expect("results are plain data")
}

/// See [`AnyJob::Nothing`].
#[derive(Debug, Serialize, Deserialize)]
pub struct Nothing;

impl Nothing {
    fn run(self) -> Result<Vec<CpuId>, HostError> {
        cpu::allowed().map_err(|e| HostError::system("read the affinity", e, "report it"))
    }
}

impl Job for Nothing {
    /// The CPUs that it may use.
    type Output = Vec<CpuId>;
}

impl From<Nothing> for AnyJob {
    fn from(job: Nothing) -> AnyJob {
        AnyJob::Nothing(job)
    }
}

//! Runs workloads in real time, as threads and processes on this host's kernel.
//!
//! Whatever loads the host runs in a child process ([`supervise`]): the parent can put it in a task
//! group, kill all of it, and clean up, however the child ends.

pub mod calibrate;
pub mod cgroup;
mod child;
pub mod command;
mod context;
mod error;
pub mod features;
pub mod program;
pub mod record;
pub mod schbench;
pub mod sched_ext;
pub mod supervise;
mod sys;
mod task_use;

pub use child::{CHILD_COMMAND, Job};
pub use context::{Watch, kernel_version};
pub use error::HostError;
pub use sys::usage::own_cpu_ns;
pub use task_use::TaskUse;

/// Nanoseconds.
pub type Ns = u64;

/// Runs one job: `main` of a command whose first argument is [`CHILD_COMMAND`].
pub fn child_main() -> std::process::ExitCode {
    use child::Runner;
    child::serve(&[
        Runner::of::<program::RunProgram>(),
        Runner::of::<schbench::Schbench>(),
        Runner::of::<calibrate::Probe>(),
        Runner::of::<command::RunCommand>(),
    ])
}

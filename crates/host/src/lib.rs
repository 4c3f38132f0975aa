//! Runs workloads in real time, as threads and processes on this host's kernel.
//!
//! Whatever loads the host runs in a child process ([`supervise`]): the parent can put it in a task
//! group, kill all of it, and clean up, however the child ends.

pub mod calibrate;
pub mod cgroup;
pub mod command;
mod error;
mod kernel;
pub mod program;
pub mod record;
pub mod schbench;
pub mod supervise;
mod sys;

pub use error::HostError;
pub use kernel::{TaskUse, Watch, features, kernel_version, sched_ext};
pub use reveille_measure::Ns;
pub use supervise::{CHILD_COMMAND, Job, child_main};
pub use sys::clock::tick_period;
pub use sys::process::end_at_faults;

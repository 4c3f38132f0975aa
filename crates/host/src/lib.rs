//! Real time: workloads as threads and processes on the kernel of this host.
//!
//! Whatever puts load on the host runs in a child process of its own ([`supervise`]): the
//! parent can put it in a task group, end all of it, and clean up, however the child ends.

pub mod calibrate;
pub mod cgroup;
mod child;
mod context;
mod error;
pub mod features;
pub mod peers;
pub mod program;
pub mod record;
pub mod schbench;
pub mod sched_ext;
pub mod supervise;
mod sys;
mod task_use;

pub use child::{AnyJob, CHILD_COMMAND, Job, Nothing, child_main};
pub use context::{Watch, kernel_version};
pub use error::HostError;
pub use task_use::TaskUse;

/// Nanoseconds.
pub type Ns = u64;

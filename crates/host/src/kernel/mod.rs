//! The running kernel: which it is, how busy its CPUs are, what a task has used, and the scheduler
//! features and sched_ext schedulers that a run can switch.

mod context;
pub mod features;
pub(crate) mod proc;
pub mod sched_ext;
mod task_use;

pub(crate) use context::version_of;
pub use context::{Watch, kernel_version};
pub use task_use::TaskUse;
pub(crate) use task_use::mean_run_delay;

//! Workloads as data: TOML files that describe tasks by a few operations, the catalogue
//! of those that Reveille ships, and rt-app's JSON files read as such.

mod amount;
mod build;
mod catalogue;
mod channels;
mod check;
mod error;
mod file;
mod names;
mod operation;
mod program;
mod rtapp;
mod table;
mod task;
mod trace;

pub use catalogue::{find, load, names};
pub use error::WorkloadError;
pub use file::{Param, Workload};
pub use program::{
    Arrival, Arrivals, ChannelKind, FOR_EVER, MAX_DEPTH, Metric, MetricKind, Ns, Op, Port, Program,
    Role, TaskSpec,
};
pub use reveille_place::{FileError, InputError};

//! Reads a trace of the scheduler, as text, as a workload that does the same again: each task
//! computes as long as it did, wakes the tasks it woke, and waits for what woke it. docs/traces.md
//! has the rules.

mod kept;
mod line;
mod read;
mod tasks;

pub(crate) use kept::ONLY;
pub(crate) use tasks::Trace;

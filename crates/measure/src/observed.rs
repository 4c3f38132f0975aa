//! Which figures of a run are known: a simulator knows all, a real kernel tells few, and
//! what it does not tell must not be taken for 0.

use serde::{Deserialize, Serialize};

/// What a runner saw of the scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Observed {
    /// Every figure.
    #[default]
    Everything,
    /// What the kernel tells everybody: how long each CPU was idle, and the context switches
    /// of the machine. No wakeup is seen, neither where it went nor how long it took.
    FromOutside {
        /// Times that a task changed CPU, for whatever reason, if the kernel tells.
        migrations: Option<u64>,
    },
}

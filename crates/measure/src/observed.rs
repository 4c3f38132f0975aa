//! Which figures of a run are known: a simulator knows all, a real kernel tells few, and
//! what it does not tell must not be taken for 0.

use serde::{Deserialize, Serialize};

/// What a runner saw of the scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Observed {
    /// Every figure.
    #[default]
    Everything,
    /// What any kernel shows: idle time of each CPU, and context switches of the machine. No wakeup
    /// is observed, neither its CPU nor its latency.
    FromOutside {
        /// Changes of CPU for any reason, if the kernel reports them.
        migrations: Option<u64>,
    },
}

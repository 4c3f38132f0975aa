//! What a task takes from queue to queue: its weight and its place on the fair timeline.

use crate::rq::eevdf::Carried;
use crate::rq::fair::NICE_0;

/// As `struct sched_entity`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SchedEntity {
    pub(crate) weight: u32,
    /// CFS; under EEVDF the queue has it.
    pub(crate) vruntime: i64,
    /// What it has kept of its last queue under EEVDF.
    pub(crate) carried: Carried,
}

impl SchedEntity {
    /// At nice 0.
    pub(crate) fn new() -> SchedEntity {
        SchedEntity { weight: NICE_0 as u32, vruntime: 0, carried: Carried::default() }
    }
}

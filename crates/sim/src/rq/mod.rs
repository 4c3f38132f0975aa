//! Runqueues: the two fair timelines, load averages, groups with quotas, shared queues.

pub(crate) mod cfs;
pub(crate) mod eevdf;
pub(crate) mod entity;
pub(crate) mod fair;
pub(crate) mod groups;
pub(crate) mod pelt;
pub(crate) mod runqueue;
pub(crate) mod shared;

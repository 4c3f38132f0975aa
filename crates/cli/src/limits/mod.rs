//! CPU limits: recordings, and limits chosen from them.

mod act;
pub mod fleet;
pub mod import;
pub mod plan;
mod prometheus;
pub mod record;
pub mod show;
pub mod usage;

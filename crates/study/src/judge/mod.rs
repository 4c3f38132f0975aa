//! Judges figures. Nothing here runs a simulation or a measurement.

pub(crate) mod agreement;
pub(crate) mod bench;
pub(crate) mod change;
pub(crate) mod claim;
pub(crate) mod comparison;
pub(crate) mod interference;
pub(crate) mod modes;
pub(crate) mod row;
pub(crate) mod rows;
pub(crate) mod score;
pub(crate) mod skill;
pub(crate) mod standing;
pub mod statistics;
pub(crate) mod summary;
pub(crate) mod track_record;
mod tracked;
pub mod verdict;

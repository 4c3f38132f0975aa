//! Runs a study in virtual time, on this host or in both, and folds the runs into a comparison.

pub(crate) mod agree;
pub(crate) mod fold;
pub(crate) mod interference;
pub(crate) mod matrix;
pub(crate) mod native;
pub(crate) mod runner;
pub(crate) mod sides;
pub(crate) mod this_host;

//! Predictions of what a scheduler change does.

pub mod fit;
mod host_study;
pub mod policy;
pub mod score;
pub mod sensitivity;
pub mod study;
pub mod study_args;
pub mod sweep;

//! Measurements of this machine.

pub mod bench;
pub mod calibrate;

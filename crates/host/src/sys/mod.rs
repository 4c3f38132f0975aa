//! What is asked of the kernel directly. All `unsafe` and FFI of this crate stands in this
//! folder, one reason in each file.

pub mod class;
pub mod clock;
pub mod cpu;
pub mod futex;
pub mod perf;
pub mod process;
pub mod shared;
pub mod usage;

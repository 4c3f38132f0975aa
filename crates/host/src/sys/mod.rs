//! Direct system calls, and the channels of programs and probes. All `unsafe` code and FFI of this
//! crate is in this directory, one reason per file.

pub mod channel;
pub mod class;
pub mod clock;
pub mod cpu;
pub mod futex;
pub mod perf;
pub mod process;
pub mod shared;
pub mod usage;

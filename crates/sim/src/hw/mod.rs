//! The hardware: CPUs and their idle states, distances, contention, interrupts, time.

pub(crate) mod clock;
pub(crate) mod clock_speed;
pub(crate) mod contention;
pub(crate) mod cpu;
pub(crate) mod distance;
pub(crate) mod governor;
pub(crate) mod hardware;
pub(crate) mod idle_loop;
pub(crate) mod interrupts;
pub(crate) mod speed;

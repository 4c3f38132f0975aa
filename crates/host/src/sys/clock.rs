//! The clock of every measurement: monotonic, in ns, read through the vDSO. Reading a
//! thread's CPU clock instead would charge its runtime up to date and make the kernel
//! enforce quotas more exactly than it does.

use rustix::time::{ClockId, clock_getres, clock_gettime};

use crate::Ns;

/// Nanoseconds since an arbitrary start, the same in all processes.
#[inline]
pub fn now() -> Ns {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as Ns * 1_000_000_000 + time.tv_nsec as Ns
}

/// The time between two ticks: what the kernel's coarse clock resolves.
pub fn tick_period() -> Ns {
    let period = clock_getres(ClockId::MonotonicCoarse);
    (period.tv_sec as Ns * 1_000_000_000 + period.tv_nsec as Ns).max(1)
}

/// Spins until `end`; time in which the thread does not run passes as well.
#[inline]
pub fn spin_until(end: Ns) {
    while now() < end {
        std::hint::spin_loop();
    }
}

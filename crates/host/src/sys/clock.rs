//! The clock of all measurements: monotonic, in ns, read through the vDSO. Reading a thread's CPU
//! clock instead would charge its runtime and make the kernel enforce quotas more precisely than it
//! does.

use reveille_measure::Ns;
use rustix::io::Errno;
use rustix::thread::{NanosleepRelativeResult, clock_nanosleep_absolute, clock_nanosleep_relative};
use rustix::time::{ClockId, Timespec, clock_getres, clock_gettime};

/// Nanoseconds since an arbitrary start, the same in all processes.
#[inline]
pub fn now() -> Ns {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as Ns * 1_000_000_000 + time.tv_nsec as Ns
}

/// Tick period: the resolution of the kernel's coarse clock.
pub fn tick_period() -> Ns {
    let period = clock_getres(ClockId::MonotonicCoarse);
    (period.tv_sec as Ns * 1_000_000_000 + period.tv_nsec as Ns).max(1)
}

/// Spins until `end`; time off the CPU counts too.
#[inline]
pub fn spin_until(end: Ns) {
    while now() < end {
        std::hint::spin_loop();
    }
}

/// Sleeps for this long, despite signals.
pub fn sleep(ns: Ns) {
    let mut left = timespec(ns);
    while let NanosleepRelativeResult::Interrupted(rest) =
        clock_nanosleep_relative(ClockId::Monotonic, &left)
    {
        left = rest;
    }
}

pub fn sleep_until(end: Ns) {
    let end = timespec(end);
    while clock_nanosleep_absolute(ClockId::Monotonic, &end) == Err(Errno::INTR) {}
}

fn timespec(ns: Ns) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}

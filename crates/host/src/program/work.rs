//! Computes for a given CPU time: a calibrated loop of dependent arithmetic. It does not access
//! memory, so other load matters only if it shares the core.

use std::hint::black_box;

use reveille_measure::Ns;

use crate::sys::clock;

/// Number of trials; the fastest counts, because the others were interrupted.
const TRIALS: usize = 40;
/// Rounds per trial: about 100 us at six cycles each.
const TRIAL_ROUNDS: u64 = 1 << 16;
/// Upper bound on a processor's frequency ramp-up.
const RAMP_UP_NS: Ns = 10_000_000;

#[inline(never)]
pub(super) fn compute(rounds: u64) {
    // Marsaglia's xorshift: each round depends on the previous one, and compilers cannot vectorize
    // it as they do a linear recurrence.
    let mut x = rounds | 1;
    for _ in 0..rounds {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    black_box(x);
}

/// Makes a system call that only enters and leaves the kernel, and computes for these rounds in
/// place of its work.
pub(super) fn syscall(rounds: u64) {
    black_box(rustix::process::getppid());
    compute(rounds);
}

/// Two clock readings further apart mean that the thread did not run, or that its CPU was
/// interrupted for longer than a tick takes.
const GAP_NS: Ns = 20_000;

/// Computes until the thread has run for `ns`: elapsed time minus the gaps in which it did not run.
/// A quota charges time, not rounds, whatever the frequency. Reading the thread's CPU clock instead
/// would charge its runtime at once, so no quota would ever be overrun.
pub(super) fn compute_for(ns: Ns) {
    let (mut had, mut last) = (0, clock::now());
    while had < ns {
        let now = clock::now();
        if now - last <= GAP_NS {
            had += now - last;
        }
        last = now;
    }
}

/// Speed of the loop on this machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speed {
    pub(super) rounds_per_ns: f64,
}

impl Speed {
    /// Measures the speed, in about 20 ms.
    pub(super) fn measure() -> Speed {
        clock::spin_until(clock::now() + RAMP_UP_NS);
        let trial = |_| {
            let begin = clock::now();
            compute(TRIAL_ROUNDS);
            clock::now() - begin
        };
        let fastest = (0..TRIALS).map(trial).min().unwrap_or(1).max(1);
        Speed { rounds_per_ns: TRIAL_ROUNDS as f64 / fastest as f64 }
    }

    #[inline]
    pub(super) fn rounds(self, ns: Ns) -> u64 {
        (ns as f64 * self.rounds_per_ns) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computing_takes_its_time_and_no_less() {
        let speed = Speed::measure();
        let time = |ns| {
            let begin = clock::now();
            compute(speed.rounds(ns));
            clock::now() - begin
        };
        // The fastest of many is near what was asked for, however busy the machine is;
        // above it, if its frequency has fallen since, and below it, if the other thread of its
        // core was busy while speed was measured.
        let fastest = (0..200).map(|_| time(50_000)).min().unwrap();
        assert!((20_000..150_000).contains(&fastest), "{fastest} ns for 50000");
        assert_eq!(speed.rounds(0), 0);
    }
}

//! Computing for a given CPU time: a loop of dependent arithmetic whose speed is measured
//! beforehand. It touches no memory, so that what else runs on the machine matters only as
//! far as it shares the core.

use std::hint::black_box;

use crate::Ns;
use crate::sys::clock;

/// Trials, of which the fastest counts: the others were interrupted.
const TRIALS: usize = 40;
/// Rounds of a trial: some 100 us at six cycles each.
const TRIAL_ROUNDS: u64 = 1 << 16;
/// A processor takes this long at most to reach its working frequency.
const RAMP_UP_NS: Ns = 10_000_000;

/// Computes for this many rounds.
#[inline(never)]
pub(super) fn compute(rounds: u64) {
    // Marsaglia's xorshift: each round needs the one before, and no compiler finds out how to
    // do several at once, as it does for a linear recurrence.
    let mut x = rounds | 1;
    for _ in 0..rounds {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    black_box(x);
}

/// Makes a system call that does nothing but enter and leave the kernel, and computes for
/// these rounds in place of its work.
pub(super) fn syscall(rounds: u64) {
    black_box(rustix::process::getppid());
    compute(rounds);
}

/// Two looks at the clock lie further apart than this only if the thread did not run between
/// them, or its CPU was interrupted for longer than a tick takes.
const GAP_NS: Ns = 20_000;

/// Computes until the thread has had a CPU for `ns`: by the clock, from which the gaps are
/// taken in which it did not run. A quota counts time and not rounds, whatever the processor's
/// frequency; asking the kernel how long it has run would charge it on the spot, and let no
/// quota be overrun.
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

/// How fast this is on a CPU of this machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speed {
    /// Rounds per ns.
    pub(super) rounds_per_ns: f64,
}

impl Speed {
    /// Measures it, within some 20 ms.
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

    /// The rounds that take `ns`.
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

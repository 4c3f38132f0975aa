//! Clocks of a recording. Only the monotonic clock times it; the others give its date, and reveal
//! clock changes and suspends.

use reveille_measure::Ns;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// A difference above this and above [`DRIFT`] of the span is a step, not a rate correction.
const STEP_NS: i128 = 100_000_000;
/// The largest rate correction in Linux (`adjtimex(2)`: 500 ppm).
const DRIFT: f64 = 500e-6;
/// Difference of boot-time and monotonic clock above which the host was suspended.
const SUSPENDED_NS: i128 = 10_000_000;

/// All clocks at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clocks {
    monotonic_ns: i128,
    wall_ns: i128,
    boot_ns: i128,
}

impl Clocks {
    pub fn read() -> Clocks {
        let ns =
            |time: Timespec| i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
        Clocks {
            monotonic_ns: ns(clock_gettime(ClockId::Monotonic)),
            wall_ns: ns(clock_gettime(ClockId::Realtime)),
            boot_ns: ns(clock_gettime(ClockId::Boottime)),
        }
    }

    pub fn monotonic_ns(&self) -> Ns {
        self.monotonic_ns as Ns
    }

    /// Unix time, if the wall clock is set.
    pub fn unix_ns(&self) -> Option<u64> {
        u64::try_from(self.wall_ns).ok()
    }

    /// Clock events since then, as sentences.
    pub fn steps(&self) -> Vec<String> {
        self.steps_until(&Clocks::read())
    }

    fn steps_until(&self, now: &Clocks) -> Vec<String> {
        let span_ns = now.monotonic_ns - self.monotonic_ns;
        let slept_ns = now.boot_ns - self.boot_ns - span_ns;
        let seconds = |ns: i128| ns as f64 / 1e9;
        let mut warnings = Vec::new();
        if slept_ns > SUSPENDED_NS {
            warnings.push(format!(
                "The host slept for {:.3} s in between, which the recording leaves out.",
                seconds(slept_ns)
            ));
        }
        let stepped_ns = now.wall_ns - self.wall_ns - span_ns - slept_ns.max(0);
        if stepped_ns.abs() > STEP_NS + (span_ns as f64 * DRIFT) as i128 {
            warnings.push(format!(
                "The wall clock was set by {:+.3} s in between: the recording's times are of \
                 another clock and right, but compare them with logs by its start alone.",
                seconds(stepped_ns)
            ));
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_clock_and_a_sleep_are_told_apart() {
        const SECOND: i128 = 1_000_000_000;
        let start = Clocks { monotonic_ns: 0, wall_ns: 50 * SECOND, boot_ns: 7 * SECOND };
        let after = |wall: i128, boot: i128| {
            let monotonic_ns = 60 * SECOND;
            let (wall_ns, boot_ns) =
                (start.wall_ns + monotonic_ns + wall, start.boot_ns + monotonic_ns + boot);
            start.steps_until(&Clocks { monotonic_ns, wall_ns, boot_ns })
        };
        assert!(after(0, 0).is_empty());
        assert!(after(SECOND / 50, 0).is_empty(), "a correction");
        let back = after(-3600 * SECOND, 0);
        assert!(back.len() == 1 && back[0].contains("-3600.000 s"), "{back:?}");
        let slept = after(90 * SECOND, 90 * SECOND);
        assert!(slept.len() == 1 && slept[0].contains("slept for 90.000 s"), "{slept:?}");
        assert_eq!(after(80 * SECOND, 90 * SECOND).len(), 2);
    }

    #[test]
    fn the_clocks_run() {
        let start = Clocks::read();
        assert!(start.unix_ns().is_some());
        assert!(Clocks::read().monotonic_ns() >= start.monotonic_ns());
        assert!(start.steps().is_empty(), "{:?}", start.steps());
    }
}

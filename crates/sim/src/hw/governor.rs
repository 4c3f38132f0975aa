//! Idle state selection after the menu governor: by the typical length of recent idle intervals, or
//! the time to the next timer if that is shorter.

use reveille_machine::IdleState;
use reveille_measure::Ns;

/// Number of idle intervals remembered.
const INTERVALS: usize = 8;

/// With a spread below this, the mean of the intervals is the prediction.
const SPREAD_NS: u64 = 20_000;

/// Longer intervals count as this long, a quarter of a second, so that the sum of eight squares
/// fits 64 bits.
const MAX_INTERVAL_NS: Ns = 1 << 28;

/// Idle history of one CPU.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Governor {
    /// The oldest first.
    intervals: [u32; INTERVALS],
    /// Sum of their squares. With more than this a CPU would take another cache line.
    squares: u64,
}

impl Governor {
    #[inline]
    pub(crate) fn record(&mut self, idle_ns: Ns) {
        let new = idle_ns.min(MAX_INTERVAL_NS);
        let oldest = u64::from(self.intervals[0]);
        self.squares = self.squares + new * new - oldest * oldest;
        self.intervals.copy_within(1.., 0);
        self.intervals[INTERVALS - 1] = new as u32;
    }

    /// Mean of the intervals without outliers above; `None` if they are too scattered. A spread
    /// below 20 us, or below a sixth of the mean with six intervals left, is typical.
    #[inline]
    fn typical(&self) -> Option<Ns> {
        let mut limit = u32::MAX;
        // Eight times the longest fits.
        let mut sum = u64::from(self.intervals.iter().sum::<u32>());
        let (mut n, mut squares) = (INTERVALS as u64, self.squares);
        loop {
            let mean = sum / n.max(1);
            let variance = (squares / n.max(1)).saturating_sub(mean * mean);
            let tight = variance <= SPREAD_NS * SPREAD_NS;
            let relative = n >= 6 && mean * mean > 36 * variance;
            if tight || relative {
                return Some(mean);
            }
            // At most a quarter of the intervals may be outliers.
            if n <= 6 {
                return None;
            }
            let kept = |limit| self.intervals.iter().filter(move |&&value| value <= limit);
            limit = kept(limit).fold(0, |max, &value| max.max(value)) - 1;
            (n, sum, squares) = kept(limit)
                .map(|&value| u64::from(value))
                .fold((0, 0, 0), |(n, sum, squares), value| {
                    (n + 1, sum + value, squares + value * value)
                });
        }
    }

    /// Predicted idle time when the next timer is `to_timer` away.
    #[inline]
    pub(crate) fn predict(&self, to_timer: Ns) -> Ns {
        self.typical().map_or(to_timer, |typical| typical.min(to_timer))
    }
}

/// The deepest state whose target residency fits the prediction. Polling is chosen only if a timer,
/// not just the prediction, expires before the first real state pays off (menu_select of v6.2).
#[inline]
pub(crate) fn choose_state(states: &[IdleState], predicted: Ns, to_timer: Ns) -> usize {
    let fits = |s: &IdleState| Ns::from(s.residency_ns) <= predicted;
    let chosen = states.iter().rposition(fits).unwrap_or(0);
    match states.get(chosen + 1) {
        Some(real)
            if states[chosen].residency_ns == 0 && Ns::from(real.residency_ns) <= to_timer =>
        {
            chosen + 1
        }
        _ => chosen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_regular_stretches_are_predicted_and_one_outlier_is_left_out() {
        let mut governor = Governor::default();
        for _ in 0..8 {
            governor.record(5_000);
        }
        assert_eq!(governor.predict(1_000_000), 5_000);
        governor.record(3_000_000);
        assert_eq!(governor.predict(10_000_000), 5_000);
        assert_eq!(governor.predict(2_000), 2_000, "a timer comes first");
    }

    #[test]
    fn polling_needs_a_timer() {
        let icx = reveille_machine::load("icx-2s32c").unwrap();
        let name =
            |predicted, to_timer| &icx.idle[choose_state(&icx.idle, predicted, to_timer)].name;
        assert_eq!(name(300, 9_000_000), "C1", "short by prediction alone");
        assert_eq!(name(300, 300), "POLL");
        assert_eq!(name(3_999, 9_000_000), "C1");
        assert_eq!(name(4_000, 9_000_000), "C1E");
    }

    #[test]
    fn scattered_stretches_leave_the_timer() {
        let mut governor = Governor::default();
        for i in 0..8u64 {
            governor.record(i * i * 400_000);
        }
        assert_eq!(governor.predict(7_000_000), 7_000_000);
    }
}

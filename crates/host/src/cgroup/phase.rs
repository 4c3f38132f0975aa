//! When the periods of a group end. The kernel starts the period timer at a random phase and does
//! not show it, but it counts periods, so frequent reads of the counter reveal an end. The grid
//! then stays fixed: a stopped timer restarts on it.

use reveille_measure::Ns;
use serde::{Deserialize, Serialize};

use super::StatFiles;
use crate::error::{HostError, Result};
use crate::sys::clock;

/// Two reads no further apart than this locate the end of a period precisely enough.
const SHARP_NS: Ns = 100_000;
/// Attempts at that precision.
const TRIES: u32 = 20;
/// On a busy host, the best of all attempts suffices if it is within this fraction of a period.
const BUSY_SHARE: Ns = 50;
/// Minimum delay before a run that is ready starts.
const LEAD_NS: Ns = 1_000_000;

/// When the periods of a group end, and at which phase a run starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase {
    /// The end of one period, on the monotonic clock.
    pub refill_at_ns: Ns,
    pub period_ns: Ns,
    /// From the start of the run to the next end of a period.
    pub phase_ns: Ns,
}

impl Phase {
    /// The first moment after `now` at which a run can start.
    pub fn start_after(&self, now: Ns) -> Ns {
        let soonest = now + LEAD_NS;
        let wanted = self.refill_at_ns + self.period_ns - self.phase_ns % self.period_ns;
        // Both lie on the grid of the requested phase.
        let first = wanted % self.period_ns;
        soonest + (first + self.period_ns - soonest % self.period_ns) % self.period_ns
    }
}

/// Observes the end of a period: a moment between two reads of the counter, at most [`SHARP_NS`]
/// apart; on a busy host, at most the period divided by [`BUSY_SHARE`]. `restart` restarts a period
/// timer that has stopped, as the kernel's does after two idle periods.
///
/// # Errors
/// [`HostError::System`] if the group cannot be read, or no end was observed that precisely.
pub(super) fn see_refill(
    stats: &StatFiles,
    period_ns: Ns,
    restart: impl Fn() -> Result<()>,
) -> Result<Ns> {
    let mut sharpest: Option<(Ns, Ns)> = None;
    for _ in 0..TRIES {
        restart()?;
        let limit = clock::now() + 2 * period_ns;
        let (mut before, counted) = (clock::now(), stats.read("")?.nr_periods);
        while before < limit {
            let looked = clock::now();
            if stats.read("")?.nr_periods != counted {
                let apart = clock::now() - before;
                if apart <= SHARP_NS {
                    return Ok(before);
                }
                sharpest = sharpest.into_iter().chain([(apart, before)]).min();
                break;
            }
            before = looked;
        }
    }
    let enough_ns = period_ns / BUSY_SHARE;
    if let Some((_, before)) = sharpest.filter(|(apart, _)| *apart <= enough_ns) {
        return Ok(before);
    }
    Err(HostError::System {
        doing: "see a period of a task group end".to_owned(),
        reason: format!("no end was seen to within {} us in {TRIES} tries", enough_ns / 1000),
        help: "run nothing else beside this, or leave the phase out".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_begins_so_long_before_the_end_of_a_period() {
        let period_ns = 100_000_000;
        for phase_ns in [0, 1, 30_000_000, 99_999_999, 250_000_000] {
            let phase = Phase { refill_at_ns: 1_234_567_890, period_ns, phase_ns };
            for now in [0, 1_000_000_000, 1_234_567_890, 7_777_777_777] {
                let start = phase.start_after(now);
                assert!(start >= now + LEAD_NS && start < now + LEAD_NS + period_ns);
                let to_refill = (phase.refill_at_ns + 100 * period_ns - start) % period_ns;
                assert_eq!(to_refill, phase_ns % period_ns);
            }
        }
    }
}

//! NI_RANDOM: how likely a new-idle pass over a domain is, by how many passes have pulled a task.

use reveille_measure::Ns;
use reveille_policy::{Tunables, bits};

/// A ratio counts passes out of this many; after as many it is computed again.
const WHOLE: u32 = 1024;

/// What one CPU knows of its new-idle passes over one of its domains (sd->newidle_ratio and the like).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Odds {
    calls: u32,
    successes: u32,
    ratio: u32,
    since_ns: Ns,
}

impl Odds {
    /// sd_init()'s half. With NI_RATE a machine that has been idle looks every time, since it looks seldom.
    pub(crate) fn new(tunables: &Tunables) -> Odds {
        let ratio = if tunables.has(bits::NI_RATE) { WHOLE } else { WHOLE / 2 };
        Odds { calls: WHOLE / 2, successes: WHOLE / 4, ratio, since_ns: 0 }
    }

    /// The number of passes that a pass made now stands for, or `None` if it is to be skipped. `draw(n)` is a
    /// random number below n.
    pub(crate) fn weight(&self, draw: impl FnOnce(u32) -> u32) -> Option<u32> {
        let weight = 1 + self.ratio;
        let made = self.ratio >= WHOLE || draw(WHOLE) <= weight;
        made.then(|| (WHOLE + weight / 2) / weight)
    }

    /// update_newidle_stats(), `pace` times: counts a pass, skipped or made. `successes` is its weight if it
    /// has pulled a task, otherwise 0.
    pub(crate) fn note(&mut self, successes: u32, pace: u64, now: Ns, tunables: &Tunables) {
        let pace_calls = u32::try_from(pace).unwrap_or(WHOLE);
        self.calls += pace_calls;
        self.successes += successes * pace_calls;
        if self.calls < WHOLE {
            return;
        }
        let passed = (now - self.since_ns) * pace;
        self.since_ns = now;
        // At 4.3 s between two computations every pass is made.
        self.ratio = match tunables.has(bits::NI_RATE) {
            true => (passed >> 22).saturating_add(self.successes.into()).min(WHOLE.into()) as u32,
            false => self.successes,
        };
        self.calls /= 2;
        self.successes /= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(features: u64) -> Tunables {
        Tunables { features, ..reveille_policy::Policy::baseline("v6.2").unwrap().tunables(8, 250) }
    }

    /// The ratio after this many passes, `apart` ns from each other. All of them pull a task, or none does.
    fn ratio(features: u64, passes: u64, apart: Ns, pull: bool) -> u32 {
        let tunables = with(features);
        let mut odds = Odds::new(&tunables);
        for pass in 1..=passes {
            odds.note(u32::from(pull), 1, pass * apart, &tunables);
        }
        odds.ratio
    }

    #[test]
    fn passes_are_made_in_proportion_to_their_success() {
        let random = bits::NI_RANDOM;
        assert_eq!(ratio(random, 511, 1_000, false), 512, "no decision yet");
        // 256 of the first 1,024 had pulled a task before; halved each time.
        assert_eq!(ratio(random, 512, 1_000, false), 256);
        assert_eq!(ratio(random, 1_024, 1_000, false), 128);
        assert_eq!(ratio(random, 1_024, 1_000, true), 896);
        assert_eq!(ratio(random, 10 * 512, 1_000, true), 1_023);
    }

    #[test]
    fn rare_passes_are_always_made() {
        let rated = bits::NI_RANDOM | bits::NI_RATE;
        assert_eq!(ratio(rated, 511, 1_000, false), 1_024);
        assert_eq!(ratio(rated, 512, 1_000, false), 256);
        // 4 ms apart, 512 take 2 s, which is 488 of 1,024.
        assert_eq!(ratio(rated, 10 * 512, 4_000_000, false), 488);
        assert_eq!(ratio(rated, 10 * 512, 10_000_000, false), 1_024);
    }

    #[test]
    fn a_rare_success_counts_for_those_that_were_not_tried() {
        let tunables = with(bits::NI_RANDOM);
        let mut odds = Odds::new(&tunables);
        let weights = |odds: &Odds| [0, 513, 514].map(|drawn| odds.weight(|_| drawn));
        assert_eq!(weights(&odds), [Some(2), Some(2), None]);
        for now in 0..20 * 512 {
            odds.note(0, 1, now, &tunables);
        }
        assert_eq!([1, 2].map(|drawn| odds.weight(|_| drawn)), [Some(1_024), None]);
    }
}

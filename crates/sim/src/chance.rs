//! All randomness of a run comes from one seed.

use reveille_measure::{Ns, Random};

#[derive(Clone)]
pub(crate) struct Chance {
    random: Random,
    noise: u64,
}

impl Chance {
    /// `noise` is the relative variation of costs.
    pub(crate) fn new(seed: u64, noise: f64) -> Chance {
        Chance { random: Random::new(seed), noise: (noise * 1024.0) as u64 }
    }

    /// A cost with random variation, standing for caches and interrupts.
    #[inline(always)]
    pub(crate) fn varied(&mut self, ns: Ns) -> Ns {
        if self.noise == 0 {
            return ns;
        }
        let random = ((self.random.bits() >> 32) * (2 * self.noise)) >> 32;
        (ns * (1024 - self.noise + random) + 512) / 1024
    }

    /// Uniform in `0..limit`; 0 if `limit` is 0.
    pub(crate) fn below(&mut self, limit: Ns) -> Ns {
        self.random.below(limit)
    }

    /// Exponentially distributed with this mean, in whole ns.
    pub(crate) fn exponential(&mut self, mean: Ns) -> Ns {
        self.random.exponential(mean as f64) as Ns
    }
}

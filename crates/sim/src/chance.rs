//! Everything random in a run comes from one seed.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use reveille_measure::Ns;

pub(crate) struct Chance {
    rng: Xoshiro256PlusPlus,
    noise: u64,
}

impl Chance {
    /// `noise`: how far costs vary, as a share.
    pub(crate) fn new(seed: u64, noise: f64) -> Chance {
        Chance { rng: Xoshiro256PlusPlus::seed_from_u64(seed), noise: (noise * 1024.0) as u64 }
    }

    /// A cost with the variation that caches and interrupts give it.
    #[inline]
    pub(crate) fn varied(&mut self, ns: Ns) -> Ns {
        if self.noise == 0 {
            return ns;
        }
        let random = ((self.rng.next_u64() >> 32) * (2 * self.noise)) >> 32;
        ns * (1024 - self.noise + random) / 1024
    }

    /// Uniform below `limit`; 0 for a limit of 0.
    pub(crate) fn below(&mut self, limit: Ns) -> Ns {
        ((u128::from(self.rng.next_u64()) * u128::from(limit)) >> 64) as Ns
    }

    /// Exponentially distributed with this mean, in whole ns.
    pub(crate) fn exponential(&mut self, mean: Ns) -> Ns {
        // Of 53 random bits, and never 0, of which there is no logarithm.
        let uniform = ((self.rng.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        (-uniform.ln() * mean as f64) as Ns
    }
}

//! Is the host quiet enough to trust its times? Checks CPU time used by other tasks, time stolen by
//! the hypervisor, and the spread of a fixed loop.

use reveille_measure::Ns;
use serde::Serialize;

use super::samples::{Measurement, SPIN, Samples, Sketch};
use crate::kernel::Watch;
use crate::kernel::proc::{CpuTicks, tick_ns};
use crate::sys::clock;

/// Threshold for stolen time, as a share of all CPU time.
pub const MOST_STEAL: f64 = 0.01;
/// Threshold for other tasks' CPU time, as a share of all CPU time.
pub const MOST_FOREIGN: f64 = 0.10;
/// Threshold for the spread of a fixed loop, p90 over p10, minus 1.
pub const MOST_SPREAD: f64 = 0.10;

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Noise {
    /// Stolen time, as a share of all CPU time.
    pub steal: f64,
    /// Other processes' time, as a share of all CPU time.
    pub foreign: f64,
    /// p90 of a fixed loop's time over its p10, minus 1.
    pub spread: f64,
}

impl Noise {
    /// Noise since a watch began; `spread` comes from the fixed loop.
    pub fn since(watch: &Watch, spread: f64) -> Noise {
        let (used, own_ns) = watch.used();
        Noise::of(used, own_ns, spread)
    }

    fn of(used: CpuTicks, own_ns: Ns, spread: f64) -> Noise {
        let total = used.total.max(1) as f64;
        Noise {
            steal: used.stolen as f64 / total,
            foreign: (used.busy as f64 - own_ns as f64 / tick_ns()).max(0.0) / total,
            spread,
        }
    }

    /// Spread of the fixed loop; 0 if it was not measured.
    pub fn spread_of(measured: &[Measurement]) -> f64 {
        let spin = measured.iter().find(|m| m.name == SPIN);
        spin.map_or(0.0, |m| m.p90 / m.p10.max(1.0) - 1.0)
    }

    /// The thresholds that are exceeded, in words; empty on a quiet host.
    pub fn complaints(&self) -> Vec<String> {
        let percent = |share: f64| format!("{:.1}%", 100.0 * share);
        let mut said = Vec::new();
        if self.steal > MOST_STEAL {
            said.push(format!("the hypervisor took {} of the CPU time", percent(self.steal)));
        }
        if self.foreign > MOST_FOREIGN {
            said.push(format!("other processes used {} of the CPU time", percent(self.foreign)));
        }
        if self.spread > MOST_SPREAD {
            said.push(format!("a fixed loop's times spread by {}", percent(self.spread)));
        }
        said
    }
}

/// A fixed loop of about 20 us; returns its duration.
fn fixed_loop() -> Ns {
    let start = clock::now();
    let mut value = 1u64;
    for _ in 0..10_000 {
        value = std::hint::black_box(value).wrapping_mul(6_364_136_223_846_793_005) | 1;
    }
    clock::now() - start
}

pub(crate) fn spin(time: Ns) -> Vec<Sketch> {
    let mut samples = Samples::default();
    let end = clock::now() + time;
    loop {
        samples.push(fixed_loop() as f64);
        if clock::now() >= end {
            return vec![samples.sketch(SPIN, "10,000 dependent multiplications")];
        }
    }
}

/// The loop's best time at present: this CPU's speed.
pub(crate) fn speed() -> Ns {
    (0..20).map(|_| fixed_loop()).min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_used_is_noise_and_ones_own_load_is_not() {
        let own = |ticks: f64| (ticks * tick_ns()) as Ns;
        let quiet = CpuTicks { total: 1000, idle: 95, busy: 900, stolen: 5 };
        assert!(Noise::of(quiet, own(850.0), 0.02).complaints().is_empty());
        let loud = CpuTicks { total: 1000, idle: 450, busy: 500, stolen: 50 };
        let said = Noise::of(loud, own(100.0), 0.3).complaints();
        assert_eq!(said.len(), 3, "{said:?}");
        assert!(said[1].contains("40.0%"), "{said:?}");
    }

    #[test]
    fn the_fixed_loop_takes_time() {
        let speed = speed();
        // 10,000 multiplications of one to a hundred ns.
        assert!((5_000..1_000_000).contains(&speed), "{speed} ns");
        let found = super::super::samples::pool(spin(5_000_000));
        // Beside other programs one of them may be slow.
        let speed = speed.min(super::speed());
        assert!(Noise::spread_of(&found) >= 0.0 && found[0].median >= 0.5 * speed as f64);
    }
}

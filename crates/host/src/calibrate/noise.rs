//! Is the host quiet enough to trust its times? Checks CPU time used by other tasks, time stolen by
//! the hypervisor, and the spread of a fixed loop.

use std::fs;

use serde::Serialize;

use super::samples::{Measurement, SPIN, Samples, Sketch};
use crate::sys::clock;
use crate::{HostError, Ns};

/// Threshold for stolen time, as a share of all CPU time.
pub const MOST_STEAL: f64 = 0.01;
/// Threshold for other tasks' CPU time, as a share of all CPU time.
pub const MOST_FOREIGN: f64 = 0.10;
/// Threshold for the spread of a fixed loop, p90 over p10, minus 1.
pub const MOST_SPREAD: f64 = 0.10;

/// CPU times since boot, summed over CPUs, in USER_HZ ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuTimes {
    pub total: u64,
    /// Tasks and interrupts.
    pub busy: u64,
    pub steal: u64,
    /// This process and its reaped children.
    pub own: u64,
}

impl CpuTimes {
    pub fn now() -> Result<CpuTimes, HostError> {
        let read = |path: &str| {
            let help = "mount /proc";
            fs::read_to_string(path).map_err(|e| HostError::system(format!("read {path}"), e, help))
        };
        Ok(CpuTimes { own: own(&read("/proc/self/stat")?), ..of_all(&read("/proc/stat")?) })
    }
}

/// Parses the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal. The
/// first two include guest time.
fn of_all(stat: &str) -> CpuTimes {
    let line = stat.lines().next().unwrap_or_default();
    let times: Vec<u64> =
        line.split_ascii_whitespace().skip(1).take(8).filter_map(|n| n.parse().ok()).collect();
    let at = |i: usize| times.get(i).copied().unwrap_or(0);
    let (idle, steal) = (at(3) + at(4), at(7));
    let total = times.iter().sum::<u64>();
    CpuTimes { total, busy: total - idle - steal, steal, own: 0 }
}

/// utime, stime, cutime and cstime of /proc/self/stat; the name before them may contain anything.
fn own(stat: &str) -> u64 {
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    after_name.split_ascii_whitespace().skip(11).take(4).filter_map(|n| n.parse::<u64>().ok()).sum()
}

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
    /// Noise between two moments; `spread` comes from the fixed loop.
    pub fn between(before: CpuTimes, after: CpuTimes, spread: f64) -> Noise {
        let total = (after.total - before.total).max(1) as f64;
        let busy = after.busy.saturating_sub(before.busy);
        let own = after.own.saturating_sub(before.own);
        Noise {
            steal: after.steal.saturating_sub(before.steal) as f64 / total,
            foreign: busy.saturating_sub(own) as f64 / total,
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

    const STAT: &str = "cpu  100 10 40 700 50 3 7 90 11 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n";

    #[test]
    fn reads_the_first_line_of_stat() {
        let times = of_all(STAT);
        assert_eq!(times, CpuTimes { total: 1000, busy: 160, steal: 90, own: 0 });
    }

    #[test]
    fn own_time_is_found_behind_any_name() {
        let stat = "7 (a ) b) S 1 2 3 4 5 6 7 8 9 10 100 20 3 4 20 0 1";
        assert_eq!(own(stat), 127);
    }

    #[test]
    fn what_others_used_is_noise_and_ones_own_load_is_not() {
        let before = CpuTimes::default();
        let quiet = CpuTimes { total: 1000, busy: 900, steal: 5, own: 850 };
        assert!(Noise::between(before, quiet, 0.02).complaints().is_empty());
        let loud = CpuTimes { total: 1000, busy: 500, steal: 50, own: 100 };
        let said = Noise::between(before, loud, 0.3).complaints();
        assert_eq!(said.len(), 3, "{said:?}");
        assert!(said[1].contains("40.0%"), "{said:?}");
    }

    #[test]
    fn the_fixed_loop_takes_time() {
        let speed = speed();
        // 10,000 multiplications of one to a hundred ns.
        assert!((5_000..1_000_000).contains(&speed), "{speed} ns");
        let found = super::super::samples::pool(spin(5_000_000));
        assert!(Noise::spread_of(&found) >= 0.0 && found[0].median >= 0.5 * speed as f64);
    }

    #[test]
    fn this_process_is_among_all() {
        let before = CpuTimes::now().unwrap();
        clock::spin_until(clock::now() + 60_000_000);
        let after = CpuTimes::now().unwrap();
        assert!(after.total > before.total && after.busy > before.busy);
        assert!(after.own > before.own, "60 ms are several ticks of 10 ms");
    }
}

//! Idle time of CPUs and context switches during the measured time, from /proc/stat.

use std::path::Path;

use reveille_machine::CpuId;
use reveille_measure::{CpuTime, Ns};

use crate::error::Result;
use crate::kernel::proc;

pub(super) struct CpuSample {
    /// Idle time of each of the run's CPUs, in ns.
    idle_ns: Vec<Ns>,
    context_switches: u64,
}

impl CpuSample {
    pub(super) fn now(cpus: &[CpuId]) -> Result<CpuSample> {
        let text = proc::read(Path::new("/proc/stat"), "mount /proc")?;
        let tick_ns = proc::tick_ns() as Ns;
        let ticks = |cpu: &CpuId| idle_ticks(&text, *cpu).unwrap_or(0) * tick_ns;
        Ok(CpuSample {
            idle_ns: cpus.iter().map(ticks).collect(),
            context_switches: proc::number(&text, "ctxt").unwrap_or(0),
        })
    }

    pub(super) fn switches_since(&self, earlier: &CpuSample) -> u64 {
        self.context_switches.saturating_sub(earlier.context_switches)
    }

    /// How each CPU spent the `elapsed_ns` since `earlier`. The kernel reports idle time in ticks
    /// of 10 ms; the rest counts as busy, including stolen time.
    pub(super) fn times_since(&self, earlier: &CpuSample, elapsed_ns: Ns) -> Vec<CpuTime> {
        let times = self.idle_ns.iter().zip(&earlier.idle_ns).map(|(now, then)| {
            let idle_ns = now.saturating_sub(*then).min(elapsed_ns);
            CpuTime { busy_ns: elapsed_ns - idle_ns, idle_ns, cost_ns: 0 }
        });
        times.collect()
    }
}

/// Idle ticks of a CPU, including iowait.
fn idle_ticks(text: &str, cpu: CpuId) -> Option<u64> {
    let name = format!("cpu{cpu}");
    let mut words = text.lines().map(str::split_ascii_whitespace);
    let mut line = words.find_map(|mut line| (line.next()? == name).then_some(line))?;
    let idle: u64 = line.nth(3)?.parse().ok()?;
    let iowait: u64 = line.next().map_or(Ok(0), str::parse).ok()?;
    Some(idle + iowait)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_this_machine() {
        let cpus = crate::sys::cpu::allowed().unwrap();
        let before = CpuSample::now(&cpus).unwrap();
        crate::sys::clock::sleep(1_000_000);
        let after = CpuSample::now(&cpus).unwrap();
        assert!(after.switches_since(&before) > 0, "sleeping is a switch");
        let times = after.times_since(&before, 1_000_000);
        assert_eq!(times.len(), cpus.len());
        assert!(times.iter().all(|time| time.busy_ns + time.idle_ns == 1_000_000));
    }

    #[test]
    fn idle_time_is_that_of_the_cpu_asked_for() {
        let text = "cpu  1 2 3 4 5\ncpu1 1 1 1 70 7 1\ncpu10 1 1 1 900 0 1\nctxt 42\n";
        assert_eq!(idle_ticks(text, 1), Some(77));
        assert_eq!(idle_ticks(text, 10), Some(900));
        assert_eq!(idle_ticks(text, 0), None);
    }
}

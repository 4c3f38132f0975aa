//! What the kernel tells of the time that was measured: CPUs and context switches from
//! /proc/stat, task groups from their `cpu.stat`.

use std::fs;
use std::path::Path;

use reveille_measure::{CpuTime, GroupStats};
use reveille_policy::CpuId;

use super::GroupFiles;
use crate::{HostError, Ns};

/// Idle time and context switches since boot.
pub(super) struct CpuSample {
    /// Idle time of each of the run's CPUs, in ns.
    idle_ns: Vec<Ns>,
    context_switches: u64,
}

impl CpuSample {
    pub(super) fn now(cpus: &[CpuId]) -> Result<CpuSample, HostError> {
        let text = read(Path::new("/proc/stat"))?;
        let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
        let ticks = |cpu: &CpuId| idle_ticks(&text, *cpu).unwrap_or(0) * tick_ns;
        Ok(CpuSample {
            idle_ns: cpus.iter().map(ticks).collect(),
            context_switches: value(&text, "ctxt").unwrap_or(0),
        })
    }

    /// Context switches since `earlier`.
    pub(super) fn switches_since(&self, earlier: &CpuSample) -> u64 {
        self.context_switches.saturating_sub(earlier.context_switches)
    }

    /// How each CPU spent the `elapsed_ns` since `earlier`. The kernel tells idle time in
    /// ticks of 10 ms; the rest is busy, time that a hypervisor took included.
    pub(super) fn times_since(&self, earlier: &CpuSample, elapsed_ns: Ns) -> Vec<CpuTime> {
        let times = self.idle_ns.iter().zip(&earlier.idle_ns).map(|(now, then)| {
            let idle_ns = now.saturating_sub(*then).min(elapsed_ns);
            CpuTime { busy_ns: elapsed_ns - idle_ns, idle_ns, cost_ns: 0 }
        });
        times.collect()
    }
}

/// Ticks that a CPU was idle, waits for disks included.
fn idle_ticks(text: &str, cpu: CpuId) -> Option<u64> {
    let name = format!("cpu{cpu}");
    let mut words = text.lines().map(str::split_ascii_whitespace);
    let mut line = words.find_map(|mut line| (line.next()? == name).then_some(line))?;
    let idle: u64 = line.nth(3)?.parse().ok()?;
    let iowait: u64 = line.next().map_or(Ok(0), str::parse).ok()?;
    Some(idle + iowait)
}

/// The counters of a task group since it was made. `usage_ns` is 0 if no file tells.
pub(super) fn group_stats(group: &GroupFiles) -> Result<GroupStats, HostError> {
    let text = read(&group.cpu_stat)?;
    // The second hierarchy counts in us.
    let us = |key: &str| value(&text, key).map(|us| us * 1000);
    let ns = |old: &str, new: &str| value(&text, old).or_else(|| us(new)).unwrap_or(0);
    let usage_ns = match &group.usage {
        Some(file) => read(file)?.trim().parse().unwrap_or(0),
        None => us("usage_usec").unwrap_or(0),
    };
    Ok(GroupStats {
        name: group.name.clone(),
        usage_ns,
        nr_periods: value(&text, "nr_periods").unwrap_or(0),
        nr_throttled: value(&text, "nr_throttled").unwrap_or(0),
        throttled_ns: ns("throttled_time", "throttled_usec"),
        nr_bursts: value(&text, "nr_bursts").unwrap_or(0),
        burst_ns: ns("burst_time", "burst_usec"),
    })
}

/// Does a file tell the CPU time of a group?
pub(super) fn tells_usage(group: &GroupFiles) -> Result<bool, HostError> {
    Ok(group.usage.is_some() || value(&read(&group.cpu_stat)?, "usage_usec").is_some())
}

/// What was added between `earlier` and `later`.
pub(super) fn added(later: &GroupStats, earlier: &GroupStats) -> GroupStats {
    GroupStats {
        name: later.name.clone(),
        usage_ns: later.usage_ns.saturating_sub(earlier.usage_ns),
        nr_periods: later.nr_periods.saturating_sub(earlier.nr_periods),
        nr_throttled: later.nr_throttled.saturating_sub(earlier.nr_throttled),
        throttled_ns: later.throttled_ns.saturating_sub(earlier.throttled_ns),
        nr_bursts: later.nr_bursts.saturating_sub(earlier.nr_bursts),
        burst_ns: later.burst_ns.saturating_sub(earlier.burst_ns),
    }
}

/// The number in the line `key number`.
fn value(text: &str, key: &str) -> Option<u64> {
    let mut words = text.lines().map(str::split_ascii_whitespace);
    words.find_map(|mut line| (line.next()? == key).then(|| line.next()?.parse().ok())?)
}

fn read(file: &Path) -> Result<String, HostError> {
    fs::read_to_string(file).map_err(|error| {
        let help = "mount /proc, and name a task group that exists";
        HostError::system(format!("read {}", file.display()), error, help)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_forms_of_cpu_stat() {
        let dir = tempfile::tempdir().unwrap();
        let group = |text: &str, usage: Option<&str>| {
            let file = |name: &str, text: &str| {
                let path = dir.path().join(name);
                fs::write(&path, text).unwrap();
                path
            };
            GroupFiles {
                name: "g".into(),
                parent: None,
                roles: Vec::new(),
                procs: "unused".into(),
                threads: None,
                cpu_stat: file("cpu.stat", text),
                usage: usage.map(|text| file("cpuacct.usage", text)),
            }
        };
        let first =
            "nr_periods 10\nnr_throttled 3\nthrottled_time 7000\nnr_bursts 2\nburst_time 5000\n";
        let v1 = group(first, Some("9000\n"));
        assert!(tells_usage(&v1).unwrap());
        let stats = group_stats(&v1).unwrap();
        assert_eq!((stats.usage_ns, stats.nr_periods, stats.nr_throttled), (9000, 10, 3));
        assert_eq!((stats.throttled_ns, stats.nr_bursts, stats.burst_ns), (7000, 2, 5000));
        assert!(!tells_usage(&group(first, None)).unwrap());
        let second = "usage_usec 9\nuser_usec 8\nsystem_usec 1\nnr_periods 10\nnr_throttled 3\nthrottled_usec 7\nnr_bursts 2\nburst_usec 5\n";
        let v2 = group(second, None);
        assert!(tells_usage(&v2).unwrap());
        assert_eq!(group_stats(&v2).unwrap(), stats);
        assert_eq!(added(&stats, &stats).nr_periods, 0);
    }

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
        assert_eq!(value(text, "ctxt"), Some(42));
    }
}

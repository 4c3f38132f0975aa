//! The counters of a task group, from `cpu.stat`.

use std::path::{Path, PathBuf};

use reveille_measure::GroupStats;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::kernel::proc::{self, number};

/// Files of a group's counters, for a process in the group that knows nothing else about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatFiles {
    /// `cpu.stat`, of v1 or v2.
    pub cpu_stat: PathBuf,
    /// `cpuacct.usage`, for v1, whose `cpu.stat` has no usage.
    pub usage: Option<PathBuf>,
}

impl StatFiles {
    /// For a group with these directories, that of `cpu` first.
    pub(super) fn of(dirs: &[PathBuf]) -> StatFiles {
        let usage = dirs.iter().map(|dir| dir.join("cpuacct.usage")).find(|file| file.exists());
        StatFiles { cpu_stat: dirs[0].join("cpu.stat"), usage }
    }

    /// Do the files include the group's CPU time?
    pub fn tell_usage(&self) -> Result<bool> {
        Ok(self.usage.is_some() || number(&read(&self.cpu_stat)?, "usage_usec").is_some())
    }

    /// The counters since the group's creation, under this name. The usage is 0 if no file has it.
    pub fn read(&self, name: &str) -> Result<GroupStats> {
        let text = read(&self.cpu_stat)?;
        let stats = parse(name, &text);
        Ok(match &self.usage {
            Some(file) => GroupStats { usage_ns: read(file)?.trim().parse().unwrap_or(0), ..stats },
            None => stats,
        })
    }
}

/// `later` minus `earlier`.
pub(crate) fn added(later: &GroupStats, earlier: &GroupStats) -> GroupStats {
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

/// Parses both versions: v2 counts in us, which its keys say.
pub(crate) fn parse(name: &str, text: &str) -> GroupStats {
    let us = |key: &str| number(text, key).map(|us| us * 1000);
    let ns = |first: &str, second: &str| number(text, first).or_else(|| us(second)).unwrap_or(0);
    GroupStats {
        name: name.to_owned(),
        usage_ns: us("usage_usec").unwrap_or(0),
        nr_periods: number(text, "nr_periods").unwrap_or(0),
        nr_throttled: number(text, "nr_throttled").unwrap_or(0),
        throttled_ns: ns("throttled_time", "throttled_usec"),
        nr_bursts: number(text, "nr_bursts").unwrap_or(0),
        burst_ns: ns("burst_time", "burst_usec"),
    }
}

fn read(file: &Path) -> Result<String> {
    proc::read(file, "name a task group that exists; one that was removed meanwhile has no result")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn both_versions_say_the_same_in_their_own_units() {
        let dir = tempfile::tempdir().unwrap();
        let files = |cpu_stat: &str, usage: Option<&str>| {
            let file = |name: &str, text: &str| {
                let path = dir.path().join(name);
                fs::write(&path, text).unwrap();
                path
            };
            let usage = usage.map(|text| file("cpuacct.usage", text));
            StatFiles { cpu_stat: file("cpu.stat", cpu_stat), usage }
        };
        let first = "nr_periods 20\nnr_throttled 3\nthrottled_time 4000000\nnr_bursts 2\n\
                     burst_time 5000\nwait_sum 1\n";
        let v1 = files(first, Some("9000\n"));
        assert!(v1.tell_usage().unwrap());
        let one = v1.read("g").unwrap();
        assert_eq!((one.usage_ns, one.nr_periods, one.nr_throttled), (9000, 20, 3));
        assert_eq!((one.throttled_ns, one.nr_bursts, one.burst_ns), (4_000_000, 2, 5000));
        assert!(!files(first, None).tell_usage().unwrap());
        let second = "usage_usec 9\nuser_usec 5\nnr_periods 20\nnr_throttled 3\n\
                      throttled_usec 4000\nnr_bursts 2\nburst_usec 5\n";
        let v2 = files(second, None);
        assert!(v2.tell_usage().unwrap());
        assert_eq!(v2.read("g").unwrap(), one);
        assert_eq!(added(&one, &one), GroupStats { name: "g".into(), ..GroupStats::default() });
        let gone = StatFiles { cpu_stat: dir.path().join("none"), usage: None };
        assert!(gone.read("g").unwrap_err().to_string().contains("none"));
    }
}

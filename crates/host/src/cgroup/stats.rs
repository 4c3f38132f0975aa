//! The counters of a task group, as `cpu.stat` shows them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use reveille_measure::GroupStats;
use serde::{Deserialize, Serialize};

use super::hierarchy::Version;
use crate::Ns;

/// Where to read them; a process in the group can, without knowing more about it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StatFiles {
    name: String,
    stat: PathBuf,
    /// `cpuacct.usage`, in ns: v1 has the usage in no other place.
    usage: Option<PathBuf>,
    /// v2 counts in us and names its keys so.
    in_us: bool,
}

impl StatFiles {
    pub(super) fn new(name: &str, dirs: &[PathBuf], version: Version) -> StatFiles {
        let usage = dirs.iter().map(|dir| dir.join("cpuacct.usage")).find(|file| file.exists());
        StatFiles {
            name: name.to_owned(),
            stat: dirs[0].join("cpu.stat"),
            usage,
            in_us: version == Version::V2,
        }
    }

    /// The file of the limit's counters.
    pub fn cpu_stat(&self) -> &Path {
        &self.stat
    }

    /// The counters since the group was made.
    pub fn read(&self) -> io::Result<GroupStats> {
        let text = fs::read_to_string(&self.stat)?;
        let usage_ns = match &self.usage {
            Some(file) => fs::read_to_string(file)?.trim().parse().unwrap_or(0),
            None => 0,
        };
        Ok(GroupStats { usage_ns, ..parse(&self.name, &text, self.in_us) })
    }

    /// What `later` counts more than `earlier`.
    pub fn between(earlier: &GroupStats, later: &GroupStats) -> GroupStats {
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
}

fn parse(name: &str, text: &str, in_us: bool) -> GroupStats {
    let value = |key: &str| -> u64 {
        let of_line = |line: &str| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok();
        text.lines().find_map(of_line).unwrap_or(0)
    };
    let time = |v1: &str, v2: &str| -> Ns { if in_us { 1000 * value(v2) } else { value(v1) } };
    GroupStats {
        name: name.to_owned(),
        usage_ns: time("usage", "usage_usec"),
        nr_periods: value("nr_periods"),
        nr_throttled: value("nr_throttled"),
        throttled_ns: time("throttled_time", "throttled_usec"),
        nr_bursts: value("nr_bursts"),
        burst_ns: time("burst_time", "burst_usec"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_say_the_same_in_their_own_units() {
        let v1 = "nr_periods 20\nnr_throttled 3\nthrottled_time 4000000\nnr_bursts 2\n\
                  burst_time 5000\nwait_sum 1\n";
        let v2 = "usage_usec 9\nuser_usec 5\nnr_periods 20\nnr_throttled 3\n\
                  throttled_usec 4000\nnr_bursts 2\nburst_usec 5\n";
        let one = parse("g", v1, false);
        let two = parse("g", v2, true);
        assert_eq!(one.throttled_ns, 4_000_000);
        assert_eq!((one.burst_ns, two.usage_ns), (5000, 9000));
        assert_eq!(GroupStats { usage_ns: 0, ..two.clone() }, one);
        let none = StatFiles::between(&two, &two);
        assert_eq!((none.nr_periods, none.usage_ns), (0, 0));
    }
}

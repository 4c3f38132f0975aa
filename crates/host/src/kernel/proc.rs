//! What /proc says, as numbers: the ticks of all CPUs, and what stands behind a key.

use std::fs;
use std::path::Path;

use rustix::param::clock_ticks_per_second;

use crate::error::{HostError, Result};

/// CPU time of all CPUs, since boot or between two readings, in ticks of USER_HZ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTicks {
    pub total: u64,
    /// Without iowait.
    pub idle: u64,
    /// Tasks and interrupts, guests included.
    pub busy: u64,
    /// By the hypervisor.
    pub stolen: u64,
}

impl CpuTicks {
    /// Since boot; all 0 where /proc is not mounted.
    pub fn now() -> CpuTicks {
        CpuTicks::parse(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    pub(crate) fn parse(stat: &str) -> CpuTicks {
        let line = stat.lines().next().unwrap_or_default();
        // user nice system idle iowait irq softirq steal; the first two include guest time.
        let ticks: Vec<u64> =
            line.split_ascii_whitespace().skip(1).take(8).filter_map(|n| n.parse().ok()).collect();
        let at = |i: usize| ticks.get(i).copied().unwrap_or(0);
        let (total, idle, stolen) = (ticks.iter().sum(), at(3), at(7));
        CpuTicks { total, idle, busy: total - idle - at(4) - stolen, stolen }
    }

    pub(crate) fn since(self, before: CpuTicks) -> CpuTicks {
        CpuTicks {
            total: self.total.saturating_sub(before.total),
            idle: self.idle.saturating_sub(before.idle),
            busy: self.busy.saturating_sub(before.busy),
            stolen: self.stolen.saturating_sub(before.stolen),
        }
    }
}

pub(crate) fn tick_ns() -> f64 {
    1e9 / clock_ticks_per_second().max(1) as f64
}

/// The text behind `key`, which begins a line: `key value` or `key: value`.
pub(crate) fn field<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let rest = line.strip_prefix(key)?;
        rest.starts_with([' ', '\t', ':'])
            .then(|| rest.trim_start_matches([' ', '\t', ':']).trim_end())
    })
}

/// The number behind `key`; a unit may follow it.
pub(crate) fn number(text: &str, key: &str) -> Option<u64> {
    field(text, key)?.split_ascii_whitespace().next()?.parse().ok()
}

/// A file that every kernel has; `help` says why it may be missing.
pub(crate) fn read(file: &Path, help: &str) -> Result<String> {
    fs::read_to_string(file)
        .map_err(|error| HostError::system(format!("read {}", file.display()), error, help))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_those_of_all_cpus() {
        let stat = "cpu  100 10 40 700 50 3 7 90 11 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        let ticks = CpuTicks::parse(stat);
        assert_eq!(ticks, CpuTicks { total: 1000, idle: 700, busy: 160, stolen: 90 });
        assert_eq!(ticks.since(ticks), CpuTicks::parse(""));
        let now = CpuTicks::now();
        assert!(now.total > 0 && now.busy > 0, "{now:?}");
    }

    #[test]
    fn a_key_is_a_whole_one() {
        assert_eq!(number("se.nr_migrations      :        12\n", "se.nr_migrations"), Some(12));
        assert_eq!(number("ctxt_switches_x:\t7\nctxt_switches:\t9\n", "ctxt_switches"), Some(9));
        assert_eq!(number("nr_bursts 3\nMemAvailable:  20 kB\n", "MemAvailable"), Some(20));
        assert_eq!((number("nothing", "a"), field("a : b c\n", "a")), (None, Some("b c")));
    }
}

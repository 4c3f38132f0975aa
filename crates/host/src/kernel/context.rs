//! The host that a figure was measured on, and what disturbed it: results change with governor,
//! hypervisor and other load.

use std::fs;
use std::path::Path;

use reveille_measure::HostContext;
use rustix::param::clock_ticks_per_second;

use crate::Ns;
use crate::sys::{clock, cpu};

/// Shown for a hypervisor without a name.
const UNNAMED: &str = "a hypervisor that has no name";

/// Threshold for a warning on stolen time, in percent of all CPU time.
const STEAL_PCT: f64 = 1.0;
/// Threshold for a warning on other tasks' CPU time, in percent of all CPU time.
const OTHERS_PCT: f64 = 5.0;

#[derive(Debug)]
pub struct Watch {
    began_ns: Ns,
    before: CpuTicks,
}

impl Watch {
    pub fn begin() -> Watch {
        Watch { began_ns: clock::now(), before: CpuTicks::read() }
    }

    /// Stops and reports. `own_cpu_ns` is the measured program's CPU time, if known: the rest is
    /// other load.
    pub fn end(&self, own_cpu_ns: Option<Ns>) -> HostContext {
        let mut context = identify(Path::new("/"));
        if context.virtualisation.as_deref() == Some(UNNAMED) {
            // Small hypervisors provide no firmware tables.
            context.virtualisation = cpu::hypervisor().or(context.virtualisation);
        }
        let (used, elapsed_ns) = self.used();
        let capacity_ns = elapsed_ns as f64 * f64::from(context.cpus.max(1));
        context.warnings.extend(used.stole(capacity_ns));
        let others = |own_ns| used.others(own_ns, context.cpus, capacity_ns);
        context.warnings.extend(own_cpu_ns.and_then(others));
        if let Some(governor) = context.governor.as_deref().filter(|g| *g != "performance") {
            let text = format!("the `{governor}` governor lets the frequency follow the load");
            context.warnings.push(text);
        }
        context
    }

    /// A warning about other load, if nothing else was measured meanwhile.
    pub fn others(&self) -> Option<String> {
        let (used, elapsed_ns) = self.used();
        let cpus = identify(Path::new("/")).cpus;
        used.others(0, cpus, elapsed_ns as f64 * f64::from(cpus.max(1)))
    }

    fn used(&self) -> (CpuTicks, Ns) {
        (CpuTicks::read().since(&self.before), clock::now() - self.began_ns)
    }
}

/// Version of the running kernel: (6, 12).
pub fn kernel_version() -> (u32, u32) {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

fn identify(root: &Path) -> HostContext {
    let read = |file: &str| {
        let text = fs::read_to_string(root.join(file)).ok()?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    let cpuinfo = read("proc/cpuinfo").unwrap_or_default();
    let field = |key: &str| {
        let mut lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(k, _)| k.trim() == key).map(|(_, value)| value.trim().to_owned())
    };
    let stat = read("proc/stat").unwrap_or_default();
    let cpus = stat.lines().filter(|l| l.starts_with("cpu") && !l.starts_with("cpu ")).count();
    let guest = field("flags").is_some_and(|f| f.split(' ').any(|flag| flag == "hypervisor"));
    let product = || read("sys/class/dmi/id/product_name").or(read("sys/class/dmi/id/sys_vendor"));
    let hypervisor = read("sys/hypervisor/type")
        .or_else(|| guest.then(|| product().unwrap_or_else(|| UNNAMED.to_owned())));
    HostContext {
        kernel: read("proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".to_owned()),
        cpu: field("model name").unwrap_or_else(|| "unknown".to_owned()),
        cpus: cpus as u32,
        governor: read("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        virtualisation: hypervisor,
        sched_ext: read("sys/kernel/sched_ext/root/ops"),
        loaded: Vec::new(),
        warnings: Vec::new(),
    }
}

/// CPU time of all CPUs since boot, in USER_HZ ticks, from the first line of `/proc/stat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CpuTicks {
    /// User and kernel mode, including interrupts.
    used: u64,
    /// Stolen by the hypervisor.
    stolen: u64,
}

impl CpuTicks {
    fn read() -> CpuTicks {
        CpuTicks::parse(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    fn parse(stat: &str) -> CpuTicks {
        let line = stat.lines().next().unwrap_or_default();
        let ticks: Vec<u64> = line.split(' ').filter_map(|n| n.parse().ok()).collect();
        let at = |i: usize| ticks.get(i).copied().unwrap_or(0);
        // user nice system idle iowait irq softirq steal; user includes guest time.
        CpuTicks { used: at(0) + at(1) + at(2) + at(5) + at(6), stolen: at(7) }
    }

    fn since(self, before: &CpuTicks) -> CpuTicks {
        CpuTicks {
            used: self.used.saturating_sub(before.used),
            stolen: self.stolen.saturating_sub(before.stolen),
        }
    }

    /// A warning if the hypervisor stole too much of `capacity_ns`, the time of all CPUs.
    fn stole(&self, capacity_ns: f64) -> Option<String> {
        let pct = 100.0 * self.stolen as f64 * tick_ns() / capacity_ns;
        (pct > STEAL_PCT).then(|| format!("the hypervisor stole {pct:.1}% of the CPU time"))
    }

    /// A warning if tasks other than those with `own_ns` used too much of it.
    fn others(&self, own_ns: Ns, cpus: u32, capacity_ns: f64) -> Option<String> {
        // One tick per CPU may be attributed wrongly at either reading.
        let error_ns = 2.0 * tick_ns() * f64::from(cpus.max(1));
        let pct = 100.0 * (self.used as f64 * tick_ns() - own_ns as f64 - error_ns) / capacity_ns;
        (pct > OTHERS_PCT).then(|| format!("other programs used {pct:.1}% of the CPU time"))
    }
}

fn tick_ns() -> f64 {
    1e9 / clock_ticks_per_second() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_told_by_its_files() {
        let root = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let file = root.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        write(
            "proc/cpuinfo",
            "processor\t: 0\nmodel name\t: Some CPU\nflags\t\t: fpu hypervisor\n",
        );
        write("proc/stat", "cpu  1 0 1 9 0 0 0 0\ncpu0 1 0 0 5\ncpu1 0 0 1 4\nintr 5\n");
        write("proc/sys/kernel/osrelease", "6.12.1\n");
        let bare = identify(root.path());
        assert_eq!((bare.kernel.as_str(), bare.cpu.as_str(), bare.cpus), ("6.12.1", "Some CPU", 2));
        assert_eq!((&bare.governor, &bare.sched_ext), (&None, &None));
        assert_eq!(bare.virtualisation.as_deref(), Some(UNNAMED));
        write("sys/class/dmi/id/product_name", "Standard PC\n");
        write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
        write("sys/kernel/sched_ext/root/ops", "simple\n");
        let more = identify(root.path());
        assert_eq!(more.virtualisation.as_deref(), Some("Standard PC"));
        assert_eq!(more.governor.as_deref(), Some("powersave"));
        assert_eq!(more.sched_ext.as_deref(), Some("simple"));
    }

    #[test]
    fn stolen_time_and_other_load_are_said() {
        let before = CpuTicks::parse("cpu  100 0 50 800 0 0 0 1 0 0\n");
        let after = CpuTicks::parse("cpu  180 0 70 900 0 0 0 9 0 0\n");
        let used = after.since(&before);
        assert_eq!(used, CpuTicks { used: 100, stolen: 8 });
        // A second of two CPUs.
        let second_ns = 200.0 * tick_ns();
        let own = |ticks: f64| (ticks * tick_ns()) as Ns;
        let quiet = CpuTicks { used: 100, stolen: 0 };
        assert_eq!((quiet.stole(second_ns), quiet.others(own(100.0), 2, second_ns)), (None, None));
        let stole = "the hypervisor stole 4.0% of the CPU time".to_owned();
        let others = "other programs used 23.0% of the CPU time".to_owned();
        assert_eq!(used.stole(second_ns), Some(stole));
        assert_eq!(used.others(own(50.0), 2, second_ns), Some(others));
    }

    #[test]
    fn the_running_kernel_has_a_version() {
        assert!(kernel_version() >= (3, 0), "{:?}", kernel_version());
    }
}

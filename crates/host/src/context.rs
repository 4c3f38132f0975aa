//! What a figure was measured on, and what disturbed it: the same program gives other
//! figures under another governor or hypervisor, and beside other load.

use std::fs;
use std::path::Path;

use reveille_measure::HostContext;
use rustix::param::clock_ticks_per_second;

use crate::Ns;
use crate::sys::{clock, cpu};

/// A hypervisor of which the files say nothing more.
const UNNAMED: &str = "a hypervisor that has no name";

/// More stolen time than this share of all CPU time is worth a warning.
const STEAL_PCT: f64 = 1.0;
/// The same for CPU time that others used.
const OTHERS_PCT: f64 = 5.0;

/// Watches the host while something is measured.
#[derive(Debug)]
pub struct Watch {
    began_ns: Ns,
    before: CpuTicks,
}

impl Watch {
    /// Begins to watch.
    pub fn begin() -> Watch {
        Watch { began_ns: clock::now(), before: CpuTicks::read() }
    }

    /// Ends, and says what was seen. `own_cpu_ns` is the CPU time that the measured program
    /// used itself, if it is known: what was used beyond it is other load.
    pub fn end(&self, own_cpu_ns: Option<Ns>) -> HostContext {
        let mut context = identify(Path::new("/"));
        if context.virtualisation.as_deref() == Some(UNNAMED) {
            // Small hypervisors show no firmware tables.
            context.virtualisation = cpu::hypervisor().or(context.virtualisation);
        }
        let elapsed_ns = clock::now() - self.began_ns;
        let used = CpuTicks::read().since(&self.before);
        context.warnings = noise(&used, context.cpus, elapsed_ns, own_cpu_ns);
        if let Some(governor) = context.governor.as_deref().filter(|g| *g != "performance") {
            let text = format!("the `{governor}` governor lets the frequency follow the load");
            context.warnings.push(text);
        }
        context
    }
}

/// Release of the running kernel as major and minor number: (6, 12).
pub fn kernel_version() -> (u32, u32) {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// What this host is; `root` holds its `proc` and `sys`.
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

/// CPU time of all CPUs since boot, in clock ticks, from the first line of `/proc/stat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CpuTicks {
    /// In user and kernel mode, interrupts included.
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
        // user nice system idle iowait irq softirq steal; guest time is part of user.
        CpuTicks { used: at(0) + at(1) + at(2) + at(5) + at(6), stolen: at(7) }
    }

    fn since(self, before: &CpuTicks) -> CpuTicks {
        CpuTicks {
            used: self.used.saturating_sub(before.used),
            stolen: self.stolen.saturating_sub(before.stolen),
        }
    }
}

/// What disturbed a run of `elapsed_ns`.
fn noise(ticks: &CpuTicks, cpus: u32, elapsed_ns: Ns, own_cpu_ns: Option<Ns>) -> Vec<String> {
    let tick_ns = 1e9 / clock_ticks_per_second() as f64;
    let capacity_ns = elapsed_ns as f64 * f64::from(cpus.max(1));
    let mut warnings = Vec::new();
    let stolen_pct = 100.0 * ticks.stolen as f64 * tick_ns / capacity_ns;
    if stolen_pct > STEAL_PCT {
        warnings.push(format!("the hypervisor stole {stolen_pct:.1}% of the CPU time"));
    }
    if let Some(own) = own_cpu_ns {
        // A tick of each CPU may fall on either side of both readings.
        let error_ns = 2.0 * tick_ns * f64::from(cpus.max(1));
        let others_ns = ticks.used as f64 * tick_ns - own as f64 - error_ns;
        let others_pct = 100.0 * others_ns / capacity_ns;
        if others_pct > OTHERS_PCT {
            warnings.push(format!("other programs used {others_pct:.1}% of the CPU time"));
        }
    }
    warnings
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
        let tick_ns = 1_000_000_000 / clock_ticks_per_second();
        let second = 100 * tick_ns;
        let quiet = noise(&CpuTicks { used: 100, stolen: 0 }, 2, second, Some(100 * tick_ns));
        assert_eq!(quiet, Vec::<String>::new());
        let noisy = noise(&used, 2, second, Some(50 * tick_ns));
        assert_eq!(noisy.len(), 2, "{noisy:?}");
        assert!(noisy[0].contains("stole 4.0%") && noisy[1].contains("used 23.0%"), "{noisy:?}");
        // Without knowing its own part, nothing can be said of others.
        assert_eq!(noise(&CpuTicks { used: 100, stolen: 0 }, 2, second, None).len(), 0);
    }

    #[test]
    fn the_running_kernel_has_a_version() {
        assert!(kernel_version() >= (3, 0), "{:?}", kernel_version());
    }
}

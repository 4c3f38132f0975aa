//! The host that a figure was measured on, and what disturbed it: results change with governor,
//! hypervisor and other load.

use std::fs;
use std::path::Path;

use reveille_measure::{HostContext, Ns};
use reveille_usage::NOTABLE_OTHERS;

use super::proc::{CpuTicks, field, tick_ns};
use crate::sys::usage::own_cpu_ns;
use crate::sys::{clock, cpu};

/// Shown for a hypervisor without a name.
const UNNAMED: &str = "a hypervisor that has no name";

/// Threshold for a warning on stolen time, in percent of all CPU time.
const STEAL_PCT: f64 = 1.0;

/// Watches the host from its beginning on.
#[derive(Debug)]
pub struct Watch {
    began_ns: Ns,
    before: CpuTicks,
    own_before_ns: Ns,
}

impl Watch {
    pub fn begin() -> Watch {
        Watch { began_ns: clock::now(), before: CpuTicks::now(), own_before_ns: own_cpu_ns() }
    }

    /// The host, and what disturbed it. Other load is among that only if `own`: then all that this
    /// process has done since it began is in its own CPU time or in that of its reaped children.
    pub fn end(&self, own: bool) -> HostContext {
        let mut context = identify(Path::new("/"));
        if context.virtualisation.as_deref() == Some(UNNAMED) {
            // Small hypervisors provide no firmware tables.
            context.virtualisation = cpu::hypervisor().or(context.virtualisation);
        }
        let (used, own_ns) = self.used();
        let capacity_ns = self.capacity_ns(context.cpus);
        context.warnings.extend(stole(used, capacity_ns));
        let others = || others(used, own_ns, context.cpus, capacity_ns);
        context.warnings.extend(own.then(others).flatten());
        if let Some(governor) = context.governor.as_deref().filter(|g| *g != "performance") {
            let text = format!("the `{governor}` governor lets the frequency follow the load");
            context.warnings.push(text);
        }
        context
    }

    /// A warning about other load, if nothing else was measured meanwhile.
    pub fn others(&self) -> Option<String> {
        let cpus = identify(Path::new("/")).cpus;
        others(self.used().0, 0, cpus, self.capacity_ns(cpus))
    }

    /// Share of the CPU time of all CPUs that went neither to this process nor to those that used
    /// `beside_ns`.
    pub(crate) fn others_share(&self, beside_ns: Ns) -> f64 {
        let (cpus, (used, own_ns)) = (identify(Path::new("/")).cpus, self.used());
        others_share(used, own_ns + beside_ns, cpus, self.capacity_ns(cpus)).clamp(0.0, 1.0)
    }

    /// What all CPUs did since the beginning, and this process and its reaped children of it.
    pub(crate) fn used(&self) -> (CpuTicks, Ns) {
        (CpuTicks::now().since(self.before), own_cpu_ns() - self.own_before_ns)
    }

    fn capacity_ns(&self, cpus: u32) -> f64 {
        (clock::now() - self.began_ns) as f64 * f64::from(cpus.max(1))
    }
}

/// Version of the running kernel: (6, 12).
pub fn kernel_version() -> (u32, u32) {
    version_of(&rustix::system::uname().release().to_string_lossy())
}

/// Version of a kernel's release; zeros for what is no number.
pub(crate) fn version_of(release: &str) -> (u32, u32) {
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
    let stat = read("proc/stat").unwrap_or_default();
    let cpus = stat.lines().filter(|l| l.starts_with("cpu") && !l.starts_with("cpu ")).count();
    let guest =
        field(&cpuinfo, "flags").is_some_and(|f| f.split(' ').any(|flag| flag == "hypervisor"));
    let product = || read("sys/class/dmi/id/product_name").or(read("sys/class/dmi/id/sys_vendor"));
    let hypervisor = read("sys/hypervisor/type")
        .or_else(|| guest.then(|| product().unwrap_or_else(|| UNNAMED.to_owned())));
    HostContext {
        kernel: read("proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".to_owned()),
        cpu: field(&cpuinfo, "model name").unwrap_or("unknown").to_owned(),
        cpus: cpus as u32,
        governor: read("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        virtualisation: hypervisor,
        sched_ext: read("sys/kernel/sched_ext/root/ops"),
        loaded: Vec::new(),
        warnings: Vec::new(),
    }
}

/// A warning if the hypervisor stole too much of `capacity_ns`, the time of all CPUs.
fn stole(used: CpuTicks, capacity_ns: f64) -> Option<String> {
    let pct = 100.0 * used.stolen as f64 * tick_ns() / capacity_ns;
    (pct > STEAL_PCT).then(|| format!("the hypervisor stole {pct:.1}% of the CPU time"))
}

/// A warning if tasks other than those with `own_ns` used too much of it.
fn others(used: CpuTicks, own_ns: Ns, cpus: u32, capacity_ns: f64) -> Option<String> {
    let share = others_share(used, own_ns, cpus, capacity_ns);
    (share > NOTABLE_OTHERS)
        .then(|| format!("other programs used {:.1}% of the CPU time", 100.0 * share))
}

fn others_share(used: CpuTicks, own_ns: Ns, cpus: u32, capacity_ns: f64) -> f64 {
    // One tick per CPU may be attributed wrongly at either reading.
    let error_ns = 2.0 * tick_ns() * f64::from(cpus.max(1));
    (used.busy as f64 * tick_ns() - own_ns as f64 - error_ns) / capacity_ns
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
        let used = after.since(before);
        assert_eq!((used.busy, used.stolen), (100, 8));
        // A second of two CPUs.
        let second_ns = 200.0 * tick_ns();
        let own = |ticks: f64| (ticks * tick_ns()) as Ns;
        let quiet = CpuTicks { stolen: 0, ..used };
        assert_eq!(
            (stole(quiet, second_ns), others(quiet, own(100.0), 2, second_ns)),
            (None, None)
        );
        let said =
            [stole(used, second_ns), others(used, own(50.0), 2, second_ns)].map(Option::unwrap);
        let stolen = "the hypervisor stole 4.0% of the CPU time";
        assert_eq!(said, [stolen, "other programs used 23.0% of the CPU time"]);
    }

    #[test]
    fn the_running_kernel_has_a_version() {
        assert!(kernel_version() >= (3, 0), "{:?}", kernel_version());
    }
}

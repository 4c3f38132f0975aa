//! Properties of the host that the arithmetic needs besides times: scheduler version, idle method,
//! and depth of task groups.

use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::kernel::proc::field;
use crate::kernel::version_of;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Host {
    pub processor: String,
    /// The kernel's release: `6.18.4`.
    pub kernel: String,
    /// A virtual machine: interrupts and idle CPUs go through the hypervisor.
    pub guest: bool,
    /// The processor has MWAIT. Without a cpuidle driver an idle CPU then monitors its need-resched
    /// word; otherwise it halts.
    pub mwait: bool,
    /// A cpuidle driver chooses idle states.
    pub cpuidle: bool,
    /// Depth of the measured tasks' group, not counting the root.
    pub group_levels: u32,
}

impl Host {
    /// This host. Keeps the usual value of whatever /proc and /sys do not say.
    pub fn here() -> Host {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let cpuinfo = read("/proc/cpuinfo");
        let flags = field(&cpuinfo, "flags").unwrap_or_default();
        let has = |flag: &str| flags.split(' ').any(|f| f == flag);
        Host {
            processor: field(&cpuinfo, "model name").unwrap_or("unknown processor").to_owned(),
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            guest: has("hypervisor"),
            mwait: has("monitor"),
            cpuidle: Path::new("/sys/devices/system/cpu/cpu0/cpuidle").exists(),
            group_levels: match group_levels(&read("/proc/self/cgroup"), |group| {
                Path::new("/sys/fs/cgroup").join(group).join("cpu.weight").exists()
            }) {
                // A session in the root group has an autogroup.
                0 if read("/proc/sys/kernel/sched_autogroup_enabled").trim() == "1" => 1,
                levels => levels,
            },
        }
    }

    /// Does a task that sleeps on a shared CPU stay queued (DELAY_DEQUEUE, from v6.12 on)?
    pub fn delays_dequeue(&self) -> bool {
        version_of(&self.kernel) >= (6, 12)
    }
}

/// Depth of the groups with a CPU controller in /proc/PID/cgroup; `controlled` tells whether a path
/// below the v2 root has one.
fn group_levels(cgroup: &str, controlled: impl Fn(&str) -> bool) -> u32 {
    let parts = |path: &str| path.split('/').filter(|p| !p.is_empty()).count() as u32;
    let mut unified = 0;
    for line in cgroup.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        if controllers.split(',').any(|c| c == "cpu") {
            return parts(path);
        }
        if controllers.is_empty() {
            let path = path.trim_start_matches('/');
            let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
            unified = ends.filter(|&end| end > 0 && controlled(&path[..end])).count() as u32;
        }
    }
    unified
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_groups_of_both_versions() {
        let first = "5:devices:/a\n1:cpu,cpuacct:/a/b/c\n0::/x\n";
        assert_eq!(group_levels(first, |_| true), 3);
        assert_eq!(group_levels("1:cpu:/\n0::/\n", |_| true), 0);
        let second = "0::/user.slice/session.scope/app\n";
        assert_eq!(group_levels(second, |_| true), 3);
        assert_eq!(group_levels(second, |g| g == "user.slice"), 1);
        assert_eq!(group_levels("", |_| true), 0);
    }

    #[test]
    fn kernels_before_6_12_dequeue_at_once() {
        let host = Host::here();
        let on = |kernel: &str| Host { kernel: kernel.into(), ..host.clone() }.delays_dequeue();
        assert!(on("6.12.0") && on("6.18.44-fc") && on("7.0-rc1"));
        assert!(!on("6.11.9") && !on("5.15.0-91-generic") && !on("strange"));
    }

    #[test]
    fn this_host_has_a_kernel() {
        assert!(Host::here().kernel.contains('.'));
    }
}

//! What the running kernel can do, and whether it can be asked to do it now: every reason
//! to refuse is found before anything is loaded.

use std::fs;
use std::path::Path;
use std::time::Duration;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{Func, FuncProto, Struct};

use crate::error::ScxError;

/// The kernel's types.
const BTF: &str = "/sys/kernel/btf/vmlinux";

/// With neither of these.
pub const PARKS_WITH_LOCKS: &str = "this kernel does not tell when a task returns to user mode (6.18 does): a task of a throttled \
     group may wait for its quota with locks of the kernel held";

/// What differs between the kernels that can run the scheduler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Abilities {
    /// Callbacks of this scheduler that the kernel does not know.
    pub missing: Vec<String>,
    /// Groups with weights: the kernel tells of cgroups at all (CONFIG_EXT_GROUP_SCHED).
    pub groups: bool,
    /// A program that sees each switch may send away what waits on its CPU (6.19); before, the
    /// callback `cpu_release` may.
    pub sees_switches: bool,
    /// Programs may ask to be called when a task returns to user mode (6.18).
    pub task_work: bool,
    /// Where they may not, before_schedule() of bpf/debt.h tells of it: tried on x86-64 only.
    pub exit_depth: bool,
    /// `cpu.idle`: the kernel tells when it is written.
    pub idle: bool,
    /// `cpu.max` and `cpu.max.burst`: the kernel tells of limits (6.17).
    pub bandwidth: bool,
    /// It stays loaded on hotplug. In the tests 6.16 and 6.17 left tasks on the queue of a CPU that
    /// went; 6.18 does not. The mark is what 6.18 brought.
    pub hotplug: bool,
}

impl Abilities {
    /// Asks the running kernel's type information.
    ///
    /// # Errors
    /// A kernel whose types cannot be read, or that has another sched_ext.
    pub fn of_this_kernel(callbacks: &[&str]) -> Result<Abilities, ScxError> {
        let btf = Btf::from_vmlinux().map_err(|error| {
            ScxError::refused(
                format!("the kernel's type information at {BTF} cannot be read: {error}"),
                "boot a kernel with CONFIG_DEBUG_INFO_BTF=y",
            )
        })?;
        let members = |name: &str| -> Vec<String> {
            let found: Option<Struct<'_>> = btf.type_by_name(name);
            found.map_or(Vec::new(), |s| {
                s.iter().filter_map(|m| Some(m.name?.to_string_lossy().into_owned())).collect()
            })
        };
        let known = members("sched_ext_ops");
        if !known.iter().any(|name| name == "select_cpu") {
            return Err(ScxError::refused(
                "the kernel's sched_ext has no `select_cpu`: it is none that this scheduler knows",
                "boot Linux 6.12 or newer",
            ));
        }
        if shows_implicit_arguments(&btf) {
            return Err(ScxError::refused(
                format!(
                    "the type information of this kernel ({}) shows arguments that only the kernel \
                     passes: it was built with pahole older than 1.26, and no BPF scheduler \
                     can be loaded",
                    release()
                ),
                "boot another build of the kernel",
            ));
        }
        let has = |name: &str| known.iter().any(|member| member == name);
        let limits = members("scx_cgroup_init_args");
        let function = |name: &str| btf.type_by_name::<Func<'_>>(name).is_some();
        let task_work = function("bpf_task_work_schedule_resume")
            || function("bpf_task_work_schedule_resume_impl");
        Ok(Abilities {
            missing: callbacks.iter().filter(|c| !has(c)).map(|c| (*c).to_owned()).collect(),
            groups: has("cgroup_init"),
            sees_switches: function("scx_bpf_reenqueue_local___v2"),
            task_work,
            exit_depth: !task_work && cfg!(target_arch = "x86_64"),
            idle: has("cgroup_set_idle"),
            hotplug: task_work,
            bandwidth: has("cgroup_set_bandwidth") && limits.iter().any(|m| m == "bw_quota_us"),
        })
    }

    /// What a user must know of what this kernel lacks, one sentence each.
    pub fn lacks(&self) -> Vec<&'static str> {
        let mut lacks = Vec::new();
        if !self.groups {
            lacks.push(
                "this kernel tells of no task groups (CONFIG_EXT_GROUP_SCHED): \
                 cpu.weight and cpu.max have no effect",
            );
        } else if !self.bandwidth {
            lacks.push(
                "this kernel does not tell of limits (6.17 does): cpu.max and cpu.max.burst \
                 have NO effect while scx_reveille runs",
            );
        }
        let has_release = !self.missing.iter().any(|callback| callback == "cpu_release");
        if !has_release && !self.sees_switches {
            lacks.push(
                "this kernel does not tell when a real-time task takes a CPU: \
                 a task that is about to run there waits for it",
            );
        }
        if self.bandwidth && !self.task_work && !self.exit_depth {
            lacks.push(PARKS_WITH_LOCKS);
        }
        if self.groups && !self.idle {
            lacks.push("this kernel does not tell of idle groups: cpu.idle has no effect");
        }
        if !self.hotplug {
            lacks.push(
                "this kernel may forget tasks of a CPU that goes (6.18 does not): \
                 on CPU hotplug the scheduler is ended and loaded again",
            );
        }
        lacks
    }
}

/// Since 7.1 some kernel functions have an argument that programs do not pass, and a build
/// with too old tools does not hide (kernel commit 9edd04c4189e).
fn shows_implicit_arguments(btf: &Btf<'_>) -> bool {
    let function: Option<Func<'_>> = btf.type_by_name("scx_bpf_create_dsq");
    let proto = function.and_then(|f| FuncProto::try_from(f.next_type()?).ok());
    proto.is_some_and(|proto| proto.iter().any(|p| p.name.is_some_and(|name| name == "aux")))
}

/// Can a scheduler be loaded, here and now? `sysfs` is `/sys`, but in tests.
///
/// # Errors
/// The first reason why not, with what mends it.
pub fn check(sysfs: &Path, is_root: bool) -> Result<(), ScxError> {
    let sched_ext = sysfs.join("kernel/sched_ext");
    if !sched_ext.is_dir() {
        return Err(ScxError::refused(
            format!(
                "this kernel ({}) has no sched_ext: {} is missing",
                release(),
                sched_ext.display()
            ),
            "boot Linux 6.12 or newer with CONFIG_SCHED_CLASS_EXT=y",
        ));
    }
    if !sysfs.join("kernel/btf/vmlinux").is_file() {
        return Err(ScxError::refused(
            format!("the kernel's type information {BTF} is missing"),
            "boot a kernel with CONFIG_DEBUG_INFO_BTF=y",
        ));
    }
    if !is_root {
        return Err(ScxError::refused(
            "only root may replace the scheduler",
            "run it with sudo, or by its systemd unit",
        ));
    }
    // One that is ending is waited for: its unit may have been stopped for this one.
    for _ in 0..100 {
        if state(&sched_ext) != "disabling" {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    if running(&sched_ext).is_some() { Err(another(sysfs)) } else { Ok(()) }
}

fn state(sched_ext: &Path) -> String {
    fs::read_to_string(sched_ext.join("state")).unwrap_or_default().trim().to_owned()
}

/// Another scheduler runs, or is being loaded: the refusal with its name.
pub fn another(sysfs: &Path) -> ScxError {
    let sched_ext = sysfs.join("kernel/sched_ext");
    // One that is just being loaded has a name soon.
    for _ in 0..20 {
        if sched_ext.join("root/ops").exists() || !sched_ext.join("state").exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let name = running(&sched_ext).unwrap_or_else(|| "it has just ended".to_owned());
    ScxError::refused(
        format!("another sched_ext scheduler is running: {name}"),
        "end it first; `systemctl list-units 'scx*'` may know it",
    )
}

/// The name of the scheduler that is loaded, or what state it is in.
pub fn running(sched_ext: &Path) -> Option<String> {
    let state = state(sched_ext);
    if state == "disabled" {
        return None;
    }
    match fs::read_to_string(sched_ext.join("root/ops")) {
        Ok(name) => Some(name.trim().to_owned()),
        Err(_) => Some(format!("its state is `{state}`")),
    }
}

/// Timer ticks per second: the coarse clock advances once a tick.
pub fn hz() -> u32 {
    let tick = rustix::time::clock_getres(rustix::time::ClockId::MonotonicCoarse);
    let ns = tick.tv_sec * 1_000_000_000 + tick.tv_nsec;
    u32::try_from((1_000_000_000 + ns / 2) / ns.max(1)).unwrap_or(250)
}

/// The most threads that may exist at a time: `kernel.threads-max`, or 65,536 if it cannot be read.
/// Thread ids end at 4 Mi.
pub fn most_threads() -> u32 {
    fs::read_to_string("/proc/sys/kernel/threads-max")
        .ok()
        .and_then(|text| text.trim().parse::<u32>().ok())
        .map_or(1 << 16, |n| n.clamp(1 << 10, 1 << 22))
}

fn release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        dir
    }

    fn said(dir: &tempfile::TempDir, is_root: bool) -> String {
        check(dir.path(), is_root).unwrap_err().to_string()
    }

    #[test]
    fn each_reason_to_refuse_is_named() {
        let none = tree(&[("kernel/btf/vmlinux", "")]);
        assert!(said(&none, true).contains("no sched_ext"));
        let state = ("kernel/sched_ext/state", "disabled\n");
        assert!(said(&tree(&[state]), true).contains("type information"));
        let btf = ("kernel/btf/vmlinux", "");
        let good = tree(&[state, btf]);
        assert!(said(&good, false).contains("root"));
        check(good.path(), true).unwrap();
        let other = tree(&[
            ("kernel/sched_ext/state", "enabled\n"),
            ("kernel/sched_ext/root/ops", "lavd_1.0\n"),
            btf,
        ]);
        assert!(said(&other, true).contains("lavd_1.0"));
    }

    #[test]
    fn one_that_is_ending_is_waited_for() {
        let file = ("kernel/sched_ext/state", "disabling\n");
        let dir = tree(&[file, ("kernel/btf/vmlinux", "")]);
        let state = dir.path().join(file.0);
        let ends = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            fs::write(state, "disabled\n")
        });
        check(dir.path(), true).unwrap();
        ends.join().unwrap().unwrap();
    }

    #[test]
    fn the_tick_is_one_that_kernels_have() {
        assert!([100, 250, 300, 1000].contains(&hz()), "{}", hz());
    }
}

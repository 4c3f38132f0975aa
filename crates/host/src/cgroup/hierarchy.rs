//! Finds where task groups with a CPU limit can be created: cgroup v1's `cpu` hierarchy or v2's
//! unified one, whichever has the controller, below this process' own group.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{HostError, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V1,
    V2,
}

impl Version {
    pub fn burst_file(self) -> &'static str {
        match self {
            Version::V1 => "cpu.cfs_burst_us",
            Version::V2 => "cpu.max.burst",
        }
    }
}

/// The hierarchy with the `cpu` controller.
#[derive(Debug)]
pub(super) struct Hierarchy {
    pub version: Version,
    /// The group below which new ones are created.
    base: PathBuf,
    /// That group in `cpuacct`, if v1 mounts it separately.
    accounting: Option<PathBuf>,
}

impl Hierarchy {
    /// Finds it in the mount table.
    pub fn find() -> Result<Hierarchy> {
        let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
        let mounts = read("/proc/self/mountinfo");
        let own = read("/proc/self/cgroup");
        if let Some(base) = v1_group(&mounts, &own, "cpu") {
            let accounting = v1_group(&mounts, &own, "cpuacct").filter(|dir| *dir != base);
            return Ok(Hierarchy { version: Version::V1, base, accounting });
        }
        match v2_group(&mounts, &own).and_then(|group| v2_base(&group)) {
            Some(base) => Ok(Hierarchy { version: Version::V2, base, accounting: None }),
            None => Err(HostError::System {
                doing: "make a task group".to_owned(),
                reason: "no cgroup hierarchy with the `cpu` controller is mounted for this process"
                    .to_owned(),
                help: "mount one (cgroup2, with `cpu` in cgroup.controllers), or run without a \
                       limit"
                    .to_owned(),
            }),
        }
    }

    /// A new group gets a subdirectory in each of these directories.
    pub fn bases(&self) -> Vec<PathBuf> {
        [Some(self.base.clone()), self.accounting.clone()].into_iter().flatten().collect()
    }
}

/// Where the hierarchy with the `cpu` controller is mounted, independent of this process' group.
#[derive(Debug, PartialEq)]
pub(super) struct Mounted {
    pub at: PathBuf,
    /// The group at the mount point: `/`, or the root of a container.
    root: PathBuf,
    /// Mount point of `cpuacct`, if v1 mounts it separately.
    pub accounting: Option<PathBuf>,
}

impl Mounted {
    /// Paths from the mount point that a group's name can mean: relative to it, or to the
    /// hierarchy's root.
    pub fn relative(&self, name: &Path) -> Vec<PathBuf> {
        let root = self.root.strip_prefix("/").unwrap_or(&self.root);
        let from_root = name.strip_prefix(root).ok().map(Path::to_owned);
        [Some(name.to_owned()), from_root].into_iter().flatten().collect()
    }
}

/// Finds the hierarchy in which limits are set.
pub(super) fn mounted_cpu() -> Result<Mounted> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    mounted_in(&mounts).ok_or_else(|| HostError::System {
        doing: "look for a task group".to_owned(),
        reason: "no cgroup hierarchy with the `cpu` controller is mounted".to_owned(),
        help: "mount one: mount -t cgroup2 none /sys/fs/cgroup".to_owned(),
    })
}

fn mounted_in(mounts: &str) -> Option<Mounted> {
    let mounts: Vec<Mount> = mounts.lines().filter_map(Mount::parse).collect();
    let v1 = |controller: &str| {
        let has = |m: &&Mount| m.kind == "cgroup" && m.options.split(',').any(|o| o == controller);
        mounts.iter().find(has)
    };
    let cpu = v1("cpu").or_else(|| mounts.iter().find(|m| m.kind == "cgroup2"))?;
    let accounting = v1("cpuacct").filter(|mount| cpu.kind == "cgroup" && mount.at != cpu.at);
    Some(Mounted {
        at: cpu.at.into(),
        root: cpu.root.into(),
        accounting: accounting.map(|mount| mount.at.into()),
    })
}

/// Enables the `cpu` controller for children of `parent`.
pub(super) fn delegate_cpu(parent: &Path) -> Result<()> {
    let file = parent.join("cgroup.subtree_control");
    let enabled = fs::read_to_string(&file).unwrap_or_default();
    if has(&enabled, "cpu") {
        return Ok(());
    }
    fs::write(&file, "+cpu").map_err(|error| {
        let help = "run as root, or below a group that was delegated to you with its controllers";
        HostError::system(format!("write `+cpu` to {}", file.display()), error, help)
    })
}

/// This process' directory in a controller's v1 hierarchy.
fn v1_group(mounts: &str, own: &str, controller: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let controllers = fields.nth(1)?;
        controllers.split(',').any(|c| c == controller).then(|| fields.next())?
    })?;
    let mount = mounts.lines().map(Mount::parse).find_map(|mount| {
        mount.filter(|m| m.kind == "cgroup" && m.options.split(',').any(|o| o == controller))
    })?;
    mount.directory(path)
}

/// This process' directory in the unified hierarchy.
fn v2_group(mounts: &str, own: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mount = mounts.lines().filter_map(Mount::parse).find(|m| m.kind == "cgroup2")?;
    mount.directory(path)
}

/// The nearest group at or above `group` whose children can have the `cpu` controller. A group with
/// processes cannot delegate it, so that is often the parent.
fn v2_base(group: &Path) -> Option<PathBuf> {
    let ready = |dir: &&Path| {
        let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap_or_default();
        let root = !dir.join("cgroup.type").exists();
        has(&read("cgroup.subtree_control"), "cpu")
            || has(&read("cgroup.controllers"), "cpu")
                && (root || read("cgroup.procs").trim().is_empty())
    };
    let inside = |dir: &&Path| dir.join("cgroup.controllers").exists();
    group.ancestors().take_while(inside).find(ready).map(Path::to_owned)
}

fn has(text: &str, word: &str) -> bool {
    text.split_ascii_whitespace().any(|w| w == word)
}

/// A line of `/proc/self/mountinfo`.
#[derive(Debug, PartialEq)]
struct Mount<'a> {
    /// The part of the file system that is mounted.
    root: &'a str,
    at: &'a str,
    kind: &'a str,
    /// Super block options, which include v1's controllers.
    options: &'a str,
}

impl<'a> Mount<'a> {
    fn parse(line: &'a str) -> Option<Mount<'a>> {
        let (mount, system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let (root, at) = (mount.next()?, mount.next()?);
        let mut system = system.split(' ');
        let (kind, options) = (system.next()?, system.nth(1)?);
        Some(Mount { root, at, kind, options })
    }

    /// The directory of the group at `path` from the hierarchy's root.
    fn directory(&self, path: &str) -> Option<PathBuf> {
        let below = Path::new(path).strip_prefix(self.root).unwrap_or(Path::new(""));
        let directory = Path::new(self.at).join(below);
        directory.is_dir().then_some(directory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_hierarchy_of_a_controller_among_the_mounts() {
        let at = tempfile::tempdir().unwrap();
        fs::create_dir(at.path().join("job")).unwrap();
        let at = at.path().display();
        let mounts = format!(
            "30 23 0:26 / /other rw - cgroup cgroup rw,memory\n\
             31 23 0:27 / {at} rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
        );
        let own = "4:memory:/x\n3:cpu,cpuacct:/job\n0::/\n";
        let group = v1_group(&mounts, own, "cpu").unwrap();
        assert_eq!(group, Path::new(&format!("{at}/job")));
        assert_eq!(v1_group(&mounts, own, "cpuacct"), Some(group));
        assert_eq!(v1_group(&mounts, own, "cpuset"), None);
        assert_eq!(v2_group(&mounts, own), None);
    }

    #[test]
    fn finds_where_limits_are_set_whichever_hierarchy_has_the_controller() {
        let unified = "40 23 0:30 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
        let mounted = mounted_in(unified).unwrap();
        assert_eq!((mounted.at.as_path(), mounted.accounting), (Path::new("/sys/fs/cgroup"), None));
        let split = format!(
            "{unified}31 23 0:27 / /c/cpu rw - cgroup cgroup rw,cpu\n\
             32 23 0:28 / /c/cpuacct rw - cgroup cgroup rw,cpuacct\n"
        );
        let mounted = mounted_in(&split).unwrap();
        assert_eq!(mounted.at, Path::new("/c/cpu"));
        assert_eq!(mounted.accounting, Some(PathBuf::from("/c/cpuacct")));
        // One hierarchy for both, of which a container sees its own group.
        let both = "31 23 0:27 /docker/abc /c/cpu rw - cgroup cgroup rw,cpu,cpuacct\n";
        let mounted = mounted_in(both).unwrap();
        assert_eq!(mounted.accounting, None);
        let inside = mounted.relative(Path::new("docker/abc/job"));
        assert_eq!(inside, [Path::new("docker/abc/job"), Path::new("job")]);
        assert_eq!(mounted_in(""), None);
    }

    #[test]
    fn a_unified_group_with_processes_gives_way_to_its_parent() {
        let root = tempfile::tempdir().unwrap();
        let group = root.path().join("user/session");
        fs::create_dir_all(&group).unwrap();
        let write = |dir: &Path, name: &str, text: &str| fs::write(dir.join(name), text).unwrap();
        for dir in [root.path(), &root.path().join("user"), &group] {
            write(dir, "cgroup.controllers", "cpu memory\n");
            write(dir, "cgroup.subtree_control", "");
            write(dir, "cgroup.procs", "1\n");
        }
        for dir in [&root.path().join("user"), &group] {
            write(dir, "cgroup.type", "domain\n");
        }
        // Only the root may hold processes and limited groups at once.
        assert_eq!(v2_base(&group).as_deref(), Some(root.path()));
        write(&root.path().join("user"), "cgroup.subtree_control", "cpu\n");
        assert_eq!(v2_base(&group), Some(root.path().join("user")));
        write(&group, "cgroup.procs", "");
        assert_eq!(v2_base(&group), Some(group));
    }
}

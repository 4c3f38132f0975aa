//! Task groups with a CPU limit on this host: created for a run below this process' own group, and
//! removed when it ends, even by panic or Ctrl-C. Groups left by a killed process are removed by
//! a process beside it, or the next one that creates a group.

mod apply;
mod hierarchy;
mod live;
mod near;
mod order;
mod phase;
mod remove;
mod stats;
mod tidy;

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use reveille_measure::Ns;
use reveille_policy::{BandwidthLimits, Groups, TaskGroup};
use serde::{Deserialize, Serialize};

use crate::error::{HostError, Result};
pub use apply::{Change, burst_is_capped};
use hierarchy::{Hierarchy, Version};
pub use live::{LiveGroup, LiveLimits};
pub use order::lines_from_anything;
pub use phase::Phase;
pub use remove::{abort_at_panic, remove_all};
pub use stats::StatFiles;
pub(crate) use stats::{added, parse as parse_stats};
pub use tidy::{TIDY_COMMAND, Tidied, can_tidy, tidy_main};

/// The task groups of one run, as [`Groups`] describes them. Dropping it kills what still runs in
/// them and removes them.
#[derive(Debug)]
pub struct HostGroups {
    /// In the order of [`Groups`].
    groups: Vec<Group>,
}

#[derive(Debug)]
struct Group {
    dirs: Vec<PathBuf>,
    version: Version,
}

impl HostGroups {
    /// Creates the groups and sets their limits, parents first.
    ///
    /// # Errors
    /// [`HostError::Input`] for limits that this kernel does not support; [`HostError::System`] if
    /// there is no `cpu` controller or no permission. Everything is cleaned up then.
    pub fn create(groups: &Groups) -> Result<HostGroups> {
        if groups.groups.is_empty() {
            return Ok(HostGroups { groups: Vec::new() });
        }
        if groups.groups.iter().any(|group| group.limits.quota_ns.is_some()) {
            check_slice(groups)?;
        }
        let hierarchy = Hierarchy::find()?;
        remove::remove_stale(&hierarchy, None);
        tidy::start();
        let mut made = HostGroups { groups: Vec::new() };
        for group in &groups.groups {
            let parents = match group.parent {
                Some(parent) => made.groups[parent].dirs.clone(),
                None => hierarchy.bases(),
            };
            let group = Group::create(&hierarchy, &parents, &group.limits)?;
            made.groups.push(group);
        }
        Ok(made)
    }

    /// Each group's files, through which a program enters it; `groups` are those that these were
    /// created from. If one requests a phase, waits for the end of one of its periods.
    ///
    /// # Errors
    /// [`HostError::System`] if no end of a period was observed.
    pub fn files(&self, groups: &Groups) -> Result<Vec<GroupFiles>> {
        let files = |(made, group): (&Group, &TaskGroup)| {
            Ok(GroupFiles {
                name: group.name.clone(),
                parent: group.parent,
                roles: group.roles.clone(),
                procs: made.dirs.iter().map(|dir| dir.join("cgroup.procs")).collect(),
                threads: match made.version {
                    Version::V1 => made.dirs.iter().map(|dir| dir.join("tasks")).collect(),
                    // Threads would need groups in one threaded subtree.
                    Version::V2 => Vec::new(),
                },
                phase: made.phase(group)?,
                stats: StatFiles::of(&made.dirs),
            })
        };
        self.groups.iter().zip(&groups.groups).map(files).collect()
    }
}

/// A task group by its files; its limits are set already. The phase of its periods cannot be set,
/// so a run that requests a phase waits for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupFiles {
    pub name: String,
    pub parent: Option<usize>,
    /// Roles of the program whose tasks are in it; empty for all.
    pub roles: Vec<u16>,
    /// `cgroup.procs` files; a process that writes its id to each of them enters the group.
    pub procs: Vec<PathBuf>,
    /// v1's `tasks` files, for threads; empty where threads of one process cannot be in different
    /// groups.
    pub threads: Vec<PathBuf>,
    /// End of a period, and the phase at which a run starts; `None` if that is left to chance.
    pub phase: Option<Phase>,
    pub stats: StatFiles,
}

impl GroupFiles {
    /// Kills what runs in the group and removes it, for a process that outlives the creator.
    pub(crate) fn remove(&self) {
        self.procs.iter().filter_map(|procs| procs.parent()).for_each(remove::remove);
    }
}

impl Drop for HostGroups {
    fn drop(&mut self) {
        // Remove children before parents.
        while let Some(group) = self.groups.pop() {
            for dir in &group.dirs {
                remove::remove(dir);
            }
        }
    }
}

/// Makes group names unique within this process.
static NEXT: AtomicU32 = AtomicU32::new(0);

impl Group {
    fn create(
        hierarchy: &Hierarchy,
        parents: &[PathBuf],
        limits: &BandwidthLimits,
    ) -> Result<Group> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let directory = format!("{}{}-{number}", remove::PREFIX, std::process::id());
        let version = hierarchy.version;
        let mut group = Group { dirs: Vec::new(), version };
        let made = parents.iter().try_for_each(|parent| {
            if version == Version::V2 {
                hierarchy::delegate_cpu(parent)?;
            }
            let dir = parent.join(&directory);
            make(&dir)?;
            remove::remember(&dir);
            group.dirs.push(dir);
            Ok(())
        });
        if let Err(error) = made.and_then(|()| group.limit(limits)) {
            for dir in &group.dirs {
                remove::remove(dir);
            }
            return Err(error);
        }
        Ok(group)
    }

    /// Observes the end of a period, if the group requests a phase.
    fn phase(&self, group: &TaskGroup) -> Result<Option<Phase>> {
        let limits = &group.limits;
        let (Some(phase_ns), Some(quota_ns)) = (group.phase_ns, limits.quota_ns) else {
            return Ok(None);
        };
        let restart = || self.write_quota(quota_ns, limits.period_ns);
        let stats = StatFiles::of(&self.dirs);
        let refill_at_ns = phase::see_refill(&stats, limits.period_ns, restart)?;
        Ok(Some(Phase { refill_at_ns, period_ns: limits.period_ns, phase_ns }))
    }

    /// Sets quota and period of a group whose burst does not exceed the quota.
    fn write_quota(&self, quota_ns: Ns, period_ns: Ns) -> Result<()> {
        let dir = &self.dirs[0];
        let (quota_us, period_us) = (quota_ns / 1000, period_ns / 1000);
        match self.version {
            Version::V1 => {
                write(&dir.join("cpu.cfs_period_us"), &period_us.to_string())?;
                write(&dir.join("cpu.cfs_quota_us"), &quota_us.to_string())
            }
            Version::V2 => write(&dir.join("cpu.max"), &format!("{quota_us} {period_us}")),
        }
    }

    /// Sets the limits of a fresh group. The burst comes last, since it may not exceed the quota.
    fn limit(&self, limits: &BandwidthLimits) -> Result<()> {
        let Some(quota_ns) = limits.quota_ns else { return Ok(()) };
        self.write_quota(quota_ns, limits.period_ns)?;
        if limits.burst_ns > 0 {
            write(&self.burst_file()?, &(limits.burst_ns / 1000).to_string())?;
        }
        Ok(())
    }

    fn burst_file(&self) -> Result<PathBuf> {
        let file = self.dirs[0].join(self.version.burst_file());
        if file.exists() {
            return Ok(file);
        }
        let problem = format!("this kernel knows no burst: {} is missing", file.display());
        Err(HostError::input(problem, "use Linux 5.14 or later, or burst=0ms"))
    }
}

/// The slice is global to the running kernel.
fn check_slice(groups: &Groups) -> Result<()> {
    let file = Path::new("/proc/sys/kernel/sched_cfs_bandwidth_slice_us");
    let text = fs::read_to_string(file).unwrap_or_default();
    let Ok(slice_us) = text.trim().parse::<u64>() else { return Ok(()) };
    if slice_us * 1000 == groups.slice_ns {
        return Ok(());
    }
    let problem = format!(
        "this kernel draws {slice_us} us from a quota at a time, not {} us",
        groups.slice_ns / 1000
    );
    let help = format!(
        "leave the slice out here, or set it for the whole host: echo {} > {}",
        groups.slice_ns / 1000,
        file.display()
    );
    Err(HostError::input(problem, help))
}

fn make(dir: &Path) -> Result<()> {
    fs::create_dir(dir).map_err(|error| {
        let help = match error.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                "run as root, or below a group that was delegated to you, or without a limit"
            }
            _ => "see that the cgroup hierarchy has room for another group",
        };
        HostError::system(format!("make the task group {}", dir.display()), error, help)
    })
}

fn write(file: &Path, value: &str) -> Result<()> {
    fs::write(file, value).map_err(|error: io::Error| {
        let help = match error.kind() {
            ErrorKind::InvalidInput => {
                "the kernel refuses this value: it may be more than a group around this one has"
            }
            _ => "run as root, or below a group that was delegated to you, or without a limit",
        };
        HostError::system(format!("write `{value}` to {}", file.display()), error, help)
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(super) fn limited(
        name: &str,
        parent: Option<usize>,
        quota_ms: u64,
        burst_ms: u64,
    ) -> TaskGroup {
        let limits = BandwidthLimits::of_us(Some(quota_ms * 1000), 100_000, burst_ms * 1000);
        TaskGroup { parent, ..TaskGroup::new(name, limits) }
    }

    /// The groups, or why this host cannot have any.
    pub(super) fn created(groups: &Groups) -> Option<HostGroups> {
        match HostGroups::create(groups) {
            Ok(made) => Some(made),
            Err(HostError::System { doing, reason, .. }) => {
                eprintln!("SKIPPED: cannot {doing}: {reason}");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn groups_are_made_with_their_limits_and_gone_when_dropped() {
        let groups = vec![limited("all", None, 50, 0), limited("app", Some(0), 20, 10)];
        let groups = Groups { groups, ..Groups::default() };
        let Some(made) = created(&groups) else { return };
        let dirs: Vec<PathBuf> = made.groups.iter().map(|g| g.dirs[0].clone()).collect();
        assert!(dirs[1].starts_with(&dirs[0]), "{dirs:?}");
        let read = |file: &str| fs::read_to_string(dirs[1].join(file)).unwrap();
        match made.groups[1].version {
            Version::V1 => {
                assert_eq!(read("cpu.cfs_quota_us").trim(), "20000");
                assert_eq!(read("cpu.cfs_period_us").trim(), "100000");
                assert_eq!(read("cpu.cfs_burst_us").trim(), "10000");
            }
            Version::V2 => {
                assert_eq!(read("cpu.max").trim(), "20000 100000");
                assert_eq!(read("cpu.max.burst").trim(), "10000");
            }
        }
        let files = made.files(&groups).unwrap();
        assert_eq!((files[1].name.as_str(), files[1].parent), ("app", Some(0)));
        assert_eq!(files[1].stats.read("app").unwrap().nr_throttled, 0);
        drop(made);
        assert!(dirs.iter().all(|dir| !dir.exists()), "{dirs:?}");
    }

    #[test]
    fn a_group_that_the_kernel_refuses_leaves_nothing() {
        // A quota that no other test sets.
        let first = limited("first", None, 13, 0);
        let groups = Groups { groups: vec![first], ..Groups::default() };
        let Some(made) = created(&groups) else { return };
        drop(made);
        let mut bad = limited("bad", None, 10, 0);
        // 1 us: a study's own check would have refused it.
        bad.limits.quota_ns = Some(1000);
        let groups = vec![groups.groups[0].clone(), bad];
        let error = HostGroups::create(&Groups { groups, ..Groups::default() }).unwrap_err();
        assert!(error.to_string().contains("Invalid argument"), "{error}");
        let base = Hierarchy::find().unwrap().bases().remove(0);
        let own = format!("{}{}-", remove::PREFIX, std::process::id());
        let entries = fs::read_dir(base).unwrap().flatten();
        for entry in entries.filter(|e| e.file_name().to_string_lossy().starts_with(&own)) {
            let read = |file: &str| fs::read_to_string(entry.path().join(file));
            let limit = read("cpu.cfs_quota_us").or_else(|_| read("cpu.max")).unwrap_or_default();
            assert!(!limit.starts_with("13000"), "{}", entry.path().display());
        }
    }

    #[test]
    fn what_runs_in_a_group_ends_with_it() {
        let groups = Groups { groups: vec![limited("app", None, 50, 0)], ..Groups::default() };
        let Some(made) = created(&groups) else { return };
        let mut sleeper = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        for file in &made.files(&groups).unwrap()[0].procs {
            fs::write(file, sleeper.id().to_string()).unwrap();
        }
        let dir = made.groups[0].dirs[0].clone();
        let waiter = std::thread::spawn(move || sleeper.wait().unwrap());
        drop(made);
        assert!(!waiter.join().unwrap().success());
        assert!(!dir.exists());
    }
}

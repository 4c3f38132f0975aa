//! An existing task group: found by name or directory, with its limits and counters. Read-only;
//! `apply.rs` writes.

use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use reveille_measure::{GroupStats, Ns};
use reveille_policy::BandwidthLimits;

use super::hierarchy::{self, Version};
use super::near::near;
use super::stats::StatFiles;
use crate::error::{HostError, Result};

#[derive(Clone, Debug)]
pub struct LiveGroup {
    name: String,
    version: Version,
    /// Its directory in the `cpu` hierarchy, then that in `cpuacct` if separate.
    dirs: Vec<PathBuf>,
}

/// Limits of a live group, in whole microseconds as in its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveLimits {
    /// Quota, period and burst in force; the burst is 0 if the kernel has none.
    pub limits: BandwidthLimits,
    /// Does this kernel support a burst? Mainline does since Linux 5.14, some vendors' kernels
    /// earlier.
    pub has_burst: bool,
}

impl LiveGroup {
    /// Finds a group by its path below the mounted `cpu` hierarchy as in `/proc/PID/cgroup`
    /// (`docker/abc` or `/docker/abc`), or by its directory.
    ///
    /// # Errors
    /// [`HostError::Input`] if there is no such group, if it has no `cpu` controller, or if it is
    /// the root, which has no limits.
    pub fn open(name: &str) -> Result<LiveGroup> {
        let given = Path::new(name);
        if given.components().any(|part| part == Component::ParentDir) {
            let problem = format!("`{name}` is no name of a task group: it has `..` in it");
            return Err(HostError::input(problem, "give its path from the root of the hierarchy"));
        }
        let mounted = hierarchy::mounted_cpu()?;
        let below = given.strip_prefix("/").unwrap_or(given);
        let directory = given.is_absolute().then(|| given.to_owned());
        let found = directory.filter(|dir| version_of(dir).is_some()).or_else(|| {
            let relative = mounted.relative(below);
            relative.into_iter().map(|part| mounted.at.join(part)).find(|dir| dir.is_dir())
        });
        let Some(dir) = found else {
            if given.is_absolute() && given.is_dir() {
                return Err(without_controller(name, given));
            }
            let problem = format!(
                "there is no task group `{name}`: neither is {} one, nor a directory of that name",
                mounted.at.join(below).display()
            );
            let near = match near(&mounted.at, name) {
                names if names.is_empty() => String::new(),
                names => format!("did you mean {}? Else ", names.join(" or ")),
            };
            let help = format!(
                "{near}give its path as `cat /proc/PID/cgroup` shows it, or its directory below {}",
                mounted.at.display()
            );
            return Err(HostError::input(problem, help));
        };
        let mut group = LiveGroup::at(&dir)?;
        group.name = name.to_owned();
        group.dirs.extend(group.accounting().filter(|dir| dir.is_dir()));
        Ok(group)
    }

    pub fn at(dir: &Path) -> Result<LiveGroup> {
        let name = dir.display().to_string();
        if is_root(dir) {
            let problem = format!("`{name}` is the root group, which the kernel never limits");
            return Err(HostError::input(problem, "name a group below it"));
        }
        match version_of(dir) {
            Some(version) => Ok(LiveGroup { name, version, dirs: vec![dir.to_owned()] }),
            None => Err(without_controller(&name, dir)),
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn directory(&self) -> &Path {
        &self.dirs[0]
    }

    /// Its directory in `cpuacct`, whether it is there or not, if v1 mounts that separately.
    pub fn accounting(&self) -> Option<PathBuf> {
        let mounted = hierarchy::mounted_cpu().ok()?;
        Some(mounted.accounting?.join(self.directory().strip_prefix(&mounted.at).ok()?))
    }

    /// Its directories: that of `cpu`, and that of `cpuacct` if v1 mounts it separately.
    pub fn directories(&self) -> &[PathBuf] {
        &self.dirs
    }

    pub fn is_v1(&self) -> bool {
        self.version == Version::V1
    }

    pub(super) fn version(&self) -> Version {
        self.version
    }

    pub fn limits(&self) -> Result<LiveLimits> {
        read_limits(self.directory(), self.version)
    }

    /// The limits of its ancestors, nearest first, with their directories.
    pub fn around(&self) -> Result<Vec<(PathBuf, BandwidthLimits)>> {
        let outer = self.directory().ancestors().skip(1);
        let outer = outer.take_while(|dir| version_of(dir) == Some(self.version) && !is_root(dir));
        outer.map(|dir| Ok((dir.to_owned(), read_limits(dir, self.version)?.limits))).collect()
    }

    /// The ancestor whose limit leaves the fewest CPUs, or of equals the least burst.
    pub fn tightest_around(&self) -> Result<Option<(PathBuf, BandwidthLimits)>> {
        let cpus = |limits: &BandwidthLimits| limits.cpus().unwrap_or(f64::INFINITY);
        let limited = self.around()?.into_iter().filter(|(_, limits)| limits.quota_ns.is_some());
        Ok(limited
            .min_by(|(_, a), (_, b)| cpus(a).total_cmp(&cpus(b)).then(a.burst_ns.cmp(&b.burst_ns))))
    }

    /// The topmost limited groups below it.
    pub fn within(&self) -> Result<Vec<(PathBuf, BandwidthLimits)>> {
        let mut found = Vec::new();
        let mut open = subgroups(self.directory());
        while let Some(dir) = open.pop() {
            match read_limits(&dir, self.version) {
                Ok(live) if live.limits.quota_ns.is_some() => found.push((dir, live.limits)),
                Ok(_) => open.extend(subgroups(&dir)),
                Err(error) if dir.is_dir() && version_of(&dir).is_some() => return Err(error),
                Err(_) => {}
            }
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(found)
    }

    /// Upper bound on the CPUs that it can use, by its own and its ancestors' limits; `None`
    /// without any.
    pub fn effective_cpus(&self) -> Result<Option<f64>> {
        let around: Vec<_> = self.around()?.into_iter().map(|(_, limits)| limits).collect();
        Ok(self.limits()?.limits.effective_cpus(&around))
    }

    pub fn stat_files(&self) -> StatFiles {
        StatFiles::of(&self.dirs)
    }

    /// Its counters since creation.
    pub fn stats(&self) -> Result<GroupStats> {
        self.stat_files().read(&self.name)
    }

    /// Number of threads in it and its descendants.
    pub fn threads(&self) -> Result<usize> {
        let file = match self.version {
            Version::V1 => "tasks",
            Version::V2 => "cgroup.threads",
        };
        let mut count = read(&self.directory().join(file))?.lines().count();
        let mut open = subgroups(self.directory());
        while let Some(dir) = open.pop() {
            open.extend(subgroups(&dir));
            count += fs::read_to_string(dir.join(file)).unwrap_or_default().lines().count();
        }
        Ok(count)
    }
}

/// Interface of the group in this directory; `None` without the `cpu` controller.
fn version_of(dir: &Path) -> Option<Version> {
    if dir.join("cpu.max").exists() {
        return Some(Version::V2);
    }
    dir.join("cpu.cfs_quota_us").exists().then_some(Version::V1)
}

/// Is it the root of a hierarchy, not merely of this process' view? In v1 only the root has a
/// release agent; in v2 every group but the root has a type.
fn is_root(dir: &Path) -> bool {
    dir.join("release_agent").exists()
        || dir.join("cgroup.controllers").exists() && !dir.join("cgroup.type").exists()
}

fn without_controller(name: &str, dir: &Path) -> HostError {
    if !dir.join("cgroup.procs").exists() {
        let problem = format!("`{name}` is no task group: {} has no cgroup.procs", dir.display());
        return HostError::input(problem, "name a directory of a cgroup hierarchy");
    }
    let problem = format!("`{name}` has no `cpu` controller: there is no cpu.max in it");
    let parent = dir.parent().unwrap_or(dir).join("cgroup.subtree_control");
    HostError::input(problem, format!("enable it: echo +cpu > {}", parent.display()))
}

fn subgroups(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

pub(super) fn read_limits(dir: &Path, version: Version) -> Result<LiveLimits> {
    let (quota, period) = match version {
        Version::V1 => {
            let period_file = dir.join("cpu.cfs_period_us");
            let period = number(&period_file, &read(&period_file)?)?;
            let quota_file = dir.join("cpu.cfs_quota_us");
            let text = read(&quota_file)?;
            let quota = match text.trim().starts_with('-') {
                true => None,
                false => Some(number(&quota_file, &text)?),
            };
            (quota, period)
        }
        Version::V2 => {
            let file = dir.join("cpu.max");
            let text = read(&file)?;
            let Some((quota, period)) = text.trim().split_once(' ') else {
                return Err(unreadable(&file, &text));
            };
            let quota = (quota != "max").then(|| number(&file, quota)).transpose()?;
            (quota, number(&file, period)?)
        }
    };
    let burst_file = dir.join(version.burst_file());
    let burst = match fs::read_to_string(&burst_file) {
        Ok(text) => Some(number(&burst_file, &text)?),
        Err(error) if error.kind() == ErrorKind::NotFound && dir.is_dir() => None,
        Err(error) => return Err(not_read(&burst_file, error)),
    };
    let limits =
        BandwidthLimits { quota_ns: quota, period_ns: period, burst_ns: burst.unwrap_or(0) };
    Ok(LiveLimits { limits, has_burst: burst.is_some() })
}

/// Parses a file's microseconds into nanoseconds, which cannot overflow for values from a kernel.
fn number(file: &Path, text: &str) -> Result<Ns> {
    let us: u64 = text.trim().parse().map_err(|_| unreadable(file, text))?;
    Ok(us.saturating_mul(1000))
}

fn unreadable(file: &Path, text: &str) -> HostError {
    HostError::System {
        doing: format!("read {}", file.display()),
        reason: format!("`{}` is not what a kernel writes there", text.trim()),
        help: "name a directory of a cgroup hierarchy with the `cpu` controller".to_owned(),
    }
}

fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).map_err(|error| not_read(file, error))
}

fn not_read(file: &Path, error: std::io::Error) -> HostError {
    let help = match error.kind() {
        ErrorKind::PermissionDenied => "run as a user who may read the group's files",
        _ => "see that the task group still exists",
    };
    HostError::system(format!("read {}", file.display()), error, help)
}

#[cfg(test)]
#[path = "live_tests.rs"]
mod tests;

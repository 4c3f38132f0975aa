//! The threads of a live group and of the groups within it.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use crate::cgroup::LiveGroup;
use crate::error::{HostError, Result};

/// Their ids, ascending; `None` if the group is gone.
///
/// # Errors
/// [`HostError::System`] without permission to read them.
pub(super) fn thread_ids(group: &LiveGroup) -> Result<Option<Vec<u32>>> {
    let file = if group.is_v1() { "tasks" } else { "cgroup.threads" };
    let mut ids = Vec::new();
    if !read(group.directory(), file, &mut ids)? {
        return Ok(None);
    }
    let mut open = subgroups(group.directory());
    while let Some(dir) = open.pop() {
        // A child removed meanwhile has no threads.
        read(&dir, file, &mut ids)?;
        open.extend(subgroups(&dir));
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(Some(ids))
}

/// Adds the ids of one group; returns false if it is gone.
fn read(dir: &Path, file: &str, ids: &mut Vec<u32>) -> Result<bool> {
    match fs::read_to_string(dir.join(file)) {
        Ok(text) => {
            ids.extend(text.lines().filter_map(|line| line.parse::<u32>().ok()));
            Ok(true)
        }
        Err(error) if is_gone(&error) => Ok(false),
        Err(error) => Err(HostError::system(
            format!("read {}", dir.join(file).display()),
            error,
            "run as root, or record with --how sample",
        )),
    }
}

/// The error from a removed group's file: `ENOENT`, or `ENODEV` if it was open.
pub(super) fn is_gone(error: &std::io::Error) -> bool {
    error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(libc::ENODEV)
}

fn subgroups(dir: &Path) -> Vec<std::path::PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let is_dir = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    entries.flatten().filter(is_dir).map(|entry| entry.path()).collect()
}

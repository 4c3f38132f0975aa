//! Names of cgroups by their ids, for the statistics.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where cgroup v2 is mounted, by itself or beside v1.
const MOUNTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// Directories that have been found so far.
#[derive(Debug, Default)]
pub struct Cgroups {
    names: HashMap<u64, String>,
}

impl Cgroups {
    /// The group's directory below the mount; its id if there is none by now.
    pub fn name(&mut self, id: u64) -> String {
        if !self.names.contains_key(&id) {
            self.names.clear();
            for mount in MOUNTS {
                walk(Path::new(mount), Path::new("/"), &mut self.names);
            }
        }
        self.names.entry(id).or_insert_with(|| format!("id {id}")).clone()
    }
}

/// An id is the inode of its directory.
fn walk(directory: &Path, name: &Path, names: &mut HashMap<u64, String>) {
    let Ok(meta) = fs::metadata(directory) else { return };
    names.insert(meta.ino(), name.display().to_string());
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let below: PathBuf = name.join(entry.file_name());
            walk(&entry.path(), &below, names);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_named_by_their_inodes() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        let mut names = HashMap::new();
        walk(dir.path(), Path::new("/"), &mut names);
        assert_eq!(names[&fs::metadata(&inner).unwrap().ino()], "/a/b");
        assert_eq!(Cgroups::default().name(u64::MAX), format!("id {}", u64::MAX));
    }
}

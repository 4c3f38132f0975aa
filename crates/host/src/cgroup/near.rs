//! Suggests groups for a name that does not exist.

use std::fs;
use std::path::Path;

use reveille_place::likeness;

/// Maximum number of groups to compare, and to suggest.
const MOST: [usize; 2] = [10_000, 3];

/// Names of groups below `root` similar to `name`, best first. Compares both a group's own name and
/// its path.
pub(super) fn near(root: &Path, name: &str) -> Vec<String> {
    let name = name.trim_matches('/');
    let mut found: Vec<(f64, String)> = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) || found.len() >= MOST[0] {
                continue;
            }
            let path = entry.path();
            if let Some(below) = path.strip_prefix(root).ok().and_then(Path::to_str) {
                let like = likeness(name, below).max(likeness(own(name), own(below)));
                found.push((like, below.to_owned()));
            }
            open.push(path);
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    // Below this similarity, names are unrelated.
    found.into_iter().filter(|(like, _)| *like > 0.8).map(|(_, name)| name).take(MOST[1]).collect()
}

fn own(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_and_a_missing_parent_are_found() {
        let root = tempfile::tempdir().unwrap();
        for name in ["docker/web-1", "docker/db", "system.slice/cron.service"] {
            fs::create_dir_all(root.path().join(name)).unwrap();
        }
        assert_eq!(near(root.path(), "/docker/wbe-1")[0], "docker/web-1");
        assert_eq!(near(root.path(), "cron.service"), ["system.slice/cron.service"]);
        assert!(near(root.path(), "zzz").is_empty());
    }
}

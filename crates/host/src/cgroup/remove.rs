//! Removes task groups. A group can only be removed when empty, so its processes are killed first.
//! Every group is tracked from creation to removal, for exits that run no destructors.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::hierarchy::Hierarchy;

/// Prefix of group names, followed by the id of the creating process.
pub(super) const PREFIX: &str = "reveille-";

/// A killed process leaves its group when it is reaped.
const TRIES: u32 = 200;
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

static MADE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn made() -> MutexGuard<'static, Vec<PathBuf>> {
    // A panic between two pushes leaves a consistent list.
    MADE.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn remember(dir: &Path) {
    made().push(dir.to_owned());
}

/// Kills what runs in a group and removes it.
pub(super) fn remove(dir: &Path) {
    for _ in 0..TRIES {
        kill_members(dir);
        match fs::remove_dir(dir) {
            Err(_) if dir.exists() => thread::sleep(BETWEEN_TRIES),
            _ => break,
        }
    }
    made().retain(|d| d != dir);
}

fn kill_members(dir: &Path) {
    let members = fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
    let members = members.lines().filter_map(|line| line.parse().ok()).filter_map(Pid::from_raw);
    for member in members.filter(|m| *m != rustix::process::getpid()) {
        let _ = kill_process(member, Signal::KILL);
    }
}

/// Held while limits are being written.
static WRITING: Mutex<()> = Mutex::new(());
/// Longer than any change takes; bounded so that a panic during a change does not deadlock.
const LONGEST_CHANGE: Duration = Duration::from_secs(2);

/// Held while a live group's limits are written: an exit waits for it.
pub(super) fn writing() -> MutexGuard<'static, ()> {
    WRITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until no change is in progress, before this process ends.
pub(super) fn wait_for_changes() {
    let began = Instant::now();
    while matches!(WRITING.try_lock(), Err(TryLockError::WouldBlock))
        && began.elapsed() < LONGEST_CHANGE
    {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Removes every group that this process has created, newest first, for exits without destructors.
/// Waits for a live group's limits that are being written.
pub fn remove_all() {
    wait_for_changes();
    loop {
        let last = made().last().cloned();
        match last {
            Some(dir) => remove(&dir),
            None => return,
        }
    }
}

/// Makes a panic, of any thread, remove every group and abort the process.
pub fn abort_at_panic() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        before(info);
        remove_all();
        std::process::abort();
    }));
}

/// Removes groups whose creator is gone, such as after SIGKILL; `ended` is gone, though its parent may not
/// have reaped it.
pub(super) fn remove_stale(hierarchy: &Hierarchy, ended: Option<Pid>) {
    let gone = |pid: Pid| Some(pid) == ended || test_kill_process(pid).is_err();
    for base in hierarchy.bases() {
        let Ok(entries) = fs::read_dir(&base) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if maker(&name.to_string_lossy()).is_some_and(gone) {
                remove_tree(&entry.path());
            }
        }
    }
}

/// The process that created a group of this name.
fn maker(name: &str) -> Option<Pid> {
    let (pid, _) = name.strip_prefix(PREFIX)?.split_once('-')?;
    Pid::from_raw(pid.parse().ok()?)
}

/// Groups only nest within one run.
fn remove_tree(dir: &Path) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten().filter(|e| e.path().is_dir()) {
        remove_tree(&entry.path());
    }
    remove(dir);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_who_made_the_group() {
        assert_eq!(maker("reveille-12-0"), Pid::from_raw(12));
        for other in ["reveille-12", "reveille-x-0", "reveille-0-0", "user-12-0", "reveille--1-0"] {
            assert_eq!(maker(other), None, "{other}");
        }
    }
}

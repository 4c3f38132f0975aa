//! The running kernel's scheduler features, shown and switched through debugfs. They are switched
//! for one run and restored afterwards, however this process ends.

use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::error::{HostError, Result};

/// Path since v5.13.
const FILE: &str = "/sys/kernel/debug/sched/features";
/// Path before v5.13.
const OLD_FILE: &str = "/sys/kernel/debug/sched_features";
/// Cache-aware balancing has a file of its own, beside that one (v7.2).
const SCHED_CACHE: &str = "SCHED_CACHE";
const SCHED_CACHE_FILE: &str = "llc_balancing/enabled";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelFeatures {
    file: PathBuf,
    /// Name, and whether it is on.
    state: Vec<(String, bool)>,
}

pub type Switch = (String, bool);

impl KernelFeatures {
    /// The running kernel's.
    ///
    /// # Errors
    /// [`HostError::System`] if debugfs does not show them: it is not mounted, this is not root, or
    /// the kernel was built without `CONFIG_SCHED_DEBUG`.
    pub fn of_this_kernel() -> Result<KernelFeatures> {
        let file = if Path::new(OLD_FILE).exists() { OLD_FILE } else { FILE };
        KernelFeatures::read(Path::new(file))
    }

    /// Parses the file: names, prefixed with `NO_` if off.
    pub fn read(file: &Path) -> Result<KernelFeatures> {
        let text = fs::read_to_string(file).map_err(|error| {
            let help = "run as root with debugfs mounted (mount -t debugfs none \
                        /sys/kernel/debug), or compare something other than features";
            HostError::system(format!("read {}", file.display()), error, help)
        })?;
        let words = text.split_ascii_whitespace().map(|word| match word.strip_prefix("NO_") {
            Some(name) => (name.to_owned(), false),
            None => (word.to_owned(), true),
        });
        let mut features = KernelFeatures { file: file.to_owned(), state: words.collect() };
        if let Ok(enabled) = fs::read_to_string(features.sched_cache_file()) {
            features.state.push((SCHED_CACHE.to_owned(), enabled.trim() != "0"));
        }
        Ok(features)
    }

    fn sched_cache_file(&self) -> PathBuf {
        self.file.parent().unwrap_or(Path::new("")).join(SCHED_CACHE_FILE)
    }

    /// The file that switches a feature, and what is written there.
    fn order(&self, (name, on): &Switch) -> (PathBuf, String) {
        match (name.as_str(), on) {
            (SCHED_CACHE, _) => (self.sched_cache_file(), u8::from(*on).to_string()),
            (_, true) => (self.file.clone(), name.clone()),
            (_, false) => (self.file.clone(), format!("NO_{name}")),
        }
    }

    /// Refuses switches that this kernel does not have, and those that change nothing.
    ///
    /// # Errors
    /// [`HostError::Input`] with the feature and the available ones.
    pub fn check(&self, switches: &[Switch]) -> Result<()> {
        for (name, on) in switches {
            let sign = if *on { '+' } else { '-' };
            match self.state.iter().find(|(known, _)| known == name) {
                None => {
                    let names: Vec<&str> = self.state.iter().map(|(n, _)| n.as_str()).collect();
                    let problem = format!("this kernel has no feature {name} to switch");
                    return Err(HostError::input(
                        problem,
                        format!("it can switch {}", names.join(", ")),
                    ));
                }
                Some((_, now)) if now == on => {
                    let problem =
                        format!("`{sign}{name}` changes nothing: it is the kernel's current state");
                    return Err(HostError::input(problem, "leave it out"));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Switches features until the result is dropped.
    ///
    /// # Errors
    /// As [`KernelFeatures::check`]; [`HostError::System`] if the kernel refuses. Nothing is
    /// changed then.
    pub fn switch(&self, switches: &[Switch]) -> Result<Switched> {
        self.check(switches)?;
        let back: Vec<Switch> = switches.iter().map(|(name, on)| (name.clone(), !on)).collect();
        let switched = Switched { guard: self.guard(&back)? };
        for switch in switches {
            let (file, word) = self.order(switch);
            fs::write(&file, &word).map_err(|error| {
                let doing = format!("write `{word}` to {}", file.display());
                HostError::system(doing, error, "run as root")
            })?;
        }
        Ok(switched)
    }

    /// A guard process that switches back at EOF on its input, so however this process ends. `None`
    /// without features.
    fn guard(&self, back: &[Switch]) -> Result<Option<Child>> {
        if back.is_empty() {
            return Ok(None);
        }
        const SCRIPT: &str = "trap '' HUP INT TERM; read _; \
             while [ $# -gt 0 ]; do echo \"$2\" >\"$1\"; shift 2; done";
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(SCRIPT).arg("sh");
        for switch in back {
            let (file, word) = self.order(switch);
            command.arg(file).arg(word);
        }
        // In its own process group, so that Ctrl-C reaches only this process.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null());
        command.spawn().map(Some).map_err(|error| {
            let help = "a shell restores the features: check that /bin/sh starts";
            HostError::system("start /bin/sh", error, help)
        })
    }
}

/// Switched features; restored on drop.
#[derive(Debug)]
pub struct Switched {
    guard: Option<Child>,
}

impl Drop for Switched {
    fn drop(&mut self) {
        if let Some(mut guard) = self.guard.take() {
            let mut input = guard.stdin.take();
            let _ = input.as_mut().map(|input| input.write_all(b"\n"));
            drop(input);
            let _ = guard.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn file(directory: &tempfile::TempDir) -> PathBuf {
        let file = directory.path().join("features");
        fs::write(&file, "PLACE_LAG NO_HRTICK TTWU_QUEUE WA_IDLE\n").unwrap();
        file
    }

    fn switch(name: &str, on: bool) -> Switch {
        (name.to_owned(), on)
    }

    #[test]
    fn what_cannot_be_switched_is_refused_with_what_can() {
        let directory = tempfile::tempdir().unwrap();
        let features = KernelFeatures::read(&file(&directory)).unwrap();
        features.check(&[switch("TTWU_QUEUE", false), switch("HRTICK", true)]).unwrap();
        let error = features.check(&[switch("SIS_SHORT", true)]).unwrap_err();
        assert!(error.to_string().contains("no feature SIS_SHORT"), "{error}");
        let HostError::Input(mistake) = error else { panic!("{error}") };
        assert!(mistake.help.contains("HRTICK, TTWU_QUEUE"), "{mistake:?}");
        let same = features.check(&[switch("HRTICK", false)]).unwrap_err();
        assert!(same.to_string().contains("`-HRTICK` changes nothing"), "{same}");
        let missing = KernelFeatures::read(&directory.path().join("nothing")).unwrap_err();
        assert!(missing.to_string().contains("nothing"), "{missing}");
    }

    #[test]
    fn features_are_put_back() {
        let directory = tempfile::tempdir().unwrap();
        let file = file(&directory);
        let features = KernelFeatures::read(&file).unwrap();
        let switched = features.switch(&[switch("WA_IDLE", false)]).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "NO_WA_IDLE");
        drop(switched);
        assert_eq!(fs::read_to_string(&file).unwrap(), "WA_IDLE\n");
        drop(features.switch(&[]).unwrap());
        assert_eq!(fs::read_to_string(&file).unwrap(), "WA_IDLE\n");
    }

    #[test]
    fn cache_aware_balancing_is_switched_by_its_own_file() {
        let directory = tempfile::tempdir().unwrap();
        let (features, enabled) = (file(&directory), directory.path().join(SCHED_CACHE_FILE));
        let missing = KernelFeatures::read(&features).unwrap();
        assert!(missing.check(&[switch("SCHED_CACHE", false)]).is_err());
        fs::create_dir(enabled.parent().unwrap()).unwrap();
        fs::write(&enabled, "1\n").unwrap();
        let known = KernelFeatures::read(&features).unwrap();
        let switches = [switch("SCHED_CACHE", false), switch("WA_IDLE", false)];
        let switched = known.switch(&switches).unwrap();
        let both = || [&enabled, &features].map(|file| fs::read_to_string(file).unwrap());
        assert_eq!(both(), ["0", "NO_WA_IDLE"]);
        drop(switched);
        assert_eq!(both(), ["1\n", "WA_IDLE\n"]);
        assert!(known.check(&[switch("SCHED_CACHE", true)]).is_err(), "it is on");
    }

    #[test]
    fn features_are_put_back_by_another_process_if_this_one_cannot() {
        let directory = tempfile::tempdir().unwrap();
        let file = file(&directory);
        let features = KernelFeatures::read(&file).unwrap();
        let mut switched = features.switch(&[switch("HRTICK", true)]).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "HRTICK");
        // As the kernel does to a killed process's pipe.
        drop(switched.guard.as_mut().unwrap().stdin.take());
        let end = Instant::now() + Duration::from_secs(5);
        while fs::read_to_string(&file).unwrap() != "NO_HRTICK\n" {
            assert!(Instant::now() < end, "it was not put back");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

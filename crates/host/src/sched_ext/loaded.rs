//! A scheduler of a run's own, from its loading until tasks are back with the kernel's. Its
//! loader is a process that the kernel ends with this one, and with the loader's end the
//! kernel takes all tasks back: nothing that happens to either leaves the scheduler loaded.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal, kill_process};

use super::{Loader, SchedExt};
use crate::HostError;
use crate::supervise::ended;
use crate::sys::process;

/// How often the kernel's state is read while something is waited for.
const POLL: Duration = Duration::from_millis(10);
/// A verifier may take some seconds, and an emulated machine many times that.
const LOADING: Duration = Duration::from_secs(90);
/// How long a loader that was asked to end may take before it is killed.
const ENDING: Duration = Duration::from_secs(10);
/// How long the kernel may take to take tasks back, and a loader to say why it did.
const TAKING_BACK: Duration = Duration::from_secs(30);
/// How long a loader has for its last words once its scheduler is gone.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// Of what a loader said, the end: the dump of a large machine stands before its last words.
const LOG: u64 = 64 << 10;
/// More would not be read.
const LONGEST_REASON: usize = 400;
/// clap's and the project's exit code for what was refused before anything happened.
const REFUSED: i32 = 2;

/// A loaded scheduler. When it is dropped, tasks are back with the kernel's own.
#[derive(Debug)]
pub struct Loaded {
    kernel: SchedExt,
    loader: Loader,
    child: Child,
    status: Option<ExitStatus>,
    /// Standard output and error of the loader; gone with this process.
    log: File,
    /// As the kernel calls it.
    name: String,
    /// [`SchedExt::loads`] before it was there: the kernel counts it some time after it says
    /// that it is.
    loads_before: Option<u64>,
}

impl SchedExt {
    /// Loads a scheduler, and returns once it has all tasks.
    ///
    /// # Errors
    /// As [`SchedExt::check`]; what the loader says; [`HostError::Interrupted`] after a stop.
    /// Nothing is loaded then.
    pub fn load(&self, loader: &Loader, stop: &AtomicBool) -> Result<Loaded, HostError> {
        let program = self.program(loader)?;
        let failed = |error: std::io::Error| {
            let doing = format!("start {}", program.display());
            HostError::system(doing, error, "see that it starts by hand")
        };
        let log =
            File::from(memfd_create("log", MemfdFlags::CLOEXEC).map_err(|e| failed(e.into()))?);
        let mut command = Command::new(&program);
        command.args(&loader.args).stdin(Stdio::null());
        command.stdout(log.try_clone().map_err(failed)?);
        command.stderr(log.try_clone().map_err(failed)?);
        // A group of its own: Ctrl-C comes to this process alone, which ends the run first.
        command.process_group(0);
        let child = process::spawn_bound(&mut command, Vec::new()).map_err(failed)?;
        let mut loaded = Loaded {
            kernel: self.clone(),
            loader: loader.clone(),
            child,
            status: None,
            log,
            name: String::new(),
            loads_before: self.loads(),
        };
        loaded.wait_until_enabled(stop)?;
        Ok(loaded)
    }
}

impl Loaded {
    /// The name that the kernel has for it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What its loader warned of, such as limits that it does not know.
    pub fn warnings(&self) -> Vec<String> {
        let log = self.log();
        let warnings = log.lines().filter_map(|line| line.split_once(" WARN "));
        warnings.map(|(_, text)| format!("{}: {}", self.loader.program, text.trim())).collect()
    }

    /// Takes it out, and returns once every task is back with the kernel's own scheduler.
    ///
    /// # Errors
    /// [`HostError::Died`] with the loader's words if the scheduler was not there all the
    /// time; [`HostError::System`] if the kernel does not let go of it.
    pub fn unload(mut self) -> Result<(), HostError> {
        let lost = self.lost();
        self.end();
        let lost = lost.or_else(|| {
            // It was there a moment ago: a loader that ended as it was told ends well.
            let status = self.status.filter(|s| !s.success() && s.signal().is_none())?;
            Some(self.reason(&ended(status)))
        });
        if let Some(reason) = lost {
            let how = format!("did not schedule until the end of the run: {reason}");
            return Err(HostError::Died { who: self.loader.program.clone(), how });
        }
        if self.is_still_taken_back() {
            let help =
                "`dmesg | tail` has the kernel's words; SysRq+S ends any sched_ext scheduler";
            return Err(HostError::System {
                doing: format!("unload {}", self.loader.program),
                reason: format!("its state is `{}`", self.kernel.state()),
                help: help.to_owned(),
            });
        }
        Ok(())
    }

    fn wait_until_enabled(&mut self, stop: &AtomicBool) -> Result<(), HostError> {
        let begin = Instant::now();
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(HostError::Interrupted);
            }
            if let Some(status) = self.has_ended() {
                return Err(self.refused(status));
            }
            if self.kernel.state() == "enabled"
                && let Some(name) = self.kernel.ops()
            {
                if !self.loader.is_called(&name) {
                    let other = format!("another sched_ext scheduler was loaded: {name}");
                    return Err(HostError::input(other, "end it first"));
                }
                self.name = name;
                return Ok(());
            }
            if begin.elapsed() > LOADING {
                return Err(HostError::System {
                    doing: format!("load {}", self.loader.program),
                    reason: format!("it is not there after {} s", LOADING.as_secs()),
                    help: format!("see what it says: {}", self.loader.command()),
                });
            }
            thread::sleep(POLL);
        }
    }

    /// A loader that ended before its scheduler was there.
    fn refused(&self, status: ExitStatus) -> HostError {
        let reason = self.reason(&ended(status));
        let help = words(&self.log(), &["help:"])
            .unwrap_or_else(|| format!("see what it says: {}", self.loader.command()));
        if status.code() == Some(REFUSED) {
            return HostError::input(format!("{}: {reason}", self.loader.program), help);
        }
        let doing = format!("load {}", self.loader.program);
        HostError::System { doing, reason, help }
    }

    /// Why the scheduler is not the one that was loaded any more, if so.
    fn lost(&mut self) -> Option<String> {
        let state = self.kernel.state();
        let there = state == "enabled" && self.kernel.ops().as_ref() == Some(&self.name);
        if there && self.has_ended().is_none() {
            let loads = self
                .kernel
                .loads()
                .zip(self.loads_before)
                .map(|(now, then)| now.saturating_sub(then));
            return loads
                .is_some_and(|n| n > 1)
                .then(|| "it was loaded again, for the machine has changed".to_owned());
        }
        let begin = Instant::now();
        while self.has_ended().is_none() && begin.elapsed() < LAST_WORDS {
            thread::sleep(POLL);
        }
        let otherwise = match self.status {
            Some(status) => format!("it {}", ended(status)),
            None => format!("its state is `{state}`"),
        };
        Some(self.reason(&otherwise))
    }

    /// What the loader said last, by which its users know what went wrong.
    fn reason(&self, otherwise: &str) -> String {
        // The marks of the project's own errors, with and without Unicode, and the words of
        // other schedulers.
        let log = self.log();
        words(&log, &["\u{d7} ", "x ", "EXIT: ", "Error: ", "error: "])
            .or_else(|| log.lines().rev().map(str::trim).find(|l| !l.is_empty()).map(str::to_owned))
            .map_or_else(
                || otherwise.to_owned(),
                |text| text.chars().take(LONGEST_REASON).collect(),
            )
    }

    fn log(&self) -> String {
        let all = self.log.metadata().map_or(0, |m| m.len());
        let mut end = vec![0; all.min(LOG) as usize];
        let read = self.log.read_at(&mut end, all.saturating_sub(LOG)).unwrap_or(0);
        String::from_utf8_lossy(&end[..read]).into_owned()
    }

    fn has_ended(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status
    }

    /// Asks the loader to end, kills it if it does not, and waits for the kernel.
    fn end(&mut self) {
        if self.has_ended().is_none() {
            if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
                // It is not reaped, so its number is its own.
                let _ = kill_process(pid, Signal::TERM);
            }
            let begin = Instant::now();
            while self.has_ended().is_none() && begin.elapsed() < ENDING {
                thread::sleep(POLL);
            }
            if self.status.is_none() {
                let _ = self.child.kill();
                self.status = self.child.wait().ok();
            }
        }
        let begin = Instant::now();
        while self.is_still_taken_back() && begin.elapsed() < TAKING_BACK {
            thread::sleep(POLL);
        }
    }

    /// Has the kernel not yet let go of it? Who was loaded by somebody else since is no
    /// business of this.
    fn is_still_taken_back(&self) -> bool {
        match self.kernel.state().as_str() {
            "disabled" => false,
            "enabled" => self.kernel.ops().is_none_or(|name| self.loader.is_called(&name)),
            _ => true,
        }
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        self.end();
    }
}

/// What follows the last of these marks in a log, at the beginning of a line or of a message
/// after its level.
fn words(log: &str, marks: &[&str]) -> Option<String> {
    let after = |line: &str| {
        let of = |mark: &&str| match line.split_once(mark)? {
            ("", rest) => Some(rest.trim().to_owned()),
            // A single letter may be the end of any word.
            (before, rest) if mark.len() > 3 && before.ends_with(' ') => {
                Some(rest.trim().to_owned())
            }
            _ => None,
        };
        marks.iter().find_map(of).filter(|text| !text.is_empty())
    };
    log.lines().rev().find_map(|line| after(line.trim()))
}

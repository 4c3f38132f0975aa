//! A sched_ext scheduler loaded for a run, until its tasks are back with the kernel's scheduler.
//! The kernel kills the loader when this process ends, and detaches the scheduler when the loader
//! ends, so no crash leaves it loaded.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal, kill_process};

use super::{Loader, SchedExt};
use crate::error::{HostError, Result};
use crate::supervise::ended;
use crate::sys::process;

/// How often the kernel's state is read while something is waited for.
const POLL: Duration = Duration::from_millis(10);
/// The verifier may take seconds, and many times that on an emulated machine.
const LOADING: Duration = Duration::from_secs(90);
/// Grace period of a loader before it is killed.
const ENDING: Duration = Duration::from_secs(10);
/// Timeout for the kernel to take tasks back, and for the loader to say why.
const TAKING_BACK: Duration = Duration::from_secs(30);
/// Timeout for the loader's last output once its scheduler is gone.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// Bytes kept from the end of the loader's output, whose last lines a large machine's dump
/// precedes.
const LOG: u64 = 64 << 10;
/// Longest reason quoted.
const LONGEST_REASON: usize = 400;
/// Exit code of clap and this project for refused input.
const REFUSED: i32 = 2;

/// A loaded scheduler; unloaded on drop.
#[derive(Debug)]
pub struct Loaded {
    kernel: SchedExt,
    loader: Loader,
    child: Child,
    status: Option<ExitStatus>,
    /// Standard output and error of the loader; gone with this process.
    log: File,
    name: String,
    /// [`SchedExt::loads`] before loading: the kernel increments it some time after the scheduler
    /// is enabled.
    loads_before: Option<u64>,
}

impl SchedExt {
    /// Loads a scheduler, and returns once it has all tasks.
    ///
    /// # Errors
    /// As [`SchedExt::check`]; the loader's message; [`HostError::Interrupted`] after a stop.
    /// Nothing is loaded then.
    pub fn load(&self, loader: &Loader, stop: &AtomicBool) -> Result<Loaded> {
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
        // In its own process group: Ctrl-C reaches only this process, which first ends the run.
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
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The loader's warnings, such as limits that it does not support.
    pub fn warnings(&self) -> Vec<String> {
        let log = self.log();
        let warnings = log.lines().filter_map(|line| line.split_once(" WARN "));
        warnings.map(|(_, text)| format!("{}: {}", self.loader.program, text.trim())).collect()
    }

    /// Unloads it, and returns once every task is back with the kernel's scheduler.
    ///
    /// # Errors
    /// [`HostError::Died`] with the loader's message if the scheduler was not loaded throughout;
    /// [`HostError::System`] if the kernel does not detach it.
    pub fn unload(mut self) -> Result<()> {
        let lost = self.lost();
        self.end();
        let lost = lost.or_else(|| {
            // It was loaded a moment ago: a loader that exits on request exits successfully.
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
            let doing = format!("unload {}", self.loader.program);
            let reason = format!("its state is `{}`", self.kernel.state());
            return Err(HostError::system(doing, io::Error::other(reason), help));
        }
        Ok(())
    }

    fn wait_until_enabled(&mut self, stop: &AtomicBool) -> Result<()> {
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
                let doing = format!("load {}", self.loader.program);
                let reason = format!("it is not there after {} s", LOADING.as_secs());
                let help = format!("see what it says: {}", self.loader.command());
                return Err(HostError::system(doing, io::Error::other(reason), help));
            }
            thread::sleep(POLL);
        }
    }

    /// The error of a loader that exited before its scheduler was loaded.
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

    /// Why the loaded scheduler is no longer this one, if so.
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

    /// The loader's last message, which usually gives the cause.
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

    /// Asks the loader to exit, kills it after the grace period, and waits for the kernel.
    fn end(&mut self) {
        if self.has_ended().is_none() {
            if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
                // It has not been reaped, so its id cannot have been reused.
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

    /// Is the kernel still detaching it? A scheduler loaded since by another process does not
    /// count.
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

/// The text after the last of these marks in a log, at the start of a line or of a message after
/// its level.
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

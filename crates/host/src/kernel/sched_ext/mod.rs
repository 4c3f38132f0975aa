//! sched_ext of the running kernel: availability, the loaded scheduler, and loading one for a run.
//! A scheduler that another process has loaded is never unloaded.

mod loaded;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{HostError, Result};

pub use loaded::Loaded;

/// Directory of sched_ext; exists only if the kernel supports it.
const DIRECTORY: &str = "/sys/kernel/sched_ext";
/// The project's own scheduler.
pub const SCX_REVEILLE: &str = "scx_reveille";
/// Environment variable with the path of [`SCX_REVEILLE`], to override the search.
pub const PROGRAM_VARIABLE: &str = "SCX_REVEILLE";

/// A command that loads a scheduler and keeps it loaded until it exits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loader {
    pub program: String,
    pub args: Vec<String>,
}

impl Loader {
    /// The command line, by the program's name.
    pub fn command(&self) -> String {
        [std::slice::from_ref(&self.program), &self.args].concat().join(" ")
    }

    /// Does the kernel's name `ops` belong to this loader? By convention it is the program's name
    /// without `scx_`, optionally followed by a version.
    fn is_called(&self, ops: &str) -> bool {
        let own = self.program.strip_prefix("scx_").unwrap_or(&self.program);
        ops.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with(['_', '-']))
    }
}

/// sched_ext of a kernel, and where to find loaders.
#[derive(Clone, Debug)]
pub struct SchedExt {
    directory: PathBuf,
    may_load: bool,
    /// Path of [`SCX_REVEILLE`], if the user has set it.
    named: Option<PathBuf>,
    /// Directories to search, in order.
    search: Vec<PathBuf>,
}

impl SchedExt {
    /// sched_ext of the running kernel. Loaders are searched beside the running executable, then in
    /// `$PATH`; `$SCX_REVEILLE` overrides the path of the project's own.
    pub fn of_this_kernel() -> SchedExt {
        let own = std::env::current_exe().ok();
        let beside = own.as_deref().and_then(Path::parent).map(Path::to_owned);
        let path = std::env::var_os("PATH").unwrap_or_default();
        SchedExt {
            directory: DIRECTORY.into(),
            may_load: rustix::process::geteuid().is_root(),
            named: std::env::var_os(PROGRAM_VARIABLE).map(PathBuf::from),
            search: beside.into_iter().chain(std::env::split_paths(&path)).collect(),
        }
    }

    /// Refuses what cannot be loaded now. Loads nothing.
    ///
    /// # Errors
    /// [`HostError::Input`]: no sched_ext, not root, no such program, or another scheduler is
    /// loaded, with its name.
    pub fn check(&self, loader: &Loader) -> Result<()> {
        self.program(loader).map(drop)
    }

    /// Path of the loader, if its scheduler can be loaded now.
    fn program(&self, loader: &Loader) -> Result<PathBuf> {
        if !self.directory.is_dir() {
            let release = rustix::system::uname().release().to_string_lossy().into_owned();
            let directory = self.directory.display();
            return Err(HostError::input(
                format!("this kernel ({release}) has no sched_ext: {directory} is missing"),
                "boot Linux 6.12 or newer with CONFIG_SCHED_CLASS_EXT=y, or predict it with \
                 `--on sim`",
            ));
        }
        if !self.may_load {
            return Err(HostError::input(
                format!("only root may load {}", loader.program),
                "run it with sudo, or predict it with `--on sim`",
            ));
        }
        let program = self.find(&loader.program)?;
        if let Some(other) = self.occupant() {
            return Err(HostError::input(
                format!("another sched_ext scheduler is loaded: {other}"),
                "end it first; `systemctl list-units 'scx*'` may know it",
            ));
        }
        Ok(program)
    }

    fn find(&self, name: &str) -> Result<PathBuf> {
        let fix = match name {
            SCX_REVEILLE => format!(
                "build it with `make scx`, and put it beside reveille or on $PATH, or name it: \
                 {PROGRAM_VARIABLE}=path/to/{SCX_REVEILLE}"
            ),
            _ => "put it beside reveille or on $PATH".to_owned(),
        };
        if let Some(named) = self.named.as_ref().filter(|_| name == SCX_REVEILLE) {
            let problem = format!("{PROGRAM_VARIABLE}={} is no program", named.display());
            return if is_program(named) {
                Ok(named.clone())
            } else {
                Err(HostError::input(problem, fix))
            };
        }
        let mut found = self.search.iter().map(|directory| directory.join(name));
        found
            .find(|path| is_program(path))
            .ok_or_else(|| HostError::input(format!("{name} is not found"), fix))
    }

    /// The loaded scheduler, by name or else by state.
    fn occupant(&self) -> Option<String> {
        let state = self.state();
        (state != "disabled").then(|| self.ops().unwrap_or(format!("its state is `{state}`")))
    }

    /// `disabled`, `enabling`, `enabled` or `disabling`.
    fn state(&self) -> String {
        self.read("state").unwrap_or_else(|| "unknown".to_owned())
    }

    /// Name of the scheduler that is loaded.
    fn ops(&self) -> Option<String> {
        self.read("root/ops")
    }

    /// Number of schedulers loaded since boot, where the kernel reports it.
    fn loads(&self) -> Option<u64> {
        self.read("enable_seq")?.parse().ok()
    }

    fn read(&self, file: &str) -> Option<String> {
        let text = fs::read_to_string(self.directory.join(file)).ok()?;
        Some(text.trim().to_owned())
    }
}

fn is_program(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

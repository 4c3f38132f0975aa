//! Runs policy files in a child process, so that a crash or a loop is confined to it. The child is
//! this command re-executed with the same arguments. The parent forwards signals, reports what
//! ended the child, and removes what it left; the child ends with its parent, or when one decision
//! takes too long.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::{sleep, spawn};
use std::time::{Duration, SystemTime};

use reveille_host::{HostError, end_at_faults};
use reveille_policy::{Draft, Message, PolicyFile};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpid, getppid, kill_process, kill_process_group,
    set_parent_process_death_signal, waitid,
};

use crate::errors::{CliError, INTERRUPTED, Result, say};

/// The first argument that turns the command into the child; for internal use.
const CHILD: &str = "__policy-child";
/// How often the child checks its parent and its running decision.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);
/// How long one decision may take; typical is less than a microsecond.
const DECISION: Duration = Duration::from_secs(2);
/// The child's exit code if the first of its files loops; the n-th file's is n - 1 more.
const LOOPS: u8 = 200;

pub struct Child {
    /// Directory it compiles in; removed once all files are loaded.
    directory: PathBuf,
    /// The child has created the directory.
    made: AtomicBool,
    parent: Pid,
    files: Mutex<Vec<PolicyFile>>,
}

static SELF: OnceLock<Child> = OnceLock::new();

/// In the child: starts the watchdog, and returns the command line without `CHILD`.
pub fn enter() -> Option<Vec<OsString>> {
    let mut args = std::env::args_os();
    let program = args.next()?;
    if args.next()? != CHILD {
        return None;
    }
    let directory = PathBuf::from(args.next()?);
    let parent = Pid::from_raw(args.next()?.to_str()?.parse().ok()?)?;
    let child = SELF.get_or_init(|| Child {
        directory,
        made: AtomicBool::new(false),
        parent,
        files: Mutex::default(),
    });
    end_at_faults();
    spawn(|| watch(child));
    Some(std::iter::once(program).chain(args).collect())
}

pub fn child() -> Option<&'static Child> {
    SELF.get()
}

fn watch(child: &Child) {
    let too_many = DECISION.as_millis() / BETWEEN_LOOKS.as_millis();
    loop {
        if getppid() != Some(child.parent) {
            child.clear();
            // Kills everything it started, such as a compiler, and itself.
            let _ = kill_process_group(getpid(), Signal::KILL);
            std::process::exit(1);
        }
        let files = child.files.lock().unwrap_or_else(PoisonError::into_inner);
        let loops = files.iter().position(|f| u128::from(f.longest_decision()) >= too_many);
        if let Some(file) = loops {
            // The parent reports it: in this process the looping decision still holds its locks.
            std::process::exit(i32::from(LOOPS.saturating_add(file as u8)));
        }
        drop(files);
        sleep(BETWEEN_LOOKS);
    }
}

/// Shows one message of the compiler on standard error.
pub fn show(message: &Message) {
    let Message { file, line, column, kind, text, help } = message;
    say(format_args!("{file}:{line}:{column}: {}: {text}", kind.name()));
    if !help.is_empty() {
        say(format_args!("  help: {help}"));
    }
}

impl Child {
    /// Compiles a file in a directory of its own, since `dlopen` identifies libraries by path.
    pub fn compile(&self, file: &Path) -> Result<Draft> {
        let cannot = |error| {
            let doing = format!("make a directory in {}", self.directory.display());
            HostError::system(doing, error, "free space there, or set TMPDIR to another directory")
        };
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner).len();
        if !self.made.load(Ordering::Relaxed) {
            DirBuilder::new().mode(0o700).create(&self.directory).map_err(cannot)?;
            self.made.store(true, Ordering::Relaxed);
        }
        let own = self.directory.join(files.to_string());
        fs::create_dir(&own).map_err(cannot)?;
        Ok(Draft::compile(file, &own)?)
    }

    /// Compiles and loads a file, and shows the compiler's warnings on standard error.
    pub fn load(&self, file: &Path) -> Result<PolicyFile> {
        let draft = self.compile(file)?;
        let loaded = self.keep(&draft)?;
        draft.messages.iter().for_each(show);
        Ok(loaded)
    }

    pub fn keep(&self, draft: &Draft) -> Result<PolicyFile> {
        let file = draft.load()?;
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.push(file.clone());
        Ok(file)
    }

    /// Call when all files are loaded: removes the directory and asks the kernel to kill the child
    /// when its parent dies.
    pub fn die_with_parent(&self) {
        self.clear();
        // The watchdog checks for this too.
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
    }

    fn clear(&self) {
        if self.made.load(Ordering::Relaxed) {
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}

/// Process group of the child, to which signals are forwarded.
static GROUP: AtomicI32 = AtomicI32::new(0);

/// Re-executes this command as the child and waits for it. `files` are those it loads.
pub fn run(files: &[&str]) -> Result<ExitCode> {
    let cannot = |error| HostError::system("start a process for the policy", error, "try again");
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let own = std::process::id();
    let name = format!("reveille-policy-{own}-{:x}", now.as_nanos());
    let directory = std::env::temp_dir().join(name);
    let program = std::env::current_exe().map_err(cannot)?;
    let mut child = Command::new(program)
        .arg(CHILD)
        .arg(&directory)
        .arg(own.to_string())
        .args(std::env::args_os().skip(1))
        .stdin(Stdio::null())
        // So that a terminal's Ctrl-C does not reach it twice.
        .process_group(0)
        .spawn()
        .map_err(cannot)?;
    let group = Pid::from_child(&child);
    if GROUP.swap(group.as_raw_pid(), Ordering::Relaxed) == 0 {
        ctrlc::set_handler(|| {
            if let Some(group) = Pid::from_raw(GROUP.load(Ordering::Relaxed)) {
                // Until the child has its handler: a background job ignores SIGINT, not SIGTERM.
                let _ = kill_process(group, Signal::TERM);
            }
        })?;
    }
    // An unreaped child keeps its process group id reserved.
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while waitid(WaitId::Pid(group), ended).is_err_and(|e| e == rustix::io::Errno::INTR) {}
    let _ = kill_process_group(group, Signal::KILL);
    let status = child.wait().map_err(cannot)?;
    let _ = fs::remove_dir_all(&directory);
    code(status, files)
}

/// The child's exit code, or what ended it.
fn code(status: ExitStatus, files: &[&str]) -> Result<ExitCode> {
    const PANIC: i32 = 101;
    let looping = status.code().and_then(|code| code.checked_sub(i32::from(LOOPS)));
    if let Some(file) = looping.and_then(|i| files.get(usize::try_from(i).ok()?)) {
        return Err(CliError::PolicyEnded {
            files: vec![(*file).to_owned()],
            how: format!("one decision takes longer than {} s", DECISION.as_secs()),
            help: "look for a loop that does not end, and bound it: POLICY_FOR(i, n)",
        });
    }
    if let Some(code) = status.code().filter(|code| *code != PANIC) {
        return Ok(ExitCode::from(code as u8));
    }
    let signal = status.signal().and_then(Signal::from_named_raw);
    if [Signal::INT, Signal::TERM, Signal::HUP].into_iter().any(|s| Some(s) == signal) {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let (how, help) = match signal {
        Some(Signal::SEGV | Signal::BUS) => (
            "it read or wrote memory that is not there, or its calls never end (SIGSEGV)",
            "`waker` and world_curr() are null for the idle task: test them first; bound recursion",
        ),
        Some(Signal::FPE) => ("it divided by zero (SIGFPE)", "test the divisor first"),
        Some(Signal::ILL | Signal::TRAP) => (
            "it asked for a CPU, LLC, position or thread that is not there, or divided by what the \
             compiler knows to be zero (SIGILL)",
            "test numbers for POLICY_NONE, positions against world_llc_weight(), and divisors",
        ),
        Some(Signal::KILL) => ("its run was killed (SIGKILL)", "free memory, and try again"),
        None | Some(Signal::ABORT) => (
            "its run broke down: it wrote over the simulator's memory",
            "write only through the functions of docs/policy.md",
        ),
        Some(_) => ("a signal ended its run", "try again"),
    };
    let how = match files {
        [_] => how.to_owned(),
        _ => format!("in one of them: {how}"),
    };
    let files = files.iter().map(|&file| file.to_owned()).collect();
    Err(CliError::PolicyEnded { files, how, help })
}

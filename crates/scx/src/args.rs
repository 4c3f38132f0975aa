//! The command line, with the conventions of sched_ext schedulers.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use reveille_policy::SCX_DEFAULT_BASE;

/// A sched_ext scheduler that takes the placement decisions of Reveille's policy/
///
/// Without a command it replaces the kernel's scheduler for all normal tasks until it is
/// ended: SIGINT, SIGTERM and SIGHUP return every task to the kernel's own scheduler, and
/// so does its death by SIGKILL. It needs root and Linux 6.12 or newer with sched_ext
/// (CONFIG_SCHED_CLASS_EXT=y); CPU quotas (cpu.max) need 6.17. What the running kernel
/// lacks is said at the start.
///
/// Where a waking task runs is decided by the code that `reveille` simulates, with the
/// same names for kernels and features. Tasks of a CPU run in order of weighted virtual
/// time; features of the kernel's own time sharing have no meaning here, and setting
/// them is refused.
///
/// `systemctl enable --now scx_reveille` starts it now and at boot, with the options from
/// SCX_REVEILLE_OPTIONS= in /etc/default/scx_reveille.
///
/// --policy loads a policy file that `reveille compare --policy` simulates (docs/policy.md).
///
/// Exit codes: 0 ended as asked; 1 loaded, then ended by the kernel or by another error, or
/// output could not be written, or replayed decisions differ; 2 refused, nothing was loaded
/// (a wrong option, a file that cannot be read or written, another scheduler, a kernel that
/// does not take it); 3 ended by SysRq-S.
#[derive(Parser)]
#[command(name = "scx_reveille", version, args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub run: RunArgs,
    /// Log more: -v what is done, -vv what libbpf does
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub verbose: u8,
}

#[derive(Subcommand)]
pub enum Command {
    /// Set and unset features of the scheduler that runs: +SWQUEUE -SIS_UTIL
    Set {
        /// +FEATURE or -FEATURE, separated by blanks or commas
        #[arg(required = true, allow_hyphen_values = true, trailing_var_arg = true)]
        edits: Vec<String>,
    },
    /// Compile a policy file, for --policy on a machine without clang
    ///
    /// It needs clang 19 or newer (SCX_CLANG= names one), and neither root nor sched_ext.
    /// The object fits this build of scx_reveille only.
    Compile {
        /// A C file that defines reveille_select() (docs/policy.md)
        file: PathBuf,
        /// The object to write [default: FILE with .o in place of .c]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Write man pages and shell completions below a directory, for `make install`
    #[command(hide = true)]
    Generate {
        /// Such as /usr/local/share
        share: PathBuf,
    },
    /// Take recorded decisions again with the native build: all must be the same
    Replay {
        /// What --record wrote
        file: PathBuf,
        /// Print JSON, and nothing else, on standard output
        #[arg(long)]
        json: bool,
    },
}

#[derive(clap::Args)]
pub struct RunArgs {
    /// Kernel baseline whose placement is used; `reveille policies` lists them
    #[arg(long, value_name = "NAME", default_value = SCX_DEFAULT_BASE)]
    pub base: String,
    /// Edits of the baseline: +FEATURE adds one, -FEATURE removes one; separate several
    /// by commas
    #[arg(long, value_name = "EDITS", allow_hyphen_values = true)]
    pub with: Option<String>,
    /// Let this policy file select the CPU of a wakeup (docs/policy.md): a C file, which needs
    /// clang here, or what `scx_reveille compile` has made of one
    #[arg(long, value_name = "FILE", conflicts_with_all = ["record", "monitor", "help_stats"])]
    pub policy: Option<PathBuf>,
    /// How long a task runs before others of its CPU have their turn, in us, 100 to
    /// 100000 [default: the baseline's base slice, 2800 from 8 CPUs on; before v6.12 its minimal
    /// granularity, 3000]
    #[arg(long, value_name = "US")]
    pub slice_us: Option<u64>,
    /// Virtual time that a task which has slept may be ahead of its queue, in us, 0 to
    /// 1000000; GENTLE_FAIR_SLEEPERS halves it [default: two slices; before v6.12 eight]
    #[arg(long, value_name = "US")]
    pub sleeper_credit_us: Option<u64>,
    /// With WAKEUP_PREEMPTION, virtual time that a wakee must be ahead to take the CPU
    /// from the running task, in us, 0 to 1000000 [default: as sched_wakeup_granularity]; from
    /// v6.12 on it is a slice instead, and at most one other task may wait there
    #[arg(long, value_name = "US")]
    pub wakeup_granularity_us: Option<u64>,
    /// CPU time that a CPU draws from its group's quota at a time, in us, 1000 to 100000
    #[arg(long, value_name = "US", default_value_t = 5000)]
    pub bandwidth_slice_us: u64,
    /// CPUs per shard of a cache's shared queue, 1 to 512, with SWQUEUE_SHARD
    #[arg(long, value_name = "CPUS", default_value_t = 6)]
    pub swqueue_shard: u32,
    /// The kernel ends the scheduler if a task waits longer than this, in ms, 4000 to 30000; a
    /// task that has waited for a quarter of it gets a short turn
    #[arg(long, value_name = "MS", default_value_t = 30000)]
    pub watchdog_ms: u32,
    /// End after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub exit_after: Option<f64>,
    /// Load, and print what happened every so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub stats: Option<f64>,
    /// Do not load; print every so many seconds what the scheduler that runs does
    #[arg(long, value_name = "SECONDS", value_parser = seconds, conflicts_with_all = ["stats", "exit_after", "record"])]
    pub monitor: Option<f64>,
    /// Describe every figure of --stats and --monitor
    #[arg(long)]
    pub help_stats: bool,
    /// Statistics as JSON, one object a line, and nothing else, on standard output
    #[arg(long)]
    pub json: bool,
    /// Write every decision with all that it was taken from to this file, for `replay`
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// With --record, end after so many decisions
    #[arg(long, value_name = "N", requires = "record")]
    pub record_limit: Option<u64>,
}

/// A time in seconds that makes sense to wait for.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(s) if (0.1..=1e7).contains(&s) => Ok(s),
        Ok(_) => Err("seconds from 0.1 to 10000000 are expected".to_owned()),
        Err(_) => Err("a number of seconds is expected, such as 1 or 0.5".to_owned()),
    }
}

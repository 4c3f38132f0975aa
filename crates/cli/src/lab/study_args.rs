//! Arguments of `reveille study` and `reveille compare`. Text that study files also hold (loads,
//! durations, policies, parameters) is passed on unparsed, so the same rules check both.

use std::path::PathBuf;
use std::str::FromStr;

use reveille_study::{
    DEFAULT_DURATION, DEFAULT_HOST_DURATION, DEFAULT_HOST_WARMUP, DEFAULT_REPEATS, DEFAULT_SEED,
    DEFAULT_WARMUP, On,
};

use crate::watched::JobsArg;

#[derive(clap::Args)]
pub struct StudyArgs {
    /// A study that `reveille studies` lists, or the path of a .toml file
    #[arg(value_name = "NAME|FILE.toml", required_unless_present_any = ["all", "baselines"])]
    pub study: Option<String>,
    /// Run every study of changes that `reveille studies` lists, sum their scores, and write the
    /// fidelity record
    #[arg(long, conflicts_with = "study")]
    pub all: bool,
    /// Run the study of published absolute figures, and write them with the model's figures to this
    /// file [default: docs/baselines.md]
    #[arg(
        long, value_name = "FILE", num_args = 0..=1, require_equals = true,
        default_missing_value = "docs/baselines.md",
        conflicts_with_all = ["study", "all", "fidelity", "on", "machine"]
    )]
    pub baselines: Option<PathBuf>,
    /// Where --all writes the fidelity record [default: docs/fidelity.md]
    #[arg(long, value_name = "FILE", conflicts_with = "study")]
    pub fidelity: Option<PathBuf>,
    /// Runs of each load under each policy, overriding the study
    #[arg(long, value_name = "N")]
    pub repeats: Option<u32>,
    /// Random seed, overriding the study
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Where to run, overriding the study: sim, host (measure on this host's kernel, one run at a
    /// time), or sim,host (predict and measure, side by side)
    #[arg(long, value_name = "WHERE", conflicts_with = "all", value_parser = On::from_str)]
    pub on: Option<On>,
    /// Machine to predict for, overriding the study
    #[arg(long, value_name = "NAME|FILE", conflicts_with = "all")]
    pub machine: Option<String>,
    #[command(flatten)]
    pub run: RunArgs,
}

#[derive(clap::Args)]
pub struct CompareArgs {
    /// Where to run: sim, host (measure on this host's kernel, one run at a time), or sim,host
    /// (predict and measure, side by side) [default: sim]
    #[arg(long, value_name = "WHERE", value_parser = On::from_str)]
    pub on: Option<On>,
    /// A machine that `reveille machines` lists, `host`, or a path (.toml, or hwloc's .xml);
    /// defaults to `host` with --on host or sim,host
    #[arg(long, value_name = "NAME|FILE", required_unless_present = "on")]
    pub machine: Option<String>,
    /// A workload that `reveille workloads` lists, or a path (.toml, rt-app's .json, or a
    /// trace of the scheduler as .txt)
    #[arg(long, value_name = "NAME|FILE")]
    pub workload: String,
    /// Loads in the workload's unit, separated by commas: 56,112
    #[arg(long, value_name = "N,…", allow_hyphen_values = true)]
    pub load: String,
    /// Kernel baseline; `host` is that of the running kernel, and the default with --on. scx:v6.2
    /// loads scx_reveille with the v6.2 placement on the host, for both sides
    #[arg(long, value_name = "NAME", required_unless_present = "on")]
    pub base: Option<String>,
    /// A variant to compare with the baseline [default: none, the baseline alone]. +FEATURE adds a
    /// feature, -FEATURE removes one, burst=100ms changes a setting of the task group, cpus=0-1
    /// restricts it to these CPUs; separate several edits by commas, and repeat the option for
    /// several variants. v6.12 is another kernel; v6.12,+FEATURE is that kernel with edits.
    /// scx:+FEATURE is the same edit in scx_reveille, which is loaded on the host for the variant's
    /// runs (needs root)
    #[arg(long, value_name = "EDITS|KERNEL", allow_hyphen_values = true)]
    pub with: Vec<String>,
    /// A C file that chooses the wakee's CPU in place of the baseline's rules: a variant like those
    /// of --with, optionally followed by edits. `reveille policy new` writes a template
    #[arg(long, value_name = "FILE.c[,EDITS]")]
    pub policy: Vec<String>,
    /// A parameter of the workload; repeat the option for several
    #[arg(long, value_name = "NAME=VALUE")]
    pub param: Vec<String>,
    /// A metric of the workload, an explaining number or a task group's figure, by name or its
    /// first words; repeat the option for several [default: the workload's first metric]
    #[arg(long, value_name = "NAME")]
    pub metric: Vec<String>,
    /// A task group with a limit: quota=100ms,period=100ms,burst=0ms,phase=97ms and, for
    /// several, name=app,parent=all,tasks=worker+message; repeat the option, parents first
    #[arg(long, value_name = "KEY=VALUE,…")]
    pub group: Vec<String>,
    /// CPU time that a CPU draws from its task group's quota at once (the bandwidth slice)
    /// [default: 5ms]
    #[arg(long, value_name = "TIME")]
    pub slice: Option<String>,
    /// Runs of each load under each policy
    #[arg(long, value_name = "N", default_value_t = DEFAULT_REPEATS)]
    pub repeats: u32,
    /// Random seed
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SEED)]
    pub seed: u64,
    #[arg(long, value_name = "TIME", help = warmup_help())]
    pub warmup: Option<String>,
    #[arg(long, value_name = "TIME", help = duration_help())]
    pub duration: Option<String>,
    #[command(flatten)]
    pub run: RunArgs,
}

fn warmup_help() -> String {
    format!(
        "Time before measuring starts, virtual or real [default: {DEFAULT_WARMUP}; on the host \
         {DEFAULT_HOST_WARMUP}]"
    )
}

fn duration_help() -> String {
    format!(
        "Time measured, virtual or real [default: {DEFAULT_DURATION}; on the host \
         {DEFAULT_HOST_DURATION}]"
    )
}

#[derive(clap::Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub jobs: JobsArg,
    /// Print JSON, and nothing else, on standard output
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print CSV, and nothing else, on standard output
    #[arg(long)]
    pub csv: bool,
    /// Also write a page with plots to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Omit the numbers that explain each row
    #[arg(long)]
    pub no_explain: bool,
}

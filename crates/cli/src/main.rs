//! The `reveille` command: parses arguments, runs, and prints in the form asked for. The crates
//! below compute every figure.

mod args;
mod errors;
mod generate;
mod help;
mod host;
mod isolated;
mod lab;
mod limits;
mod list;
mod output;
mod output_file;
mod page;
mod progress;
mod shown;
mod signals;
mod this_host;
mod watched;

use std::process::ExitCode;

use clap::FromArgMatches;

use crate::args::{Args, Command};
use crate::errors::{CliError, Result};
use crate::host::{bench, calibrate};
use crate::lab::{fit, policy, score, sensitivity, study, sweep};
use crate::limits::{fleet, import, plan, record, show, usage};

fn main() -> ExitCode {
    reveille_host::cgroup::abort_at_panic();
    // Before any other set-up: the child must be single-threaded.
    let first = std::env::args_os().nth(1);
    let is = |command: &str| first.as_deref().is_some_and(|arg| arg == command);
    if is(reveille_host::CHILD_COMMAND) {
        return reveille_host::child_main();
    }
    if is(reveille_host::cgroup::TIDY_COMMAND) {
        return reveille_host::cgroup::tidy_main();
    }
    let _tidied = reveille_host::cgroup::can_tidy();
    errors::set_style();
    let args = isolated::enter().unwrap_or_else(|| std::env::args_os().collect());
    let given = help::command().try_get_matches_from(args);
    let args =
        given.and_then(|given| Args::from_arg_matches(&given)).map_err(CliError::of_command_line);
    args.and_then(|args| run(args.command)).unwrap_or_else(errors::report)
}

fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Study(args) => study::study(&args),
        Command::Compare(args) => study::compare(&args),
        Command::Sweep(args) => sweep::sweep(&args),
        Command::Merge(args) => sweep::merge(&args),
        Command::Score(args) => score::score(&args),
        Command::Sensitivity(args) => sensitivity::sensitivity(&args),
        Command::Fit(args) => fit::fit(&args),
        Command::Calibrate(args) => calibrate::calibrate(&args),
        Command::Plan(args) => plan::plan(&args),
        Command::Fleet(args) => fleet::fleet(&args),
        Command::Bench(args) => bench::bench(&args),
        Command::Generate(args) => generate::generate(&args, help::command()),
        Command::Record(args) => record::usage_record(&args),
        Command::Import(args) => import::usage_import(&args),
        Command::Show(args) => show::usage_show(&args),
        Command::Usage { command } => usage::usage(&command),
        Command::Studies(args) => list::studies(&args),
        Command::Machines(args) => list::machines(&args),
        Command::Workloads(args) => list::workloads(&args),
        Command::Policy { command } => policy::policy(&command),
        Command::Policies(args) => list::policies(&args),
    }
}

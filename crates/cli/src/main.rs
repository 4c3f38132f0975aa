//! The `reveille` command: parses arguments, runs, and prints in the form asked for. The crates
//! below compute every figure.

mod args;
mod bench;
mod calibrate_cmd;
mod errors;
mod fit_cmd;
mod fleet_cmd;
mod generate;
mod help;
mod host_study;
mod isolated;
mod list;
mod output;
mod output_file;
mod page;
mod plan_act;
mod plan_cmd;
mod policy_cmd;
mod progress;
mod record_prometheus;
mod score_cmd;
mod sensitivity_cmd;
mod shown;
mod signals;
mod study_cmd;
mod sweep_cmd;
mod usage_cmd;
mod usage_import;
mod usage_record;
mod usage_show;

use std::process::ExitCode;

use clap::FromArgMatches;

use crate::args::{Args, Command};
use crate::errors::CliError;

fn main() -> ExitCode {
    // Before any other set-up: the child must be single-threaded.
    if std::env::args_os().nth(1).is_some_and(|arg| arg == reveille_host::CHILD_COMMAND) {
        return reveille_host::child_main();
    }
    errors::set_style();
    reveille_host::cgroup::remove_at_panic();
    let args = isolated::enter().unwrap_or_else(|| std::env::args_os().collect());
    let given = help::command().get_matches_from(args);
    let args = Args::from_arg_matches(&given).unwrap_or_else(|error| error.exit());
    run(args.command).unwrap_or_else(errors::report)
}

fn run(command: Command) -> Result<ExitCode, CliError> {
    match command {
        Command::Study(args) => study_cmd::study(&args),
        Command::Compare(args) => study_cmd::compare(&args),
        Command::Sweep(args) => sweep_cmd::sweep(&args),
        Command::Merge(args) => sweep_cmd::merge(&args),
        Command::Score(args) => score_cmd::score(&args),
        Command::Sensitivity(args) => sensitivity_cmd::sensitivity(&args),
        Command::Fit(args) => fit_cmd::fit(&args),
        Command::Calibrate(args) => calibrate_cmd::calibrate(&args),
        Command::Plan(args) => plan_cmd::plan(&args),
        Command::Fleet(args) => fleet_cmd::fleet(&args),
        Command::Bench(args) => bench::bench(&args),
        Command::Generate(args) => generate::generate(&args),
        Command::Record(args) => usage_record::usage_record(&args),
        Command::Import(args) => usage_import::usage_import(&args),
        Command::Show(args) => usage_show::usage_show(&args),
        Command::Usage { command } => usage_cmd::usage(&command),
        Command::Studies(args) => list::studies(&args),
        Command::Machines(args) => list::machines(&args),
        Command::Workloads(args) => list::workloads(&args),
        Command::Policy { command } => policy_cmd::policy(&command),
        Command::Policies(args) => list::policies(&args),
    }
}

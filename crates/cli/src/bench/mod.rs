//! `reveille bench`: the benchmarks of this field on this host's kernel, each with the
//! options of the program whose name it bears.

mod place;
mod schbench;

use std::process::ExitCode;

use clap::Subcommand;

use crate::errors::CliError;

/// The benchmarks.
#[derive(Subcommand)]
pub enum BenchCommand {
    /// schbench, in any of its three forms: message threads wake workers that think; how
    /// long do the woken wait for a CPU?
    Schbench(schbench::SchbenchArgs),
}

/// Runs one.
pub fn bench(command: &BenchCommand) -> Result<ExitCode, CliError> {
    match command {
        BenchCommand::Schbench(args) => schbench::run(args),
    }
}

//! `reveille bench`: the benchmarks of this field on this host's kernel, each with the
//! options of the program whose name it bears.

mod place;

use std::process::ExitCode;

use clap::Subcommand;

use crate::errors::CliError;

/// The benchmarks.
#[derive(Subcommand)]
pub enum BenchCommand {}

/// Runs one.
pub fn bench(command: &BenchCommand) -> Result<ExitCode, CliError> {
    match *command {}
}

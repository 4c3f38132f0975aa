//! `reveille usage`: recordings of what CPU time a group of tasks asks for.

use std::process::ExitCode;

use clap::Subcommand;

use crate::errors::CliError;
use crate::usage_record::{UsageRecordArgs, usage_record};

/// What to do with recordings.
#[derive(Subcommand)]
pub enum UsageCommand {
    /// Record a live task group's demand for CPU time
    Record(UsageRecordArgs),
}

/// Does it.
pub fn usage(command: &UsageCommand) -> Result<ExitCode, CliError> {
    match command {
        UsageCommand::Record(args) => usage_record(args),
    }
}

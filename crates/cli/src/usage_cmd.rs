//! `reveille usage`: the former name of `record`, `import` and `show`.

use std::process::ExitCode;

use clap::Subcommand;

use crate::errors::CliError;
use crate::usage_import::{UsageImportArgs, usage_import};
use crate::usage_record::{UsageRecordArgs, usage_record};
use crate::usage_show::{UsageShowArgs, usage_show};

/// What to do with recordings.
#[derive(Subcommand)]
pub enum UsageCommand {
    Record(Box<UsageRecordArgs>),
    /// Make a recording of a table of requests, or of what Prometheus keeps of a container
    Import(UsageImportArgs),
    /// Show a recording at a glance, and what it is too short to say
    Show(UsageShowArgs),
}

/// Does it.
pub fn usage(command: &UsageCommand) -> Result<ExitCode, CliError> {
    match command {
        UsageCommand::Record(args) => usage_record(args),
        UsageCommand::Import(args) => usage_import(args),
        UsageCommand::Show(args) => usage_show(args),
    }
}

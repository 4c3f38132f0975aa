//! `reveille bench hackbench`: options and lines of rt-tests hackbench 2.x.

use std::process::ExitCode;

use clap::Args;
use reveille_host::peers::{Hackbench, HackbenchRun, Mode, Transport};

use super::peer_output::{OutputArgs, run_and_print, tasks_text};
use super::place::PlaceArgs;
use crate::errors::CliError;

#[derive(Args)]
pub struct HackbenchArgs {
    /// Groups
    #[arg(short, long, value_name = "NUM", default_value_t = 10)]
    groups: u32,
    /// Senders of each group, and receivers
    #[arg(short, long, value_name = "NUM", default_value_t = 20)]
    fds: u32,
    /// Messages that each sender sends to each receiver
    #[arg(short, long, value_name = "LOOPS", default_value_t = 100)]
    loops: u32,
    /// Size of a message in bytes
    #[arg(short = 's', long = "datasize", value_name = "SIZE", default_value_t = 100)]
    bytes: u32,
    /// Send through pipes instead of Unix sockets
    #[arg(short, long, conflicts_with = "inet")]
    pipe: bool,
    /// Send through TCP connections over loopback instead of Unix sockets
    #[arg(short, long)]
    inet: bool,
    /// Threads instead of processes
    #[arg(short = 'T', long)]
    threads: bool,
    /// Processes: the default
    #[arg(short = 'P', long, visible_alias = "processes", conflicts_with = "threads")]
    process: bool,
    /// Put the main task under SCHED_FIFO once all others are started
    #[arg(short = 'F', long)]
    fifo: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    place: PlaceArgs,
}

pub fn hackbench(args: &HackbenchArgs) -> Result<ExitCode, CliError> {
    let transport = match (args.pipe, args.inet) {
        (true, _) => Transport::Pipe,
        (_, true) => Transport::Inet,
        _ => Transport::Socket,
    };
    let job = Hackbench {
        groups: args.groups,
        fds: args.fds,
        loops: args.loops,
        bytes: args.bytes,
        transport,
        mode: if args.threads { Mode::Thread } else { Mode::Process },
        fifo: args.fifo,
    };
    run_and_print("hackbench", &args.place, &args.output, job, text)
}

fn text(job: &Hackbench, run: &HackbenchRun) -> String {
    let mode = match job.mode {
        Mode::Process => "process",
        Mode::Thread => "threaded",
    };
    let fds = 2 * u64::from(job.fds);
    let end = run.senders_end_ns;
    format!(
        "Running in {mode} mode with {} groups using {fds} file descriptors each (== {} tasks)\n\
         Each sender will pass {} messages of {} bytes\n\
         Time: {}.{:03}\n\n\
         messages    {}, {:.0}/s\n\
         senders     end after {:.3} to {:.3} s, median {:.3} s\n{}",
        job.groups,
        u64::from(job.groups) * fds,
        job.loops,
        job.bytes,
        run.elapsed_ns / 1_000_000_000,
        run.elapsed_ns / 1_000_000 % 1000,
        run.received,
        run.messages_per_s,
        end.min / 1e9,
        end.max / 1e9,
        end.median / 1e9,
        tasks_text(&run.tasks),
    )
}

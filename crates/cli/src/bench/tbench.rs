//! `reveille bench tbench`: lines of tbench of dbench 4; clients and servers are started
//! together, so that there is no server to name.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use reveille_host::peers::{Second, Tbench, TbenchRun};

use super::peer_output::{OutputArgs, pairs_text, parse_seconds, run_and_print, span, tasks_text};
use super::place::PlaceArgs;
use crate::errors::CliError;

/// Warm-up as a part of the time measured, as in the original.
const WARMUP_PART: u64 = 5;

#[derive(Args)]
pub struct TbenchArgs {
    /// Clients, each with a server of its own
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    clients: u32,
    /// Seconds to measure
    #[arg(short = 't', long = "timelimit", value_name = "S", default_value = "60",
          value_parser = parse_seconds)]
    measure_ns: u64,
    /// Seconds to run before [default: a fifth of those to measure]
    #[arg(long = "warmup", value_name = "S", value_parser = parse_seconds)]
    warmup_ns: Option<u64>,
    /// A load file of dbench 4 (its client.txt) [default: a mix of reads, writes and small
    /// requests, see `reveille workloads tbench`]
    #[arg(long, value_name = "FILE")]
    loadfile: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    place: PlaceArgs,
}

pub fn tbench(args: &TbenchArgs) -> Result<ExitCode, CliError> {
    let warmup_ns = args.warmup_ns.unwrap_or(args.measure_ns / WARMUP_PART);
    let job = Tbench {
        clients: args.clients,
        load_file: args.loadfile.clone(),
        span: span(warmup_ns, args.measure_ns),
    };
    run_and_print("tbench", &args.place, &args.output, job, text)
}

fn text(job: &Tbench, run: &TbenchRun) -> String {
    let clients = job.clients;
    let mut text = String::new();
    seconds(&mut text, clients, "warmup ", &run.timed.warmup);
    seconds(&mut text, clients, "execute", &run.timed.seconds);
    text.push_str("\n Operation      Count    AvgLat    MaxLat\n");
    text.push_str(" ----------------------------------------\n");
    for operation in &run.operations_by_kind {
        let (name, count) = (&operation.name, operation.count);
        let (mean, max) = (operation.mean_ns / 1e6, operation.max_ns as f64 / 1e6);
        let _ = writeln!(text, " {name:<12} {count:>7} {mean:>9.3} {max:>9.3}");
    }
    let _ = writeln!(
        text,
        "\nThroughput {:.3} MB/sec  {clients} clients  {clients} procs  max_latency={:.3} ms\n",
        run.mb_per_s,
        run.longest_ns as f64 / 1e6
    );
    text + &pairs_text("client", "MB/s", 1e6, &run.timed) + "\n" + &tasks_text(&run.tasks)
}

/// A line for each second, with the throughput of that second.
fn seconds(text: &mut String, clients: u32, phase: &str, seconds: &[Second]) {
    let mut elapsed_ns = 0;
    for second in seconds {
        elapsed_ns += second.elapsed_ns;
        let _ = writeln!(
            text,
            "{clients:>4}  {:>7.2} MB/sec  {phase} {:>3.0} sec  latency {:.3} ms",
            second.total_per_s / 1e6,
            elapsed_ns as f64 / 1e9,
            second.longest_ns.unwrap_or(0) as f64 / 1e6
        );
    }
}

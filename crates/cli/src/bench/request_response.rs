//! `reveille bench tcp_rr` and `udp_rr`: request and response as netperf's tests of these
//! names have them, with any number of clients at once.

use std::process::ExitCode;

use clap::Args;
use reveille_host::peers::{Protocol, RequestResponse, RequestResponseRun};

use super::peer_output::{OutputArgs, pairs_text, parse_seconds, run_and_print, span, tasks_text};
use super::place::PlaceArgs;
use crate::errors::CliError;

#[derive(Args)]
pub struct RrArgs {
    /// Clients, each with a server of its own
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    clients: u32,
    /// Seconds to measure
    #[arg(short = 'l', long = "length", value_name = "S", default_value = "10",
          value_parser = parse_seconds)]
    measure_ns: u64,
    /// Seconds to run before
    #[arg(long = "warmup", value_name = "S", default_value = "1", value_parser = parse_seconds)]
    warmup_ns: u64,
    /// Bytes of a request and of its response
    #[arg(short = 'r', long = "size", value_name = "REQUEST,RESPONSE", default_value = "1,1",
          value_parser = sizes)]
    sizes: (u32, u32),
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    place: PlaceArgs,
}

/// Two sizes, or one for both.
fn sizes(text: &str) -> Result<(u32, u32), String> {
    let (request, response) = text.split_once(',').unwrap_or((text, text));
    match (request.trim().parse(), response.trim().parse()) {
        (Ok(request), Ok(response)) => Ok((request, response)),
        _ => Err("give two sizes in bytes, such as 1,1".to_owned()),
    }
}

pub fn request_response(args: &RrArgs, protocol: Protocol) -> Result<ExitCode, CliError> {
    let job = RequestResponse {
        protocol,
        clients: args.clients,
        request_bytes: args.sizes.0,
        response_bytes: args.sizes.1,
        span: span(args.warmup_ns, args.measure_ns),
    };
    let name = match protocol {
        Protocol::Tcp => "tcp_rr",
        Protocol::Udp => "udp_rr",
    };
    run_and_print(name, &args.place, &args.output, job, text)
}

fn text(job: &RequestResponse, run: &RequestResponseRun) -> String {
    let name = match job.protocol {
        Protocol::Tcp => "TCP_RR",
        Protocol::Udp => "UDP_RR",
    };
    format!(
        "{name} over loopback: {} clients, {} bytes there and {} back, {:.2} s\n\n{}\n{}",
        job.clients,
        job.request_bytes,
        job.response_bytes,
        run.timed.elapsed_ns as f64 / 1e9,
        pairs_text("client", "trans/s", 1.0, &run.timed),
        tasks_text(&run.tasks),
    )
}

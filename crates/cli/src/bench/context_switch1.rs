//! `reveille bench context_switch1`: options and lines of will-it-scale's.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use reveille_host::peers::{Binding, ContextSwitch, ContextSwitchRun, Mode, Second};

use super::peer_output::{OutputArgs, pairs_text, parse_seconds, run_and_print, span, tasks_text};
use super::place::PlaceArgs;
use crate::errors::CliError;

#[derive(Args)]
pub struct ContextSwitch1Args {
    /// Pairs of tasks
    #[arg(short = 't', long = "tasks", value_name = "N", default_value_t = 1)]
    pairs: u32,
    /// Seconds to measure
    #[arg(short = 's', long = "seconds", value_name = "S", default_value = "10",
          value_parser = parse_seconds)]
    measure_ns: u64,
    /// Seconds to run before
    #[arg(long = "warmup", value_name = "S", default_value = "6", value_parser = parse_seconds)]
    warmup_ns: u64,
    /// Bind each pair to one hardware thread instead of one core
    #[arg(short = 'm', long, conflicts_with = "no_affinity")]
    smt: bool,
    /// Bind nothing
    #[arg(short = 'n', long)]
    no_affinity: bool,
    /// Threads of one process instead of processes
    #[arg(short = 'T', long)]
    threads: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    place: PlaceArgs,
}

pub fn context_switch1(args: &ContextSwitch1Args) -> Result<ExitCode, CliError> {
    let binding = match (args.no_affinity, args.smt) {
        (true, _) => Binding::None,
        (_, true) => Binding::Thread,
        _ => Binding::Core,
    };
    let job = ContextSwitch {
        pairs: args.pairs,
        mode: if args.threads { Mode::Thread } else { Mode::Process },
        binding,
        span: span(args.warmup_ns, args.measure_ns),
    };
    run_and_print("context_switch1", &args.place, &args.output, job, text)
}

fn text(_: &ContextSwitch, run: &ContextSwitchRun) -> String {
    let timed = &run.timed;
    let mut text = "testcase:Context switch via pipes\nwarmup\n".to_owned();
    seconds(&mut text, &timed.warmup);
    text.push_str("measurement\n");
    seconds(&mut text, &timed.seconds);
    let _ = writeln!(text, "average:{}\n", timed.per_s as u64);
    text + &pairs_text("pair", "switches/s", 1.0, timed) + "\n" + &tasks_text(&run.tasks)
}

fn seconds(text: &mut String, seconds: &[Second]) {
    for second in seconds {
        let [min, max, total] =
            [second.min_per_s, second.max_per_s, second.total_per_s].map(|rate| rate as u64);
        let _ = writeln!(text, "min:{min} max:{max} total:{total}");
    }
}

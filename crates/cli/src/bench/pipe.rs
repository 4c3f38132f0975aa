//! `reveille bench pipe`: options and lines of `perf bench sched pipe`.

use std::process::ExitCode;

use clap::Args;
use reveille_host::peers::{Mode, SchedPipe, SchedPipeRun};

use super::peer_output::{OutputArgs, run_and_print, tasks_text};
use super::place::PlaceArgs;
use crate::errors::CliError;

#[derive(Args)]
pub struct PipeArgs {
    /// Round trips
    #[arg(short = 'l', long = "loop", value_name = "N", default_value_t = 1_000_000)]
    loops: u64,
    /// Two threads instead of two processes
    #[arg(short = 'T', long)]
    threaded: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    place: PlaceArgs,
}

pub fn pipe(args: &PipeArgs) -> Result<ExitCode, CliError> {
    let mode = if args.threaded { Mode::Thread } else { Mode::Process };
    let job = SchedPipe { loops: args.loops, mode };
    run_and_print("pipe", &args.place, &args.output, job, text)
}

fn text(job: &SchedPipe, run: &SchedPipeRun) -> String {
    let tasks = match job.mode {
        Mode::Process => "processes",
        Mode::Thread => "threads",
    };
    let same = run.same_cpu_pct.map_or_else(|| "-".to_owned(), |pct| format!("{pct:.0}%"));
    format!(
        "# Running 'sched/pipe' benchmark:\n\
         # Executed {} pipe operations between two {tasks}\n\n {:>14}: {}.{:03} [sec]\n\n \
         {:>14.6} usecs/op\n {:>14} ops/sec\n\n\
         same CPU    {same} of the time\n{}",
        job.loops,
        "Total time",
        run.elapsed_ns / 1_000_000_000,
        run.elapsed_ns / 1_000_000 % 1000,
        run.us_per_op,
        run.ops_per_s as u64,
        tasks_text(&run.tasks),
    )
}

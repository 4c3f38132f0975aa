//! What the native benchmarks print in common: seconds on the command line, the object of
//! `--json`, and the lines about tasks below the original's.

use std::fmt::Write as _;
use std::process::ExitCode;

use reveille_host::Job;
use reveille_host::peers::{Span, Spread, Tasks, Timed};
use serde::Serialize;

use super::place::{self, PlaceArgs, Ran};
use crate::errors::CliError;
use crate::output::{print, print_json};

/// The longest time that a run may be asked for: a day.
const MAX_SECONDS: f64 = 86_400.0;

/// Output that every benchmark has.
#[derive(clap::Args)]
pub struct OutputArgs {
    /// Print JSON, and nothing else, on standard output
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// The object of `--json`.
#[derive(Serialize)]
struct Document<'a, J, R> {
    benchmark: &'a str,
    options: J,
    #[serde(flatten)]
    ran: Ran<R>,
}

/// Runs a job and prints what came of it: `text` says how, for people.
pub fn run_and_print<J>(
    benchmark: &str,
    place: &PlaceArgs,
    output: &OutputArgs,
    job: J,
    text: impl FnOnce(&J, &J::Output) -> String,
) -> Result<ExitCode, CliError>
where
    J: Job + Clone + Serialize,
    J::Output: Serialize,
{
    let ran = place::run(place, job.clone())?;
    if output.json {
        print_json(&Document { benchmark, options: job, ran })?;
    } else {
        print(&(text(&job, &ran.result) + &ran.context()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Seconds as typed, in ns: `10` or `0.5`.
pub fn parse_seconds(text: &str) -> Result<u64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=MAX_SECONDS).contains(&seconds) => Ok((seconds * 1e9) as u64),
        Ok(_) => Err(format!("give 0 to {MAX_SECONDS} seconds")),
        Err(_) => Err("give seconds, such as 10 or 0.5".to_owned()),
    }
}

/// Times typed by a user.
pub fn span(warmup_ns: u64, measure_ns: u64) -> Span {
    Span { warmup_ns, measure_ns }
}

/// What the tasks used, in two lines.
pub fn tasks_text(tasks: &Tasks) -> String {
    let used = &tasks.total;
    let switches = used.voluntary_switches + used.involuntary_switches;
    format!(
        "tasks       {}: {} on a CPU, {} waiting for one\n\
         switches    {switches}: {} blocked, {} preempted; {} migrations\n",
        tasks.n,
        seconds(used.cpu_ns as f64),
        seconds(used.run_delay_ns as f64),
        used.voluntary_switches,
        used.involuntary_switches,
        used.migrations,
    )
}

/// A time in seconds.
fn seconds(ns: f64) -> String {
    format!("{:.3} s", ns / 1e9)
}

/// What each pair did, and how unequal they were; `unit` is that of a rate, which is
/// divided by `scale`.
pub fn pairs_text(pair: &str, unit: &str, scale: f64, timed: &Timed) -> String {
    let mut text = format!("{pair:>8} {unit:>14} {:>9}\n", "same CPU");
    for (number, one) in timed.pairs.iter().enumerate() {
        let same = one.same_cpu_pct.map_or_else(|| "-".to_owned(), |pct| format!("{pct:.0}%"));
        let _ = writeln!(text, "{:>8} {:>14.2} {same:>9}", number + 1, one.per_s / scale);
    }
    let _ = writeln!(text, "{:>8} {:>14.2}", "sum", timed.per_s / scale);
    if timed.pairs.len() > 1 {
        let spread = Spread::of(timed.pairs.iter().map(|pair| pair.per_s / scale));
        let _ = writeln!(
            text,
            "{:>8} {:.2} to {:.2}, median {:.2}, cv {:.1}%",
            "spread", spread.min, spread.max, spread.median, spread.cv_pct
        );
    }
    text
}

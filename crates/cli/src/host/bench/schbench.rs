//! `reveille bench schbench`: options of the three programs called schbench. Each era has its own
//! set; options an era lacks are refused.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use reveille_host::HostError;
use reveille_host::schbench::{self as host, Cpus, Header, Outcome, Schbench, Stream, Think};
use reveille_machine::parse_cpu_list;

use super::place::{self, PlaceArgs};
use crate::errors::{Result, say};
use crate::output_file::OutputFile;

/// Longest accepted time in µs: 1000 s.
const MOST_US: i64 = 1_000_000_000;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Era {
    /// Since 2023: think time by matrices, request latency, RPS
    Current,
    /// 2016 to 2021: think time by the clock, pipes, -R
    Classic,
    /// April 2016, the first one
    #[value(name = "2016")]
    First,
}

use Era::{Classic, Current, First};

impl Era {
    fn host(self) -> host::Era {
        match self {
            Current => host::Era::Current,
            Classic => host::Era::Classic,
            First => host::Era::First,
        }
    }
}

// All options are optional: an option that is present must belong to the era.
#[derive(Args)]
pub struct SchbenchArgs {
    /// Version of schbench to imitate
    #[arg(long, value_enum, value_name = "ERA", default_value_t = Current)]
    era: Era,
    /// Message threads [default: 1; older eras: 2]
    #[arg(short = 'm', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    message_threads: Option<u32>,
    /// The 2016 era's name for -m
    #[arg(short = 'd', long, value_name = "N", conflicts_with = "message_threads", value_parser = clap::value_parser!(u32).range(1..))]
    dispatch_threads: Option<u32>,
    /// Workers per message thread [default: CPUs divided by message threads; older eras: 16]
    #[arg(short = 't', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    threads: Option<u32>,
    /// Run time in seconds; 0: until stopped, without a final result [default: 30]
    #[arg(short = 'r', long, value_name = "SECONDS")]
    runtime: Option<u32>,
    /// Warm-up: discard what was measured in the first SECONDS [default: 0, never]
    #[arg(short = 'w', long, value_name = "SECONDS")]
    warmuptime: Option<u32>,
    /// Report every SECONDS [default: 10; classic: never]
    #[arg(short = 'i', long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    intervaltime: Option<u32>,
    /// Discard what was measured every SECONDS [default: 0, never]
    #[arg(short = 'z', long, value_name = "SECONDS")]
    zerotime: Option<u32>,
    /// Cache footprint of a worker, in KiB [default: 256]
    #[arg(short = 'F', long = "cache_footprint", alias = "cache-footprint", value_name = "KB")]
    cache_footprint: Option<u64>,
    /// Matrix multiplications per request [default: 5]
    #[arg(short = 'n', long, value_name = "N")]
    operations: Option<u64>,
    /// Share of the footprint, in percent, that is private to each worker; all share the rest
    /// [default: all private]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(0..=100))]
    split: Option<u32>,
    /// Current era: a worker's sleep before the work, in µs [default: 100]. Older eras: a message
    /// thread's sleep before it answers, plus up to a quarter [default: 30000]
    #[arg(short = 's', long = "sleep_usec", aliases = ["sleep-usec", "sleeptime"], value_name = "USEC", value_parser = clap::value_parser!(u64).range(0..=MOST_US as u64))]
    sleep_usec: Option<u64>,
    /// Wall-clock think time in µs [default: 30000]
    #[arg(short = 'c', long, value_name = "USEC", value_parser = clap::value_parser!(u64).range(0..=MOST_US as u64))]
    cputime: Option<u64>,
    /// Do not take the per-CPU lock during the work
    #[arg(short = 'L', long)]
    no_locking: bool,
    /// Calibrate: time the work without sleep and without locks
    #[arg(short = 'C', long)]
    calibrate: bool,
    /// Pass N bytes back and forth instead of working; 0: off
    #[arg(short = 'p', long, value_name = "BYTES")]
    pipe: Option<u32>,
    /// Requests per second, summed over message threads; 0: off
    #[arg(short = 'R', long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=i64::from(i32::MAX)))]
    rps: Option<u32>,
    /// Adjust the request rate until the machine is this busy, in percent; 0: off
    #[arg(short = 'A', long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(0..=100))]
    auto_rps: Option<u32>,
    /// Repeat with more workers, or more requests with -R, until latency degrades
    #[arg(short = 'a', long)]
    auto: bool,
    /// CPUs to pin message threads to, one each: 0-3,8; or `auto`: one each, leaving the others to
    /// workers
    #[arg(short = 'M', long, value_name = "LIST|auto")]
    message_cpus: Option<String>,
    /// CPUs to pin workers to: 0-3,8; or `auto`, as with -M
    #[arg(short = 'W', long, value_name = "LIST|auto")]
    worker_cpus: Option<String>,
    /// Seed of the random sleep of message threads [default: 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Write JSON to a file; without FILE, or with `-`, to standard output
    #[arg(short = 'j', long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<String>,
    /// A label to include in the JSON
    #[arg(short = 'J', long, value_name = "NAME", requires = "json")]
    jobname: Option<String>,
    #[command(flatten)]
    place: PlaceArgs,
}

/// Runs it, prints what the era's original prints, and writes the JSON.
pub fn run(args: &SchbenchArgs) -> Result<ExitCode> {
    refuse_strangers(args)?;
    let job = job(args)?;
    let file = match args.json.as_deref() {
        None | Some("-") => None,
        Some(path) => Some(OutputFile::prepare("-j", Path::new(path))?),
    };
    let ran = place::run(&args.place, job.clone())?;
    let outcome = &ran.result;
    print(args, &job, outcome)?;
    let tasks = &outcome.tasks;
    say(format_args!(
        "tasks: {:.3} s on a CPU, {:.3} s waiting for one; switches: {} blocked, {} preempted; {} \
         migrations\n{}",
        tasks.cpu_ns as f64 / 1e9,
        tasks.run_delay_ns as f64 / 1e9,
        tasks.voluntary_switches,
        tasks.involuntary_switches,
        tasks.migrations,
        place::context(&ran.host, ran.group.as_ref()).trim_end(),
    ));
    if args.json.is_some() {
        let command_line: Vec<_> =
            std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect();
        let header = Header { jobname: args.jobname.clone(), command_line: command_line.join(" ") };
        let document = host::document(&job, outcome, &ran.host, ran.group.as_ref(), &header);
        match file {
            Some(file) => file.write(&document)?,
            None => std::io::stdout().lock().write_all(document.as_bytes())?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses options the era does not have.
fn refuse_strangers(args: &SchbenchArgs) -> Result<(), HostError> {
    const NEW: &[Era] = &[Current];
    const OLD: &[Era] = &[Classic, First];
    const LATER: &[Era] = &[Current, Classic];
    let options: &[(&str, bool, &[Era])] = &[
        ("-d", args.dispatch_threads.is_some(), &[First]),
        ("-w", args.warmuptime.is_some(), LATER),
        ("-i", args.intervaltime.is_some(), LATER),
        ("-z", args.zerotime.is_some(), LATER),
        ("-r 0", args.runtime == Some(0), LATER),
        ("-F", args.cache_footprint.is_some(), NEW),
        ("-n", args.operations.is_some(), NEW),
        ("--split", args.split.is_some(), NEW),
        ("-c", args.cputime.is_some(), OLD),
        ("-L", args.no_locking, NEW),
        ("-C", args.calibrate, NEW),
        ("-p", args.pipe.is_some(), LATER),
        ("-R", args.rps.is_some(), LATER),
        ("-A", args.auto_rps.is_some(), NEW),
        ("-a", args.auto, OLD),
        ("-M", args.message_cpus.is_some(), NEW),
        ("-W", args.worker_cpus.is_some(), NEW),
        ("--seed", args.seed.is_some(), OLD),
    ];
    for (name, given, eras) in options {
        if *given && !eras.contains(&args.era) {
            let names: Vec<_> = eras.iter().map(|era| era.host().name()).collect();
            let (own, names) = (args.era.host().name(), names.join(" and "));
            return Err(HostError::input(
                format!("`{name}` is no option of the era `{own}`, but of {names}"),
                format!("leave it out, or use `--era {}`", eras[0].host().name()),
            ));
        }
    }
    Ok(())
}

/// The benchmark to run, from the options and the era's defaults.
fn job(args: &SchbenchArgs) -> Result<Schbench, HostError> {
    let mut job = Schbench::new(args.era.host());
    let pipe = args.pipe.filter(|&bytes| bytes > 0);
    job.think = match job.think {
        Think::Spin { cpu_us } => {
            // In pipe mode it thinks only if told to.
            let default_us = if pipe.is_some() { 0 } else { cpu_us };
            Think::Spin { cpu_us: args.cputime.unwrap_or(default_us) }
        }
        Think::Matrices { footprint_kb, operations, sleep_us, .. } => Think::Matrices {
            footprint_kb: args.cache_footprint.unwrap_or(footprint_kb),
            operations: args.operations.unwrap_or(operations),
            split_percent: args.split,
            sleep_us: args.sleep_usec.unwrap_or(sleep_us),
            locking: !args.no_locking,
            calibrate: args.calibrate,
        },
    };
    if args.era != Current {
        job.message_sleep_us = args.sleep_usec.unwrap_or(job.message_sleep_us);
    }
    let message_threads = args.message_threads.or(args.dispatch_threads);
    job.message_threads = message_threads.unwrap_or(job.message_threads);
    job.worker_threads = args.threads.or(job.worker_threads);
    job.runtime_s = args.runtime.unwrap_or(job.runtime_s);
    job.warmup_s = args.warmuptime.unwrap_or(job.warmup_s);
    job.interval_s = args.intervaltime.or(job.interval_s);
    job.zero_s = args.zerotime.filter(|&s| s > 0);
    job.pipe_bytes = pipe;
    job.rps = args.rps.filter(|&rps| rps > 0);
    job.auto_rps_percent = args.auto_rps.filter(|&percent| percent > 0);
    job.auto = args.auto.then(|| own_stream(args));
    job.message_cpus = cpus("-M", args.message_cpus.as_deref())?;
    job.worker_cpus = cpus("-W", args.worker_cpus.as_deref())?;
    job.seed = args.seed.unwrap_or(job.seed);
    Ok(job)
}

fn cpus(option: &str, text: Option<&str>) -> Result<Cpus, HostError> {
    match text {
        None => Ok(Cpus::Any),
        Some("auto") => Ok(Cpus::Auto),
        Some(list) => parse_cpu_list(list).map(Cpus::List).map_err(|error| {
            HostError::input(format!("`{option} {list}`: {error}"), "such as 0-3,8, or `auto`")
        }),
    }
}

/// Where the classic era prints its table; standard output is reserved for JSON if asked for.
fn own_stream(args: &SchbenchArgs) -> Stream {
    if args.json.as_deref() == Some("-") { Stream::Error } else { Stream::Output }
}

/// Prints what the original prints at the end.
fn print(args: &SchbenchArgs, job: &Schbench, outcome: &Outcome) -> Result<()> {
    // The classic program shows no table while it increases requests.
    if args.era != Classic || job.auto.is_none() || job.rps.is_none() {
        say(format_args!("{}", host::closing(job, outcome).trim_end()));
    }
    if args.era != Classic {
        return Ok(());
    }
    let mut lines = String::new();
    if job.pipe_bytes.is_some() {
        lines += &host::transfer_line(job, outcome);
    }
    if job.rps.is_some() {
        lines += &host::rps_line(job, outcome);
    }
    match own_stream(args) {
        _ if lines.is_empty() => {}
        Stream::Output => std::io::stdout().lock().write_all(lines.as_bytes())?,
        Stream::Error => say(format_args!("{}", lines.trim_end())),
    }
    Ok(())
}

//! `reveille record`: records a live group's CPU demand to a file. However the recording ends, what
//! was recorded is written.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use reveille_host::HostError;
use reveille_host::cgroup::LiveGroup;
use reveille_host::record::{Ended, How, RecordCost, RecordOptions, Recording, record};
use reveille_measure::{DurationError, duration_ns, seconds_text, span_ns};
use reveille_usage::{MAX_ROWS, MAX_SPAN_NS, Ns, Origin};

use crate::errors::{INTERRUPTED, Result, say};
use crate::limits::prometheus::{PrometheusArgs, To, record_prometheus};
use crate::output;
use crate::output_file::OutputFile;
use crate::progress::Progress;
use crate::signals::watch_signals;

/// Shorter intervals cost more than they tell.
const SHORTEST_SAMPLE_NS: Ns = 100_000;

/// Record CPU demand: a live task group's, or from Prometheus
///
/// On the task group's host, records every request by tracing, or the group's counters every
/// millisecond. From Prometheus, records averages over 15 to 60 s with throttling counters.
#[derive(clap::Args)]
pub struct UsageRecordArgs {
    /// The task group: its path as in `cat /proc/PID/cgroup`, or its directory
    #[arg(long, value_name = "NAME", required_unless_present = "prometheus")]
    pub cgroup: Option<String>,
    /// File to write, in Parquet; with --all, a directory
    #[arg(short, long, value_name = "FILE.parquet")]
    pub output: PathBuf,
    /// How long to record, such as 60s, 5m or 1d; Ctrl-C stops early and writes what was recorded
    #[arg(long = "for", value_name = "TIME", default_value = "60s")]
    pub span: String,
    /// Sampling interval [default: 1ms; without tracing, as often as the kernel charges a running
    /// thread]
    #[arg(long, value_name = "TIME")]
    pub sample: Option<String>,
    /// Trace every wakeup and sleep, read the group's counters, or use the first of these that is
    /// permitted
    #[arg(long, value_name = "WAY", value_enum, default_value_t = Way::Auto)]
    pub how: Way,
    /// Overwrite the file if it exists
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub prometheus: PrometheusArgs,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Way {
    Auto,
    Trace,
    Sample,
}

/// Records, writes, and prints a summary.
pub fn usage_record(args: &UsageRecordArgs) -> Result<ExitCode> {
    if let Some(url) = &args.prometheus.prometheus {
        let to = To { output: &args.output, force: args.force };
        return record_prometheus(url, &args.prometheus, &to);
    }
    let Some(cgroup) = &args.cgroup else {
        let help = "give --cgroup NAME or --prometheus URL";
        return Err(HostError::input("nothing to record is named", help).into());
    };
    if let Some(option) = args.prometheus.stray() {
        let problem = format!("`{option}` means nothing for a live group");
        return Err(HostError::input(problem, "leave it out; `reveille plan` takes goals").into());
    }
    let options = options(args)?;
    let file = OutputFile::prepare("--output", &args.output)?.claim("--output", args.force)?;
    let group = LiveGroup::open(cgroup)?;
    if group.threads()? == 0 {
        say(format_args!("warning: there is no thread in `{}` yet", group.name()));
    }
    let stop = watch_signals()?;
    let progress = Progress::of_time();
    let span_ms = (options.span_ns / 1_000_000) as usize;
    let before = group.stats()?;
    let mut warned = false;
    let mut tell = |ns: Ns| {
        progress.tell((ns / 1_000_000) as usize, span_ms);
        let Ok(now) = group.stats() else { return };
        let throttled = now.nr_throttled.saturating_sub(before.nr_throttled);
        if throttled > 0 && !warned {
            warned = true;
            say(format_args!(
                "warning: the group is throttled while it is recorded, in {throttled} of {} periods \
                 so far: what it would use without its limit must be inferred. Better lift the \
                 limit and record again.",
                now.nr_periods.saturating_sub(before.nr_periods)
            ));
        }
    };
    let recording = record(&group, &options, &stop, &mut tell);
    progress.finish();
    let recording = recording?;
    if recording.usage.demands.is_empty() {
        let problem = format!("nothing ran in `{cgroup}`, so there is nothing to write");
        let help = "record while its load runs; see that its threads are in this group";
        return Err(HostError::input(problem, help).into());
    }
    let bytes = recording.usage.to_parquet()?;
    if let Err(error) = file.write(&bytes) {
        keep_elsewhere(&bytes);
        return Err(error);
    }
    show(args, &recording, bytes.len())?;
    let after = seconds_text(recording.usage.span_ns);
    Ok(match recording.ended {
        Ended::Whole => ExitCode::SUCCESS,
        Ended::Stopped => {
            say(format_args!("interrupted: the recording ends after {after}"));
            ExitCode::from(INTERRUPTED)
        }
        Ended::Vanished => {
            say(format_args!("`{}` was removed after {after}", recording.usage.name));
            ExitCode::FAILURE
        }
    })
}

fn options(args: &UsageRecordArgs) -> Result<RecordOptions> {
    let wrong =
        |option, error: DurationError, help| HostError::input(format!("`{option}`: {error}"), help);
    let units = "write a number and ns, us, ms, s, m, h or d, such as 60s";
    let span_ns = span_ns(&args.span).map_err(|error| wrong("--for", error, units))?;
    let sample_ns = args.sample.as_deref().map(duration_ns).transpose();
    let units = "write a number and ns, us, ms or s, such as 1ms";
    let sample_ns = sample_ns.map_err(|error| wrong("--sample", error, units))?;
    let refuse = |problem: String, help: &str| Err(HostError::input(problem, help).into());
    if span_ns == 0 || span_ns > MAX_SPAN_NS {
        return refuse(
            format!("`--for`: {} is not between 1 ns and 31 days", args.span),
            "use 60s",
        );
    }
    let shortest = SHORTEST_SAMPLE_NS..=span_ns;
    if sample_ns.is_some_and(|ns| !shortest.contains(&ns)) {
        let problem = "`--sample`: it is not between 100us and --for".to_owned();
        return refuse(problem, "use 1ms");
    }
    // Leave half of a recording's rows for its demands.
    let samples = span_ns / sample_ns.unwrap_or(1_000_000);
    if samples > MAX_ROWS as u64 / 2 {
        let problem = format!("`--sample`: {samples} are too many samples");
        return refuse(problem, "record for a shorter time, or with a longer --sample");
    }
    let how = match args.how {
        Way::Auto => How::Auto,
        Way::Trace => How::Trace,
        Way::Sample => How::Sample,
    };
    Ok(RecordOptions { span_ns, sample_ns, how })
}

/// A recording that cannot be written to its path is kept in a temporary file.
fn keep_elsewhere(bytes: &[u8]) {
    let kept =
        tempfile::Builder::new().prefix("reveille-usage-").suffix(".parquet").tempfile().and_then(
            |mut file| {
                std::io::Write::write_all(&mut file, bytes)?;
                Ok(file.keep()?.1)
            },
        );
    match kept {
        Ok(path) => say(format_args!("the recording was kept as {}", path.display())),
        Err(error) => say(format_args!("and it could not be kept elsewhere: {error}")),
    }
}

fn show(args: &UsageRecordArgs, recording: &Recording, bytes: usize) -> Result<()> {
    let (usage, cost) = (recording.usage.summary(), &recording.cost);
    if args.prometheus.json() {
        return output::print_json(&reveille_report::object! {
            file: args.output.display().to_string(),
            bytes,
            ended: recording.ended,
            usage: &usage,
            cost,
            overhead_cpus: cost.cpus(),
        });
    }
    let way = match usage.origin {
        Origin::Sampled { resolution_ns } => {
            format!("sampled, with a resolution of {:.1} ms", resolution_ns as f64 / 1e6)
        }
        _ => "traced".to_owned(),
    };
    let mut text = format!(
        "{} for {}, {way}: {} demands of {} threads{}, {:.3} CPUs on average\n",
        usage.name,
        seconds_text(usage.span_ns),
        usage.demands,
        usage.threads,
        usage.origin.about_threads(),
        usage.mean_cpus,
    );
    text += &match usage.limits.and_then(|limits| Some((limits.quota_ns?, limits))) {
        None => "no limit of its own\n".to_owned(),
        Some((quota_ns, limits)) => format!(
            "limit {} ms per {} ms, burst {} ms: {} of {} periods throttled, for {} in all\n",
            quota_ns as f64 / 1e6,
            limits.period_ns as f64 / 1e6,
            limits.burst_ns as f64 / 1e6,
            usage.nr_throttled,
            usage.nr_periods,
            seconds_text(usage.throttled_ns),
        ),
    };
    text += &overhead(cost);
    text += &format!("written: {} ({} bytes)\n", args.output.display(), bytes);
    for warning in &usage.warnings {
        text += &format!("warning: {warning}\n");
    }
    output::print(&text)
}

/// Cost of recording: measured for the recorder, estimated for the tasks it traced.
fn overhead(cost: &RecordCost) -> String {
    let percent = |cpus: f64| format!("{:.2}%", 100.0 * cpus);
    let mut text = format!("overhead: {} of a CPU", percent(cost.cpus()));
    if let Some(event_ns) = cost.event_ns.filter(|_| cost.events > 0) {
        text += &format!(
            ": {} for the recorder, and about {} for {} events of the host's scheduling ({} of \
             them the group's), at {:.0} ns each",
            percent(cost.recorder_cpus()),
            percent(cost.event_cpus()),
            cost.events,
            cost.group_events,
            event_ns,
        );
    }
    text + "\n"
}

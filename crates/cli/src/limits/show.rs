//! `reveille show`: summarizes a recording.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use reveille_measure::seconds_text;
use reveille_policy::BandwidthLimits;
use reveille_usage::{Ns, Origin, Summary, Usage};

use crate::errors::Result;
use crate::output::{print_result, width};

#[derive(clap::Args)]
pub struct UsageShowArgs {
    /// A recording: Parquet from `reveille record`, or whatever `reveille import` takes
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print JSON, and nothing else, on standard output
    #[arg(long)]
    json: bool,
}

pub fn usage_show(args: &UsageShowArgs) -> Result<ExitCode> {
    let summary = Usage::read(&args.file)?.summary();
    let shown = || text(&args.file.display().to_string(), &summary, width());
    print_result(args.json, &summary, shown)?;
    Ok(ExitCode::SUCCESS)
}

/// A recording as lines of at most `width` columns where words allow.
pub fn text(file: &str, summary: &Summary, width: usize) -> String {
    let mut out = format!("{file}\n");
    let mut line = |name: &str, value: String| {
        let options = textwrap::Options::new(width).subsequent_indent("              ");
        let _ = writeln!(out, "{}", textwrap::fill(&format!("  {name:<12}{value}"), options));
    };
    line("name", summary.name.clone());
    line("origin", origin(summary.origin));
    line("length", seconds_text(summary.span_ns));
    let (threads, busy) = (summary.threads, summary.max_parallel);
    let about = summary.origin.about_threads();
    line("threads", format!("{threads}, of which {busy} at most are busy at once{about}"));
    let (demands, cpus) = (summary.demands, summary.mean_cpus);
    line("demands", format!("{demands}, {cpus:.3} CPUs on average"));
    if let Some(of) = summary.period_use {
        let percent = |share: f64| format!("{:.1}%", 100.0 * share);
        let told = |share: Option<f64>| share.map_or("too few".into(), percent);
        let ([p50, p95, p99], max) = ([of.p50, of.p95, of.p99].map(told), percent(of.max));
        line("per 100 ms", format!("p50 {p50}  p95 {p95}  p99 {p99}  max {max} of a CPU"));
    }
    line("limits", summary.limits.map_or("not known".into(), limits));
    if summary.samples > 0 {
        let (throttled, periods) = (summary.nr_throttled, summary.nr_periods);
        let time = seconds_text(summary.throttled_ns);
        line("throttled", format!("{throttled} of {periods} periods, {time}"));
        line("samples", summary.samples.to_string());
    }
    if let Some(cpus) = summary.host_cpus {
        line("host", format!("{cpus} CPUs"));
    }
    if let Some(cpus) = summary.overhead {
        line("recording", format!("took {:.2}% of a CPU", 100.0 * cpus));
    }
    for warning in &summary.warnings {
        let options = textwrap::Options::new(width).subsequent_indent("  ");
        out += &textwrap::fill(&format!("warning: {warning}"), options);
        out.push('\n');
    }
    out
}

fn origin(origin: Origin) -> String {
    match origin {
        Origin::Traced => "traced: every wakeup and sleep".into(),
        Origin::Sampled { resolution_ns } => {
            format!("sampled: every {} ms", resolution_ns as f64 / 1e6)
        }
        Origin::Requests => "requests: a table of arrivals".into(),
        Origin::Averaged { step_ns } => format!("averaged: over {} s", step_ns as f64 / 1e9),
    }
}

fn limits(limits: BandwidthLimits) -> String {
    let ms = |ns: Ns| ns as f64 / 1e6;
    let (Some(quota_ns), Some(cpus)) = (limits.quota_ns, limits.cpus()) else {
        return "none".into();
    };
    let (quota, period, burst) = (ms(quota_ns), ms(limits.period_ns), ms(limits.burst_ns));
    format!("{quota} ms in {period} ms ({cpus:.2} CPUs), burst {burst} ms")
}

//! `reveille bench quota`: what quota, period and burst do to a random load, predicted over phases
//! and measured on this host's kernel, for each setting.

use std::fmt::Write as _;
use std::process::ExitCode;

use reveille_host::calibrate::allowed_cpus;
use reveille_measure::statistics::nearest_rank;
use reveille_place::counted;
use reveille_plan::{Trial, Verification, Verified, cpus_like, verify};
use reveille_policy::BandwidthLimits;
use reveille_report::verification_table;
use reveille_usage::Usage;
use serde::Serialize;

use crate::errors::Result;
use crate::output::print_result;
use crate::progress::Progress;
use crate::signals::watch_signals;
use crate::this_host::{running_kernel, this_command};

const MS: u64 = 1_000_000;

#[derive(clap::Args)]
pub struct QuotaArgs {
    /// Threads of the load; a single thread may use up to half a CPU, several up to one CPU
    /// together
    #[arg(long, value_name = "N,…", default_value = "1,3", value_delimiter = ',',
          value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: Vec<u32>,
    /// Average use, in percent of the quota
    #[arg(long = "use", value_name = "PCT,…", default_value = "40,60,80", value_delimiter = ',',
          value_parser = clap::value_parser!(u32).range(1..=99))]
    shares: Vec<u32>,
    /// Periods in ms
    #[arg(long, value_name = "MS,…", default_value = "10,50,100,200", value_delimiter = ',',
          value_parser = clap::value_parser!(u64).range(2..=1000))]
    periods: Vec<u64>,
    /// Bursts, in percent of the quota
    #[arg(long, value_name = "PCT,…", default_value = "0,50,100", value_delimiter = ',',
          value_parser = clap::value_parser!(u64).range(0..=100))]
    bursts: Vec<u64>,
    /// Mean CPU time of a request, in ms
    #[arg(long, value_name = "MS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    work: u64,
    /// Seconds measured under each setting; p99 needs 1000 requests
    #[arg(long = "for", value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Period phases per prediction
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    phases: u32,
    /// Runs under each setting
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    repeats: u32,
    /// Runs of each load without a limit, to show the host's own effect
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=100))]
    controls: u32,
    /// Seed of the load
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print JSON, and nothing else, on standard output
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Trials {
    seconds: u64,
    phases: u32,
    loads: Vec<Verification>,
    summaries: Vec<Summary>,
}

/// Settings with the same number of threads.
#[derive(Debug, PartialEq, Serialize)]
struct Summary {
    threads: u32,
    runs: u32,
    throttled_inside: u32,
    /// Runs that have a p99, for their load has enough requests; the next two are counted among them.
    p99_runs: u32,
    p99_inside: u32,
    p99_inside_stretched: u32,
    /// Medians over settings.
    throttled_off_points: f64,
    /// NaN, `null` in JSON, if no load has enough requests.
    p99_off_pct: f64,
    /// 90% of the settings are off by no more than this.
    p99_off_pct_of_9_in_10: f64,
}

pub fn quota(args: &QuotaArgs) -> Result<ExitCode> {
    let (stop, command) = (watch_signals()?, this_command()?);
    let machine = reveille_machine::load("host")?;
    let cpus = allowed_cpus()?;
    cpus_like(&machine, cpus.len() as u32)?;
    let policy = running_kernel()?;
    let progress = Progress::new();
    let (mut loads, mut summaries) = (Vec::new(), Vec::new());
    let n_loads = args.threads.len() * args.shares.len();
    for &threads in &args.threads {
        let reserved = if threads == 1 { 0.5 } else { 1.0 };
        let settings = settings(args, reserved);
        let first = loads.len();
        for &share in &args.shares {
            let mean = reserved * f64::from(share) / 100.0;
            let name = format!("{} at {share}% of {reserved} CPUs", counted(threads, "thread"));
            let (work_ns, span_ns) = (args.work * MS, args.seconds * 1000 * MS);
            let seed = args.seed ^ u64::from(threads * 100 + share);
            let usage = Usage::random(&name, threads, mean, work_ns, span_ns, seed);
            let trial = Trial {
                usage: &usage,
                settings: settings.clone(),
                machine: &machine,
                cpus: cpus.clone(),
                policy: policy.clone(),
                slice_ns: 5 * MS,
                phases: args.phases,
                repeats: args.repeats,
                controls: args.controls,
                seed: args.seed,
            };
            let before = loads.len();
            let tell = |done, of| progress.tell(before * of + done, n_loads * of);
            loads.push(verify(&trial, &command, &stop, &tell)?);
        }
        summaries.push(summary(threads, &loads[first..]));
    }
    progress.finish();
    let trials = Trials { seconds: args.seconds, phases: args.phases, loads, summaries };
    print_result(args.json, &trials, || text(&trials))?;
    Ok(ExitCode::SUCCESS)
}

fn settings(args: &QuotaArgs, reserved: f64) -> Vec<BandwidthLimits> {
    let setting = |period: u64, burst: u64| {
        let quota_ns = (reserved * (period * MS) as f64) as u64;
        let burst_ns = quota_ns * burst / 100;
        BandwidthLimits { quota_ns: Some(quota_ns), period_ns: period * MS, burst_ns }
    };
    let of_period = |&period| args.bursts.iter().map(move |&burst| setting(period, burst));
    args.periods.iter().flat_map(of_period).collect()
}

fn summary(threads: u32, loads: &[Verification]) -> Summary {
    let all: Vec<&Verified> = loads.iter().flat_map(|load| &load.settings).collect();
    let sorted = |of: &dyn Fn(&Verified) -> Option<f64>| {
        let mut off: Vec<f64> = all.iter().filter_map(|v| of(v)).map(f64::abs).collect();
        off.sort_by(f64::total_cmp);
        off
    };
    let (throttled, p99) = (sorted(&|v| Some(v.throttled_off)), sorted(&|v| v.p99_off));
    let at = |sorted: &[f64], share: f64| {
        nearest_rank(sorted.len(), share).map_or(f64::NAN, |rank| 100.0 * sorted[rank])
    };
    let sum = |of: &dyn Fn(&Verified) -> u32| all.iter().map(|v| of(v)).sum();
    Summary {
        threads,
        runs: sum(&|v| v.measured.len() as u32),
        throttled_inside: sum(&|v| v.throttled_inside),
        p99_runs: sum(&|v| v.p99_inside.map_or(0, |_| v.measured.len() as u32)),
        p99_inside: sum(&|v| v.p99_inside.unwrap_or(0)),
        p99_inside_stretched: sum(&|v| v.p99_inside_stretched.unwrap_or(0)),
        throttled_off_points: at(&throttled, 0.5),
        p99_off_pct: at(&p99, 0.5),
        p99_off_pct_of_9_in_10: at(&p99, 0.9),
    }
}

fn text(trials: &Trials) -> String {
    let mut text = format!(
        "# What a quota does to a random load: measured for {} s, predicted as the least, median\n\
         # and most over {} phases. Throttled periods in %, latency in ms.\n",
        trials.seconds, trials.phases
    );
    for load in &trials.loads {
        let _ = write!(text, "\n{}", verification_table(load));
    }
    text.push('\n');
    for s in &trials.summaries {
        let _ = writeln!(
            text,
            "{}: of {} runs {} have their share of throttled periods inside the range, off \
             its median by {:.2} points in the middle of settings",
            counted(s.threads, "thread"),
            s.runs,
            s.throttled_inside,
            s.throttled_off_points,
        );
        if s.p99_runs > 0 {
            let _ = writeln!(
                text,
                "  of {} with enough requests for a p99 {} have it inside the range, {} with the \
                 range as wide as the control's\n  off its median, in the middle of settings: {:.1}% \
                 (nine in ten settings: {:.1}%)",
                s.p99_runs,
                s.p99_inside,
                s.p99_inside_stretched,
                s.p99_off_pct,
                s.p99_off_pct_of_9_in_10,
            );
        }
    }
    text
}

//! `reveille plan`: from a recording and goals to a setting, its alternatives, and their cost to
//! neighbours.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use reveille_measure::duration_ns;
use reveille_place::Mistake;
use reveille_plan::{
    Allowed, Goal, Neighbour, Plan, PlanError, Platform, Request, Verdict, Verification,
    parse_limits,
};
use reveille_policy::BandwidthLimits;
use reveille_report::{verdict_line, verification_table};
use reveille_usage::Usage;
use serde::Serialize;

use crate::errors::{Result, say};
use crate::limits::act::{ActArgs, Applied};
use crate::output::{colour, print, print_json, width};
use crate::page::PageFile;
use crate::progress::Progress;
use crate::signals::watch_signals;
use crate::this_host::running_base;
use crate::watched::JobsArg;

/// Exit code of a trial that other programs disturbed.
const VOID: u8 = 3;

/// Upper bound of head-room and growth: beyond it the load is a different one.
const MOST_PERCENT: f64 = 400.0;

/// Find the quota, period and burst that meet a goal
///
/// Replays the recording under about 1,000 settings. The kernel starts each bandwidth period at an
/// arbitrary offset, so every setting is tried at several phases; it is also tried on
/// block-resampled copies of the recording. Recommends the setting that reserves least among those
/// that --for can write and that keep the goals in 95% of these draws with 15% more work in every
/// request.
#[derive(clap::Args)]
pub struct PlanArgs {
    /// A recording: Parquet as `reveille record` writes it, or what `reveille import`
    /// takes (CSV of requests, JSON of Prometheus)
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// What to achieve: p99=20ms (any quantile of latency), max<50ms, throttled<0.1% (of periods),
    /// lost<1% (of time), tardiness<5ms (of neighbours); repeat the option for several
    #[arg(long, value_name = "GOAL")]
    goal: Vec<String>,
    /// Another group on the same CPUs: a recording, with its limits if they differ from the
    /// recorded ones (other.parquet:quota=50ms,period=100ms,burst=0ms); repeat the option
    #[arg(long, value_name = "FILE[:LIMITS]")]
    neighbours: Vec<String>,
    /// CPUs that the group may run on [default: those of the recorded host, or of --machine]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=512))]
    cpus: Option<u32>,
    /// Today's setting: quota=50ms,period=100ms,burst=0ms, or quota=max [default: the recorded
    /// limits]. Also the limit of counters that were recorded without one
    #[arg(long, value_name = "LIMITS")]
    today: Option<String>,
    /// Limit of the parent group: quota=200ms,period=100ms, or quota=max for none [default: with
    /// --apply, the tightest of the groups around the live one]
    #[arg(long, value_name = "LIMITS")]
    within: Option<String>,
    /// Upper bound on the summed quotas of the group and its neighbours, in CPUs [default: all CPUs
    /// if there are neighbours, else none]
    #[arg(long, value_name = "CPUS")]
    quota_sum: Option<f64>,
    /// Machine whose costs and tick to simulate with, from `reveille machines` [default: host]
    #[arg(long, value_name = "NAME|FILE", default_value = "host", hide_default_value = true)]
    machine: String,
    /// Kernel baseline [default: that of the running kernel]
    #[arg(long, value_name = "NAME")]
    base: Option<String>,
    /// CPU time that a CPU draws from its group's quota at once, in microseconds
    /// (sched_cfs_bandwidth_slice_us)
    #[arg(long, value_name = "US", default_value_t = 5000,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    slice_us: u32,
    /// Period phases at which each setting shown is simulated
    #[arg(long, value_name = "N", default_value_t = 20,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    phases: u32,
    /// Share of draws in which the goals must hold
    #[arg(long, value_name = "SHARE", default_value_t = 0.95)]
    confidence: f64,
    /// Head-room: the goals must hold with this much more work in every request, in percent; 0 for
    /// none
    #[arg(long, value_name = "PCT", default_value = "15", value_parser = percent)]
    headroom: f64,
    /// Growth: the goals must also hold with this many more requests, in percent
    #[arg(long, value_name = "PCT", default_value = "0", value_parser = percent)]
    growth: f64,
    /// Platform that sets the limit; only what it can write is recommended: kubernetes,
    /// koordinator, systemd, docker or cgroup2 (anything)
    #[arg(long = "for", value_name = "PLATFORM", default_value = "kubernetes",
          value_parser = Platform::parse)]
    platform: Platform,
    /// Recommend only this period [default: 100ms for kubernetes and koordinator, else any]
    #[arg(long, value_name = "TIME", value_parser = period)]
    period: Option<u64>,
    /// Recommend no burst
    #[arg(long)]
    no_burst: bool,
    /// Bound on the latency of the longest request, even if it arrives when the quota is exhausted
    #[arg(long, value_name = "TIME", value_parser = duration_ns)]
    max_worst_case: Option<u64>,
    /// Plan for each of these numbers of concurrently running threads (GOMAXPROCS, workers, the
    /// JVM's processors): 1..8, or 2,4,8. The cheapest is recommended
    #[arg(long, value_name = "FROM..TO|N,…", value_parser = thread_numbers,
          conflicts_with = "verify")]
    threads: Option<ThreadNumbers>,
    /// Simulate every setting of the grid, without the lean replay's preselection
    #[arg(long)]
    exhaustive: bool,
    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    jobs: JobsArg,
    /// Print JSON, and nothing else, on standard output
    #[arg(long)]
    json: bool,
    /// Also write a page with plots to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    act: ActArgs,
}

/// The object of `--json`: the plan, and what was done with it.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    plan: &'a Plan,
    #[serde(skip_serializing_if = "Option::is_none")]
    verification: Option<&'a Verification>,
    #[serde(skip_serializing_if = "Option::is_none")]
    applied: Option<&'a Applied>,
}

pub fn plan(args: &PlanArgs) -> Result<ExitCode> {
    let html = PageFile::prepare(args.html.as_deref())?;
    let goals = args.goal.iter().map(|text| Goal::parse(text)).collect::<Result<_, _>>()?;
    let limits = |option, text: &Option<String>| {
        text.as_deref().map(|text| parse_limits(option, text)).transpose()
    };
    let (today, within) = (limits("--today", &args.today)?, limits("--within", &args.within)?);
    check_numbers(args)?;
    let group = args.act.group()?;
    let also = args.act.also()?;
    let live = group.as_ref().map(|group| group.limits()).transpose()?;
    let today = today.or(live.map(|live| live.limits));
    let around = match (&group, within) {
        (Some(group), None) => group.tightest_around()?,
        _ => None,
    };
    // `--within quota=max` plans as if no group around it had a limit.
    let within = within.or(around.as_ref().map(|(_, limits)| *limits));
    let within = within.filter(|limits| limits.quota_ns.is_some());
    if let Some((parent, _)) = around.as_ref().filter(|_| args.max_worst_case.is_some()) {
        let problem =
            format!("a group within {}, which has a limit, has no bound", parent.display());
        let help = "leave out --max-worst-case, or give --within quota=max";
        return Err(PlanError::option("--max-worst-case", Mistake::new(problem, help)).into());
    }
    let machine = reveille_study::machine(&args.machine)?;
    let mut usage = Usage::read(&args.file)?;
    // With --apply, `today` may be a later limit than that of the recording.
    if args.today.is_some() {
        take_limits(&mut usage, today)?;
    }
    if let Some((parent, limits)) = &around {
        usage.warnings.push(format!(
            "Planned within {}'s limit of {limits}, the tightest around the group: it holds whatever \
             the group's own limit is. --within plans for another one, --within quota=max for none.",
            parent.display()
        ));
    }
    let neighbours = args.neighbours.iter().map(|text| neighbour(text));
    let neighbours = neighbours.collect::<Result<Vec<Neighbour>>>()?;
    let host_cpus = usage.host_cpus.unwrap_or(machine.topology.n_cpus() as u32);
    let mut request = Request {
        usage: &usage,
        as_likely: &[],
        inferred: None,
        goals,
        neighbours,
        today,
        machine: &machine,
        cpus: args.cpus.unwrap_or(host_cpus),
        policy: reveille_study::kernel(args.base.as_deref().unwrap_or(running_base()))?,
        slice_ns: u64::from(args.slice_us) * 1000,
        within,
        quota_sum_cpus: args.quota_sum,
        phases: args.phases,
        confidence: args.confidence,
        headroom: args.headroom / 100.0,
        growth: args.growth / 100.0,
        allowed: Allowed {
            platform: args.platform,
            period_ns: args.period,
            no_burst: args.no_burst,
            worst_case_ns: args.max_worst_case,
        },
        seed: args.seed,
        exhaustive: args.exhaustive,
    };
    let stop = watch_signals()?;
    let recovered = reveille_plan::recovered(&request, args.jobs.threads(), &stop)?;
    if let Some(recovered) = &recovered {
        recovered.replaces(&mut request);
    }
    let progress = Progress::new();
    let tell = |done, total| progress.tell(done, total);
    let jobs = args.jobs.threads();
    let plan = match &args.threads {
        None => reveille_plan::plan(&request, jobs, &stop, &tell),
        Some(ThreadNumbers(numbers)) => {
            reveille_plan::plan_threads(&request, numbers, jobs, &stop, &tell)
        }
    };
    progress.finish();
    let plan = plan.inspect_err(|_| {
        if let Some((parent, limits)) = &around {
            say(format_args!("planned within {}'s limit of {limits}", parent.display()));
        }
    })?;
    request.cpus = plan.model.cpus;
    let paged = html.map_or(Ok(()), |html| {
        let pictures = reveille_plan::pictures(&request, &plan, args.jobs.threads(), &stop)?;
        html.write(|made| reveille_report::plan_html(&plan, &pictures, made))
    });
    args.act.check(&plan)?;
    if let Some(emitted) = args.act.emitted(&plan)? {
        print(&emitted.text)?;
        return paged.map(|()| ExitCode::SUCCESS);
    }
    if !args.json {
        print(&reveille_report::plan_table(&plan, width(), colour()))?;
    } else if paged.is_err() {
        print_json(&Document { plan: &plan, verification: None, applied: None })?;
    }
    // Report a failed page before acting on the plan.
    paged?;
    // The plan is printed whatever becomes of the trial.
    let unfinished = |error| {
        let alone = Document { plan: &plan, verification: None, applied: None };
        if args.json { print_json(&alone).err().unwrap_or(error) } else { error }
    };
    let verification = args.act.verified(&plan, &request, &also, &stop).map_err(unfinished)?;
    let verdict = verification.as_ref().map(|trial| trial.verdict);
    let applied = match verdict {
        None | Some(Verdict::Agrees) => {
            args.act.applied(&plan, group.as_ref(), &stop).map_err(unfinished)?
        }
        Some(_) => {
            if group.is_some() {
                say(format_args!("reveille: nothing is written, as the trial does not agree"));
            }
            None
        }
    };
    let (verification, applied) = (verification.as_ref(), applied.as_ref());
    if args.json {
        print_json(&Document { plan: &plan, verification, applied })?;
    } else {
        let tried =
            verification.map(|v| format!("\n{}\n{}", verification_table(v), verdict_line(v)));
        print(&(tried.unwrap_or_default() + &applied.map(Applied::text).unwrap_or_default()))?;
    }
    Ok(match verdict {
        None | Some(Verdict::Agrees) => ExitCode::SUCCESS,
        Some(Verdict::Disagrees) => ExitCode::FAILURE,
        Some(Verdict::Void) => ExitCode::from(VOID),
    })
}

/// `15` or `15%`. Less than 1 needs the sign: 0.15 may be a share, as --confidence takes it.
pub fn percent(text: &str) -> Result<f64, String> {
    let bare = text.strip_suffix('%');
    let number = bare.unwrap_or(text).trim_end().parse::<f64>();
    if let Ok(number) = number
        && bare.is_none()
        && number > 0.0
        && number < 1.0
    {
        let as_share = (1e6 * number).round() / 1e4;
        return Err(format!("a number below 1 may be a share: write {as_share}% or {number}%"));
    }
    let number = number.ok().filter(|number| (0.0..=MOST_PERCENT).contains(number));
    number.ok_or_else(|| format!("give percent from 0 to {MOST_PERCENT}, such as 15"))
}

/// Numbers of threads to plan for, ascending.
#[derive(Clone, Debug)]
pub struct ThreadNumbers(Vec<u32>);

/// `1..8`, `4` or `2,4,8`.
fn thread_numbers(text: &str) -> Result<ThreadNumbers, String> {
    /// Most numbers in one command; each is a plan of its own.
    const MOST: usize = 16;
    let number = |text: &str| text.trim().parse::<u32>().ok().filter(|n| (1..=512).contains(n));
    let numbers: Option<Vec<u32>> = match text.split_once("..") {
        Some((from, to)) => number(from).zip(number(to)).map(|(from, to)| (from..=to).collect()),
        None => text.split(',').map(number).collect(),
    };
    let mut numbers = numbers.unwrap_or_default();
    numbers.sort_unstable();
    numbers.dedup();
    match (1..=MOST).contains(&numbers.len()) {
        true => Ok(ThreadNumbers(numbers)),
        false => Err(format!("write FROM..TO or N,N: at most {MOST} numbers from 1 to 512")),
    }
}

/// Parses a period, within the kernel's bounds.
fn period(text: &str) -> Result<u64, String> {
    let ns = duration_ns(text).map_err(|error| error.to_string())?;
    let limits = BandwidthLimits { quota_ns: None, period_ns: ns, burst_ns: 0 };
    limits.check().map(|()| ns).map_err(|error| format!("no kernel accepts it: {error}"))
}

fn check_numbers(args: &PlanArgs) -> Result<(), PlanError> {
    let wrong = |option, problem: String, help: &str| {
        Err(PlanError::option(option, Mistake::new(problem, help)))
    };
    if !(args.confidence > 0.0 && args.confidence <= 1.0) {
        let problem = format!("{} is no share", args.confidence);
        return wrong("--confidence", problem, "give more than 0 and at most 1; 0.95 is usual");
    }
    if args.max_worst_case.is_some() && args.within.is_some() {
        let problem = "a group within another's limits has no bound".to_owned();
        return wrong("--max-worst-case", problem, "leave out --within or --max-worst-case");
    }
    match args.quota_sum {
        Some(cpus) if !(cpus > 0.0 && cpus.is_finite()) => {
            wrong("--quota-sum", format!("{cpus} is no number of CPUs"), "give CPUs, such as 3.5")
        }
        _ => Ok(()),
    }
}

/// Takes today's setting for the limit of all of a recording whose counters come without one.
fn take_limits(usage: &mut Usage, today: Option<BandwidthLimits>) -> Result<(), PlanError> {
    let counted = usage.samples.last().is_some_and(|s| s.nr_periods > 0 || s.nr_throttled > 0);
    let today = today.filter(|today| today.quota_ns.is_some());
    let Some(limits) = today.filter(|_| counted && usage.limits.is_none()) else { return Ok(()) };
    usage.limits = Some(limits);
    usage.warnings.push(format!(
        "The recording has counters of throttling and no limit: --today ({limits}) is taken for the \
         limit of all of it."
    ));
    usage.beyond_its_limit().map_or(Ok(()), |mistake| {
        let help = "give the limit that was in force while the counters were recorded";
        Err(PlanError::option("--today", mistake.mended_by(help)))
    })
}

/// Parses `FILE[:LIMITS]`; a colon may also be part of the file's name.
fn neighbour(text: &str) -> Result<Neighbour> {
    let (file, limits) = match text.rsplit_once(':') {
        Some((file, limits)) if limits.contains('=') && !Path::new(text).exists() => {
            (file, Some(parse_limits("--neighbours", limits)?))
        }
        _ => (text, None),
    };
    Ok(Neighbour { usage: Usage::read(Path::new(file))?, limits })
}

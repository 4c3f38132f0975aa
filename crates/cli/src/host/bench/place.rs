//! Where a benchmark runs (CPUs, task group) and what else the host did meanwhile. All benchmarks
//! share these options and start their job through [`run`].

use reveille_host::cgroup::HostGroups;
use reveille_host::supervise::{self, Place};
use reveille_host::{HostError, Job, Watch};
use reveille_machine::parse_cpu_list;
use reveille_measure::{GroupStats, HostContext, seconds_text};
use reveille_policy::Groups;

use crate::errors::Result;
use crate::signals::watch_signals;
use crate::this_host::this_command;

#[derive(clap::Args)]
pub struct PlaceArgs {
    /// Run on these CPUs only: 0-3,8
    #[arg(long, value_name = "LIST", help_heading = "Where to run")]
    pub cpus: Option<String>,
    /// Run in a fresh task group with a limit, removed at the end:
    /// quota=100ms,period=100ms,burst=0ms
    #[arg(long, value_name = "KEY=VALUE,…", help_heading = "Where to run")]
    pub cgroup: Option<String>,
}

/// A job's result, with the host's state while it ran.
pub struct Ran<T> {
    pub result: T,
    /// The host it ran on, and what else ran there.
    pub host: HostContext,
    /// Bandwidth statistics of its task group, if it had one.
    pub group: Option<GroupStats>,
}

/// Runs a job there, in its own process, until it ends or a signal ends it.
pub fn run<J: Job>(args: &PlaceArgs, job: J) -> Result<Ran<J::Output>> {
    let cpus = cpus(args)?;
    let groups = limited(args)?.unwrap_or_default();
    let program = this_command()?;
    // Before there is anything a signal could leave behind.
    let stop = watch_signals()?;
    let made = HostGroups::create(&groups)?;
    let group = made.files(&groups)?.pop();
    let join = group.as_ref().map(|group| group.procs.clone()).unwrap_or_default();
    let watch = Watch::begin();
    let result = supervise::run(&program, &Place { cpus, join }, job, &stop)?;
    let host = watch.end(true);
    let group = group.map(|group| group.stats.read(&group.name)).transpose()?;
    Ok(Ran { result, host, group })
}

pub fn limited(args: &PlaceArgs) -> Result<Option<Groups>> {
    let whole = |text: &String| reveille_study::whole_group("--cgroup", text);
    Ok(args.cgroup.as_ref().map(whole).transpose()?)
}

/// The CPUs of `--cpus`; empty if it is not given.
pub fn cpus(args: &PlaceArgs) -> Result<Vec<u32>> {
    let Some(text) = &args.cpus else { return Ok(Vec::new()) };
    let wrong = |problem: String| {
        HostError::input(format!("`--cpus`: {problem}"), "write a list such as 0-3,8")
    };
    let cpus = parse_cpu_list(text).map_err(|error| wrong(error.to_string()))?;
    if cpus.is_empty() {
        return Err(wrong("the list is empty".to_owned()).into());
    }
    supervise::check_cpus(&cpus)?;
    Ok(cpus)
}

/// Lines printed below a benchmark's result: the host, the group's throttling, and possible
/// disturbance.
pub fn context(host: &HostContext, group: Option<&GroupStats>) -> String {
    let part = |before: &str, text: &Option<String>| {
        text.as_ref().map(|text| format!("{before}{text}")).unwrap_or_default()
    };
    let mut lines = format!(
        "host: Linux {}, {} CPUs, {}{}{}{}\n",
        host.kernel,
        host.cpus,
        host.cpu,
        part(", a guest of ", &host.virtualisation),
        part(", governor ", &host.governor),
        part(", scheduler ", &host.sched_ext),
    );
    if let Some(group) = group {
        lines += &format!(
            "group: {} periods, {} throttled for {}, {} with a burst of {} in all\n",
            group.nr_periods,
            group.nr_throttled,
            seconds_text(group.throttled_ns),
            group.nr_bursts,
            seconds_text(group.burst_ns),
        );
    }
    for warning in &host.warnings {
        lines += &format!("warning: {warning}\n");
    }
    lines
}

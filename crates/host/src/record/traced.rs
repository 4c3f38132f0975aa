//! Records by tracing: reads every wakeup, switch and fork on the host in batches, and turns the
//! group's into demands.

use std::fs;
use std::io;
use std::sync::atomic::Ordering;

use reveille_measure::{GroupStats, Ns, seconds_text};
use reveille_policy::BandwidthLimits;
use reveille_usage::{HostLoad, Origin, Usage};

use super::activations::{Activations, Activity};
use super::tracepoints::{Event, Kind};
use super::tracer::Tracer;
use super::{
    Begun, Ended, How, RecordCost, Recording, SAMPLE_NS, Session, cost, members, online,
    show_at_end, span_until,
};
use crate::error::{HostError, Result};
use crate::sys::clock;

/// Interval for reading the group's counters, and the rings unless one fills earlier.
const BATCH_NS: Ns = 100_000_000;
/// Interval for reading the limits, and the list of threads unless one was seen to move.
const LIST_NS: Ns = 1_000_000_000;
/// Listing the threads may take at most one part in this many of the time.
const LIST_SHARE: Ns = 1000;

/// Share of lost events above which a recording is refused.
const MOST_LOST: f64 = 0.01;
/// Limit on the share of broken switches from idle CPUs before the recording, a small sample.
const MOST_BROKEN: f64 = 0.1;
/// A difference to the kernel's own accounting above this share, and above a few ticks, triggers a
/// warning.
const ACCOUNT_SHARE: f64 = 0.05;
/// Ticks by which the kernel's accounting may lag on each CPU.
const ACCOUNT_TICKS: u64 = 4;

/// Inode number of the initial pid namespace, whose ids tracepoints show (`PROC_PID_INIT_INO` in
/// include/linux/proc_ns.h).
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

/// Checks that tracing is permitted by opening what it needs.
pub(super) fn prepare() -> Result<Tracer> {
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    if namespace.as_os_str() != FIRST_NAMESPACE {
        let reason = "this process is in a container, whose thread ids are not those of the \
                      kernel's tracepoints";
        let help = "record on the host itself, or with --how sample";
        return Err(HostError::system("trace the scheduler", io::Error::other(reason), help));
    }
    let mut tracer = Tracer::open(&online()?)?;
    let broken_share = tracer.broken_share_from_idle()?;
    if broken_share > MOST_BROKEN {
        return Err(broken(broken_share));
    }
    Ok(tracer)
}

/// The error for missing scheduler events.
fn broken(share: f64) -> HostError {
    let reason = format!(
        "before {:.0}% of its switches another is missing: this kernel does not write all events",
        100.0 * share
    );
    let help = "record with --how sample";
    HostError::system("trace the scheduler", io::Error::other(reason), help)
}

/// Exclusive upper bound on thread ids.
fn id_limit() -> usize {
    let text = fs::read_to_string("/proc/sys/kernel/pid_max").unwrap_or_default();
    text.trim().parse().unwrap_or(1 << 22) + 1
}

/// Tracing was abandoned; sample instead.
pub(super) struct GaveUp {
    pub(super) why: HostError,
    /// What was recorded until then, as if stopped.
    pub(super) seen: Option<Recording>,
}

/// Records. Gives up if sampling is an option and this kernel turns out not to write all events.
pub(super) fn record(
    session: &Session<'_>,
    mut tracer: Tracer,
    progress: &mut dyn FnMut(Ns),
) -> Result<Result<Recording, GaveUp>> {
    let cpus = online()?;
    let event_ns = cost::event_cost_ns(&mut tracer)?;
    // Learn where all threads are before the recording starts.
    tracer.enable(true)?;
    let Some(threads) = members::thread_ids(session.group)? else {
        return Err(vanished(session.group.name()));
    };
    tracer.visit_cpus();
    let begun = Begun::now(session.group)?;
    let sample_ns = session.options.sample_ns.unwrap_or(SAMPLE_NS);
    let last_cpu = cpus.iter().max().map_or(0, |&cpu| cpu as usize);
    let mut activations = Activations::new(begun.start_ns(), sample_ns, id_limit(), last_cpu + 1);
    for &thread in &threads {
        enter(&mut activations, thread, begun.start_ns());
    }
    let mut run = Run { session, tracer, activations, begun, counters: GroupStats::default() };
    match run.until_the_end(progress)? {
        Some(ended) => run.finish(ended, &cpus, event_ns).map(Ok),
        None => {
            let why = broken(run.activations.broken_share());
            Ok(Err(GaveUp { why, seen: run.finish(Ended::Stopped, &cpus, event_ns).ok() }))
        }
    }
}

fn enter(activations: &mut Activations, thread: u32, at_ns: Ns) {
    activations.take(&Event { at_ns, cpu: 0, kind: Kind::Entered { thread } });
}

struct Run<'a> {
    session: &'a Session<'a>,
    tracer: Tracer,
    activations: Activations,
    begun: Begun,
    /// The last reading, relative to the start.
    counters: GroupStats,
}

impl Run<'_> {
    /// Returns `None` if it gives up.
    fn until_the_end(&mut self, progress: &mut dyn FnMut(Ns)) -> Result<Option<Ended>> {
        let start_ns = self.begun.start_ns();
        let end_ns = start_ns + self.session.options.span_ns;
        let mut count_at_ns = start_ns;
        let mut list_at_ns = start_ns + LIST_NS;
        // Whether to sample instead is decided once, after the first second.
        let mut undecided = self.session.options.how == How::Auto;
        loop {
            let now_ns = clock::now();
            if now_ns >= count_at_ns {
                if !self.count()? {
                    return Ok(Some(Ended::Vanished));
                }
                count_at_ns = now_ns + BATCH_NS;
                progress((now_ns - start_ns).min(end_ns - start_ns));
            }
            let listed_ns = clock::now();
            let listed = if now_ns >= list_at_ns { self.list()? } else { None };
            let read_ns = clock::now();
            if listed.is_some() {
                self.begun.look(self.session.group);
                list_at_ns = read_ns + LIST_NS.max((read_ns - listed_ns) * LIST_SHARE);
            }
            self.tracer.read();
            let listed_now = listed.is_some();
            if let Some(listed) = listed {
                self.compare(&listed, true);
            } else if self.tracer.moved_ns().is_some() {
                let Some(listed) = self.list()? else { return Ok(Some(Ended::Vanished)) };
                self.compare(&listed, false);
            }
            let Run { tracer, activations, .. } = self;
            tracer.take(read_ns.min(end_ns), read_ns >= end_ns, |event| activations.take(event));
            if self.session.stop.load(Ordering::Relaxed) {
                return Ok(Some(Ended::Stopped));
            }
            if read_ns >= end_ns {
                return Ok(Some(Ended::Whole));
            }
            if listed_now && undecided {
                if self.activations.broken_share() > MOST_LOST {
                    return Ok(None);
                }
                undecided = false;
            }
            let next_ns = count_at_ns.min(end_ns);
            self.tracer.wait(next_ns.saturating_sub(clock::now()).max(1));
        }
    }

    /// Reads the counters; returns false if the group is gone.
    fn count(&mut self) -> Result<bool> {
        match self.session.group.stats() {
            Ok(counters) => {
                self.counters = self.begun.since(&counters);
                self.activations.read(clock::now(), self.counters.clone());
                Ok(true)
            }
            Err(_) if !self.session.group.directory().exists() => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn list(&self) -> Result<Option<Vec<u32>>> {
        members::thread_ids(self.session.group)
    }

    /// Threads that entered other than by fork belong to the group from the time one was seen to
    /// move, or else from now. A list begun before the rings were read (`settled`) is complete: all
    /// other threads have left.
    fn compare(&mut self, listed: &[u32], settled: bool) {
        let at_ns = self.tracer.moved_ns().unwrap_or(self.activations.now_ns());
        for &thread in listed {
            if !self.activations.knows(thread) {
                self.tracer.add(Event { at_ns, cpu: 0, kind: Kind::Entered { thread } });
            }
        }
        if settled {
            self.activations.keep_only(listed);
        }
    }

    fn finish(mut self, ended: Ended, cpus: &[u32], event_ns: Option<f64>) -> Result<Recording> {
        let options = self.session.options;
        let start_ns = self.begun.start_ns();
        let span_ns = span_until(start_ns, ended, options, clock::now());
        let end_ns = start_ns + span_ns;
        if ended != Ended::Vanished {
            self.count()?;
        }
        let host_load = self.begun.load.end(self.counters.usage_ns, None);
        self.tracer.enable(false)?;
        self.tracer.read();
        let Run { tracer, activations, .. } = &mut self;
        tracer.take(end_ns, true, |event| activations.take(event));
        let cost = RecordCost {
            recorder_ns: self.begun.own_cpu_ns(),
            events: self.tracer.events,
            group_events: 0,
            lost: self.tracer.lost,
            event_ns,
            span_ns,
        };
        let lost_share = cost.lost as f64 / (cost.events + cost.lost).max(1) as f64;
        if lost_share > MOST_LOST {
            return Err(HostError::System {
                doing: "record".to_owned(),
                reason: format!(
                    "{} of {} events of the scheduler were lost ({:.1}%): the recorder had no \
                     CPU for too long",
                    cost.lost,
                    cost.events + cost.lost,
                    100.0 * lost_share
                ),
                help: "run it with `chrt -f 1`, or record with --how sample".to_owned(),
            });
        }
        let mut activity = self.activations.finish(end_ns);
        let host_load = HostLoad { waited_ns: Some(activity.waited_ns), ..host_load };
        show_at_end(&mut activity.samples, &self.counters);
        let mut warnings = self.begun.warnings(ended, &cost);
        if cost.lost > 0 {
            warnings.push(format!(
                "{} of {} events of the scheduler were lost: some demands are wrong.",
                cost.lost,
                cost.events + cost.lost
            ));
        }
        let counted = self.counters.usage_ns;
        if activity.broken_share > MOST_LOST
            && activity.cpu_ns < counted
            && differs(activity.cpu_ns, counted, cpus.len() as u64)
        {
            return Err(HostError::System {
                doing: "record".to_owned(),
                reason: format!(
                    "the trace shows {} of CPU time and the kernel's own account {}: this kernel does \
                     not write all of the scheduler's events",
                    seconds_text(activity.cpu_ns),
                    seconds_text(counted)
                ),
                help: "record with --how sample".to_owned(),
            });
        }
        if activity.broken_share > MOST_LOST {
            warnings.push(format!(
                "Before {:.0}% of the scheduler's switches another is missing: this kernel does not \
                 write all of its events. Demands are missing or too short; record with --how sample.",
                100.0 * activity.broken_share
            ));
        }
        if online().is_ok_and(|now| now != cpus) {
            warnings.push("CPUs came or went in between: what ran on those is missing.".to_owned());
        }
        warnings.extend(about(
            &activity,
            &self.counters,
            span_ns,
            &self.begun.limits,
            cpus.len() as u64,
        ));
        Ok(Recording {
            ended,
            cost: RecordCost { group_events: activity.own_events, ..cost },
            counters: self.counters,
            usage: Usage {
                name: self.session.group.name().to_owned(),
                origin: Origin::Traced,
                span_ns,
                threads: activity.threads,
                demands: activity.demands,
                samples: activity.samples,
                limits: Some(self.begun.limits),
                host_cpus: Some(cpus.len() as u32),
                began_unix_ns: self.begun.clocks.unix_ns(),
                unseen_ns: None,
                overhead: Some(cost.cpus()),
                host_load: Some(host_load),
                throttled_around: self.begun.throttled_around(),
                warnings,
            },
        })
    }
}

/// Is the traced CPU time another than the one that the kernel counted, which lags behind by some ticks?
fn differs(traced_ns: Ns, counted_ns: Ns, cpus: u64) -> bool {
    let lag_ns = ACCOUNT_TICKS * clock::tick_period() * cpus;
    let off_ns = traced_ns.abs_diff(counted_ns);
    counted_ns > 0 && off_ns > lag_ns && off_ns as f64 > ACCOUNT_SHARE * counted_ns as f64
}

/// Caveats on a traced recording.
fn about(
    activity: &Activity,
    counters: &GroupStats,
    span_ns: Ns,
    limits: &BandwidthLimits,
    cpus: u64,
) -> Vec<String> {
    let mut warnings = Vec::new();
    let open = activity.demands.iter().filter(|demand| demand.done_ns.is_none());
    let endless = open.filter(|demand| demand.at_ns <= span_ns / 2).count();
    if endless > 0 {
        let threads = if endless == 1 { "thread has" } else { "threads have" };
        let freely = if limits.quota_ns.is_some() { "without a limit" } else { "with free CPUs" };
        warnings.push(format!(
            "{endless} {threads} not slept during its second half: what they would use {freely} is \
             not known, and their demand is the CPU time that they had."
        ));
    }
    let (traced, counted) = (activity.cpu_ns, counters.usage_ns);
    if differs(traced, counted, cpus) {
        warnings.push(format!(
            "The trace shows {} of CPU time and the kernel's own account {}: interrupts, or time \
             that a hypervisor took, are in one and not in the other.",
            seconds_text(traced),
            seconds_text(counted)
        ));
    }
    warnings
}

fn vanished(name: &str) -> HostError {
    HostError::input(format!("the task group `{name}` is gone"), "name a group that exists")
}

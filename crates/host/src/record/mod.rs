//! The recorder of a live group: what CPU time its threads ask for, and when. By tracing
//! every wakeup and sleep where that is allowed; by reading the group's counters again and
//! again where it is not.

mod activations;
mod clocks;
mod cost;
mod members;
mod sampled;
mod traced;
mod tracepoints;
mod tracer;

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use reveille_machine::parse_cpu_list;
use reveille_measure::{GroupStats, seconds_text};
use reveille_policy::BandwidthLimits;
use reveille_usage::{Sample, Usage};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::cgroup::{LiveGroup, added};
use crate::sys::clock;
use crate::{HostError, Ns};
use clocks::Clocks;

/// How to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// By tracing if that is allowed, else by sampling.
    Auto,
    /// By the scheduler's tracepoints.
    Trace,
    /// By the group's counters alone.
    Sample,
}

/// What to record.
#[derive(Clone, Copy, Debug)]
pub struct RecordOptions {
    /// For how long.
    pub span_ns: Ns,
    /// Time from one sample to the next; nothing for 1 ms when traced and, when sampled, as
    /// often as the kernel charges a thread that runs on.
    pub sample_ns: Option<Ns>,
    /// How.
    pub how: How,
}

/// Time from one sample to the next unless told otherwise.
const SAMPLE_NS: Ns = 1_000_000;

/// More CPUs than this for a recording deserve a warning.
const DEAR: f64 = 0.01;

/// Why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// It is as long as was asked for.
    Whole,
    /// Told to stop.
    Stopped,
    /// The group was removed.
    Vanished,
}

/// What recording took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RecordCost {
    /// CPU time of the recorder, in the kernel and out of it.
    pub recorder_ns: Ns,
    /// Events of the host's scheduling that were written and read; 0 when sampled.
    pub events: u64,
    /// Those of them in which a thread of the group had a part.
    pub group_events: u64,
    /// Events that were lost.
    pub lost: u64,
    /// Time that an event takes the threads that it happens to, as measured before the
    /// recording.
    pub event_ns: Option<f64>,
    /// Length of the recording.
    pub span_ns: Ns,
}

impl RecordCost {
    /// CPUs that the recorder used.
    pub fn recorder_cpus(&self) -> f64 {
        self.recorder_ns as f64 / self.span_ns.max(1) as f64
    }

    /// CPUs that the events took those that they happened to, all of the host: an estimate,
    /// their number times the measured cost of one.
    pub fn event_cpus(&self) -> f64 {
        let events_ns = self.events as f64 * self.event_ns.unwrap_or(0.0);
        events_ns / self.span_ns.max(1) as f64
    }

    /// Both.
    pub fn cpus(&self) -> f64 {
        self.recorder_cpus() + self.event_cpus()
    }
}

/// A recording, and how it was made.
#[derive(Clone, Debug)]
pub struct Recording {
    /// What was seen.
    pub usage: Usage,
    /// Why it ended.
    pub ended: Ended,
    /// What it took.
    pub cost: RecordCost,
    /// What the group's counters counted meanwhile.
    pub counters: GroupStats,
}

/// Records a group until `span_ns` are over, `stop` is set, or the group is gone: what was
/// seen until then is the recording. `progress` is told how long it is so far.
///
/// # Errors
/// [`HostError::System`] if the group's files cannot be read, if tracing was asked for and
/// is not allowed, or if too much of what was traced was lost.
pub fn record(
    group: &LiveGroup,
    options: &RecordOptions,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Ns),
) -> Result<Recording, HostError> {
    let session = Session { group, options, stop };
    let mut seen = None;
    let refused = match options.how {
        How::Sample => None,
        How::Trace | How::Auto => match traced::prepare() {
            Ok(tracer) => match traced::record(&session, tracer, progress)? {
                Ok(recording) => return Ok(recording),
                Err(gave_up) => {
                    seen = gave_up.seen;
                    Some(gave_up.why)
                }
            },
            Err(error) if options.how == How::Trace => return Err(error),
            Err(error) => Some(error),
        },
    };
    let sampled = sampled::record(&session, progress);
    // It may have ended before it was sampled for long.
    if let Some(mut seen) = seen
        && sampled.as_ref().map_or(0, |sampled| sampled.usage.span_ns) < seen.usage.span_ns
    {
        let gone = !group.directory().exists();
        if gone {
            seen.ended = Ended::Vanished;
            seen.usage.warnings.insert(0, removed(seen.usage.span_ns));
        }
        if gone || stop.load(Ordering::Relaxed) {
            return Ok(seen);
        }
    }
    let mut recording = sampled?;
    if let Some(error) = refused {
        let warning = format!("It was sampled rather than traced: {error}.");
        recording.usage.warnings.insert(0, warning);
    }
    Ok(recording)
}

/// What both ways of recording are given.
struct Session<'a> {
    group: &'a LiveGroup,
    options: &'a RecordOptions,
    stop: &'a AtomicBool,
}

/// What is noted when a recording begins, and compared when it ends.
struct Begun {
    clocks: Clocks,
    limits: BandwidthLimits,
    counters: GroupStats,
    cpu_ns: Ns,
    /// When they were first seen to be others.
    changed: Option<(Ns, BandwidthLimits)>,
}

impl Begun {
    fn now(group: &LiveGroup) -> Result<Begun, HostError> {
        Ok(Begun {
            limits: group.limits()?.limits,
            counters: group.stats()?,
            clocks: Clocks::read(),
            cpu_ns: own_cpu_ns(),
            changed: None,
        })
    }

    fn start_ns(&self) -> Ns {
        self.clocks.monotonic_ns()
    }

    /// Are the limits still the same?
    fn compare_limits(&mut self, group: &LiveGroup) {
        // A group that is gone is noticed by its counters.
        let Ok(now) = group.limits() else { return };
        if self.changed.is_none() && now.limits != self.limits {
            self.changed = Some((clock::now() - self.start_ns(), now.limits));
        }
    }

    /// Counters since the beginning.
    fn since(&self, counters: &GroupStats) -> GroupStats {
        added(counters, &self.counters)
    }

    /// CPU time that this thread has used since.
    fn own_cpu_ns(&self) -> Ns {
        own_cpu_ns() - self.cpu_ns
    }

    /// What whoever uses the recording has to know of its circumstances.
    fn warnings(&self, ended: Ended, cost: &RecordCost) -> Vec<String> {
        let mut warnings = Vec::new();
        if ended == Ended::Vanished {
            warnings.push(removed(cost.span_ns));
        }
        if let Some((at_ns, to)) = &self.changed {
            warnings.push(format!(
                "The group's limits were changed {} after its start, from {} to {}: it is no \
                 recording of one setting.",
                seconds_text(*at_ns),
                describe(&self.limits),
                describe(to)
            ));
        }
        warnings.extend(self.clocks.steps());
        if cost.cpus() > DEAR {
            warnings.push(format!(
                "Recording took {:.1}% of a CPU: a longer --sample takes less.",
                100.0 * cost.cpus()
            ));
        }
        warnings
    }
}

fn removed(span_ns: Ns) -> String {
    format!("The group was removed after {}: it ends there.", seconds_text(span_ns))
}

/// The end of a recording's time.
fn span_until(start_ns: Ns, ended: Ended, options: &RecordOptions, now_ns: Ns) -> Ns {
    match ended {
        Ended::Whole => options.span_ns,
        Ended::Stopped | Ended::Vanished => (now_ns - start_ns).clamp(1, options.span_ns),
    }
}

/// Throttling just before the end is not lost for having been counted after the last sample.
fn show_at_end(samples: &mut [Sample], counters: &GroupStats) {
    if let Some(last) = samples.last_mut() {
        last.nr_periods = last.nr_periods.max(counters.nr_periods);
        last.nr_throttled = last.nr_throttled.max(counters.nr_throttled);
        last.throttled_ns = last.throttled_ns.max(counters.throttled_ns);
    }
}

/// The host's CPUs.
fn online() -> Result<Vec<u32>, HostError> {
    let file = "/sys/devices/system/cpu/online";
    let text = fs::read_to_string(file).map_err(|error| {
        HostError::system(format!("read {file}"), error, "record with --how sample")
    })?;
    parse_cpu_list(text.trim())
        .map_err(|error| HostError::input(format!("{file}: {error}"), "record with --how sample"))
}

fn own_cpu_ns() -> Ns {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as Ns * 1_000_000_000 + time.tv_nsec as Ns
}

fn describe(limits: &BandwidthLimits) -> String {
    let ms = |ns: Ns| ns as f64 / 1e6;
    match limits.quota_ns {
        None => "no limit".to_owned(),
        Some(quota_ns) => format!(
            "{} ms per {} ms with a burst of {} ms",
            ms(quota_ns),
            ms(limits.period_ns),
            ms(limits.burst_ns)
        ),
    }
}

#[cfg(test)]
#[path = "live_tests.rs"]
mod tests;

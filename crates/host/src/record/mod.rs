//! Records the CPU demand of a live group: by tracing every wakeup and sleep where that is
//! permitted, otherwise by reading the group's counters periodically.

mod activations;
mod clocks;
mod cost;
mod load;
mod members;
mod sampled;
mod traced;
mod tracepoints;
mod tracer;

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use reveille_machine::parse_cpu_list;
use reveille_measure::{GroupStats, Ns, seconds_text};
use reveille_policy::BandwidthLimits;
use reveille_usage::{Sample, Usage};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::cgroup::{LiveGroup, added};
use crate::error::HostError;
use crate::sys::clock;
use clocks::Clocks;
use load::Load;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// Trace if permitted, else sample.
    Auto,
    /// Trace the scheduler's tracepoints.
    Trace,
    /// Sample the group's counters.
    Sample,
}

#[derive(Clone, Copy, Debug)]
pub struct RecordOptions {
    pub span_ns: Ns,
    /// Sampling interval; by default 1 ms when tracing and, when sampling, as often as the kernel
    /// charges a running thread.
    pub sample_ns: Option<Ns>,
    pub how: How,
}

/// Default sampling interval.
const SAMPLE_NS: Ns = 1_000_000;

/// A recorder that uses more CPUs than this triggers a warning.
const DEAR: f64 = 0.01;

/// Why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// The requested length was reached.
    Whole,
    Stopped,
    /// The group was removed.
    Vanished,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RecordCost {
    /// CPU time of the recorder, user and system.
    pub recorder_ns: Ns,
    /// Scheduler events of the whole host written and read; 0 when sampling.
    pub events: u64,
    /// Events that involve the group.
    pub group_events: u64,
    /// Events that were lost.
    pub lost: u64,
    /// Cost of an event for the traced thread, measured before the recording.
    pub event_ns: Option<f64>,
    pub span_ns: Ns,
}

impl RecordCost {
    /// CPUs used by the recorder.
    pub fn recorder_cpus(&self) -> f64 {
        self.recorder_ns as f64 / self.span_ns.max(1) as f64
    }

    /// CPUs that tracing cost all tasks on the host, estimated: number of events times the measured
    /// cost of one.
    pub fn event_cpus(&self) -> f64 {
        let events_ns = self.events as f64 * self.event_ns.unwrap_or(0.0);
        events_ns / self.span_ns.max(1) as f64
    }

    /// Sum of both.
    pub fn cpus(&self) -> f64 {
        self.recorder_cpus() + self.event_cpus()
    }
}

/// A recording and its circumstances.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The demand recorded.
    pub usage: Usage,
    pub ended: Ended,
    pub cost: RecordCost,
    /// Increase of the group's counters.
    pub counters: GroupStats,
}

/// Records a group until `span_ns` have passed, `stop` is set, or the group is removed; what was
/// recorded until then is returned. `progress` is called with the length so far.
///
/// # Errors
/// [`HostError::System`] if the group's files cannot be read, if tracing was requested and is not
/// permitted, or if too many events were lost.
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

/// Inputs common to both methods.
struct Session<'a> {
    group: &'a LiveGroup,
    options: &'a RecordOptions,
    stop: &'a AtomicBool,
}

/// A group around the recorded one.
struct Around {
    group: LiveGroup,
    limits: BandwidthLimits,
    /// Its counters at the start ...
    start: GroupStats,
    /// ... and when they were last read: it may be removed before the end.
    last: GroupStats,
}

impl Around {
    fn all(group: &LiveGroup) -> Result<Vec<Around>, HostError> {
        let at = |(dir, limits): (PathBuf, BandwidthLimits)| {
            let group = LiveGroup::at(&dir)?;
            let start = group.stats()?;
            Ok(Around { last: start.clone(), start, limits, group })
        };
        group.around()?.into_iter().map(at).collect()
    }

    fn look(&mut self) {
        if let (Ok(now), Ok(live)) = (self.group.stats(), self.group.limits()) {
            (self.last, self.limits) = (now, live.limits);
        }
    }

    fn counted(&self) -> GroupStats {
        added(&self.last, &self.start)
    }

    /// Share of its periods in which it was throttled.
    fn throttled(&self) -> Option<f64> {
        let GroupStats { nr_periods, nr_throttled, .. } = self.counted();
        (nr_periods > 0).then(|| (nr_throttled as f64 / nr_periods as f64).min(1.0))
    }

    /// A warning if it was throttled. It counts for all groups within it.
    fn throttling(&self) -> Option<String> {
        let GroupStats { nr_periods, nr_throttled, .. } = self.counted();
        (nr_throttled > 0).then(|| {
            format!(
                "{}, around the group, was throttled in {nr_throttled} of {nr_periods} periods while it \
                 was recorded ({}): the group would have used more. Its own counters do not show that, \
                 and neither do figures of today's limit. Lift that limit and record again.",
                self.group.name(),
                describe(&self.limits)
            )
        })
    }
}

/// State at the start of a recording, to compare at its end.
struct Begun {
    around: Vec<Around>,
    clocks: Clocks,
    limits: BandwidthLimits,
    counters: GroupStats,
    cpu_ns: Ns,
    /// CPUs online, if known.
    cpus: Option<u32>,
    load: Load,
    /// When the limits were first seen to differ.
    changed: Option<(Ns, BandwidthLimits)>,
}

impl Begun {
    fn now(group: &LiveGroup) -> Result<Begun, HostError> {
        Ok(Begun {
            around: Around::all(group)?,
            limits: group.limits()?.limits,
            counters: group.stats()?,
            clocks: Clocks::read(),
            cpu_ns: own_cpu_ns(),
            cpus: online_cpus(),
            load: Load::begin(),
            changed: None,
        })
    }

    fn start_ns(&self) -> Ns {
        self.clocks.monotonic_ns()
    }

    /// Looks at what may change meanwhile: the limits, and the host's load.
    fn look(&mut self, group: &LiveGroup) {
        self.load.look();
        self.around.iter_mut().for_each(Around::look);
        // Removal of the group is noticed through its counters.
        let Ok(now) = group.limits() else { return };
        if self.changed.is_none() && now.limits != self.limits {
            self.changed = Some((clock::now() - self.start_ns(), now.limits));
        }
    }

    fn since(&self, counters: &GroupStats) -> GroupStats {
        added(counters, &self.counters)
    }

    /// Behind [`Begun::warnings`], which looks at the groups around for the last time.
    fn throttled_around(&self) -> Option<f64> {
        self.around.iter().filter_map(Around::throttled).reduce(f64::max)
    }

    /// CPU time of this thread since then.
    fn own_cpu_ns(&self) -> Ns {
        own_cpu_ns() - self.cpu_ns
    }

    /// Caveats on the recording, which ends now.
    fn warnings(&mut self, ended: Ended, cost: &RecordCost) -> Vec<String> {
        self.around.iter_mut().for_each(Around::look);
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
        warnings.extend(self.around.iter().filter_map(Around::throttling));
        warnings.extend(self.clocks.steps());
        if cost.cpus() > DEAR {
            let less = if cost.events > 0 { "--how sample" } else { "a longer --sample" };
            warnings.push(format!(
                "Recording took {:.1}% of a CPU: {less} takes less.",
                100.0 * cost.cpus()
            ));
        }
        warnings
    }
}

fn removed(span_ns: Ns) -> String {
    format!("The group was removed after {}: it ends there.", seconds_text(span_ns))
}

/// End of the recording's span.
fn span_until(start_ns: Ns, ended: Ended, options: &RecordOptions, now_ns: Ns) -> Ns {
    match ended {
        Ended::Whole => options.span_ns,
        Ended::Stopped | Ended::Vanished => (now_ns - start_ns).clamp(1, options.span_ns),
    }
}

/// Adds throttling counted after the last sample to that sample.
fn show_at_end(samples: &mut [Sample], counters: &GroupStats) {
    if let Some(last) = samples.last_mut() {
        last.nr_periods = last.nr_periods.max(counters.nr_periods);
        last.nr_throttled = last.nr_throttled.max(counters.nr_throttled);
        last.throttled_ns = last.throttled_ns.max(counters.throttled_ns);
    }
}

/// How many CPUs are online, if that is known.
fn online_cpus() -> Option<u32> {
    Some(online().ok()?.len() as u32)
}

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

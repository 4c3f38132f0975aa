//! Records by sampling the group's counters. Needs no privilege, and has the granularity at which
//! the kernel charges a running thread.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use reveille_measure::{GroupStats, Ns};
use reveille_usage::{Charging, Sample, Usage};

use super::members::is_gone;
use super::{
    Begun, Ended, RecordCost, Recording, SAMPLE_NS, Session, cost, online_cpus, show_at_end,
    span_until,
};
use crate::cgroup::parse_stats;
use crate::error::{HostError, Result};
use crate::sys::clock;

/// Interval for reading the bandwidth counters if they are not in the file with the usage.
const STAT_NS: Ns = 10_000_000;
/// Interval for reading the limits and reporting progress.
const SLOW_NS: Ns = 500_000_000;
/// Bounds of the default sampling interval; the lower one because a wakeup costs more than a read.
const USUAL_SAMPLE_NS: [Ns; 2] = [SAMPLE_NS, 10 * SAMPLE_NS];
/// A reading takes no longer unless it was interrupted.
const PROMPT_NS: Ns = 200_000;
/// Readings of one sample, at most.
const ATTEMPTS: u32 = 5;
/// Interval for checking `stop`.
const POLL_NS: Ns = 100_000_000;

pub(super) fn record(session: &Session<'_>, progress: &mut dyn FnMut(Ns)) -> Result<Recording> {
    let options = session.options;
    // On a busy host the measuring thread is switched out before a tick.
    let step_ns = cost::charging_step_ns().map(|ns| ns.max(clock::tick_period()));
    let sample_ns = options.sample_ns.unwrap_or_else(|| {
        let [shortest, longest] = USUAL_SAMPLE_NS;
        step_ns.unwrap_or(0).clamp(shortest, longest)
    });
    let mut counters = Counters::open(session)?;
    let mut begun = Begun::now(session.group)?;
    let start_ns = begun.start_ns();
    let mut samples: Vec<Sample> = Vec::new();
    let mut last = GroupStats::default();
    let mut slow_at_ns = start_ns;
    let ended = loop {
        // Samples missed during a delay are skipped.
        let number = (clock::now() - start_ns) / sample_ns + 1;
        wait(start_ns + (number * sample_ns).min(options.span_ns), session.stop);
        let Some((now_ns, read)) = counters.read_at()? else { break Ended::Vanished };
        let read = begun.since(&read);
        let at_ns = (now_ns - start_ns).min(options.span_ns);
        samples.push(Sample {
            at_ns,
            runtime_ns: read.usage_ns.saturating_sub(last.usage_ns),
            runnable: None,
            nr_periods: read.nr_periods,
            nr_throttled: read.nr_throttled,
            throttled_ns: read.throttled_ns,
        });
        last = read;
        if now_ns >= slow_at_ns {
            begun.look(session.group);
            progress(at_ns);
            slow_at_ns = now_ns + SLOW_NS;
        }
        if session.stop.load(Ordering::Relaxed) {
            break Ended::Stopped;
        }
        if at_ns >= options.span_ns {
            break Ended::Whole;
        }
    };
    let span_ns = span_until(start_ns, ended, options, clock::now());
    // `cpu.stat` may have been read some time before the last sample.
    if let Ok(counters) = session.group.stats() {
        last = GroupStats { usage_ns: last.usage_ns, ..begun.since(&counters) };
        show_at_end(&mut samples, &last);
    }
    let host_load = begun.load.end(last.usage_ns, None);
    let cost = RecordCost {
        recorder_ns: begun.own_cpu_ns(),
        events: 0,
        group_events: 0,
        lost: 0,
        event_ns: None,
        span_ns,
    };
    let mut warnings = begun.warnings(ended, &cost);
    if step_ns.is_none() {
        warnings.push(
            "How often the kernel charges a running thread could not be measured: a tick is \
             assumed."
                .to_owned(),
        );
    }
    let name = session.group.name();
    let cpus = begun.cpus.max(online_cpus());
    let charging = Charging { step_ns: step_ns.unwrap_or(clock::tick_period()), cpus };
    let made = Usage::from_samples(name, samples, Some(begun.limits), charging);
    let mut usage = made.map_err(|error| HostError::System {
        doing: format!("record `{name}`"),
        reason: error.to_string(),
        help: "record a group that runs, and for longer".to_owned(),
    })?;
    usage.warnings.extend(warnings);
    usage.host_cpus = online_cpus();
    usage.began_unix_ns = begun.clocks.unix_ns();
    usage.overhead = Some(cost.cpus());
    usage.host_load = Some(host_load);
    usage.throttled_around = begun.throttled_around();
    Ok(Recording { usage, ended, cost, counters: last })
}

fn wait(end_ns: Ns, stop: &AtomicBool) {
    while clock::now() < end_ns && !stop.load(Ordering::Relaxed) {
        clock::sleep_until(end_ns.min(clock::now() + POLL_NS));
    }
}

/// Files of a group's counters, kept open, because opening costs more than reading.
struct Counters {
    name: String,
    stat: File,
    /// The file with the usage, if it is separate.
    usage: Option<File>,
    text: [u8; 4096],
    last: GroupStats,
    /// When `stat` is due to be read.
    stat_at_ns: Ns,
}

impl Counters {
    fn open(session: &Session<'_>) -> Result<Counters> {
        let files = session.group.stat_files();
        if !files.tell_usage()? {
            let (why, help) = match session.group.accounting() {
                None => (String::new(), "mount the `cpuacct` hierarchy as well".into()),
                Some(dir) => (
                    ": it is missing in the `cpuacct` hierarchy".into(),
                    format!("make {} and put its tasks there", dir.display()),
                ),
            };
            let problem = format!("no file tells the CPU time of `{}`{why}", session.group.name());
            let help = format!("{help}, or record with --how trace");
            return Err(HostError::input(problem, help));
        }
        let open = |file: &Path| File::open(file).map_err(|error| not_read(file, error));
        Ok(Counters {
            name: session.group.name().to_owned(),
            stat: open(&files.cpu_stat)?,
            usage: files.usage.as_deref().map(open).transpose()?,
            text: [0; 4096],
            last: GroupStats::default(),
            stat_at_ns: 0,
        })
    }

    /// Current counters and their time; `None` if the group is gone. A reading that was interrupted
    /// between the clock and the counters is repeated, for it has time of later.
    fn read_at(&mut self) -> Result<Option<(Ns, GroupStats)>> {
        for attempt in 1.. {
            let now_ns = clock::now();
            let Some(read) = self.read(now_ns)? else { break };
            if clock::now() - now_ns <= PROMPT_NS || attempt == ATTEMPTS {
                return Ok(Some((now_ns, read)));
            }
        }
        Ok(None)
    }

    fn read(&mut self, now_ns: Ns) -> Result<Option<GroupStats>> {
        match self.try_read(now_ns) {
            Ok(()) => Ok(Some(self.last.clone())),
            Err(error) if is_gone(&error) => Ok(None),
            Err(error) => Err(not_read(Path::new("the counters of the group"), error)),
        }
    }

    fn try_read(&mut self, now_ns: Ns) -> io::Result<()> {
        if self.usage.is_none() || now_ns >= self.stat_at_ns {
            let usage_ns = self.last.usage_ns;
            let text = text(&self.stat, &mut self.text)?;
            self.last = parse_stats(&self.name, text);
            if self.usage.is_some() {
                self.last.usage_ns = usage_ns;
            }
            self.stat_at_ns = now_ns + STAT_NS;
        }
        if let Some(file) = &self.usage {
            let text = text(file, &mut self.text)?.trim();
            self.last.usage_ns = text.parse().map_err(|_| io::ErrorKind::InvalidData)?;
        }
        Ok(())
    }
}

/// Current content of a file.
fn text<'a>(file: &File, buffer: &'a mut [u8]) -> io::Result<&'a str> {
    let length = file.read_at(buffer, 0)?;
    std::str::from_utf8(&buffer[..length]).map_err(|_| io::ErrorKind::InvalidData.into())
}

fn not_read(file: &Path, error: io::Error) -> HostError {
    let help = "see that the group still exists and that its files may be read";
    HostError::system(format!("read {}", file.display()), error, help)
}

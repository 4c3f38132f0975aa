//! Lines of a trace, one after the other, and what `reveille workloads` shows of it.

use std::path::Path;

use reveille_place::{Mistake, Source, counted};

use super::kept::ONLY;
use super::line::{self, What};
use super::tasks::{Step, Tasks, Trace, Traced, waits};
use crate::amount::MAX_TIME_NS;
use crate::error::Result;
use crate::file::{Param, Workload};
use crate::program::{Metric, MetricKind};

/// Each takes up to 100 bytes.
const MAX_EVENTS: usize = 8_000_000;
const RECORD: &str = "record with `trace-cmd record -e sched_switch -e sched_waking -e \
                      sched_wakeup_new` and print with `trace-cmd report -l -t`, or use `perf sched \
                      record` and `perf script --ns`";
/// Tasks in the summary.
const LISTED: usize = 40;

impl Workload {
    /// Reads a trace that `perf script`, `trace-cmd report` or the kernel's `trace` file printed;
    /// `file` names it in messages. A unit of load is a copy of all its tasks. The metrics are
    /// the time from wakeups until tasks run, and wakeups per second.
    ///
    /// # Errors
    /// [`InputError::File`](reveille_place::InputError::File) for a line of the scheduler's that
    /// is not understood, lost events, events that are not sorted by time, more than an hour,
    /// 65,535 tasks or 8 million events, and a trace without switches or wakeups.
    pub fn parse_trace(file: &str, text: String) -> Result<Workload> {
        let source = Source { file: file.to_owned(), text };
        let (trace, tells_interrupts) = read(&source)?;
        let stem = Path::new(file).file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let (about, by_interrupts) = about(&trace, tells_interrupts);
        Ok(Workload {
            name: stem.filter(|stem| !stem.trim().is_empty()).unwrap_or("trace".to_owned()),
            about,
            load_unit: "copies of the trace".to_owned(),
            params: vec![Param {
                name: ONLY.to_owned(),
                default: "*".to_owned(),
                about: "names or ids of the tasks to keep, separated by commas; * ends a prefix"
                    .to_owned(),
            }],
            metrics: metrics(by_interrupts > 0),
            pass_ns: trace.span_ns,
            param_kinds: Vec::new(),
            channels: Vec::new(),
            lists: Vec::new(),
            locks: Vec::new(),
            records: vec!["wakeup".to_owned()],
            tasks: Vec::new(),
            source: Source { file: source.file, text: summary(&trace.tasks) },
            trace: Some(trace),
        })
    }
}

/// The trace, and whether it tells what happens in interrupts.
fn read(source: &Source) -> Result<(Trace, bool)> {
    let text = &source.text;
    let waking = text.contains(" sched_waking: ") || text.contains(":sched_waking: ");
    let (mut tasks, mut events, mut tells_interrupts) = (None, 0, false);
    let (mut switches, mut wakes) = (false, false);
    let mut at = 0;
    for whole in text.split_inclusive('\n') {
        let span = at..at + whole.trim_end().len();
        at += whole.len();
        let wrong = |mistake| source.error(&span, None, mistake);
        let Some(event) = line::event(&text[span.clone()]) else { continue };
        let Some(event) = event else {
            let problem = "is not as perf, trace-cmd or the kernel print this event";
            return Err(wrong(Mistake::new(problem, RECORD)));
        };
        events += 1;
        if events > MAX_EVENTS {
            let problem = format!("is an event of the scheduler beyond {MAX_EVENTS}");
            return Err(wrong(Mistake::new(problem, "cut the trace before this line")));
        }
        tells_interrupts |= event.in_interrupt.is_some();
        switches |= matches!(event.what, What::Switch { .. });
        wakes |= matches!(event.what, What::Wake { .. });
        tasks.get_or_insert_with(|| Tasks::new(event.at_ns)).take(&event, waking).map_err(wrong)?;
    }
    let empty = |problem: &str| Mistake::new(problem, RECORD).in_file(&source.file);
    let tasks = tasks.ok_or_else(|| empty("has no event of the scheduler"))?;
    for (there, problem) in [
        (switches, "has no event sched_switch"),
        (wakes, "has neither sched_waking nor sched_wakeup"),
    ] {
        if !there {
            return Err(empty(problem));
        }
    }
    let trace = tasks.end();
    if trace.span_ns > MAX_TIME_NS {
        let problem = format!("lasts {} s, more than an hour", trace.span_ns / 1_000_000_000);
        let mistake = Mistake::new(problem, "cut it to the part that is to be repeated");
        return Err(mistake.in_file(&source.file));
    }
    if !trace.tasks.iter().flat_map(|task| &task.steps).any(waits) || trace.span_ns == 0 {
        return Err(empty("has no task that is woken"));
    }
    Ok((trace, tells_interrupts))
}

/// Wakeups of a task by tasks, interrupts and devices.
fn wakeups(task: &Traced) -> [u64; 3] {
    let mut wakeups = [0; 3];
    for step in &task.steps {
        match step {
            Step::Woken { by: Some(_), .. } => wakeups[0] += 1,
            Step::Woken { by: None, .. } => wakeups[1] += 1,
            Step::Device { .. } => wakeups[2] += 1,
            _ => {}
        }
    }
    wakeups
}

/// One line, and the number of wakeups by interrupts.
fn about(trace: &Trace, tells_interrupts: bool) -> (String, u64) {
    let (mut all, mut ran_ns, mut active) = ([0; 3], 0, 0u64);
    for task in trace.tasks.iter().filter(|task| task.acts()) {
        let own = wakeups(task);
        all = std::array::from_fn(|cause| all[cause] + own[cause]);
        ran_ns += task.ran_ns;
        active += 1;
    }
    let [by_tasks, by_interrupts, by_devices] = all;
    let unknown = if tells_interrupts { "" } else { " (the trace does not tell interrupts)" };
    let text = format!(
        "{} in {:.3} s of a trace, using {:.2} CPUs; {by_tasks} wakeups by tasks{unknown}, \
         {by_interrupts} by interrupts, {by_devices} by devices",
        counted(active, "task"),
        trace.span_ns as f64 / 1e9,
        ran_ns as f64 / trace.span_ns as f64,
    );
    (text, by_interrupts)
}

/// A line for each of the tasks that run longest.
fn summary(tasks: &[Traced]) -> String {
    let mut all: Vec<&Traced> = tasks.iter().filter(|task| task.acts()).collect();
    all.sort_by_key(|task| (std::cmp::Reverse(task.ran_ns), task.id));
    let mut text = "CPU time (ms)    by tasks  interrupts     devices  task\n".to_owned();
    for task in all.iter().take(LISTED) {
        let [by_tasks, by_interrupts, by_devices] = wakeups(task);
        let ms = task.ran_ns as f64 / 1e6;
        text += &format!(
            "{ms:>13.3} {by_tasks:>11} {by_interrupts:>11} {by_devices:>11}  {}-{}\n",
            task.name, task.id
        );
    }
    if all.len() > LISTED {
        text += &format!("and {} more\n", all.len() - LISTED);
    }
    text
}

/// Where interrupts wake tasks, they fix how often tasks run, so that latency is what can differ.
fn metrics(timed: bool) -> Vec<Metric> {
    let latency = |(name, quantile): (&str, f64)| Metric {
        name: format!("{name} wakeup latency (ns)"),
        kind: MetricKind::RecordedLatency { record: 0, quantile },
    };
    let quantiles = [("p99", 0.99), ("p50", 0.5), ("p90", 0.9), ("p99.9", 0.999), ("max", 1.0)];
    let mut metrics: Vec<Metric> = quantiles.into_iter().map(latency).collect();
    let name = "throughput (wakeups/s)".to_owned();
    metrics.push(Metric { name, kind: MetricKind::Throughput });
    if !timed {
        metrics.rotate_right(1);
    }
    metrics
}

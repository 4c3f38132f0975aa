//! Reads the JSON files of rt-app as workloads, so that what a user already measures on
//! a device can be compared under policies. What the simulator cannot do is refused: a
//! run that left it out would answer another question. docs/rt-app.md lists both.

mod event;
mod json;
mod task;
mod waits;

use std::path::Path;

use json::Node;
use reveille_place::{Mistake, Source};
use task::{TaskReader, pass_ns};

use crate::error::Result;
use crate::file::{Workload, records};
use crate::program::{Metric, MetricKind};
use crate::task::TaskSource;

/// What a file may say in `global`, and that changes nothing here: how long it runs and
/// what it logs are options of the command; all tasks are equals, so that priority
/// inheritance has nothing to inherit.
const GLOBAL: [&str; 15] = [
    "calibration",
    "cumulative_slack",
    "default_policy",
    "duration",
    "frag",
    "ftrace",
    "gnuplot",
    "io_device",
    "lock_pages",
    "log_basename",
    "log_size",
    "logdir",
    "logstats",
    "mem_buffer_size",
    "pi_enabled",
];
/// Names of tasks that the line about a file has room for.
const TASKS_IN_ABOUT: usize = 6;

impl Workload {
    /// Reads a file of rt-app, with or without a byte order mark (its `doc/tutorial.txt` has the format); `file` names it in
    /// messages. A unit of load is a copy of all tasks of the file. The metrics are the
    /// latency of wake-ups by timers, rt-app's `wu_lat`, if there are timers, and passes
    /// through phases per second.
    ///
    /// # Errors
    /// [`InputError::File`](reveille_place::InputError::File), with the path of the value as its key, for what is no JSON,
    /// is unknown to rt-app, would never take time or wake, or asks for what is not
    /// simulated: CPU affinity, other policies than SCHED_OTHER, memory and input/output.
    pub fn parse_rtapp(file: &str, text: &str) -> Result<Workload> {
        let source = Source::new(file, text.strip_prefix('\u{feff}').unwrap_or(text));
        let reader = json::document(&source, read)?;
        let records = records(&source, &reader.tasks)?;
        let stem = Path::new(file).file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let workload = Workload {
            name: stem.filter(|stem| !stem.trim().is_empty()).unwrap_or("rt-app".to_owned()),
            about: about(&reader),
            load_unit: "copies of the file".to_owned(),
            params: Vec::new(),
            metrics: metrics(!records.is_empty()),
            pass_ns: reader.tasks.iter().map(|task| pass_ns(&task.ops)).max().unwrap_or(0),
            param_kinds: Vec::new(),
            channels: Vec::new(),
            lists: reader.waits.list_names(),
            locks: reader.waits.locks,
            records,
            tasks: reader.tasks,
            source,
            trace: None,
        };
        workload.check_tasks()?;
        Ok(workload)
    }
}

fn read(top: &Node) -> Result<TaskReader> {
    let mut tasks = None;
    for (key, value) in top.named()? {
        match key {
            "tasks" => tasks = Some(value),
            "global" => global(&value)?,
            // Declares what rt-app makes when it is first named.
            "resources" => {}
            _ => {
                let known = ["tasks", "global", "resources"].into_iter();
                return Err(value.error(Mistake::unknown("object of a file", key, known)));
            }
        }
    }
    let help = "add `\"tasks\": { \"thread0\": { \"run\": 1000, \"sleep\": 9000 } }`";
    let tasks = tasks.ok_or_else(|| top.wrong("`tasks` is missing", help))?;
    let mut reader = TaskReader::default();
    for (name, task) in tasks.named()? {
        reader.task(name, &task)?;
    }
    if reader.tasks.is_empty() {
        return Err(tasks.wrong("has no task that runs", help));
    }
    reader.check_nice(top)?;
    reader.waits.check(top)?;
    Ok(reader)
}

fn global(global: &Node) -> Result<()> {
    for (key, value) in global.named()? {
        match key {
            "default_policy" => task::policy(&value)?,
            _ if GLOBAL.contains(&key) => {}
            _ => {
                let known = GLOBAL.into_iter();
                return Err(value.error(Mistake::unknown("key of `global`", key, known)));
            }
        }
    }
    Ok(())
}

/// `rt-app: thread0, worker (4)`.
fn about(reader: &TaskReader) -> String {
    let name = |(task, instances): (&TaskSource, &u64)| match instances {
        1 => task.name.clone(),
        n => format!("{} ({n})", task.name),
    };
    let names = reader.tasks.iter().zip(&reader.instances).map(name);
    let mut names: Vec<String> = names.take(TASKS_IN_ABOUT).collect();
    if reader.tasks.len() > TASKS_IN_ABOUT {
        names.push("…".to_owned());
    }
    format!("tasks of an rt-app file: {}", names.join(", "))
}

/// Timers fix how often tasks run, so that with them latency is what can differ.
fn metrics(timers: bool) -> Vec<Metric> {
    let latency = |name: &str, quantile| Metric {
        name: format!("{name} wu_lat (ns)"),
        kind: MetricKind::RecordedLatency { record: 0, quantile },
    };
    let mut metrics = Vec::new();
    if timers {
        let quantiles = [("p99", 0.99), ("p50", 0.5), ("p90", 0.9), ("p99.9", 0.999), ("max", 1.0)];
        metrics.extend(quantiles.map(|(name, quantile)| latency(name, quantile)));
    }
    let name = "throughput (loops/s)".to_owned();
    metrics.push(Metric { name, kind: MetricKind::Throughput });
    metrics
}

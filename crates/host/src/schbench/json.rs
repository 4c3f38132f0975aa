//! The JSON document: of the current era in the shape of the original, with more keys; of
//! the older ones, which had none, in a like shape.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use reveille_measure::{GroupStats, HostContext};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::Value;

use super::options::{Era, Schbench};
use super::{Outcome, Summary, Think};

/// What a document says about a run besides its options and results.
#[derive(Clone, Debug, Default)]
pub struct Header {
    pub jobname: Option<String>,
    pub command_line: String,
}

/// Keys in the order in which they were added, as the original's.
#[derive(Default)]
struct Ordered(Vec<(String, Value)>);

impl Ordered {
    fn add(&mut self, key: impl Into<String>, value: impl Into<Value>) {
        self.0.push((key.into(), value.into()));
    }

    fn add_summary(&mut self, label: &str, summary: &Summary) {
        for line in &summary.percentiles {
            self.add(format!("{label}_pct{:.1}", line.percent), line.value);
        }
        self.add(format!("{label}_min"), summary.min);
        self.add(format!("{label}_max"), summary.max);
        self.add(format!("{label}_samples"), summary.samples);
    }
}

impl Serialize for Ordered {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

#[derive(Serialize)]
struct Document {
    normal: Ordered,
    int: Ordered,
    float: Ordered,
}

/// A run as one line of JSON, with a line feed.
pub fn document(
    job: &Schbench,
    outcome: &Outcome,
    host: &HostContext,
    group: Option<&GroupStats>,
    header: &Header,
) -> String {
    let document = Document {
        normal: normal(job, host, header),
        int: int(job, outcome, group),
        float: float(job, outcome),
    };
    serde_json::to_string(&document).expect("plain data") + "\n"
}

fn normal(job: &Schbench, host: &HostContext, header: &Header) -> Ordered {
    let mut normal = Ordered::default();
    normal.add("version", host.kernel.as_str());
    if let Some(jobname) = &header.jobname {
        normal.add("jobname", jobname.as_str());
    }
    normal.add("hostname", line_of("/proc/sys/kernel/hostname").unwrap_or_default());
    normal.add("sched_ext", host.sched_ext.as_deref().unwrap_or("disabled"));
    normal.add("cmdline", header.command_line.as_str());
    normal.add("era", job.era.name());
    normal.add("processor", host.cpu.as_str());
    if let Some(governor) = &host.governor {
        normal.add("governor", governor.as_str());
    }
    if let Some(hypervisor) = &host.virtualisation {
        normal.add("virtualisation", hypervisor.as_str());
    }
    if !host.warnings.is_empty() {
        normal.add("warnings", host.warnings.join("; "));
    }
    normal
}

fn int(job: &Schbench, outcome: &Outcome, group: Option<&GroupStats>) -> Ordered {
    let mut int = Ordered::default();
    let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_secs());
    int.add("time", time);
    let current = job.era == Era::Current;
    int.add_summary(if current { "wakeup_latency" } else { "latency" }, &outcome.wakeup);
    if let Some(request) = &outcome.request {
        int.add_summary("request_latency", request);
    }
    if let Some(rps) = &outcome.rps {
        int.add_summary("rps", rps);
    }
    int.add("runtime", job.runtime_s);
    if let Some(open_loop) = &outcome.open_loop {
        int.add_summary("open_loop_latency", open_loop);
        int.add("requests_skipped", outcome.skipped);
        int.add("rps_goal", outcome.rps_goal);
    }
    if job.era == Era::First {
        int.add("latency_over", outcome.over);
    }
    int.add("message_threads", job.message_threads);
    int.add("worker_threads", outcome.worker_threads);
    int.add("loops", outcome.loops);
    int.add("measured_ns", outcome.measured_ns);
    int.add("message_sched_delay_ns", outcome.message_delay_ns);
    int.add("worker_sched_delay_ns", outcome.worker_delay_ns);
    let tasks = &outcome.tasks;
    int.add("cpu_ns", tasks.cpu_ns);
    int.add("run_delay_ns", tasks.run_delay_ns);
    int.add("voluntary_switches", tasks.voluntary_switches);
    int.add("involuntary_switches", tasks.involuntary_switches);
    int.add("migrations", tasks.migrations);
    if let Some(group) = group {
        int.add("nr_periods", group.nr_periods);
        int.add("nr_throttled", group.nr_throttled);
        int.add("throttled_ns", group.throttled_ns);
        int.add("nr_bursts", group.nr_bursts);
        int.add("burst_ns", group.burst_ns);
    }
    int
}

fn float(job: &Schbench, outcome: &Outcome) -> Ordered {
    let mut float = Ordered::default();
    if let Some(bytes) = job.pipe_bytes {
        let rate = outcome.worker_rate(job.message_threads);
        float.add("worker_ops_per_sec", rate);
        float.add("worker_bytes_per_sec", rate * f64::from(bytes));
    } else {
        float.add("average_rps", outcome.average_rps());
    }
    if let Think::Spin { cpu_us: cpu_us @ 1.. } = job.think
        && job.rps.is_some()
    {
        for (key, percent) in [("p95_cputime_pct", 95.0), ("p99_cputime_pct", 99.0)] {
            float.add(key, f64::from(outcome.wakeup.at(percent)) / cpu_us as f64 * 100.0);
        }
    }
    float
}

fn line_of(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|line| !line.is_empty())
}

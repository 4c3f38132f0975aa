//! Reads workload files: what is said about a workload as a whole. Its tasks are
//! read in `task`, and made for a load in `build`.

use reveille_place::{Mistake, Source};
use toml::de::DeTable;

use crate::amount::{Kind, ParamKind};
use crate::channels::{self, ChannelSource};
use crate::error::Result;
use crate::names::Names;
use crate::operation::{Code, flatten};
use crate::program::{Metric, MetricKind};
use crate::table::Table;
use crate::task::{self, TaskSource};
use crate::trace::Trace;

/// A workload as its file describes it: tasks that know neither load nor parameters yet.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Name, as used on the command line and in studies.
    pub name: String,
    /// What it does and which program it stands for, in one line.
    pub about: String,
    /// What one unit of load is, in the plural: `message threads`.
    pub load_unit: String,
    /// What can be changed about it, in the order of the file.
    pub params: Vec<Param>,
    /// What a run can be judged by; the first is the usual one.
    pub metrics: Vec<Metric>,
    /// How long the longest task takes for one pass through its phases, where nothing holds it
    /// up; 0 without phases.
    pub pass_ns: u64,
    pub(crate) source: Source,
    pub(crate) param_kinds: Vec<ParamKind>,
    pub(crate) channels: Vec<ChannelSource>,
    pub(crate) lists: Vec<String>,
    pub(crate) locks: Vec<String>,
    /// Names of the latencies that tasks record, in the order of the file.
    pub(crate) records: Vec<String>,
    pub(crate) tasks: Vec<TaskSource>,
    /// A trace to repeat, in place of `tasks`.
    pub(crate) trace: Option<Trace>,
}

/// Something about a workload that can be changed without another file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name; the file uses it as `$name`.
    pub name: String,
    /// Its value when nothing is said: a whole number such as `16`, or a time such as `30ms`.
    pub default: String,
    /// What it changes, in one line.
    pub about: String,
}

const KEYS: [&str; 9] =
    ["name", "about", "load", "metric", "params", "channels", "lists", "locks", "task"];
/// A workload records no more latencies than this.
const MAX_RECORDS: usize = 16;

impl Workload {
    /// Reads a workload file; `file` names it in messages.
    pub fn parse(file: &str, text: &str) -> Result<Workload> {
        let source = Source::new(file, text);
        let document = DeTable::parse(text).map_err(|error| {
            source.not_toml(&error, "mend the TOML; https://toml.io has the syntax")
        })?;
        let top = Table::document(&source, &document);
        top.only("a workload", &KEYS)?;
        let (params, param_kinds) = params(&top)?;
        let channels = channels::read(&top, &param_kinds)?;
        let lists = name_list(&top, "lists", "[\"done\"]")?;
        let locks = name_list(&top, "locks", "[\"mutex\"]")?;
        let roles = task::role_names(&top)?;
        let names = Names {
            params: &param_kinds,
            channels: &channels,
            lists: &lists,
            locks: &locks,
            roles: &roles,
        };
        let tasks = task::read(&top, &names)?;
        let records = records(&source, &tasks)?;
        let workload = Workload {
            name: top.require("name", "\"my-workload\"")?.text("\"my-workload\"")?.to_owned(),
            about: top.require("about", "\"…\"")?.text("\"…\"")?.to_owned(),
            load_unit: top.require("load", "\"pairs\"")?.text("\"pairs\"")?.to_owned(),
            metrics: metrics(&top, &records)?,
            pass_ns: 0,
            params,
            param_kinds,
            channels,
            lists,
            locks,
            records,
            tasks,
            source: source.clone(),
            trace: None,
        };
        workload.check(&top)?;
        Ok(workload)
    }

    /// Its file; of a trace, a table of its tasks.
    pub fn source_text(&self) -> &str {
        &self.source.text
    }

    pub fn is_trace(&self) -> bool {
        self.trace.is_some()
    }
}

/// `[params.NAME]`, each with `default` and `about`.
fn params(top: &Table) -> Result<(Vec<Param>, Vec<ParamKind>)> {
    let Some(entry) = top.get("params") else { return Ok(Default::default()) };
    let (mut params, mut kinds) = (Vec::new(), Vec::new());
    for (span, param) in entry.table("{}")?.entries() {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if param.key.is_empty() || !param.key.chars().all(word) {
            let mistake = Mistake::new("is no name for a parameter", "use letters, digits and _");
            return Err(top.source.error(&span, Some(param.key), mistake));
        }
        let table = param.table("{ default = 16, about = \"…\" }")?;
        table.only("a parameter", &["default", "choices", "about"])?;
        let default = table.require("default", "16")?;
        let text = default.scalar("16")?;
        let mut choices = Vec::new();
        if let Some(entry) = table.get("choices") {
            const EXAMPLE: &str = "{ socket = \"unix\", pipe = \"pipe\" }";
            for (_, choice) in entry.table(EXAMPLE)?.entries() {
                choices.push((choice.key.to_owned(), choice.text("\"unix\"")?.to_owned()));
            }
        }
        let kind = if choices.is_empty() { Kind::of_default(&text) } else { Kind::Choice };
        let of_kind = ParamKind { name: param.key.to_owned(), kind, choices };
        of_kind.parse(&text).map_err(|m| default.error(m))?;
        kinds.push(of_kind);
        params.push(Param {
            name: param.key.to_owned(),
            default: text,
            about: table.require("about", "\"…\"")?.text("\"…\"")?.to_owned(),
        });
    }
    Ok((params, kinds))
}

/// `lists = ["done"]` or `locks = ["mutex"]`.
fn name_list(top: &Table, key: &str, example: &str) -> Result<Vec<String>> {
    let Some(entry) = top.get(key) else { return Ok(Vec::new()) };
    let mut names: Vec<String> = Vec::new();
    for item in entry.array(example)? {
        let name = item.text(example)?;
        if names.iter().any(|l| l == name) {
            let problem = format!("names `{name}` twice");
            return Err(item.error(Mistake::new(problem, "leave one of them out")));
        }
        names.push(name.to_owned());
    }
    entry.few(names.len())?;
    Ok(names)
}

/// What tasks record, each name once.
pub(crate) fn records(source: &Source, tasks: &[TaskSource]) -> Result<Vec<String>> {
    let mut records: Vec<String> = Vec::new();
    for op in tasks.iter().flat_map(|task| flatten(&task.ops, 1)) {
        let Code::Record { record, .. } = &op.code else { continue };
        if records.contains(record) {
            continue;
        }
        if records.len() == MAX_RECORDS {
            let fix = format!("record {MAX_RECORDS} different latencies at most");
            let mistake = Mistake::new("is one latency too many", fix);
            return Err(source.error(&op.span, Some(&op.key), mistake));
        }
        records.push(record.clone());
    }
    Ok(records)
}

/// `[[metric]]`, each with `name` and one way to take it.
fn metrics(top: &Table, records: &[String]) -> Result<Vec<Metric>> {
    const EXAMPLE: &str = "[{ name = \"throughput (operations/s)\", throughput = true }]";
    let mut metrics: Vec<Metric> = Vec::new();
    let entry = top.require("metric", EXAMPLE)?;
    for item in entry.array(EXAMPLE)? {
        let table = item.table(EXAMPLE)?;
        table.only("a metric", &["name", "quantile", "max", "record", "throughput"])?;
        let named = table.require("name", "\"p99 wakeup latency (ns)\"")?;
        let name = named.text("\"…\"")?.to_owned();
        let known = records.iter().map(String::as_str);
        let record = match table.get("record") {
            None if records.len() > 1 => {
                let fix = format!("add `record`, one of {}", records.join(", "));
                let mistake = Mistake::new("does not say which latency it is about", fix);
                let timed = table.get("quantile").or(table.get("max"));
                timed.map_or(Ok(0), |entry| Err(entry.error(mistake)))?
            }
            None => 0,
            Some(entry) => {
                let name = entry.text("\"wakeup\"")?;
                let unknown = || Mistake::unknown("recorded latency", name, known.clone());
                known.clone().position(|k| k == name).ok_or_else(|| entry.error(unknown()))?
            }
        };
        let latency = |quantile| MetricKind::RecordedLatency { record: record as u8, quantile };
        let kind = match (table.get("throughput"), table.get("quantile"), table.get("max")) {
            (Some(throughput), None, None) if table.get("record").is_none() => {
                throughput.yes().map(|()| MetricKind::Throughput)?
            }
            (None, Some(quantile), None) => latency(quantile.fraction("0.99")?),
            (None, None, Some(max)) => max.yes().map(|()| latency(1.0))?,
            _ => {
                let fix = "give each metric `throughput = true`, a `quantile` or `max = true`";
                return Err(item.error(Mistake::new("is taken in no way, or in two", fix)));
            }
        };
        if metrics.iter().any(|known| known.name == name) {
            let problem = format!("two metrics are called `{name}`");
            return Err(named.error(Mistake::new(problem, "give one of them another name")));
        }
        let (in_its_unit, fix) = match kind {
            MetricKind::Throughput => (
                name.ends_with("/s)") || !name.ends_with(')'),
                "a throughput is a rate: end the name in one, such as ` (requests/s)`",
            ),
            MetricKind::RecordedLatency { .. } => (
                name.ends_with(" (ns)"),
                "a latency is in ns: end the name in ` (ns)`; tables show it in µs, ms or s",
            ),
        };
        if !in_its_unit {
            let problem = format!("`{name}` does not end in the unit of what is measured");
            return Err(named.error(Mistake::new(problem, fix)));
        }
        metrics.push(Metric { name, kind });
    }
    if metrics.is_empty() {
        let mistake = Mistake::new("is empty", "say what a run is judged by");
        return Err(entry.error(mistake));
    }
    Ok(metrics)
}

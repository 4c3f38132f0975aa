//! `reveille workloads`.

use std::process::ExitCode;

use reveille_workload::Workload;
use serde::Serialize;

use super::layout::{ListArgs, columns, entry};
use crate::errors::CliError;
use crate::output::{print, print_json};

/// JSON of the list.
#[derive(Serialize)]
struct WorkloadsJson {
    workloads: Vec<WorkloadJson>,
}

/// JSON of one workload: its list entry and its file.
#[derive(Serialize)]
struct FullWorkloadJson {
    workload: FullWorkload,
}

#[derive(Serialize)]
struct WorkloadJson {
    name: String,
    about: String,
    load_unit: String,
    params: Vec<ParamJson>,
    /// The first is the default.
    metrics: Vec<MetricJson>,
}

#[derive(Serialize)]
struct FullWorkload {
    #[serde(flatten)]
    workload: WorkloadJson,
    file: String,
}

#[derive(Serialize)]
struct ParamJson {
    name: String,
    default: String,
    about: String,
}

#[derive(Serialize)]
struct MetricJson {
    name: String,
    higher_is_better: bool,
}

/// Lists workloads, or shows one.
pub fn workloads(args: &ListArgs) -> Result<ExitCode, CliError> {
    if let Some(spec) = &args.name {
        let workload = reveille_workload::load(spec)?;
        if args.json {
            let file = workload.source_text().to_owned();
            let workload = FullWorkload { workload: json(&workload), file };
            print_json(&FullWorkloadJson { workload })?;
        } else {
            print(&full_text(&workload))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let workloads =
        reveille_workload::names().map(reveille_workload::load).collect::<Result<Vec<_>, _>>()?;
    if args.json {
        print_json(&WorkloadsJson { workloads: workloads.iter().map(json).collect() })?;
    } else {
        let row = |w: Workload| [w.name, format!("load in {}", w.load_unit), w.about];
        print(&columns(&workloads.into_iter().map(row).collect::<Vec<_>>()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn json(w: &Workload) -> WorkloadJson {
    let params = w.params.iter().map(|p| ParamJson {
        name: p.name.clone(),
        default: p.default.clone(),
        about: p.about.clone(),
    });
    let metrics = w
        .metrics
        .iter()
        .map(|m| MetricJson { name: m.name.clone(), higher_is_better: m.kind.higher_is_better() });
    WorkloadJson {
        name: w.name.clone(),
        about: w.about.clone(),
        load_unit: w.load_unit.clone(),
        params: params.collect(),
        metrics: metrics.collect(),
    }
}

fn full_text(w: &Workload) -> String {
    let mut text = String::new();
    text += &entry(0, "workload", &w.name);
    text += &entry(0, "about", &w.about);
    text += &entry(0, "load in", &w.load_unit);
    if !w.params.is_empty() {
        text += "\nparameters\n";
        let row = |p: &reveille_workload::Param| {
            [format!("  {} = {}", p.name, p.default), p.about.clone()]
        };
        text += &columns(&w.params.iter().map(row).collect::<Vec<_>>());
    }
    text += "\nmetrics, the usual one first\n";
    for metric in &w.metrics {
        let better = if metric.kind.higher_is_better() { "higher" } else { "lower" };
        text += &format!("  {}, {better} is better\n", metric.name);
    }
    text += "\nfile\n\n";
    for line in w.source_text().lines() {
        text += format!("    {line}").trim_end();
        text += "\n";
    }
    text
}

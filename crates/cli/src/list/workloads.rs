//! `reveille workloads`.

use std::process::ExitCode;

use reveille_report::object;
use reveille_workload::{Metric, Param, Workload};
use serde::Serialize;

use super::layout::{ListArgs, columns, entry};
use crate::errors::Result;
use crate::output::{print, print_json};

pub fn workloads(args: &ListArgs) -> Result<ExitCode> {
    if let Some(spec) = &args.name {
        let workload = reveille_workload::load(spec)?;
        if args.json {
            let file = workload.source_text();
            let full = object! { #[serde(flatten)] workload: json(&workload), file };
            print_json(&object! { workload: full })?;
        } else {
            print(&full_text(&workload))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let workloads =
        reveille_workload::names().map(reveille_workload::load).collect::<Result<Vec<_>, _>>()?;
    if args.json {
        let all: Vec<_> = workloads.iter().map(json).collect();
        print_json(&object! { workloads: all })?;
    } else {
        let row = |w: Workload| [w.name, format!("load in {}", w.load_unit), w.about];
        print(&columns(&workloads.into_iter().map(row).collect::<Vec<_>>()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn json(w: &Workload) -> impl Serialize {
    let param = |p: &Param| {
        let Param { name, default, about, .. } = p.clone();
        object! { name, default, about }
    };
    let metric = |m: &Metric| {
        object! { name: m.name.clone(), higher_is_better: m.kind.higher_is_better() }
    };
    object! {
        name: &w.name,
        about: &w.about,
        load_unit: &w.load_unit,
        params: w.params.iter().map(param).collect::<Vec<_>>(),
        metrics: w.metrics.iter().map(metric).collect::<Vec<_>>(),
    }
}

fn full_text(w: &Workload) -> String {
    let mut text = String::new();
    text += &entry(0, "workload", &w.name);
    text += &entry(0, "about", &w.about);
    text += &entry(0, "load in", &w.load_unit);
    if !w.params.is_empty() {
        text += "\nparameters\n";
        let row = |p: &Param| [format!("  {} = {}", p.name, p.default), p.about.clone()];
        text += &columns(&w.params.iter().map(row).collect::<Vec<_>>());
    }
    text += "\nmetrics, the usual one first\n";
    for metric in &w.metrics {
        let better = if metric.kind.higher_is_better() { "higher" } else { "lower" };
        text += &format!("  {}, {better} is better\n", metric.name);
    }
    text += if w.is_trace() { "\ntasks\n\n" } else { "\nfile\n\n" };
    for line in w.source_text().lines() {
        text += format!("    {line}").trim_end();
        text += "\n";
    }
    text
}

//! `reveille machines`.

use std::fmt::Write;
use std::process::ExitCode;

use reveille_machine::{Constant, IdleState, Machine, Origin};
use reveille_report::object;
use serde::Serialize;

use super::layout::{ListArgs, columns, entry};
use crate::errors::{Result, warn_of};
use crate::output::{print, print_json, print_result};

pub fn machines(args: &ListArgs) -> Result<ExitCode> {
    if let Some(spec) = &args.name {
        let machine = reveille_machine::load(spec)?;
        warn_of(&machine);
        let json = object! { machine: full_json(&machine) };
        print_result(args.json, &json, || full_text(&machine))?;
        return Ok(ExitCode::SUCCESS);
    }
    let machines = reveille_machine::preset_names()
        .into_iter()
        .map(reveille_machine::load)
        .collect::<Result<Vec<_>, _>>()?;
    if args.json {
        let line = |m: &Machine| {
            object! {
                name: m.name.clone(),
                about: m.about.clone(),
                cpus: m.topology.n_cpus(),
                topology: m.topology.describe(),
            }
        };
        print_json(&object! { machines: machines.iter().map(line).collect::<Vec<_>>() })?;
    } else {
        let rows: Vec<[String; 3]> = machines
            .into_iter()
            .map(|m| [m.name, format!("{} CPUs", m.topology.n_cpus()), m.about])
            .chain([["host".into(), "".into(), "this machine, read from /sys".into()]])
            .collect();
        print(&columns(&rows))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn full_text(m: &Machine) -> String {
    let mut text = String::new();
    text += &entry(0, "machine", &m.name);
    text += &entry(0, "about", &m.about);
    text += &entry(0, "source", &m.source);
    text += &entry(0, "topology", &m.topology.describe());
    text += &entry(0, "tick", &format!("{} Hz", m.hz));
    text += &entry(0, "cost model", &m.cost_model);
    text += "\nidle states, lightest first\n";
    for state in &m.idle {
        text += &idle_text(state);
    }
    text += "\nconstants: value, plausible range, meaning, where it comes from\n";
    for constant in &m.constants {
        text += &constant_text(constant);
    }
    text
}

fn idle_text(s: &IdleState) -> String {
    let mut text = String::new();
    let polling = if s.polling { ", needs no interrupt" } else { "" };
    let _ = writeln!(
        text,
        "  {}: exit {} ns ({} to {}), worth it from {} ns{polling}",
        s.name, s.exit_ns, s.exit_low_ns, s.exit_high_ns, s.residency_ns
    );
    text + &origin_text(&s.origin)
}

fn constant_text(c: &Constant) -> String {
    let mut text = String::new();
    let inherited = if c.inherited { ", inherited from the cost model" } else { "" };
    let _ =
        writeln!(text, "  {} = {} {} ({} to {}){inherited}", c.key, c.value, c.unit, c.low, c.high);
    text += &entry(4, "meaning", c.meaning);
    text + &origin_text(&c.origin)
}

fn origin_text(origin: &Origin) -> String {
    let text = entry(4, origin.kind(), origin.text());
    match origin {
        Origin::Measured(m) => {
            let spread = format!("p10 {:.6}, p90 {:.6}", m.p10, m.p90);
            text + &entry(4, "spread", &format!("{spread}, {} samples", m.samples))
        }
        _ => text,
    }
}

/// Times are in the constant's own unit, or in ns by name.
fn full_json<'a>(m: &'a Machine) -> impl Serialize + use<'a> {
    let t = &m.topology;
    let topology = object! {
        text: t.describe(),
        cpus: t.n_cpus(),
        cores: t.n_cores(),
        llcs: t.n_llcs(),
        nodes: t.n_nodes(),
        sockets: t.n_sockets(),
    };
    let idle =
        |s: &'a IdleState| object! { #[serde(flatten)] state: s, origin: origin_json(&s.origin) };
    let constant = |c: &'a Constant| {
        object! {
            key: c.key,
            value: c.value,
            unit: c.unit,
            low: c.low,
            high: c.high,
            inherited: c.inherited,
            meaning: c.meaning,
            origin: origin_json(&c.origin),
        }
    };
    object! {
        name: &m.name,
        about: &m.about,
        source: &m.source,
        topology,
        cost_model: &m.cost_model,
        hz: m.hz,
        idle: m.idle.iter().map(idle).collect::<Vec<_>>(),
        constants: m.constants.iter().map(constant).collect::<Vec<_>>(),
        warnings: &m.warnings,
    }
}

/// `kind` is `cited`, `estimated`, `measured` or `fitted`. Of a measured constant a tenth of the
/// samples lies below `p10`, a tenth above `p90`.
fn origin_json(origin: &Origin) -> impl Serialize {
    let spread = match origin {
        Origin::Measured(m) => {
            Some(object! { spread: object! { p10: m.p10, p90: m.p90, samples: m.samples } })
        }
        _ => None,
    };
    object! { kind: origin.kind(), text: origin.text(), #[serde(flatten)] spread }
}

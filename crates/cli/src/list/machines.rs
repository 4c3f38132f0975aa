//! `reveille machines`.

use std::fmt::Write;
use std::process::ExitCode;

use reveille_machine::{Constant, IdleState, Machine, Origin};
use serde::Serialize;

use super::layout::{ListArgs, columns, entry};
use crate::errors::{CliError, warn_of};
use crate::output::{print, print_json};

/// JSON of the list.
#[derive(Serialize)]
struct MachinesJson {
    machines: Vec<MachineLine>,
}

/// A machine in the list.
#[derive(Serialize)]
struct MachineLine {
    name: String,
    about: String,
    cpus: usize,
    topology: String,
}

/// JSON of one machine.
#[derive(Serialize)]
struct MachineJson<'a> {
    machine: FullMachine<'a>,
}

/// A machine in full; times are in the constant's own unit, or in ns by name.
#[derive(Serialize)]
struct FullMachine<'a> {
    name: &'a str,
    about: &'a str,
    source: &'a str,
    topology: TopologyJson,
    cost_model: &'a str,
    hz: u32,
    idle: Vec<IdleJson<'a>>,
    constants: Vec<ConstantJson<'a>>,
    /// Hardware features that the model leaves out.
    warnings: &'a [String],
}

#[derive(Serialize)]
struct TopologyJson {
    text: String,
    cpus: usize,
    cores: usize,
    llcs: usize,
    nodes: usize,
    sockets: usize,
}

#[derive(Serialize)]
struct IdleJson<'a> {
    #[serde(flatten)]
    state: &'a IdleState,
    origin: OriginJson<'a>,
}

#[derive(Serialize)]
struct ConstantJson<'a> {
    key: &'a str,
    value: f64,
    unit: &'a str,
    low: f64,
    high: f64,
    inherited: bool,
    meaning: &'a str,
    origin: OriginJson<'a>,
}

/// `kind` is `cited`, `estimated`, `measured` or `fitted`.
#[derive(Serialize)]
struct OriginJson<'a> {
    kind: &'static str,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    spread: Option<SpreadJson>,
}

/// Spread of a measured constant: a tenth of the samples lies below `p10`, a tenth above `p90`.
#[derive(Serialize)]
struct SpreadJson {
    p10: f64,
    p90: f64,
    samples: u64,
}

/// Lists machines, or shows one.
pub fn machines(args: &ListArgs) -> Result<ExitCode, CliError> {
    if let Some(spec) = &args.name {
        let machine = reveille_machine::load(spec)?;
        warn_of(&machine);
        if args.json {
            print_json(&MachineJson { machine: full_json(&machine) })?;
        } else {
            print(&full_text(&machine))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let machines = reveille_machine::preset_names()
        .into_iter()
        .map(|name| reveille_machine::load(name).map(|m| line(&m)))
        .collect::<Result<Vec<_>, _>>()?;
    if args.json {
        print_json(&MachinesJson { machines })?;
    } else {
        let rows: Vec<[String; 3]> = machines
            .into_iter()
            .map(|m| [m.name, format!("{} CPUs", m.cpus), m.about])
            .chain([["host".into(), "".into(), "this machine, read from /sys".into()]])
            .collect();
        print(&columns(&rows))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn line(machine: &Machine) -> MachineLine {
    MachineLine {
        name: machine.name.clone(),
        about: machine.about.clone(),
        cpus: machine.topology.n_cpus(),
        topology: machine.topology.describe(),
    }
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

fn full_json(m: &Machine) -> FullMachine<'_> {
    let t = &m.topology;
    FullMachine {
        name: &m.name,
        about: &m.about,
        source: &m.source,
        topology: TopologyJson {
            text: t.describe(),
            cpus: t.n_cpus(),
            cores: t.n_cores(),
            llcs: t.n_llcs(),
            nodes: t.n_nodes(),
            sockets: t.n_sockets(),
        },
        cost_model: &m.cost_model,
        hz: m.hz,
        idle: m.idle.iter().map(idle_json).collect(),
        constants: m.constants.iter().map(constant_json).collect(),
        warnings: &m.warnings,
    }
}

fn idle_json(s: &IdleState) -> IdleJson<'_> {
    IdleJson { state: s, origin: origin_json(&s.origin) }
}

fn constant_json(c: &Constant) -> ConstantJson<'_> {
    ConstantJson {
        key: c.key,
        value: c.value,
        unit: c.unit,
        low: c.low,
        high: c.high,
        inherited: c.inherited,
        meaning: c.meaning,
        origin: origin_json(&c.origin),
    }
}

fn origin_json(origin: &Origin) -> OriginJson<'_> {
    let spread = match origin {
        Origin::Measured(m) => Some(SpreadJson { p10: m.p10, p90: m.p90, samples: m.samples }),
        _ => None,
    };
    OriginJson { kind: origin.kind(), text: origin.text(), spread }
}

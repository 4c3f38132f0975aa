//! Reads the tasks of an rt-app file: how many there are of each, and the phases that it
//! repeats. A task without `phases` is a single one.

use reveille_place::Mistake;

use super::event::{self, Events};
use super::json::{Node, Place};
use super::waits::{Waits, Who};
use crate::amount::Amount;
use crate::error::Result;
use crate::operation::{Code, OpSource};
use crate::task::{Process, ProcessSource, TaskSource};

#[derive(Default)]
pub(super) struct TaskReader {
    pub(super) tasks: Vec<TaskSource>,
    /// How many there are of each in a copy of the file.
    pub(super) instances: Vec<u64>,
    pub(super) waits: Waits,
    shared_timers: Vec<String>,
    /// Nice values, and where they stand.
    nice: Vec<(i64, Place)>,
}

/// As many tasks as a run can have.
const MAX_INSTANCES: i64 = 1_000_000;
/// Tasks of different names in a file.
const MAX_TASKS: usize = 65_535;
/// More rounds than any run lasts: even at a microsecond each, they take over an hour.
const FOR_EVER: u64 = crate::program::FOR_EVER as u64;
/// Keys of a task and of a phase that are no events, for messages.
const OF_TASK: [&str; 6] = ["instance", "delay", "loop", "phases", "policy", "priority"];
const OF_PHASE: [&str; 3] = ["loop", "policy", "priority"];
/// Settings of tasks and phases that the simulator does not have, with what to do.
const REFUSED: [(&str, &str, &str); 10] = [
    ("cpus", "CPU affinity is not simulated", "leave it out: any CPU will do"),
    ("nodes_membind", NUMA, LEAVE_OUT),
    ("membind_nodes", NUMA, LEAVE_OUT),
    ("numa_membind", NUMA, LEAVE_OUT),
    ("util_min", CLAMP, LEAVE_OUT),
    ("util_max", CLAMP, LEAVE_OUT),
    ("taskgroup", "groups of a file are not simulated", "leave it out, and use `--group`"),
    ("dl-runtime", DEADLINE, LEAVE_OUT),
    ("dl-period", DEADLINE, LEAVE_OUT),
    ("dl-deadline", DEADLINE, LEAVE_OUT),
];
const NUMA: &str = "the binding of memory is not simulated";
const CLAMP: &str = "utilization clamping is not simulated";
const DEADLINE: &str = "SCHED_DEADLINE is not simulated";
const LEAVE_OUT: &str = "leave it out";

type Event<'a> = (&'static str, Node<'a>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rounds {
    Some(u64),
    ForEver,
}

impl TaskReader {
    pub(super) fn task(&mut self, name: &str, task: &Node) -> Result<()> {
        let (mut instances, mut delay, mut phases) = (1, Amount::Fixed(0), None);
        let (mut events, mut nice): (Vec<Event>, Vec<_>) = (Vec::new(), Vec::new());
        for (key, value) in once(task)? {
            match key {
                "instance" => instances = value.integer(0, MAX_INSTANCES)? as u64,
                "delay" => delay = event::time(&value, 0)?,
                "phases" => phases = Some(value),
                "priority" => nice.push(priority(&value)?),
                // A task that ends would leave nothing to compare: it starts again.
                "loop" => drop(rounds(&value)?),
                _ => match event::named_by(key) {
                    Some(event) => events.push((event, value)),
                    None => setting(key, &value, &OF_TASK)?,
                },
            }
        }
        // rt-app makes no thread of it.
        if instances == 0 {
            return Ok(());
        }
        if self.tasks.len() == MAX_TASKS {
            return Err(task.wrong("is one task too many", "at most 65535 are possible"));
        }
        let who = Who { task: self.tasks.len(), instances };
        let (waits, shared_timers) = (&mut self.waits, &mut self.shared_timers);
        let mut reader = Events { name, who, waits, shared_timers, timer: None };
        let ops = match (phases, events.first()) {
            (Some(_), Some((_, event))) => {
                let help = "move it into one of the phases";
                return Err(event.wrong("stands beside `phases`", help));
            }
            (Some(phases), None) => several(&phases, &mut reader, &mut nice)?,
            (None, _) => pass(task, &events, &mut reader)?,
        };
        if !ops.iter().any(takes_time) {
            let help = "let it `run`, `sleep`, or wait for a `timer`";
            return Err(task.wrong("would loop without taking time", help));
        }
        if nice.is_empty() {
            nice.push((0, task.place()));
        }
        self.nice.append(&mut nice);
        self.tasks.push(TaskSource {
            name: name.to_owned(),
            span: task.span(),
            count: Amount::Fixed(instances),
            // rt-app's tasks are threads.
            process: ProcessSource::Fixed(Process::Instance),
            ops: delayed(task, delay, ops),
        });
        self.instances.push(instances);
        Ok(())
    }

    /// Tasks weigh the same; which nice value makes them so does not matter.
    pub(super) fn check_nice(&self, top: &Node) -> Result<()> {
        let different = |pair: &&[(i64, Place)]| pair[0].0 != pair[1].0;
        let Some([(one, _), (other, place)]) = self.nice.windows(2).find(different) else {
            return Ok(());
        };
        let problem = format!("nice {other} beside nice {one} is not simulated");
        let help = "give all tasks the same `priority`, or none";
        Err(top.error_at(place, Mistake::new(problem, help)))
    }
}

/// Phases one after the other.
fn several(
    phases: &Node,
    reader: &mut Events,
    nice: &mut Vec<(i64, Place)>,
) -> Result<Vec<OpSource>> {
    let (mut ops, mut last) = (Vec::new(), None);
    for (_, phase) in phases.members()? {
        if last == Some(Rounds::ForEver) {
            let problem = "never begins: the phase before it goes on for ever";
            return Err(phase.wrong(problem, "give that one a `loop` of 1 or more"));
        }
        let (mut events, mut times): (Vec<Event>, _) = (Vec::new(), Rounds::Some(1));
        for (key, value) in once(&phase)? {
            match (key, event::named_by(key)) {
                ("loop", _) => times = rounds(&value)?,
                ("priority", _) => nice.push(priority(&value)?),
                (_, Some(event)) => events.push((event, value)),
                (_, None) => setting(key, &value, &OF_PHASE)?,
            }
        }
        let pass = pass(&phase, &events, reader)?;
        match times {
            Rounds::Some(1) => ops.extend(pass),
            Rounds::Some(times) => ops.push(repeat(&phase, times, pass)),
            Rounds::ForEver => ops.push(repeat(&phase, FOR_EVER, pass)),
        }
        last = Some(times);
    }
    if ops.is_empty() {
        return Err(phases.wrong("has no phase", "write `\"phase0\": { \"run\": 1000 }`"));
    }
    Ok(ops)
}

/// The events of a phase, done once and counted.
fn pass(phase: &Node, events: &[Event], reader: &mut Events) -> Result<Vec<OpSource>> {
    let mut ops = Vec::new();
    for (event, value) in events {
        ops.extend(reader.read(event, value)?);
    }
    if ops.is_empty() {
        let known: Vec<&str> = event::known().collect();
        return Err(phase.wrong("has no event", &format!("give it some of {}", known.join(", "))));
    }
    ops.push(op(phase, Code::Count(Amount::Fixed(1))));
    Ok(ops)
}

/// Waits for the end of `delay` first, and only once. A timer counts from there.
fn delayed(task: &Node, delay: Amount, ops: Vec<OpSource>) -> Vec<OpSource> {
    if delay == Amount::Fixed(0) {
        return ops;
    }
    let delay = Code::Period { period: delay, restart: false };
    vec![op(task, delay), repeat(task, FOR_EVER, ops)]
}

fn repeat(node: &Node, times: u64, ops: Vec<OpSource>) -> OpSource {
    op(node, Code::Repeat { times: Amount::Fixed(times), ops })
}

fn op(node: &Node, code: Code) -> OpSource {
    OpSource { key: node.path.clone().into(), span: node.span(), code }
}

/// The members of a task or a phase, of which only events may share a key.
fn once<'a>(node: &Node<'a>) -> Result<Vec<(&'a str, Node<'a>)>> {
    let members = node.members()?;
    for (index, (key, value)) in members.iter().enumerate() {
        let earlier = members[..index].iter().any(|(earlier, _)| earlier == key);
        if earlier && event::named_by(key).is_none() {
            return Err(value.wrong("stands here twice", "leave one of them out"));
        }
    }
    Ok(members)
}

fn rounds(value: &Node) -> Result<Rounds> {
    match value.integer(-1, FOR_EVER as i64)? {
        -1 => Ok(Rounds::ForEver),
        0 => Err(value.wrong("would never run", "count from 1, or write -1 for ever")),
        times => Ok(Rounds::Some(times as u64)),
    }
}

/// A setting that a task or a phase may have, other than those in `known` read before.
fn setting(key: &str, value: &Node, known: &[&'static str]) -> Result<()> {
    match key {
        "policy" => policy(value),
        // rt-app takes an empty name for none.
        "taskgroup" if value.is_blank() => Ok(()),
        _ => match REFUSED.iter().find(|(refused, _, _)| *refused == key) {
            Some((_, problem, help)) => Err(value.wrong(*problem, help)),
            None => {
                let known = known.iter().copied().chain(event::known());
                Err(value.error(Mistake::unknown("key or event", key, known)))
            }
        },
    }
}

fn priority(value: &Node) -> Result<(i64, Place)> {
    Ok((value.integer(-20, 19)?, value.place()))
}

/// A scheduling policy, which can only be the usual one.
pub(super) fn policy(value: &Node) -> Result<()> {
    match value.text()? {
        "SCHED_OTHER" | "SCHED_NORMAL" => Ok(()),
        other => {
            let help = "write \"SCHED_OTHER\", or leave it out";
            Err(value.wrong(format!("`{other}` is not simulated"), help))
        }
    }
}

/// Time for which operations run and sleep; a timer's period is as long as its pass, unless
/// that takes longer. What is repeated for ever is passed once.
pub(super) fn pass_ns(ops: &[OpSource]) -> u64 {
    let fixed = |amount: &Amount| match amount {
        Amount::Fixed(ns) => *ns,
        _ => 0,
    };
    let (mut total, mut busy, mut periods) = (0u64, 0u64, 0u64);
    for op in ops {
        match &op.code {
            Code::Run { time, .. } | Code::Spin(time) | Code::Sleep { time, .. } => {
                busy = busy.saturating_add(fixed(time));
            }
            Code::Period { period, .. } => periods = periods.saturating_add(fixed(period)),
            Code::Repeat { times, ops } => {
                let times = Some(fixed(times)).filter(|times| *times < FOR_EVER).unwrap_or(1);
                total = total.saturating_add(times.saturating_mul(pass_ns(ops)));
            }
            // The end of a phase's pass.
            Code::Count(_) => {
                total = total.saturating_add(busy.max(periods));
                (busy, periods) = (0, 0);
            }
            _ => {}
        }
    }
    total.saturating_add(busy.max(periods))
}

fn takes_time(op: &OpSource) -> bool {
    match &op.code {
        Code::Run { time, .. } | Code::Spin(time) | Code::Sleep { time, .. } => {
            *time != Amount::Fixed(0)
        }
        Code::Period { .. } | Code::Wait { .. } => true,
        Code::Repeat { ops, .. } => ops.iter().any(takes_time),
        _ => false,
    }
}

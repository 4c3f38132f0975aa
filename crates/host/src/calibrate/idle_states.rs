//! Idle-exit latency: what a wakeup on an idle CPU costs beyond all else that the model charges for
//! it, by the length of the sleep.

use reveille_machine::{IdleState, Measured, Origin};

use super::constants::{Constants, tenths};
use super::value::{Figures, Value};
use super::{GAPS_NS, Host};

/// A deeper state's exit takes at least this much longer, in ns and as a factor.
const DEEPER_NS: f64 = 2_000.0;
const DEEPER: f64 = 1.5;
/// Upper bound on an exit latency.
const MOST_NS: f64 = 1_000_000.0;

pub(super) type States = Vec<IdleState>;

/// Name of a distance's cache-line constant.
pub(super) fn line_key(place: &str) -> &'static str {
    match place {
        "smt" => "line_smt_ns",
        "cluster" => "line_cluster_ns",
        "socket" => "line_socket_ns",
        "remote" => "line_remote_ns",
        _ => "line_llc_ns",
    }
}

/// The host's idle states: the driver's, or the idle loop's single instruction if there is no
/// driver.
pub(super) fn kinds(states: &[IdleState], host: &Host) -> States {
    if host.cpuidle {
        return states.to_vec();
    }
    let (name, polling) = if host.mwait { ("C1", true) } else { ("HLT", false) };
    vec![IdleState {
        name: name.to_owned(),
        exit_ns: 0,
        // Entered for any stay; 0 would mean polling.
        residency_ns: 1,
        polling,
        exit_low_ns: 0,
        exit_high_ns: 0,
        origin: Origin::Estimated(String::new()),
    }]
}

/// `states` with measured exit latencies; unchanged if those are implausible.
pub(super) fn measured(
    found: &mut Constants,
    figures: &Figures<'_>,
    host: &Host,
    place: &str,
    mut states: States,
) -> States {
    let inherited = found.machine.idle.clone();
    let Some(first) = states.iter().position(|s| s.name != "POLL") else { return inherited };
    let Some(light) = lightest(found, figures, host, place, states[first].polling) else {
        found.warn("the idle state", "round trips between two CPUs could not be timed");
        return inherited;
    };
    if light.0.mid < 0.0 || light.0.mid > MOST_NS {
        found.warn("the idle state", format_args!("{:.0} ns ({})", light.0.mid, light.1));
        return inherited;
    }
    set(&mut states[first], light.0, &light.1);
    let gap_name = |gap: u64| format!("wake_idle_{place}_{}us", gap / 1000);
    let Some(shortest) = figures.get(&gap_name(GAPS_NS[0])) else { return states };
    let exits: Vec<(u64, Value)> = GAPS_NS
        .into_iter()
        .filter_map(|gap| Some((gap, light.0 + (figures.get(&gap_name(gap))? - shortest))))
        .collect();
    let how = |gap: u64| {
        let (gap, least) = (gap_name(gap), gap_name(GAPS_NS[0]));
        format!("the lightest state's exit + {gap} - {least}")
    };
    if host.cpuidle {
        for i in first + 1..states.len() {
            // The shortest sleep for which the governor selects this state and no deeper one.
            let next = states.get(i + 1).map_or(u64::MAX, |s| u64::from(s.residency_ns));
            let from = u64::from(states[i].residency_ns);
            if let Some((gap, exit)) = exits.iter().find(|(gap, _)| (from..next).contains(gap))
                && exit.mid >= f64::from(states[i - 1].exit_ns)
            {
                set(&mut states[i], *exit, &how(*gap));
            }
        }
        // Driver tables list worst cases: a state after a measured one does not exit faster.
        for i in first + 1..states.len() {
            let least = states[i - 1].exit_ns;
            let s = &mut states[i];
            s.exit_ns = s.exit_ns.max(least);
            s.exit_high_ns = s.exit_high_ns.max(s.exit_ns);
        }
        return states;
    }
    let deep = |exit: &Value| exit.mid > light.0.mid * DEEPER && exit.mid > light.0.mid + DEEPER_NS;
    let Some(at) = exits.iter().position(|(_, exit)| deep(exit)).filter(|at| *at > 0) else {
        return states;
    };
    let &(gap, exit) = exits.last().expect("one is deep");
    let mut slept = states[first].clone();
    slept.name = format!("{}-long", slept.name);
    // Between the longest sleep with a fast exit and the shortest with a slow one.
    slept.residency_ns = ((exits[at - 1].0 as f64) * (exits[at].0 as f64)).sqrt() as u32;
    let deeper = if exit.mid >= light.0.mid { exit } else { exits[at].1 };
    set(&mut slept, deeper, &how(gap));
    states.push(slept);
    states
}

/// Exit latency after a short sleep: half a round trip between two CPUs, minus everything else that
/// the simulator charges for it; mean of futex and pipe.
fn lightest(
    found: &Constants,
    figures: &Figures<'_>,
    host: &Host,
    place: &str,
    polling: bool,
) -> Option<(Value, String)> {
    let line = found.now(line_key(place));
    let kick = if polling { line } else { found.now("ipi_flight_ns") };
    let grouped = if host.group_levels > 0 { 1.0 } else { 0.0 };
    let known = found.wake_by_list(line)
        + line * found.now("handoff_lines").mid
        + kick
        + found.now("enqueue_ns")
        + found.now("group_level_ns") * grouped
        + found.now("switch_idle_ns");
    let syscall = found.now("syscall_ns");
    // Sender and receiver each fetch the pipe's lock and lines from the other.
    let pipe_lines = line * (2.0 * (1.0 + found.now("pipe_lines").mid));
    let exit = |hop: &str, send: &str, receive: &str, lines: Value| {
        // Half of the receiving call runs after the wakeup.
        let ends = (syscall + found.now(send)) + (syscall + found.now(receive)) * 0.5 + lines;
        Some(figures.get(&format!("{hop}_{place}"))? - known - ends)
    };
    let futex = exit("futex_hop", "futex_wake_ns", "futex_wait_ns", Value::exact(0.0))?;
    let pipe = exit("pipe_hop", "pipe_write_ns", "pipe_read_ns", pipe_lines)?;
    let told = if polling { "1 line" } else { "ipi_flight" };
    let how = format!(
        "mean of futex_hop_{place} and pipe_hop_{place}, each less its send and half its receipt \
         (by pipe also 2 x (1 + pipe_lines) lines), \
         ttwu, 2 line_llc, wakelist, 2 + wakee_lines + handoff_lines lines, {told}, enqueue{}, switch_idle",
        if grouped > 0.0 { ", group_level" } else { "" }
    );
    Some((Value::between(futex, pipe), how))
}

fn set(state: &mut IdleState, exit: Value, how: &str) {
    state.exit_ns = exit.mid.max(0.0).round() as u32;
    state.exit_low_ns = (exit.low().max(0.0).floor() as u32).min(state.exit_ns);
    state.exit_high_ns = (exit.high().max(0.0).ceil() as u32).max(state.exit_ns);
    state.origin = Origin::Measured(Measured {
        how: how.to_owned(),
        p10: tenths(exit.low().max(0.0)),
        p90: tenths(exit.high().max(0.0)),
        samples: exit.samples,
    });
}

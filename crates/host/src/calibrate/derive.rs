//! Derives the cost model's constants from measurements. Each provenance states the arithmetic;
//! docs/calibrate.md explains it.

use reveille_machine::{Distance, Machine};

use super::calls::{DEEP, LEFT};
use super::constants::{Constants, Derived};
use super::host::Host;
use super::idle_states;
use super::samples::Measurement;
use super::value::{Figures, Value};
use super::{Cpus, farthest, idle_pair, pass, place_name};

/// CPUs that the policy tests for a wakeup on the wakee's own CPU; each costs `line_llc_ns` in the
/// simulator.
const LOOKED_SAME: f64 = 1.0;
/// Timer frequencies that a machine file can have.
const HZ: [u32; 4] = [100, 250, 300, 1000];
/// Plausible share of a context switch in the path from blocking to running.
const SWITCH_SHARE: std::ops::RangeInclusive<f64> = 0.15..=0.75;

/// Code without a probe of its own: scales with the path from blocking to running.
const LIKE_THE_PATH: [&str; 6] = [
    "group_level_ns",
    "wakelist_ns",
    "swqueue_hold_ns",
    "balance_base_ns",
    "blocked_ns",
    "blocked_worst_ns",
];

#[derive(Clone, Debug)]
pub struct Calibration {
    pub machine: Machine,
    /// Constants that replace the default's.
    pub derived: Vec<Derived>,
    /// Constants that keep the default.
    pub defaults: Vec<&'static str>,
    /// Constants that could not be measured, or came out implausible.
    pub warnings: Vec<String>,
}

/// Stores what was measured in `base`, which is this host with default costs.
pub fn derive(
    base: Machine,
    host: &Host,
    pairs: &[(Distance, Cpus)],
    measured: &[Measurement],
) -> Calibration {
    let figures = Figures(measured);
    let mut found = Constants::new(base, host.guest);
    calls(&mut found, &figures);
    caches(&mut found, &figures, pairs);
    if let Some((distance, _)) = farthest(pairs) {
        lines(&mut found, &figures, place_name(distance));
    }
    path(&mut found, &figures, host);
    futexes(&mut found, &figures);
    time(&mut found, &figures);
    let idle = idle_states::kinds(&found.machine.idle, host);
    if let Some((distance, _)) = idle_pair(pairs) {
        let place = place_name(distance);
        let polling = idle.iter().any(|s| s.polling && s.name != "POLL");
        interrupts(&mut found, &figures, pairs, place, polling);
        found.machine.idle = idle_states::measured(&mut found, &figures, host, place, idle);
    } else {
        found.warn("the idle state", "a single CPU has no waker");
    }
    if !found.derived.is_empty() {
        found.stated("speed", 1.0, "the costs are those of this host");
    }
    let Constants { machine, derived, warnings, .. } = found;
    let defaults = machine.constants.iter().filter(|c| c.inherited).map(|c| c.key).collect();
    Calibration { machine, derived, defaults, warnings }
}

/// System calls, futexes and messages within one task.
fn calls(found: &mut Constants, figures: &Figures<'_>) {
    let Some(syscall) = figures.get("syscall") else {
        return found.warn("every system call", "getppid could not be timed");
    };
    found.measured("syscall_ns", syscall, "median of getppid in a loop");
    let keys = [
        ("pipe_write_ns", "pipe_send", "write of 1 byte to a pipe"),
        ("pipe_read_ns", "pipe_recv", "read of 1 byte from a pipe that has it"),
        ("unix_send_ns", "unix_send", "send of 100 bytes on a Unix stream socket"),
        ("udp_send_ns", "udp_send", "send of 1 byte over loopback"),
        ("udp_recv_ns", "udp_recv", "receipt of 1 byte that the socket holds"),
        ("tcp_send_ns", "tcp_send", "send of 1 byte over loopback, each way in turn"),
        ("tcp_recv_ns", "tcp_recv", "receipt of 1 byte that the socket holds"),
    ];
    for (key, name, what) in keys {
        let how = format!("{what} by one task ({name}) less syscall");
        match figures.get(name) {
            Some(whole) => drop(found.measured(key, whole - syscall, &how)),
            None => found.warn(key, format_args!("no {name}")),
        }
    }
    deep(found, figures, syscall);
    let sides = ["pipe_page_send", "pipe_page_recv", "pipe_send", "pipe_recv"];
    if let [Some(page_send), Some(page_recv), Some(send), Some(recv)] =
        sides.map(|name| figures.get(name))
    {
        let kib = 4095.0 / 1024.0;
        let copy = ((page_send + page_recv) - (send + recv)) * (0.5 / kib);
        let how = "pipe_page_send + pipe_page_recv less pipe_send + pipe_recv, \
                   for two copies of 4095 bytes more";
        found.measured("copy_kib_ns", copy, how);
    }
}

/// Receives from a Unix socket with few and with many queued messages.
fn deep(found: &mut Constants, figures: &Figures<'_>, syscall: Value) {
    let sides = ["unix_send", "unix_recv", "unix_deep_send", "unix_deep_recv"];
    let [send, receive, deep_send, deep_receive] = sides.map(|name| figures.get(name));
    let few = send.zip(receive).map(|(send, receive)| send + receive);
    match few.zip(deep_send.zip(deep_receive)) {
        Some((few, (send, receive))) => {
            let how = format!(
                "unix_deep_send + unix_deep_recv less unix_send + unix_recv, for {DEEP} messages \
                 more left behind"
            );
            found.measured("unix_queued_ns", (send + receive - few) * (1.0 / DEEP), &how);
        }
        None => found.warn("unix_queued_ns", "no unix_deep"),
    }
    let Some(whole) = receive else { return found.warn("unix_recv_ns", "no unix_recv") };
    let how = format!(
        "receipt of 100 bytes that a Unix stream socket holds, by one task (unix_recv) less \
         syscall and {LEFT} unix_queued, of as many messages left behind in the mean"
    );
    let left = found.now("unix_queued_ns") * LEFT;
    found.measured("unix_recv_ns", whole - syscall - left, &how);
}

/// Cache lines and working sets by distance.
fn caches(found: &mut Constants, figures: &Figures<'_>, pairs: &[(Distance, Cpus)]) {
    for &(distance, _) in pairs {
        let (line_key, cold_key) = match distance {
            Distance::Same => continue,
            Distance::Smt => ("line_smt_ns", "cold_smt_ns"),
            Distance::Cluster => ("line_cluster_ns", "cold_llc_ns"),
            Distance::Llc => ("line_llc_ns", "cold_llc_ns"),
            Distance::Socket => ("line_socket_ns", "cold_socket_ns"),
            Distance::Remote => ("line_remote_ns", "cold_remote_ns"),
        };
        let place = place_name(distance);
        match figures.get(&format!("line_{place}")) {
            Some(line) => {
                let how = "median of half a round trip of compare-and-swap between two threads";
                found.measured(line_key, line, how);
            }
            None => found.warn(line_key, format_args!("no line_{place}")),
        }
        match figures.get(&format!("cold_{place}")) {
            Some(cold) => {
                let how = "first pass over 24 KiB after a migration less the second";
                found.measured(cold_key, cold.or_zero(), how);
            }
            None => found.warn(cold_key, format_args!("no cold_{place}")),
        }
    }
    let shares = [
        ("smt_share", "speed of a matrix product beside another on the same core"),
        ("smt_kernel_share", "speed of getppid in a loop beside the same on the same core"),
    ];
    for (key, how) in shares {
        if let Some(share) = figures.get(key) {
            found.measured(key, share, how);
        }
    }
}

/// Lines that move with a message.
fn lines(found: &mut Constants, figures: &Figures<'_>, place: &str) {
    let keys = ["pipe_lines", "unix_lines", "udp_lines", "tcp_lines"];
    for (kind, key) in pass::KINDS.into_iter().zip(keys) {
        let (name, _) = pass::name(kind);
        let (apart, alone, line) =
            (format!("{name}_pass_{place}"), format!("{name}_pass_same"), format!("line_{place}"));
        let [Some(whole), Some(calls), Some(each)] =
            [&apart, &alone, &line].map(|of| figures.get(of))
        else {
            found.warn(key, format_args!("not all of {apart}, {alone} and {line}"));
            continue;
        };
        // Half a round trip has two ends, each with the channel's lock, and the line that tells.
        let lines = ((whole - calls).over(each) - Value::exact(3.0)) * 0.5;
        let how = format!(
            "half of ({apart} - {alone}) / {line} less three lines: one at each end for the lock, \
             one that tells the receiver"
        );
        found.measured(key, lines, &how);
    }
}

/// From one task's blocking to the next one's running, on one CPU.
fn path(found: &mut Constants, figures: &Figures<'_>, host: &Host) {
    let names = ["pipe_threads_hop_same", "pipe_send", "pipe_recv"];
    let [Some(hop), Some(send), Some(receive)] = names.map(|name| figures.get(name)) else {
        return found.warn("the wake-up path", "the pipe's round trip could not be timed");
    };
    let whole = hop - send - receive;
    let default = |found: &Constants, key: &str| found.now(key).mid;
    // A delayed task is woken in place: no CPU scan, no group enqueue.
    let levels = if host.delays_dequeue() { 0.0 } else { 2.0 * f64::from(host.group_levels) };
    let (looked, also) = match host.delays_dequeue() {
        true => (0.0, String::new()),
        false => (LOOKED_SAME, format!(" less line_llc_ns, with {levels} group_level_ns")),
    };
    let whole = whole - found.now("line_llc_ns") * looked;
    let path = "pipe_threads_hop_same - pipe_send - pipe_recv";
    let shares = ["ttwu_ns", "enqueue_ns", "dequeue_ns"];
    let work: f64 = shares.iter().map(|key| default(found, key)).sum::<f64>()
        + levels * default(found, "group_level_ns");
    let switch_default = default(found, "switch_ns");

    let by_yield = figures.get("yield_switch").zip(figures.get("yield_alone"));
    let by_yield = by_yield.map(|(switch, alone)| switch - alone);
    let (switch, how) = match by_yield.filter(|s| SWITCH_SHARE.contains(&(s.mid / whole.mid))) {
        Some(switch) => (switch, "yield_switch - yield_alone".to_owned()),
        None => {
            let share = switch_default / (work + switch_default);
            (whole * share, format!("{share:.3}, the default's share, of {path}{also}"))
        }
    };
    found.measured("switch_ns", switch, &how);
    let rest = whole - switch;
    let rest_factor = rest.mid / work;
    for key in shares {
        let share = default(found, key) / work;
        let how = format!("{share:.3}, the default's share, of {path} - switch_ns{also}");
        found.measured(key, rest * share, &how);
    }
    let switch_factor = switch.mid / switch_default;
    if rest_factor > 0.0 {
        let how = format!("as much as ttwu_ns + enqueue_ns + dequeue_ns together ({path})");
        for key in LIKE_THE_PATH {
            found.scaled(key, rest_factor, &how);
        }
        found.scaled("switch_idle_ns", switch_factor, "as much as switch_ns");
    }
    if let Some(processes) = figures.get("pipe_hop_same") {
        let how = "pipe_hop_same - pipe_threads_hop_same";
        if !found.measured("switch_mm_ns", processes - hop, how) {
            found.scaled("switch_mm_ns", switch_factor, "as much as switch_ns");
        }
    }
    if let Some(variation) = figures.get("pipe_hop_same_variation") {
        let how = "(p90 - p10) / 1.6 of single round trips by pipe on one CPU over their \
                   median, 0.8 of a uniform distribution being between the two";
        found.measured("noise", variation, how);
    }
}

fn futexes(found: &mut Constants, figures: &Figures<'_>) {
    let names = ["futex_hop_same", "pipe_threads_hop_same", "pipe_send", "pipe_recv"];
    let calls = ["futex_wake", "futex_wait", "syscall"];
    let [Some(wake), Some(wait), Some(syscall)] = calls.map(|name| figures.get(name)) else {
        return found.warn("futex_wake_ns", "futex calls could not be timed");
    };
    let (wake, wait) = (wake - syscall, wait - syscall);
    let both = names.map(|name| figures.get(name));
    if let [Some(hop), Some(pipe), Some(send), Some(receive)] = both {
        // The rest of the path is the same.
        let both = hop - (pipe - send - receive) - syscall * 2.0;
        let share = wake.mid.max(0.0) / (wake.mid + wait.mid).max(1.0);
        let how = |share: f64, of: &str| {
            format!(
                "{share:.3} of futex_hop_same - (pipe_threads_hop_same - pipe_send - pipe_recv) - \
                 2 syscall, as {of} has of both without a sleeper"
            )
        };
        if both.mid >= wake.mid + wait.mid
            && found.measured("futex_wake_ns", both * share, &how(share, "FUTEX_WAKE"))
            && found.measured(
                "futex_wait_ns",
                both * (1.0 - share),
                &how(1.0 - share, "FUTEX_WAIT"),
            )
        {
            return;
        }
    }
    found.warnings.push(
        "futex_wake_ns and futex_wait_ns are those without a sleeper: round trips by futex were \
         not measured, or took less than their parts"
            .to_owned(),
    );
    found.measured("futex_wake_ns", wake, "FUTEX_WAKE without a sleeper less syscall");
    found.measured("futex_wait_ns", wait, "FUTEX_WAIT that finds another value less syscall");
}

fn time(found: &mut Constants, figures: &Figures<'_>) {
    match figures.get("hz").map(|hz| hz.mid as u32) {
        Some(hz) if HZ.contains(&hz) => found.machine.hz = hz,
        Some(hz) => found.warn("hz", format_args!("{hz} is none that a machine file can have")),
        None => found.warn("hz", "no hz"),
    }
    match figures.get("tick") {
        Some(tick) => drop(found.measured("tick_ns", tick, "pause of a busy loop at each tick")),
        None => found.warn("tick_ns", "no regular pause was seen"),
    }
    let sleeps = ["timer_slack", "oversleep", "oversleep_exact"].map(|name| figures.get(name));
    if let [Some(slack), Some(usual), Some(exact)] = sleeps {
        let seen = usual.mid - exact.mid;
        let how = format!(
            "prctl(PR_GET_TIMERSLACK); a sleep ends {:.1} us later than with a slack of 1 ns",
            seen / 1000.0
        );
        found.measured("timer_slack_ns", slack, &how);
    }
}

/// Interrupts from another CPU.
fn interrupts(
    found: &mut Constants,
    figures: &Figures<'_>,
    pairs: &[(Distance, Cpus)],
    place: &str,
    idle_polls: bool,
) {
    let flight = |place: &str| {
        let whole = figures.get(&format!("ipi_flight_{place}"))?;
        Some(whole - figures.get(&format!("ipi_none_{place}"))?)
    };
    let Some(near) = flight(place) else {
        return found.warn("ipi_flight_ns", "membarrier(2) interrupted no CPU");
    };
    let how = format!("ipi_flight_{place} - ipi_none_{place}: membarrier(2) until its interrupt");
    found.measured("ipi_flight_ns", near, &how);
    if pairs.iter().any(|(d, _)| *d == Distance::Remote)
        && let Some(far) = flight("remote")
    {
        let how = format!("ipi_flight_remote less ipi_flight_{place}");
        found.measured("ipi_remote_ns", far - near, &how);
    }
    let handler = figures.get(&format!("ipi_handler_{place}")).zip(figures.get("clock"));
    if let Some((handler, clock)) = handler {
        let how = format!("ipi_handler_{place}, the pause of a busy loop, less one reading");
        found.measured("irq_ns", handler - clock, &how);
    }
    let line = found.now(idle_states::line_key(place));
    let lines = |of: &str| found.now(&format!("{of}_lines")).mid;
    let (call, rest, how) = if idle_polls {
        let here = figures.get("futex_wake_call_same");
        // The lock has a line of its own.
        let rest = here.map(|here| here + line * (1.0 + lines("wakee") + lines("remote_enqueue")));
        let how = "futex_wake_call_same and 1 + wakee_lines + remote_enqueue_lines lines";
        (format!("wake_busy_{place}_call"), rest, how)
    } else {
        let rest = found.now("syscall_ns") + found.now("futex_wake_ns") + found.wake_by_list(line);
        let how = "syscall, futex_wake, ttwu, 2 line_llc, wakelist and 2 + wakee_lines lines";
        (format!("wake_idle_{place}_20us_call"), Some(rest), how)
    };
    match figures.get(&call).zip(rest) {
        Some((whole, rest)) => {
            found.measured("ipi_send_ns", whole - rest, &format!("{call} less {how}"));
        }
        None => found.warn("ipi_send_ns", format_args!("no {call}")),
    }
}

/// The states of a machine, deepest last.
#[cfg(test)]
#[path = "derive_tests.rs"]
mod tests;

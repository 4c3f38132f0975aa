//! Measurements as a host of known costs would give them, and the costs found from them.

use reveille_machine::{Machine, Origin, load, parse_toml};

use super::*;

/// Costs in ns of a host that is not the default.
const SYSCALL: f64 = 100.0;
const WRITE: f64 = 120.0;
const READ: f64 = 110.0;
// Half of the default's.
const TTWU: f64 = 175.0;
const ENQUEUE: f64 = 125.0;
const DEQUEUE: f64 = 125.0;
const SWITCH: f64 = 500.0;
const SWITCH_IDLE: f64 = 150.0;
const LEVEL: f64 = 50.0;
const WAKE_LIST: f64 = 40.0;
const SWITCH_MM: f64 = 90.0;
const FUTEX_WAKE: f64 = 80.0;
const FUTEX_WAIT: f64 = 160.0;
const LINE: f64 = 60.0;
const FLIGHT: f64 = 700.0;
const EXIT: f64 = 3_000.0;
const UNIX_SEND: f64 = 400.0;
const UNIX_RECV: f64 = 390.0;
const UNIX_QUEUED: f64 = 4.0;
/// Lines of the default: a wakee's that its waker takes, and it itself, a channel's with its lock, and a runqueue's with its lock.
const WAKEE: f64 = 2.0 * LINE;
const HANDOFF: f64 = 4.0 * LINE;
const CHANNEL: f64 = (1.0 + 3.0) * LINE;
const REMOTE_ENQUEUE: f64 = (1.0 + 10.0) * LINE;

fn host(kernel: &str) -> Host {
    Host {
        processor: "a processor".into(),
        kernel: kernel.into(),
        guest: true,
        mwait: false,
        cpuidle: false,
        group_levels: 1,
    }
}

fn base() -> Machine {
    let machine = load("quad-1s4c").unwrap();
    assert!(machine.constants.iter().all(|c| c.inherited));
    machine
}

/// A CPU itself, and a neighbour under the same cache.
const PAIRS: [(Distance, Cpus); 2] = [(Distance::Same, (1, 1)), (Distance::Llc, (1, 0))];

fn figure(name: &str, median: f64) -> Measurement {
    Measurement {
        name: name.to_owned(),
        about: "a test".to_owned(),
        unit: "ns".to_owned(),
        median,
        p10: median * 0.99,
        p90: median * 1.02,
        samples: 500,
        discarded: 0,
    }
}

/// What such a host would show.
fn figures(delayed: bool) -> Vec<Measurement> {
    let path = TTWU + ENQUEUE + DEQUEUE + SWITCH;
    // Two group levels, and one look of a line.
    let path = if delayed { path } else { path + 2.0 * LEVEL + LINE };
    let pipe = 2.0 * SYSCALL + WRITE + READ + path;
    let futex = 2.0 * SYSCALL + FUTEX_WAKE + FUTEX_WAIT + path;
    // Two looks, and two lines of the wake list.
    let queued = WAKEE + TTWU + 2.0 * LINE + WAKE_LIST + 2.0 * LINE;
    let across = queued + FLIGHT + EXIT + ENQUEUE + LEVEL + SWITCH_IDLE + HANDOFF;
    let wake = across + SYSCALL + FUTEX_WAKE;
    let send = SYSCALL + FUTEX_WAKE + queued;
    [
        ("clock", 30.0),
        ("syscall", SYSCALL),
        ("futex_wake", SYSCALL + 40.0),
        ("futex_wait", SYSCALL + 80.0),
        ("pipe_send", SYSCALL + WRITE),
        ("pipe_recv", SYSCALL + READ),
        ("pipe_page_send", SYSCALL + WRITE + 4095.0 / 1024.0 * 25.0),
        ("pipe_page_recv", SYSCALL + READ + 4095.0 / 1024.0 * 35.0),
        ("unix_send", SYSCALL + UNIX_SEND),
        // 15 to 0 are left behind, and 200 more.
        ("unix_recv", SYSCALL + UNIX_RECV + 7.5 * UNIX_QUEUED),
        ("unix_deep_send", SYSCALL + UNIX_SEND),
        ("unix_deep_recv", SYSCALL + UNIX_RECV + 207.5 * UNIX_QUEUED),
        ("udp_send", SYSCALL + 900.0),
        ("udp_recv", SYSCALL + 200.0),
        ("tcp_send", SYSCALL + 1500.0),
        ("tcp_recv", SYSCALL + 250.0),
        ("yield_alone", 250.0),
        ("yield_switch", 250.0 + SWITCH),
        ("futex_wake_call_same", 600.0),
        ("futex_hop_same", futex),
        ("pipe_threads_hop_same", pipe),
        ("pipe_hop_same", pipe + SWITCH_MM),
        ("line_llc", LINE),
        ("pipe_pass_same", 200.0),
        ("pipe_pass_llc", 200.0 + LINE + 2.0 * CHANNEL),
        ("unix_pass_same", 900.0),
        ("unix_pass_llc", 900.0 + (1.0 + 2.0 + 2.0 * 6.0) * LINE),
        ("udp_pass_same", 800.0),
        ("udp_pass_llc", 800.0 + (1.0 + 2.0 + 2.0 * 2.0) * LINE),
        ("tcp_pass_same", 1_900.0),
        ("tcp_pass_llc", 1_900.0 + (1.0 + 2.0 + 2.0 * 9.0) * LINE),
        ("cold_llc", 1_200.0),
        ("ipi_none_llc", 150.0),
        ("ipi_flight_llc", 150.0 + FLIGHT),
        ("ipi_handler_llc", 30.0 + 900.0),
        ("futex_hop_llc", across + SYSCALL + FUTEX_WAKE + (SYSCALL + FUTEX_WAIT) / 2.0),
        ("pipe_hop_llc", across + SYSCALL + WRITE + (SYSCALL + READ) / 2.0 + 2.0 * CHANNEL),
        ("wake_idle_llc_20us", wake),
        ("wake_idle_llc_20us_call", send + 1_100.0),
        ("wake_idle_llc_100us", wake + 200.0),
        ("wake_idle_llc_300us", wake + 9_000.0),
        ("wake_idle_llc_1000us", wake + 20_000.0),
        ("wake_idle_llc_3000us", wake + 22_000.0),
        ("tick", 5_000.0),
        ("hz", 1000.0),
        ("timer_slack", 50_000.0),
        ("oversleep", 58_000.0),
        ("oversleep_exact", 7_000.0),
    ]
    .into_iter()
    .map(|(name, median)| figure(name, median))
    .collect()
}

#[test]
fn finds_the_costs_that_the_figures_were_made_of() {
    for (kernel, delayed) in [("6.18.4", true), ("6.8.0-45-generic", false)] {
        let found = derive(base(), &host(kernel), &PAIRS, &figures(delayed));
        assert!(found.warnings.is_empty(), "{:?}", found.warnings);
        let expected = [
            ("syscall_ns", SYSCALL),
            ("pipe_write_ns", WRITE),
            ("pipe_read_ns", READ),
            ("ttwu_ns", TTWU),
            ("enqueue_ns", ENQUEUE),
            ("dequeue_ns", DEQUEUE),
            ("switch_ns", SWITCH),
            ("switch_mm_ns", SWITCH_MM),
            ("group_level_ns", LEVEL),
            ("wakelist_ns", WAKE_LIST),
            ("switch_idle_ns", SWITCH_IDLE),
            ("balance_base_ns", 400.0),
            ("blocked_ns", 500.0),
            ("speed", 1.0),
            ("futex_wake_ns", FUTEX_WAKE),
            ("futex_wait_ns", FUTEX_WAIT),
            ("copy_kib_ns", 30.0),
            ("unix_send_ns", UNIX_SEND),
            ("unix_recv_ns", UNIX_RECV),
            ("unix_queued_ns", UNIX_QUEUED),
            ("tcp_recv_ns", 250.0),
            ("line_llc_ns", LINE),
            ("pipe_lines", 3.0),
            ("unix_lines", 6.0),
            ("udp_lines", 2.0),
            ("tcp_lines", 9.0),
            ("cold_llc_ns", 1_200.0),
            ("ipi_flight_ns", FLIGHT),
            ("ipi_send_ns", 1_100.0),
            ("irq_ns", 900.0),
            ("tick_ns", 5_000.0),
            ("timer_slack_ns", 50_000.0),
        ];
        for (key, value) in expected {
            let constant = found.machine.constant(key).unwrap();
            assert!((constant.value - value).abs() <= 1.0, "{kernel}: {key} {constant:?}");
            assert!(!constant.inherited && constant.low <= value && value <= constant.high);
            assert_eq!(found.machine.cost.get(key), Some(constant.value));
            assert!(!found.defaults.contains(&key));
        }
        let Origin::Measured(m) = &found.machine.constant("syscall_ns").unwrap().origin else {
            panic!("measured");
        };
        assert_eq!((m.p10, m.p90, m.samples), (99.0, 102.0, 500));
        assert_eq!(found.machine.hz, 1000);
        let exits: Vec<_> =
            found.machine.idle.iter().map(|s| (s.name.as_str(), s.exit_ns, s.polling)).collect();
        assert_eq!(exits, [("HLT", 3_000, false), ("HLT-long", 25_000, false)]);
        // Between 100 and 300 us.
        assert!((150_000..200_000).contains(&found.machine.idle[1].residency_ns));
    }
}

#[test]
fn the_machine_goes_through_a_file() {
    let found = derive(base(), &host("6.18.4"), &PAIRS, &figures(true));
    let text = found.machine.to_toml().unwrap();
    assert_eq!(parse_toml("host.toml", &text).unwrap(), found.machine, "{text}");
    let fitted = base().fitted().len();
    assert!(found.machine.fitted().len() < fitted, "what is measured is not fitted");
}

#[test]
fn nonsense_keeps_the_default_and_is_told() {
    let mut figures = figures(true);
    let set = |figures: &mut Vec<Measurement>, name: &str, median: f64| {
        *figures.iter_mut().find(|m| m.name == name).unwrap() = figure(name, median);
    };
    set(&mut figures, "udp_send", SYSCALL + 90_000.0);
    set(&mut figures, "pipe_hop_same", 10.0);
    set(&mut figures, "futex_hop_llc", 100.0);
    set(&mut figures, "pipe_hop_llc", 100.0);
    set(&mut figures, "tcp_pass_llc", 1_800.0);
    let found = derive(base(), &host("6.18.4"), &PAIRS, &figures);
    let default = base();
    assert_eq!(found.machine.cost.udp_send_ns, default.cost.udp_send_ns);
    assert!(found.defaults.contains(&"udp_send_ns"));
    assert_eq!(found.machine.cost.tcp_lines, default.cost.tcp_lines);
    assert_eq!(found.machine.idle, default.idle);
    // Half of the default, as switches are.
    assert_eq!(found.machine.cost.switch_mm_ns, 75);
    let told = |what: &str| found.warnings.iter().any(|w| w.contains(what));
    assert!(told("udp_send_ns keeps its default: 90000 ns"), "{:?}", found.warnings);
    // 100 ns less than by one task, by two CPUs: minus 2.3 lines.
    assert!(told("tcp_lines keeps its default: -2 count"), "{:?}", found.warnings);
    assert!(told("switch_mm_ns") && told("the idle state"), "{:?}", found.warnings);
}

#[test]
fn a_fast_host_is_no_nonsense() {
    let mut figures = figures(true);
    let at = figures.iter().position(|m| m.name == "unix_recv").unwrap();
    figures[at] = figure("unix_recv", SYSCALL + 180.0);
    figures.retain(|m| !m.name.starts_with("unix_deep"));
    let at = figures.iter().position(|m| m.name == "pipe_pass_llc").unwrap();
    figures[at] = figure("pipe_pass_llc", 200.0 + 3.4 * LINE);
    let found = derive(base(), &host("6.18.4"), &PAIRS, &figures).machine.cost;
    assert_eq!(found.pipe_lines, 0, "all transfers but the lock's overlap");
    assert_eq!(found.unix_recv_ns, 180 - (7.5 * f64::from(found.unix_queued_ns)) as u32);
}

#[test]
fn yields_that_tell_nothing_leave_the_defaults_shares() {
    let mut figures = figures(true);
    figures.retain(|m| m.name != "yield_switch");
    let found = derive(base(), &host("6.18.4"), &PAIRS, &figures).machine.cost;
    let sum = found.ttwu_ns + found.enqueue_ns + found.dequeue_ns + found.switch_ns;
    assert!(sum.abs_diff((TTWU + ENQUEUE + DEQUEUE + SWITCH) as u32) <= 2, "{found:?}");
    // 1000 of 1850.
    assert_eq!(found.switch_ns, 500);
}

#[test]
fn one_cpu_keeps_every_distance_at_its_default() {
    let here: Vec<Measurement> =
        figures(true).into_iter().filter(|m| !m.name.contains("_llc")).collect();
    let found = derive(base(), &host("6.18.4"), &PAIRS[..1], &here);
    let default = base();
    assert_eq!(found.machine.idle, default.idle);
    assert_eq!(found.machine.cost.line_llc_ns, default.cost.line_llc_ns);
    assert_eq!(found.machine.cost.ttwu_ns, TTWU as u32);
    assert_eq!(found.warnings.len(), 1, "{:?}", found.warnings);
}

#[test]
fn nothing_measured_is_the_default_with_reasons() {
    let found = derive(base(), &host("6.18.4"), &PAIRS, &[]);
    assert_eq!(found.machine.cost, base().cost);
    assert!(found.derived.is_empty());
    assert!(found.warnings.len() >= 5, "{:?}", found.warnings);
}

#[test]
fn an_interrupt_may_cost_its_sender_10_us_in_a_guest() {
    const CALL: &str = "wake_idle_llc_20us_call";
    let figures: Vec<Measurement> = figures(true)
        .into_iter()
        .map(|m| if m.name == CALL { figure(CALL, m.median + 9_000.0) } else { m })
        .collect();
    assert_eq!(derive(base(), &host("6.18.4"), &PAIRS, &figures).machine.cost.ipi_send_ns, 10_100);
    let bare = Host { guest: false, ..host("6.18.4") };
    let kept = derive(base(), &bare, &PAIRS, &figures);
    assert_eq!(kept.machine.cost.ipi_send_ns, base().cost.ipi_send_ns, "{:?}", kept.warnings);
}

#[test]
fn a_drivers_states_are_measured_where_a_sleep_reaches_them() {
    let host = Host { cpuidle: true, mwait: true, guest: false, ..host("6.18.4") };
    let base = Machine { idle: load("icx-2s32c").unwrap().idle, ..base() };
    // Watched lines need no interrupt.
    let figures: Vec<Measurement> = figures(true)
        .into_iter()
        .map(|m| match m.name.as_str() {
            name @ ("futex_hop_llc" | "pipe_hop_llc") => {
                figure(name, m.median - FLIGHT + LINE - EXIT + 900.0)
            }
            "wake_busy_llc_call" => unreachable!(),
            _ => m,
        })
        .chain([figure("wake_busy_llc_call", 600.0 + WAKEE + REMOTE_ENQUEUE + 150.0)])
        .collect();
    let found = derive(base, &host, &PAIRS, &figures).machine;
    let exits: Vec<_> = found.idle.iter().map(|s| (s.name.as_str(), s.exit_ns)).collect();
    // C1E is what all sleeps but a ping-pong's end in.
    assert_eq!(exits, [("POLL", 0), ("C1", 900), ("C1E", 900)]);
    assert_eq!(found.cost.ipi_send_ns, 150);
}

//! How fast the simulator is: task activations per second of CPU time (one
//! activation = wake, place, run, block) at 224 CPUs and 224 pairs of
//! context_switch1 with all mechanisms on; how the cost of one grows from 16 to
//! 65,536 CPUs at one pair per CPU; what a CPU and a task take in memory; and what an
//! activation costs under other kernels and policies.
//!
//! Prints a table and writes `target/bench.json`. With arguments (a row's number, sockets, and two
//! times in ms) it runs that row once, for `scripts/count-instructions.sh`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use reveille_machine::{Machine, Topology};
use reveille_measure::RunSpec;
use reveille_measure::statistics::{interpolated, sorted};
use reveille_policy::{BandwidthLimits, Groups, Policy, TaskGroup};
use reveille_workload::Program;

/// Repeats of the main figure; the median is reported.
const REPEATS: usize = 5;
/// Virtual time before the timed one.
const WARMUP_NS: u64 = 100_000_000;
/// The same for the main case, whose pairs settle after 60 to 400 ms.
const SETTLED_NS: u64 = 400_000_000;
/// Sizes of the growth series: sockets and cores of two threads per socket.
const SIZES: [(u32, u32); 5] = [(1, 8), (1, 32), (2, 64), (4, 128), (16, 128)];

/// One row of the other mechanisms.
#[derive(Clone, Copy)]
struct Case {
    /// Baseline and edits.
    policy: &'static str,
    machine: &'static str,
    workload: &'static str,
    params: &'static [(&'static str, &'static str)],
    load: u64,
    /// Quota of the group that all tasks are in, in CPUs; 0 for no group.
    quota_cpus: u64,
}

const fn pairs(policy: &'static str) -> Case {
    Case {
        policy,
        machine: "spr-2s56c",
        workload: "context_switch1",
        params: &[],
        load: 224,
        quota_cpus: 0,
    }
}

/// What has code of its own on the way of a wake-up.
const CASES: [Case; 10] = [
    pairs("v4.5"),
    pairs("v4.5 +SIS_FIRST"),
    pairs("v5.13"),
    pairs("v5.13 +SIS_AGE"),
    pairs("v6.2"),
    Case { machine: "icx-2s32c", workload: "udp_rr", load: 128, ..pairs("v6.4 +SWQUEUE") },
    pairs("v6.12"),
    pairs("v7.2"),
    Case { quota_cpus: 112, ..pairs("v6.2 +SIS_SHORT") },
    Case {
        machine: "bdw-2s20c",
        workload: "hackbench",
        params: &[("transport", "pipe")],
        load: 40,
        ..pairs("v6.2")
    },
];

/// Counts the bytes in use and their peak.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[allow(unsafe_code)]
// SAFETY: every call is passed on to the system allocator unchanged; only sizes are
// noted on the way.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = IN_USE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller's layout is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the block came from `alloc` with this layout.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// One timed run.
struct Timed {
    activations_per_s: f64,
    ns_per_activation: f64,
    peak_bytes: usize,
}

fn policy(text: &str) -> Policy {
    let mut words = text.split(' ');
    let base = Policy::baseline(words.next().unwrap_or_default()).expect("a baseline");
    words.fold(base, |policy, edit| policy.with(edit).expect("an edit that applies"))
}

fn program(workload: &str, load: u64, params: &[(&str, &str)]) -> Program {
    let params: BTreeMap<String, String> =
        params.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect();
    let workload = reveille_workload::find(workload).expect("in the catalogue");
    workload.build(load, &params).expect("the load builds")
}

fn timed(
    machine: &Machine,
    program: &Program,
    policy: &Policy,
    groups: &Groups,
    [warmup_ns, timed_ns]: [u64; 2],
    seed: u64,
) -> Timed {
    let before = IN_USE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let never = AtomicBool::new(false);
    // Two runs that agree up to the end of the shorter: what lies between is timed, and
    // neither the start nor the warm-up, in which pairs gather and SIS_SHORT sets in.
    let run = |duration_ns: u64| {
        let spec = RunSpec { seed, warmup_ns, duration_ns };
        let started = cpu_seconds();
        let run = reveille_sim::run(machine, program, policy, groups, &spec, &never);
        (run.expect("it runs").counters.activations, cpu_seconds() - started)
    };
    let (fewer, sooner) = run(1_000_000);
    let (more, later) = run(1_000_000 + timed_ns);
    let (activations, seconds) = ((more - fewer) as f64, (later - sooner).max(1e-9));
    Timed {
        activations_per_s: activations / seconds,
        ns_per_activation: seconds * 1e9 / activations,
        peak_bytes: PEAK.load(Ordering::Relaxed) - before,
    }
}

/// CPU time of this thread: what else runs on the machine takes no part of it.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux counts it");
    let ns = stat.split(' ').next().and_then(|ns| ns.parse::<f64>().ok());
    ns.expect("it begins with nanoseconds") / 1e9
}

/// Pairs of context_switch1 under v6.2 with SIS_SHORT.
fn timed_pairs(machine: &Machine, pairs: u64, times: [u64; 2], seed: u64) -> Timed {
    let program = program("context_switch1", pairs, &[]);
    let policy = policy("v6.2 +SIS_SHORT");
    timed(machine, &program, &policy, &Groups::default(), times, seed)
}

/// All tasks in a group with a quota of this many CPUs, in periods of 10 ms.
fn quota(cpus: u64) -> Groups {
    let period_ns = 10_000_000;
    let limits = BandwidthLimits { quota_ns: Some(cpus * period_ns), period_ns, burst_ns: 0 };
    let group = TaskGroup {
        name: "all".to_owned(),
        parent: None,
        limits,
        roles: Vec::new(),
        phase_ns: None,
    };
    Groups { groups: vec![group], ..Groups::default() }
}

/// Prints a row for each of [`CASES`]; returns them as JSON.
fn mechanisms() -> String {
    println!("{:<18} {:>22} {:>14} {:>18}", "", "", "activations/s", "ns per activation");
    let mut json = String::new();
    for case in &CASES {
        let machine = reveille_machine::load(case.machine).expect("a preset");
        let program = program(case.workload, case.load, case.params);
        let groups = if case.quota_cpus > 0 { quota(case.quota_cpus) } else { Groups::default() };
        let policy = policy(case.policy);
        let runs: Vec<Timed> = (0..3)
            .map(|seed| timed(&machine, &program, &policy, &groups, [WARMUP_NS, 30_000_000], seed))
            .collect();
        let ns = median(runs.iter().map(|t| t.ns_per_activation).collect());
        let limited = if case.quota_cpus > 0 { ", quota" } else { "" };
        let what = format!("{} {}{limited}", case.workload, case.load);
        println!("{:<18} {what:>22} {:>12.2} M {ns:>18.0}", case.policy, 1e3 / ns);
        let comma = if json.is_empty() { "" } else { ", " };
        let _ = write!(
            json,
            "{comma}{{\"policy\": \"{}\", \"machine\": \"{}\", \"workload\": \"{}\", \
             \"load\": {}, \"quota_cpus\": {}, \"activations_per_s\": {:.0}, \
             \"ns_per_activation\": {ns:.1}}}",
            case.policy,
            case.machine,
            case.workload,
            case.load,
            case.quota_cpus,
            1e9 / ns,
        );
    }
    json
}

fn median(values: Vec<f64>) -> f64 {
    interpolated(&sorted(&values), 0.5)
}

/// Runs one row of [`CASES`], or behind them the main case, with one pair to a CPU of a machine of
/// this many sockets of its size, and prints its name and activations.
fn once(row: usize, sockets: u32, [warmup_ms, virtual_ms]: [u64; 2]) {
    let mut case = pairs("v6.2 +SIS_SHORT");
    let mut machine = reveille_machine::load(case.machine).expect("a preset");
    if let Some(&other) = CASES.get(row) {
        case = other;
        machine = reveille_machine::load(case.machine).expect("a preset");
    } else {
        machine.topology = Topology::uniform(sockets, 1, 56, 2).expect("a regular machine");
        case.load = machine.topology.n_cpus() as u64;
    }
    let program = program(case.workload, case.load, case.params);
    let [warmup_ns, duration_ns] = [warmup_ms, virtual_ms].map(|ms| ms * 1_000_000);
    // With that seed the main case has settled after 60 ms.
    let seed = u64::from(row >= CASES.len());
    let spec = RunSpec { seed, warmup_ns, duration_ns };
    let groups = if case.quota_cpus > 0 { quota(case.quota_cpus) } else { Groups::default() };
    let never = AtomicBool::new(false);
    let run = reveille_sim::run(&machine, &program, &policy(case.policy), &groups, &spec, &never);
    let activations = run.expect("it runs").counters.activations;
    let cpus = machine.topology.n_cpus();
    println!("{activations} {}, {} {} on {cpus} CPUs", case.policy, case.workload, case.load);
}

fn main() {
    let numbers: Vec<u64> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    if let [row, sockets, warmup_ms, virtual_ms] = numbers[..] {
        return once(row as usize, sockets as u32, [warmup_ms, virtual_ms]);
    }
    let spr = reveille_machine::load("spr-2s56c").expect("a preset");
    let main: Vec<Timed> = (0..REPEATS)
        .map(|seed| timed_pairs(&spr, 224, [SETTLED_NS, 60_000_000], seed as u64))
        .collect();
    let rate = median(main.iter().map(|t| t.activations_per_s).collect());
    println!("224 CPUs, 224 pairs of context_switch1, v6.2 +SIS_SHORT, one core:");
    println!("  {:.2} million activations/s (median of {REPEATS})", rate / 1e6);
    println!("  peak memory {:.1} MiB", main[0].peak_bytes as f64 / (1 << 20) as f64);
    println!();
    println!(
        "{:>6} {:>6} {:>18} {:>16} {:>22}",
        "CPUs", "pairs", "ns per activation", "peak memory", "bytes per CPU + 2 tasks"
    );
    let mut growth = String::new();
    for (sockets, cores) in SIZES {
        let topology = Topology::uniform(sockets, 1, cores, 2).expect("a regular machine");
        let cpus = topology.n_cpus();
        let machine = Machine { topology, ..spr.clone() };
        // About the same number of activations at every size.
        let virtual_ms = (16_384 / cpus as u64).clamp(2, 400);
        // Only where that is quick.
        let warmup_ns = if cpus <= 256 { SETTLED_NS } else { WARMUP_NS };
        let runs: Vec<Timed> = (0..3)
            .map(|seed| {
                timed_pairs(&machine, cpus as u64, [warmup_ns, virtual_ms * 1_000_000], seed)
            })
            .collect();
        let ns = median(runs.iter().map(|t| t.ns_per_activation).collect());
        let bytes = runs[0].peak_bytes / cpus;
        println!(
            "{cpus:>6} {cpus:>6} {ns:>18.0} {:>12.1} MiB {bytes:>22}",
            runs[0].peak_bytes as f64 / (1 << 20) as f64
        );
        let comma = if growth.is_empty() { "" } else { ", " };
        let _ = write!(
            growth,
            "{comma}{{\"cpus\": {cpus}, \"ns_per_activation\": {ns:.1}, \"bytes_per_cpu_and_task\": {bytes}}}"
        );
    }
    println!();
    let mechanisms = mechanisms();
    let json = format!(
        "{{\"activations_per_s\": {rate:.0}, \"growth\": [{growth}], \
         \"mechanisms\": [{mechanisms}]}}\n"
    );
    let target = std::env::var("CARGO_TARGET_DIR")
        .unwrap_or_else(|_| format!("{}/../../target", env!("CARGO_MANIFEST_DIR")));
    let path = format!("{target}/bench.json");
    if let Err(error) = std::fs::write(&path, json) {
        eprintln!("error: cannot write {path}: {error}");
        std::process::exit(1);
    }
}

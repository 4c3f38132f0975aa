//! Visible differences between kernels under the same work: where wakees go,
//! how far is searched for them, and how they are handed over.

mod common;

use common::{
    MS, assert_near, baseline, catalogue, exact, kernel, machine, program, run, run_seed,
    with_costs,
};
use reveille_machine::Machine;
use reveille_measure::{Counters, RunResult};
use reveille_workload::Program;

/// Tasks that work and sleep, more of them than CPUs.
fn sleepers(count: u32, run_us: u32, sleep_us: u32) -> Program {
    let text = format!(
        "[[task]]\nname = \"s\"\ncount = {count}\nprogram = [{{ run = \"{run_us}us\" }}, {{ sleep = \"{sleep_us}us\", jitter = \"{sleep_us}us\" }}, {{ count = 1 }}]\n"
    );
    program(&text, 1)
}

/// Pairs that pass a message to and fro.
fn pairs(load: u64, run_us: u32) -> Program {
    let text = format!(
        "channels = {{ there = \"pipe\", back = \"pipe\" }}\n\
         [[task]]\nname = \"a\"\nrelease = \"together\"\nprogram = [{{ run = \"{run_us}us\" }}, {{ send = \"there\" }}, {{ recv = \"back\" }}, {{ count = 1 }}]\n\
         [[task]]\nname = \"b\"\nprogram = [{{ recv = \"there\" }}, {{ run = \"{run_us}us\" }}, {{ send = \"back\" }}]\n"
    );
    program(&text, load)
}

fn under(machine: &Machine, program: &Program, base: &str, edits: &str) -> RunResult {
    run(machine, program, &kernel(base, edits), 100 * MS, 1000 * MS)
}

fn per_search(result: &RunResult) -> f64 {
    result.counters.cpus_searched as f64 / result.counters.idle_searches as f64
}

/// Half of the threads are idle at any time, but hardly ever a whole core: v4.5 stacks
/// wakees behind tasks that compute, and its patch finds the idle threads.
#[test]
fn the_first_idle_thread_ends_the_waiting_of_v4_5() {
    let machine = exact(machine("hsw-2s12c", 1, 1, 8, 2));
    let work = sleepers(24, 3000, 3500);
    let groups = under(&machine, &work, "v4.5", "");
    let first = under(&machine, &work, "v4.5", "+SIS_FIRST");
    let p99 = |r: &RunResult| r.wakeup_latency.quantile(0.99);
    assert!(2 * p99(&groups) > 3 * p99(&first), "{} ns, {} ns", p99(&groups), p99(&first));
    let found =
        |r: &RunResult| 1.0 - r.counters.sis_failed as f64 / r.counters.sis_domain_search as f64;
    assert!(found(&groups) < 0.85 && found(&first) > 0.9, "{} {}", found(&groups), found(&first));
}

/// Without idle CPUs every search is in vain. What v5.13 expects by the last idle time, before the
/// load, lets it look at the whole cache; aged, that is down to three CPUs.
#[test]
fn ageing_shortens_the_searches_of_a_busy_machine() {
    let machine = exact(machine("skx-2s20c", 1, 1, 8, 2));
    let work = pairs(24, 50);
    let looked = |edits| per_search(&under(&machine, &work, "v5.13", edits));
    assert_near("without a bound", looked("-SIS_PROP"), 16.0, 0.01);
    assert!(looked("") > 14.0);
    assert_near("aged", looked("+SIS_AGE"), 3.0, 0.03);
}

/// Without anything between the messages the idle times of v5.13 are too short for long
/// searches: their bound, three CPUs at least, is far below the width of the cache.
#[test]
fn searches_that_do_not_pay_are_cut_short() {
    let machine = exact(machine("skx-2s20c", 1, 1, 8, 2));
    let result = under(&machine, &pairs(16, 0), "v5.13", "");
    assert!(result.counters.idle_searches > 1_000_000);
    let looked = per_search(&result);
    assert!((3.0..8.0).contains(&looked), "CPUs looked at: {looked}");
}

/// Within a cache the runqueue lock of an idle CPU moves to the waker and back, until
/// v6.0 uses the wake list there too.
#[test]
fn wake_lists_within_a_cache_spare_the_lock() {
    let machine = exact(machine("skx-2s20c", 1, 2, 4, 2));
    let wait = |base, edits| {
        let c = under(&machine, &pairs(3, 5), base, edits).counters;
        c.lock_wait_ns / c.activations
    };
    assert!(wait("v4.5", "") > 40);
    assert!(wait("v5.13", "") > 40);
    assert!(wait("v5.13", "+TTWU_QUEUE_IDLE") < 5);
    assert!(wait("v6.2", "") < 5);
}

/// Searches of a machine with three tasks per CPU find an idle CPU, as wakers choose one CPU several
/// times while it still looks idle, and as CPUs go idle rather than pull a task. The figures are those that the
/// commit of SIS_UTIL (70fb5ccf2ebb) prints for netperf TCP_RR with 168 clients on 112 CPUs.
#[test]
fn searches_of_a_busy_cache_succeed_as_measured() {
    let machine = reveille_machine::load("spr-1s56c").expect("a preset");
    let work = catalogue("tcp_rr", 168, &[]);
    let of_seed =
        |seed| run_seed(&machine, &work, &baseline("v5.15"), seed, 100 * MS, 20 * MS).counters;
    let runs: Vec<_> = (1..=4).map(of_seed).collect();
    let pct = |part: u64, of: u64| 100.0 * part as f64 / of as f64;
    let sum = |count: fn(&Counters) -> u64| runs.iter().map(count).sum::<u64>();
    let (searches, scanned) = (sum(|c| c.sis_search), sum(|c| c.sis_scanned));
    let domain = sum(|c| c.sis_domain_search);
    let (fast, found) = (searches - domain, domain - sum(|c| c.sis_failed));
    assert_near("success", pct(found, domain), 99.999, 0.0005);
    assert_near("found of CPUs looked at", pct(found, scanned - fast), 3.945, 0.2);
    assert_near("fast", pct(fast, searches), 40.309, 0.03);
}

/// As many pairs as CPUs settle where a search looks at each CPU when it comes to it: wakers that had
/// chosen as their searches began would choose CPUs that others had taken meanwhile, and leave some idle
/// for good. 32 TCP_RR pairs on the 32 CPUs of a Kunpeng's node make 2.45 and 2.31 M transactions/s (Y. Yang,
/// LKML 2023-01; commit 8881e1639f1f).
#[test]
fn as_many_pairs_as_cpus_settle_as_measured() {
    let machine = reveille_machine::load("kp920-1n32c").expect("a preset");
    let work = catalogue("tcp_rr", 32, &[]);
    let result = run(&machine, &work, &baseline("v6.2"), 100 * MS, 20 * MS);
    assert_near("transactions/s", result.throughput(), 2.38e6, 0.1);
}

/// A CPU that clears its pending bit before it has its lock is chosen a second time. Between half and
/// full load; a single run depends on which pairs come to share a CPU.
#[test]
fn a_pending_bit_cleared_early_stacks_wakees() {
    let machine = exact(machine("skx-2s20c", 1, 2, 4, 2));
    let stacked = |edits| -> u64 {
        let run = |n| under(&machine, &pairs(n, 5), "v6.2", edits).counters.stacked_wakeups;
        (9..16).map(run).sum()
    };
    let (held, early) = (stacked(""), stacked("-TTWU_PENDING_HELD"));
    assert!(early > held + held / 4, "{held} with the bit held, {early} without");
}

/// With as many pairs as CPUs all wait for the group's load. Many leave their queue empty when they block:
/// fewer reads, shorter waits.
#[test]
fn a_queue_that_becomes_empty_does_not_read_its_groups_load() {
    let machine = reveille_machine::load("spr-1s56c").expect("a preset");
    let work = catalogue("context_switch1", 112, &[]);
    let waits = |edits| {
        let c = run(&machine, &work, &kernel("v6.2", edits), 40 * MS, 10 * MS).counters;
        c.hot_line_wait_ns as f64 / c.activations as f64
    };
    let (every, some) = (waits(""), waits("+EMPTY_KEEPS_WEIGHT"));
    assert!(every > 1000.0 && some > 0.0 && some < 0.85 * every, "{some} of {every} ns");
}

/// Pairs for three quarters of the CPUs: without a gate SIS_SHORT keeps those together that
/// share a CPU, and none of them searches any more.
#[test]
fn short_pairs_stay_together_where_sis_short_has_no_gate() {
    let machine = exact(machine("skx-2s20c", 1, 1, 8, 2));
    let work = catalogue("context_switch1", 12, &[]);
    let [plain, v6, v4] =
        ["", "+SIS_SHORT", "+SIS_SHORT_V4"].map(|edits| under(&machine, &work, "v6.2", edits));
    assert!(plain.counters.idle_searches > 100_000, "{:?}", plain.counters);
    assert_eq!(v6.operations, plain.operations, "too little is used for the gate");
    assert!(v4.counters.idle_searches < plain.counters.idle_searches / 100, "{:?}", v4.counters);
    assert!(2 * v4.operations > 3 * plain.operations);
}

/// A pair on an idle machine: apart each wakeup finds the other's CPU idle; with SIS_CURRENT both share one.
#[test]
fn partners_share_a_cpu_at_any_utilisation() {
    let machine = exact(machine("skx-2s20c", 1, 1, 8, 2));
    let work = catalogue("context_switch1", 1, &[]);
    let on_one = |edits| {
        let c = under(&machine, &work, "v6.4", edits).counters;
        assert!(c.activations > 1000, "{c:?}");
        c.wakeups_same_cpu as f64 / c.activations as f64
    };
    assert!(on_one("") < 0.01);
    assert!(on_one("+SIS_CURRENT") > 0.99);
}

/// The mask leaves out most CPUs that stay busy, so that fewer are looked at.
#[test]
fn a_filtered_search_looks_at_fewer_cpus() {
    let machine = exact(machine("skx-2s20c", 1, 1, 20, 2));
    let work = catalogue("hackbench", 2, &[]);
    let [plain, filtered] = ["", "+SIS_FILTER"].map(|edits| under(&machine, &work, "v6.2", edits));
    let looked = (per_search(&plain), per_search(&filtered));
    assert!(looked.1 < 0.75 * looked.0, "{looked:?}");
}

/// As many pairs as CPUs. Where searches pass over CPUs whose tasks will soon be back, each pair comes to
/// rest on one CPU, and searching ends.
#[test]
fn tasks_come_back_to_cpus_that_are_kept_for_them() {
    let machine = exact(machine("spr-2s56c", 1, 1, 28, 2));
    let work = catalogue("tcp_rr", 56, &[]);
    let searches = |edits| {
        let c = run(&machine, &work, &kernel("v6.4", edits), 100 * MS, 50 * MS).counters;
        assert!(c.activations > 100_000, "{c:?}");
        c.idle_searches as f64 / c.activations as f64
    };
    assert!(searches("") > 0.3);
    assert!(searches("+SIS_CACHE") < 0.001);
    assert!(searches("+SIS_CACHE +SIS_CACHE_V1") < 0.001);
}

/// An interrupt that wakes a kernel thread ends for seconds what SIS_CURRENT asks of a pair, whether it
/// came before the run or comes during it; without the feature it changes nothing.
#[test]
fn interrupts_part_pairs_that_share_a_cpu() {
    let shared = |cores, pairs_of_them, wakes, edits, (warm, time)| {
        let machine = exact(machine("cfl-1s8c", 1, 1, cores, 2));
        let machine = with_costs(machine, |cost| cost.background_wakes = wakes);
        let work = pairs(pairs_of_them, 5);
        let counters = run(&machine, &work, &kernel("v6.4", edits), warm * MS, time * MS).counters;
        let (here, elsewhere) = (counters.wakeups_same_cpu, counters.wakeups_same_llc);
        here as f64 / (here + elsewhere + counters.wakeups_sibling) as f64
    };
    let of_a_short_run = |wakes, edits| shared(8, 8, wakes, edits, (100, 20));
    let [never, rare, often] = [0, 4, 150].map(|wakes| of_a_short_run(wakes, "+SIS_CURRENT"));
    assert!(never == 1.0 && (0.2..0.9).contains(&rare) && often < 0.1, "{never} {rare} {often}");
    assert_eq!(of_a_short_run(0, ""), of_a_short_run(150, ""));
    // What was before the start is forgotten after five seconds; 0.25 a second come to each CPU while it is busy.
    let later = shared(8, 8, 4, "+SIS_CURRENT", (5_000, 2_000));
    assert!((0.3..0.9).contains(&later), "{later}");
}

/// A short run sees the utilisation of a long one: where no CPU is idle, SIS_UTIL searches nothing.
#[test]
fn a_full_cache_is_not_searched_after_a_short_warm_up() {
    let machine = exact(machine("milan-2s64c", 1, 2, 8, 2));
    let work = catalogue("tbench", 64, &[]);
    let full = run(&machine, &work, &kernel("v6.4", ""), 60 * MS, 15 * MS);
    assert!(full.counters.activations > 1000, "{:?}", full.counters);
    assert_eq!(full.counters.cpus_searched, 0);
}

/// util_est foresees work that PELT has half forgotten: where the CPUs are nearly full, SIS_UTIL lets
/// most wakeups search nothing.
#[test]
fn searches_are_wider_without_util_est() {
    let machine = exact(machine("cfl-1s8c", 1, 1, 8, 2));
    let work = sleepers(20, 40_000, 20_000);
    let looked = |edits| {
        let kernel = kernel("v6.2", edits);
        run(&machine, &work, &kernel, 500 * MS, 10_000 * MS).counters.cpus_searched
    };
    let (with, without) = (looked(""), looked("-UTIL_EST"));
    assert!(without > 2 * with, "{with} CPUs looked at with util_est, {without} without");
}

/// Tasks wait on other CPUs now and then when one goes idle, for less than 0.5 ms: no passes under v5.13's
/// gate, nor where each that found nothing has raised their cost to 0.5 ms; else by chance.
#[test]
fn new_idle_passes_that_find_little_become_rarer() {
    let machine = exact(machine("skx-2s20c", 1, 2, 4, 2));
    let work = sleepers(24, 200, 200);
    let variants = ["", "+NI_RANDOM,+NI_RATE", "+NI_RANDOM", "+NEWIDLE_BUMP", "+NEWIDLE_COST"];
    let runs = variants.map(|edits| under(&machine, &work, "v6.12", edits));
    let pulls = runs.each_ref().map(|r| r.counters.newidle_pulls);
    let [all, rated, random, bumped, gated] = pulls;
    assert!(all > 2 * rated && rated > random && random > 100, "{pulls:?}");
    assert!(bumped < 10 && gated == 0, "{pulls:?}");
    let [short, .., long, _] = runs.map(|r| r.wakeup_latency.quantile(0.99));
    assert!(4 * long > 5 * short, "p99 {short} and {long} ns");
}

/// Wakees that preempt tasks of other CPUs, which compute: an interrupt each, without one at the next tick.
#[test]
fn lazy_preemption_waits_for_the_next_tick() {
    let machine = exact(machine("skx-2s20c", 1, 1, 4, 2));
    let work = program(
        "channels = { there = \"pipe\" }\n\
         [[task]]\nname = \"hog\"\ncount = 8\nprogram = [{ run = \"20ms\" }]\n\
         [[task]]\nname = \"a\"\ncount = 8\nprogram = [{ run = \"20us\" }, { sleep = \"1ms\", jitter = \"1ms\" }, { send = \"there\" }]\n\
         [[task]]\nname = \"b\"\ncount = 8\nprogram = [{ recv = \"there\" }, { run = \"20us\" }, { count = 1 }]\n",
        1,
    );
    let of = |edits: &str| {
        let edits = format!("-RUN_TO_PARITY,-SLICE_PROTECT{edits}");
        let result = under(&machine, &work, "v7.2", &edits);
        (result.counters.ipis, result.wakeup_latency.quantile(0.95))
    };
    let (told, soon) = of(",-HRTICK,-PREEMPT_LAZY");
    let (lazy, late) = of(",-HRTICK");
    assert!(told > 1000 && lazy == 0, "{told} and {lazy} interrupts");
    assert!(late > 100 * soon, "p95 {soon} and {late} ns");
}

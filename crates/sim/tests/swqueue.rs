//! The shared wake queue at work: who is pulled, what the queue's lock costs when few
//! and when many want it, and how often a group's load is reported under the rate limit.
//! Source of the contention: "Re: [RFC PATCH 3/3] sched: Implement shared wakequeue in
//! CFS", linux-kernel, 2023-06-14: 83.4% of cycles wait for that lock, 42.9% of them in
//! the append and 40.5% in the removal at pick.

mod common;

use common::{
    MS, assert_near, catalogue, cost_ns, exact, machine, policy, program, run, with_costs,
};
use reveille_machine::Machine;
use reveille_measure::RunResult;
use reveille_workload::Program;

const FORMS: [&str; 5] = [
    "+SWQUEUE",
    "+SWQUEUE +SWQUEUE_NEWIDLE",
    "+SWQUEUE +SWQUEUE_NEWIDLE +SWQUEUE_SHARD",
    "+SWQUEUE +SWQUEUE_NEWIDLE +SWQUEUE_SHARD +SWQUEUE_SKIP_IDLE",
    "+SWQUEUE +SWQUEUE_NEWIDLE +SWQUEUE_SHARD +SWQUEUE_ENQUEUE +SWQUEUE_GATE_ABOVE_LLC",
];
const LONGER_NS: u32 = 300;

/// More tasks that compute and sleep than two CPUs can take at once.
fn sleepers() -> Program {
    let text = "[[task]]\nname = \"s\"\ncount = 4\n\
         program = [{ run = \"300us\" }, { sleep = \"200us\", jitter = \"300us\" }, { count = 1 }]\n";
    program(text, 1)
}

/// A pair on two CPUs: each finds its own CPU idle when it is woken.
fn pair() -> Program {
    let text = "channels = { there = \"pipe\", back = \"pipe\" }\n\
         [[task]]\nname = \"a\"\nprogram = [{ run = \"10us\" }, { send = \"there\" }, { recv = \"back\" }, { count = 1 }]\n\
         [[task]]\nname = \"b\"\nprogram = [{ recv = \"there\" }, { run = \"10us\" }, { send = \"back\" }]\n";
    program(text, 1)
}

/// The machine with longer critical sections of the queue's lock.
fn longer(base: &Machine) -> Machine {
    with_costs(base.clone(), |cost| cost.swqueue_hold_ns += LONGER_NS)
}

/// A wakee that waits behind another task is pulled by the next CPU that runs dry; new-idle
/// balancing alone leaves it there, for it is cache-hot.
#[test]
fn a_wakee_that_waits_is_pulled_by_a_cpu_that_runs_dry() {
    let machine = exact(machine("spr-2s56c", 1, 1, 2, 1));
    let result = |edits| run(&machine, &sleepers(), &policy(edits), 50 * MS, 500 * MS);
    let without = result("");
    assert_eq!(without.counters.swqueue_pulls, 0);
    for edits in FORMS {
        let with = result(edits);
        assert!(with.counters.swqueue_pulls > 100, "{edits}: {:?}", with.counters);
        // 48 migrations a second without the queue, more than 500 with it.
        let (pulls, moved) = (with.counters.swqueue_pulls, without.counters.balance_migrations);
        assert!(pulls > 5 * moved, "{edits}: {pulls} pulls, {moved} moved without");
    }
}

/// A queue belongs to one cache: where every CPU has its own, there is no other CPU to pull for.
#[test]
fn nothing_is_pulled_out_of_a_cache() {
    let machine = exact(machine("zen3-milan-36c", 1, 2, 1, 1));
    for edits in FORMS {
        let result = run(&machine, &sleepers(), &policy(edits), 50 * MS, 200 * MS);
        assert_eq!(result.counters.swqueue_pulls, 0, "{edits}");
    }
}

/// Where a task may run on one CPU only, it never stands on a queue.
#[test]
fn one_cpu_has_no_shared_queue() {
    let machine = machine("spr-2s56c", 1, 1, 1, 1);
    let operations =
        |edits| run(&machine, &sleepers(), &policy(edits), 20 * MS, 100 * MS).operations;
    for edits in FORMS {
        assert_eq!(operations(edits), operations(""), "{edits}");
    }
}

/// A wake-up that stays on its CPU takes the lock twice, to append and at the pick; in the
/// form that leaves out wakees of CPUs with nothing else to run, not at all.
#[test]
fn a_wakeup_takes_the_lock_twice() {
    let base = exact(machine("spr-2s56c", 1, 1, 2, 1));
    let longer = longer(&base);
    let hop = |machine: &Machine, edits| {
        let result = run(machine, &pair(), &policy(edits), 20 * MS, 200 * MS);
        result.elapsed_ns as f64 / (2 * result.operations) as f64
    };
    for edits in [FORMS[0], FORMS[1], FORMS[2], FORMS[4]] {
        let more = hop(&longer, edits) - hop(&base, edits);
        assert_near(edits, more, f64::from(2 * LONGER_NS), 0.02);
    }
    let hops = (hop(&base, FORMS[3]), hop(&longer, FORMS[3]));
    assert!((hops.0 - hops.1).abs() < 1.0, "{hops:?}");
}

/// Tasks that only compute are never woken: their switches take the lock where every enqueue
/// appends, once for the task that is put back and once for the next.
#[test]
fn a_preemption_takes_the_lock_twice_where_every_enqueue_appends() {
    let base = exact(machine("spr-2s56c", 1, 1, 2, 1));
    let text =
        "[[task]]\nname = \"s\"\ncount = 4\nprogram = [{ run = \"100us\" }, { count = 1 }]\n";
    let kernel_ns = |machine: &Machine, edits| {
        let result = run(machine, &program(text, 1), &policy(edits), 20 * MS, 1000 * MS);
        cost_ns(&result) / result.counters.context_switches as f64
    };
    let more = |edits| kernel_ns(&longer(&base), edits) - kernel_ns(&base, edits);
    assert!(more(FORMS[2]).abs() < 20.0, "{}", more(FORMS[2]));
    assert_near("per switch", more(FORMS[4]), f64::from(2 * LONGER_NS), 0.05);
}

fn udp_rr(clients: u64, edits: &str) -> RunResult {
    let machine = reveille_machine::load("icx-2s32c").expect("a preset");
    run(&machine, &catalogue("udp_rr", clients, &[]), &policy(edits), 40 * MS, 5 * MS)
}

/// With every CPU of a large cache taken, the lock is all that the machine does, as much of
/// it in the append as in the removal.
#[test]
fn many_clients_spend_their_cycles_on_the_lock() {
    let plain = udp_rr(256, "");
    let result = udp_rr(256, "+SWQUEUE");
    let e = result.explain();
    assert!((60.0..=95.0).contains(&e.swqueue_wait_busy_pct), "{e:?}");
    assert_near("append", e.swqueue_append_wait_pct, e.swqueue_remove_wait_pct, 0.25);
    assert!(result.operations * 2 < plain.operations);
    // Eleven locks in place of one: six CPUs each.
    let shards = udp_rr(256, "+SWQUEUE +SWQUEUE_SHARD").explain();
    assert!(shards.swqueue_wait_busy_pct < e.swqueue_wait_busy_pct / 3.0, "{shards:?}");
}

/// One pair never waits: what it pays is the list and its lines.
#[test]
fn a_single_client_hardly_waits() {
    let e = udp_rr(1, "+SWQUEUE").explain();
    assert!(e.swqueue_wait_busy_pct < 5.0, "{e:?}");
}

/// Pairs that change CPUs move the group's load at every hop; under the limit each CPU
/// writes it a thousand times a second, and between two writes the reads are free.
#[test]
fn the_rate_limit_cools_the_group_load() {
    let machine = exact(machine("spr-2s56c", 1, 1, 8, 1));
    let program = catalogue("context_switch1", 6, &[]);
    let wait = |edits| {
        run(&machine, &program, &policy(edits), 20 * MS, 100 * MS).counters.hot_line_wait_ns
    };
    let (plain, limited) = (wait(""), wait("+LOAD_AVG_RATELIMIT"));
    // 8 writers, each of whom the 7 others read again; a queue of all at the worst.
    let line = u64::from(machine.cost.line_llc_ns);
    let most = 101 * 8 * 8 * (8 * line);
    assert!(limited <= most, "{limited} ns, at most {most}");
    assert!(limited * 3 < plain, "{plain} to {limited} ns");
}

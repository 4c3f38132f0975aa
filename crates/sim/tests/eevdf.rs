//! EEVDF on machines small enough to say what must come out: shares, waits, and
//! where a task that sleeps in debt is woken.

mod common;

use common::{MS, assert_near, baseline, catalogue, exact, machine, program, run};
use reveille_machine::Machine;
use reveille_measure::Ns;
use reveille_policy::Policy;

/// Tasks that only compute, in pieces of 10 us; each piece counts `counts`.
fn spinners(name: &str, count: u32, counts: u32) -> String {
    format!(
        "[[task]]\nname = \"{name}\"\ncount = {count}\nprogram = [{{ run = \"10us\" }}, {{ count = {counts} }}]\n"
    )
}

/// Tasks that compute and sleep.
fn sleepers(name: &str, count: u32, run: &str, sleep: &str, jitter: &str) -> String {
    format!(
        "[[task]]\nname = \"{name}\"\ncount = {count}\nprogram = [{{ run = \"{run}\" }}, {{ sleep = \"{sleep}\", jitter = \"{jitter}\" }}, {{ count = 1 }}]\n"
    )
}

/// What both of the tasks have counted, A in ones and B in millions.
fn both(operations: u64) -> (f64, f64) {
    ((operations % 1_000_000) as f64, (operations / 1_000_000) as f64)
}

fn one_cpu(hz: u32) -> Machine {
    Machine { hz, ..exact(machine("spr-2s56c", 1, 1, 1, 1)) }
}

/// The baselines that have EEVDF, and what each is without delayed dequeue, and without timers of its own.
fn baselines() -> Vec<(String, Policy)> {
    let mut all = Vec::new();
    for name in ["v6.12", "v6.18", "v7.2"] {
        all.push((name.to_owned(), baseline(name)));
        for edits in ["-DELAY_DEQUEUE", "-HRTICK", "-HRTICK,-DELAY_DEQUEUE"] {
            if edits == "-DELAY_DEQUEUE" || ends_slices_on_time(&baseline(name)) {
                let edited = baseline(name).with(edits).expect("an edit that applies");
                all.push((format!("{name} {edits}"), edited));
            }
        }
    }
    assert_eq!(all.iter().filter(|(_, policy)| ends_slices_on_time(policy)).count(), 2);
    all
}

fn ends_slices_on_time(policy: &Policy) -> bool {
    policy.names().contains(&"HRTICK")
}

#[test]
fn tasks_that_compute_share_a_cpu_equally() {
    for (name, policy) in baselines() {
        for hz in [250, 1000] {
            for (tasks_a, tasks_b) in [(1, 1), (6, 3), (1, 20)] {
                let text = spinners("a", tasks_a, 1) + &spinners("b", tasks_b, 1_000_000);
                let result = run(&one_cpu(hz), &program(&text, 1), &policy, 100 * MS, 3000 * MS);
                let (a, b) = both(result.operations);
                let share = f64::from(tasks_a) / f64::from(tasks_a + tasks_b);
                assert_near(&format!("{name}, hz {hz}"), a / (a + b), share, 0.05);
            }
        }
    }
}

/// One CPU: the base slice is 0.7 ms, before v6.15 0.75. Two tasks take turns at the first tick after it, with
/// HRTICK on time; but a task that is picked again gets no new timer, and with a tick of 1 ms that is the rule.
#[test]
fn a_slice_ends_at_the_first_tick_after_it() {
    let text = spinners("a", 2, 1);
    for (name, policy) in baselines() {
        for (hz, at_tick) in [(250, 4 * MS), (1000, MS)] {
            let on_time = ends_slices_on_time(&policy) && hz == 250;
            let slice = if on_time { 700_000 } else { at_tick };
            let result = run(&one_cpu(hz), &program(&text, 1), &policy, 100 * MS, 1000 * MS);
            let turn = result.elapsed_ns as f64 / result.counters.context_switches as f64;
            assert_near(&format!("{name}, hz {hz}"), turn, slice as f64, 0.01);
        }
    }
}

/// A wakeup does not end the slice of a task with positive lag; once the slice is over, the
/// sleeper comes first. CFS preempts at once.
#[test]
fn a_sleeper_waits_for_the_end_of_a_slice_and_no_longer() {
    let text = spinners("a", 6, 1) + &sleepers("s", 1, "50us", "37ms", "9ms");
    let text = program(&text, 1);
    for (hz, tick) in [(250, 4 * MS), (1000, MS)] {
        let latest = |policy: &Policy| {
            let result = run(&one_cpu(hz), &text, policy, 200 * MS, 5000 * MS);
            assert!(result.wakeup_latency.count() > 80);
            result.wakeup_latency.max()
        };
        assert!(latest(&baseline("v6.2")) < 10_000);
        for (name, policy) in baselines() {
            let longest = latest(&policy);
            // Slices that end on time leave others more eligible: each of the six may run before its deadline.
            let most = if ends_slices_on_time(&policy) { 7 * 700_000 } else { 700_000 + tick };
            assert!((MS / 2..most).contains(&longest), "{name}, hz {hz}: {longest} ns");
        }
    }
}

#[test]
fn nobody_starves_beside_tasks_that_compute() {
    const TASKS: Ns = 8;
    let text = spinners("a", 5, 1_000_000) + &sleepers("s", 3, "100us", "1ms", "1ms");
    for (name, policy) in baselines() {
        for (hz, tick) in [(250, 4 * MS), (1000, MS)] {
            let result = run(&one_cpu(hz), &program(&text, 1), &policy, 200 * MS, 5000 * MS);
            let longest = result.wakeup_latency.max();
            let round = TASKS * (700_000 + tick);
            assert!(longest <= round, "{name}, hz {hz}: {longest} ns");
            // Sleepers want less than their share: their waits, a round at most, are short.
            let (rounds, pieces) = both(result.operations);
            let period = 3.0 * result.elapsed_ns as f64 / rounds;
            assert!(period < 3e6, "{name}, hz {hz}: a sleeper's round takes {period} ns");
            // The rest of the time is computed in pieces of 10 us.
            let wanted = result.elapsed_ns as f64 - 100_000.0 * rounds;
            assert_near(&format!("{name}, hz {hz}"), pieces * 10_000.0, wanted, 0.02);
        }
    }
}

/// Of two tasks that pass a message on one CPU, the one that sleeps has just run, is in
/// debt, and is still queued when the other wakes it: it goes on there, unsearched for.
#[test]
fn pairs_that_meet_on_a_cpu_stay_together() {
    let machine = machine("spr-2s56c", 1, 1, 8, 2);
    let pairs = catalogue("context_switch1", 13, &[]);
    for name in ["v6.12", "v6.18", "v7.2"] {
        let shares = |policy: &Policy| {
            let result = run(&machine, &pairs, policy, 20 * MS, 100 * MS);
            let c = &result.counters;
            let of_all = |n: u64| n as f64 / c.activations as f64;
            (of_all(c.wakeups_same_cpu), of_all(c.idle_searches), result.operations)
        };
        let (stay, searched, rate) = shares(&baseline(name));
        let edited = baseline(name).with("-DELAY_DEQUEUE").expect("an edit that applies");
        let (without_stay, without_searched, without_rate) = shares(&edited);
        assert!(stay > 2.0 * without_stay, "{name}: {stay} and {without_stay} stay");
        assert!(searched < 0.05 && without_searched > 0.2, "{name}: {searched} are searched");
        assert!(rate > without_rate, "{name}: {rate} and {without_rate}");
    }
}

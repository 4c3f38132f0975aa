//! Small machines where the right figure can be worked out by hand: what a hop
//! costs, how tasks share a CPU, where a wakee goes, when a sleeper wakes, and
//! what balancing achieves.

mod common;

use common::{
    MS, assert_near, baseline, catalogue, cost_ns, exact, halting, machine, policy, program, run,
    with_costs,
};
use reveille_machine::{CostModel, Machine};
use reveille_measure::Ns;
use reveille_workload::Program;

/// Tasks that only compute, in pieces of `run`; each piece counts `counts`.
fn runner(name: &str, count: u32, run: &str, counts: u32) -> String {
    format!(
        "[[task]]\nname = \"{name}\"\ncount = {count}\nprogram = [{{ run = \"{run}\" }}, {{ count = {counts} }}]\n"
    )
}

/// A pair that does nothing between its messages.
fn pairs(kind: &str, load: u64) -> Program {
    let text = format!(
        "channels = {{ there = \"{kind}\", back = \"{kind}\" }}\n\
         [[task]]\nname = \"a\"\nprogram = [{{ send = \"there\" }}, {{ recv = \"back\" }}, {{ count = 2 }}]\n\
         [[task]]\nname = \"b\"\nprogram = [{{ recv = \"there\" }}, {{ send = \"back\" }}]\n"
    );
    program(&text, load)
}

#[test]
fn a_hop_on_one_cpu_costs_the_sum_of_its_parts() {
    for preset in ["spr-2s56c", "icx-guest-32", "hsw-2s24c", "quad-1s4c"] {
        let machine = exact(machine(preset, 1, 1, 1, 1));
        let c = &machine.cost;
        for (kind, send, receive) in [
            ("pipe", c.pipe_write_ns, c.pipe_read_ns),
            ("udp", c.udp_send_ns, c.udp_recv_ns),
            ("tcp", c.tcp_send_ns, c.tcp_recv_ns),
        ] {
            // With the debit of a new task the second would stay behind the first.
            for (edits, levels) in [("-START_DEBIT", 1), ("-START_DEBIT,-AUTOGROUP", 0)] {
                let group = levels * c.group_level_ns;
                // A task sends, wakes its partner here, blocks, and the partner takes over.
                let messages = 2 * c.syscall_ns + send + receive;
                let wake = c.ttwu_ns + c.line_llc_ns + c.enqueue_ns + group;
                let block = c.dequeue_ns + group + c.switch_ns + c.switch_mm_ns;
                let result = run(&machine, &pairs(kind, 1), &policy(edits), 10 * MS, 200 * MS);
                let hop = result.elapsed_ns as f64 / result.operations as f64;
                let sum = f64::from(messages + wake + block);
                assert_near(&format!("{preset} {kind} {edits}"), hop, sum, 0.02);
                assert_eq!(result.counters.preemptions, 0, "neither task is ahead of the other");
            }
        }
    }
}

/// The clock falls linearly from one busy core to all of them; a step is 1.6%.
#[test]
fn a_socket_loses_clock_with_each_busy_core() {
    let rounds = |hz: u32, all_core_clock: f64, busy: u64| {
        let mut machine = exact(machine("spr-2s56c", 1, 1, 16, 1));
        (machine.hz, machine.cost.all_core_clock) = (hz, all_core_clock);
        let hog =
            program("[[task]]\nname = \"a\"\nprogram = [{ run = \"1ms\" }, { count = 1 }]\n", busy);
        let result = run(&machine, &hog, &policy(""), 500 * MS, 1500 * MS);
        result.operations as f64 / busy as f64
    };
    for (hz, busy) in [(250, 1), (250, 8), (1000, 8), (250, 12), (250, 15), (250, 16)] {
        let clock = 1.0 - 0.2 * (busy - 1) as f64 / 15.0;
        let share = rounds(hz, 0.8, busy) / rounds(hz, 1.0, busy);
        assert_near(&format!("{busy} of 16 cores, {hz} Hz"), share, clock, 0.0085);
    }
}

/// Two tasks of one process switch without changing the address space.
#[test]
fn threads_of_a_process_switch_cheaper_by_the_address_space() {
    let machine = exact(machine("spr-2s56c", 1, 1, 1, 1));
    let hop = |process: &str| {
        let text = format!(
            "channels = {{ there = \"pipe\", back = \"pipe\" }}\n\
             [[task]]\nname = \"a\"\nprocess = \"{process}\"\nprogram = [{{ send = \"there\" }}, {{ recv = \"back\" }}, {{ count = 2 }}]\n\
             [[task]]\nname = \"b\"\nprocess = \"{process}\"\nprogram = [{{ recv = \"there\" }}, {{ send = \"back\" }}]\n"
        );
        let result = run(&machine, &program(&text, 1), &policy(""), 10 * MS, 200 * MS);
        result.elapsed_ns as f64 / result.operations as f64
    };
    let saved = hop("own") - hop("instance");
    assert_near("saved per hop", saved, f64::from(machine.cost.switch_mm_ns), 0.05);
}

/// The two tasks' shares of a run, from one number: A counts 1, B a million.
fn shares(operations: u64) -> (u64, u64) {
    (operations % 1_000_000, operations / 1_000_000)
}

#[test]
fn two_tasks_that_compute_share_a_cpu_in_slices_within_the_latency() {
    let both = runner("a", 1, "10us", 1) + &runner("b", 1, "10us", 1_000_000);
    let both = program(&both, 1);
    for hz in [250, 1000] {
        let machine = Machine { hz, ..exact(machine("spr-2s56c", 1, 1, 1, 1)) };
        let of = |duration| shares(run(&machine, &both, &policy(""), 10 * MS, duration).operations);
        let (a, b) = of(1000 * MS);
        assert_near("share of A", a as f64 / (a + b) as f64, 0.5, 0.01);
        // Nothing but the tick takes time from them.
        assert_near("work of both", (a + b) as f64, 100_000.0, 0.01);

        // Runs of growing length begin alike: the last slices of each show who ran.
        let step = MS / 4;
        let progress: Vec<(u64, u64)> = (1..=320).map(|n| of(n * step)).collect();
        let runs_a: Vec<bool> =
            progress.windows(2).map(|w| w[1].0 - w[0].0 > w[1].1 - w[0].1).collect();
        let slices: Vec<Ns> =
            runs_a.chunk_by(|x, y| x == y).map(|s| s.len() as Ns * step).collect();
        assert!(slices.len() > 10, "hz {hz}: {slices:?}");
        // One CPU: min_granularity 0.75 ms, latency 6 ms; the first and the last are cut.
        for &slice in &slices[1..slices.len() - 1] {
            assert!((3 * MS / 4..=6 * MS).contains(&slice), "hz {hz}: {slices:?}");
        }
    }
}

#[test]
fn many_tasks_share_a_cpu_fairly() {
    let machine = exact(machine("spr-2s56c", 1, 1, 1, 1));
    let two = program(&(runner("a", 6, "10us", 1) + &runner("b", 3, "10us", 1_000_000)), 1);
    let result = run(&machine, &two, &policy(""), 100 * MS, 2000 * MS);
    let (a, b) = shares(result.operations);
    assert_near("six tasks against three", a as f64 / b as f64, 2.0, 0.03);
}

/// A task that slept has the least vruntime: it preempts, or at least runs next, before
/// tasks that have waited longer but computed more.
#[test]
fn a_sleeper_runs_before_tasks_that_compute() {
    let machine = exact(machine("spr-2s56c", 1, 1, 1, 1));
    let sleeper = "[[task]]\nname = \"s\"\nprogram = [{ run = \"50us\" }, { sleep = \"37ms\", jitter = \"9ms\" }]\n";
    let program = program(&(runner("a", 6, "100us", 1) + sleeper), 1);
    let latest = |edits| {
        let result = run(&machine, &program, &policy(edits), 200 * MS, 5000 * MS);
        assert!(result.wakeup_latency.count() > 80);
        result.wakeup_latency.max()
    };
    let preempting = latest("");
    assert!(preempting < 10_000, "{preempting} ns");
    // The running task's slice ends at the next tick, or at the one after.
    let waiting = latest("-WAKEUP_PREEMPTION");
    assert!((3 * MS..=9 * MS).contains(&waiting), "{waiting} ns");
}

#[test]
fn a_wakee_finds_an_idle_core_while_there_is_one() {
    let machine = machine("spr-2s56c", 1, 1, 8, 2);
    let text = "channels = { there = \"pipe\", back = \"pipe\" }\n\
         [[task]]\nname = \"a\"\nprogram = [{ run = \"20us\" }, { send = \"there\" }, { recv = \"back\" }, { count = 1 }]\n\
         [[task]]\nname = \"b\"\nprogram = [{ recv = \"there\" }, { run = \"20us\" }, { send = \"back\" }]\n";
    for load in 1..=3 {
        let result = run(&machine, &program(text, load), &policy(""), 20 * MS, 100 * MS);
        let c = &result.counters;
        let wakeups =
            c.wakeups_same_cpu + c.wakeups_sibling + c.wakeups_same_llc + c.wakeups_remote;
        assert!(wakeups > 1000 * load, "{wakeups}");
        // Three pairs on eight cores: never on the waker's core, where it still runs.
        assert!(c.wakeups_sibling + c.wakeups_same_cpu <= wakeups / 1000, "{load} pairs: {c:?}");
        assert_eq!(c.preemptions, 0);
    }
}

/// No core is shared if the work of all tasks goes at full speed.
#[test]
fn tasks_that_sleep_now_and_then_do_not_share_cores() {
    let machine = exact(machine("spr-2s56c", 1, 1, 8, 2));
    let text = "[[task]]\nname = \"a\"\nprogram = [{ run = \"300us\" }, { sleep = \"200us\" }, { count = 1 }]\n";
    let rate = |load| {
        let result = run(&machine, &program(text, load), &policy(""), 50 * MS, 200 * MS);
        result.operations as f64 / load as f64
    };
    // Alone, and with as many tasks as cores that want a core 60% of the time.
    assert_near("rounds per task", rate(4), rate(1), 0.01);
    assert_near("rounds per task", rate(8), rate(1), 0.03);
}

#[test]
fn a_sleeper_wakes_after_time_slack_and_idle_exit() {
    for (preset, sleep_us) in [("spr-2s56c", 900u32), ("icx-guest-32", 700), ("spr-2s56c", 30_000)]
    {
        let machine = exact(machine(preset, 1, 1, 1, 1));
        let c = &machine.cost;
        let text = format!(
            "[[task]]\nname = \"a\"\nprogram = [{{ sleep = \"{sleep_us}us\" }}, {{ count = 1 }}]\n"
        );
        let result = run(&machine, &program(&text, 1), &policy(""), 100 * MS, 2000 * MS);
        let exit = machine.idle.last().expect("a state").exit_ns;
        let wake = c.irq_ns + c.ttwu_ns + c.line_llc_ns + c.enqueue_ns + c.group_level_ns;
        let back = c.switch_idle_ns + c.syscall_ns + c.futex_wait_ns;
        let period = f64::from(sleep_us * 1000 + c.timer_slack_ns + exit + wake + back);
        let seen = result.elapsed_ns as f64 / result.operations as f64;
        // Counting whole rounds is good for one in as many.
        let share = 0.002 + 1.0 / result.operations as f64;
        assert_near(&format!("{preset} {sleep_us} us"), seen, period, share);
    }
}

#[test]
fn two_computing_threads_of_a_core_each_run_at_the_smt_share() {
    let work = |threads, tasks| {
        let machine = exact(machine("spr-2s56c", 1, 1, 1, threads));
        let text = runner("a", tasks, "50us", 1);
        run(&machine, &program(&text, 1), &policy(""), 20 * MS, 200 * MS).operations as f64
    };
    let share = machine("spr-2s56c", 1, 1, 1, 2).cost.smt_share;
    assert_near("one of two threads", work(2, 1), work(1, 1), 0.01);
    assert_near("both threads", work(2, 2), 2.0 * share * work(1, 1), 0.01);
}

/// A worker's latency runs from the start of the batch: those woken later wait longer.
#[test]
fn latency_in_a_batch_grows_with_the_position() {
    let machine = exact(machine("spr-2s56c", 1, 1, 32, 2));
    let c = &machine.cost;
    let latency = |workers: &str| {
        let params = [("workers", workers), ("cputime", "500us"), ("sleeptime", "1ms")];
        run(&machine, &catalogue("schbench", 1, &params), &policy(""), 50 * MS, 200 * MS)
            .recorded_latency
            .remove(0)
    };
    let (one, four, sixteen) = (latency("1"), latency("4"), latency("16"));
    assert!(one.quantile(0.5) < four.quantile(0.5), "{one:?}");
    assert!(four.quantile(0.5) < sixteen.quantile(0.5));
    // Each position costs the waker a system call and a wake-up at least.
    let step = f64::from(c.syscall_ns + c.futex_wake_ns + c.ttwu_ns);
    for (n, latency) in [(4u32, &four), (16, &sixteen)] {
        let first = latency.quantile(0.5 / f64::from(n)) as f64;
        let last = latency.quantile(1.0 - 0.5 / f64::from(n)) as f64;
        let least = f64::from(n - 1) * step;
        assert!(last - first >= least, "{n} workers: {first} to {last} ns, at least {least}");
        assert!(last - first <= 4.0 * least, "{n} workers: {first} to {last} ns");
    }
}

/// The batch begins when the message thread runs again after its own wait: what the end of that wait costs is no
/// part of a latency, the worker's is.
#[test]
fn a_latency_begins_when_its_waker_runs() {
    let base = exact(machine("spr-2s56c", 1, 1, 4, 1));
    let dearer = with_costs(base.clone(), |cost| cost.futex_wait_ns += 2_000);
    let params = [("workers", "1"), ("cputime", "500us"), ("sleeptime", "1ms")];
    let latency = |machine| {
        let program = catalogue("schbench", 1, &params);
        let mut result = run(machine, &program, &policy(""), 50 * MS, 200 * MS);
        result.recorded_latency.remove(0).quantile(0.5) as f64
    };
    // Half of a wait's cost comes after the wakeup, and latencies are counted in steps of up to 1%.
    let more = latency(&dearer) - latency(&base);
    assert_near("the worker's own", more, 1_000.0, 0.1);
}

/// Half of the runners are forked onto CPUs that are taken: between them stand tasks
/// that sleep for an hour. Within a second balancing gives each runner its own CPU.
#[test]
fn balancing_gives_each_runner_a_cpu_within_a_second() {
    for (sockets, llcs, cores, threads) in
        [(1, 1, 4, 1), (1, 1, 8, 1), (1, 2, 4, 1), (2, 1, 4, 1), (1, 1, 4, 2), (2, 1, 4, 2)]
    {
        let machine = exact(machine("hsw-2s24c", sockets, llcs, cores, threads));
        let n = machine.topology.n_cpus() as u32;
        let idle = "[[task]]\nname = \"s\"\ncount = COUNT\nprogram = [{ sleep = \"3600s\" }]\n";
        let text = runner("a", n / 2, "100us", 1)
            + &idle.replace("COUNT", &(n / 2).to_string())
            + &runner("b", n / 2, "100us", 1);
        let result = run(&machine, &program(&text, 1), &policy(""), 1000 * MS, 200 * MS);
        let speed = if threads == 2 { machine.cost.smt_share } else { 1.0 };
        let full = f64::from(n) * speed * 2000.0;
        let case = format!("{sockets} x {llcs} x {cores} x {threads}");
        assert_near(&case, result.operations as f64, full, 0.03);
        for (number, cpu) in result.cpus.iter().enumerate() {
            assert!(cpu.idle_ns < 2 * MS, "{case}: CPU {number} idle for {} ns", cpu.idle_ns);
        }
    }
}

/// v6.0+: a wakee goes on the wake list of a CPU that runs nothing, and then its waker
/// does not take that CPU's runqueue lock.
#[test]
fn the_wake_list_spares_the_waker_the_remote_lock() {
    let machine = exact(machine("spr-2s56c", 1, 1, 8, 1));
    let text = "channels = { there = \"pipe\", back = \"pipe\" }\n\
         [[task]]\nname = \"a\"\nprogram = [{ run = \"10us\" }, { send = \"there\" }, { recv = \"back\" }, { count = 1 }]\n\
         [[task]]\nname = \"b\"\nprogram = [{ recv = \"there\" }, { run = \"10us\" }, { send = \"back\" }]\n";
    let result = |edits| run(&machine, &program(text, 2), &policy(edits), 20 * MS, 100 * MS);
    let (with, without) = (result(""), result("-TTWU_QUEUE"));
    let per_wakeup = |r: &reveille_measure::RunResult| {
        r.counters.lock_wait_ns as f64 / r.counters.activations as f64
    };
    // Each CPU drains its own list: its lock never leaves it.
    assert_eq!(with.counters.lock_wait_ns, 0);
    // Else the lock goes to the waker and back.
    let line = f64::from(machine.cost.line_llc_ns);
    assert!(per_wakeup(&without) >= 1.9 * line, "{} ns", per_wakeup(&without));
}

/// The kernel drops the runqueue's lock in finish_task_switch(): a waker of a CPU that switches
/// waits for the rest of that.
#[test]
fn a_switch_holds_the_runqueue_lock() {
    let text = "channels = { one = \"pipe\", other = \"pipe\" }\n\
         [[task]]\nname = \"a\"\nprogram = [{ send = \"one\" }, { run = \"4us\" }, { send = \"other\" }, { run = \"12us\" }, { count = 1 }]\n\
         [[task]]\nname = \"b\"\nprogram = [{ recv = \"one\" }]\n\
         [[task]]\nname = \"c\"\nprogram = [{ recv = \"other\" }]\n";
    let waits = |switch_idle_ns| {
        let machine = exact(machine("spr-2s56c", 1, 1, 2, 1));
        let machine = with_costs(machine, |cost| cost.switch_idle_ns = switch_idle_ns);
        let result = run(
            &machine,
            &program(text, 1),
            &policy("-TTWU_QUEUE -WA_IDLE -WA_WEIGHT"),
            20 * MS,
            100 * MS,
        );
        result.counters.lock_wait_ns as f64 / result.counters.activations as f64
    };
    let (short, long) = (waits(500), waits(5000));
    assert!(long > 5.0 * short, "{long} ns per activation, {short} with short switches");
}

/// A wakeup on another core moves a known number of cache lines, and each of them is charged:
/// those of the two CPUs that are tested, of the wakee, of the channel and its lock at either end of
/// the message, and of the queue. While need-resched moves, the wakee's CPU still is idle.
#[test]
fn a_wakeup_elsewhere_pays_for_each_line_that_moves() {
    const FARTHER_NS: u32 = 100;
    let near = exact(machine("spr-2s56c", 1, 1, 2, 1));
    let far = with_costs(near.clone(), |cost| cost.line_llc_ns += FARTHER_NS);
    let text = "channels = { there = \"pipe\", back = \"pipe\" }\n\
         [[task]]\nname = \"a\"\nprogram = [{ run = \"20us\" }, { send = \"there\" }, { recv = \"back\" }, { count = 1 }]\n\
         [[task]]\nname = \"b\"\nprogram = [{ recv = \"there\" }, { run = \"20us\" }, { send = \"back\" }]\n";
    let wakee = near.cost.wakee_lines + near.cost.handoff_lines;
    let message = 2 + wakee + 2 * (near.cost.pipe_lines + 1);
    for (edits, lines) in [
        // The list's head and the pending flag.
        ("-AUTOGROUP", message + 2),
        // The lock and the lines of the runqueue, to the waker and back.
        ("-AUTOGROUP -TTWU_QUEUE", message + 2 * (1 + near.cost.remote_enqueue_lines)),
    ] {
        let cost = |machine: &Machine| {
            let result = run(machine, &program(text, 1), &policy(edits), 20 * MS, 200 * MS);
            cost_ns(&result) / result.counters.activations as f64
        };
        let more = cost(&far) - cost(&near);
        assert_near(edits, more, f64::from(lines * FARTHER_NS), 0.02);
    }
}

/// Each buffer that a Unix socket passes on moves once, filled to the reader and empty back, also if
/// one end handles several in a row; what they share moves once for all. In a pipe a line of each
/// message's data, or its share of one, moves likewise.
#[test]
fn every_buffer_moves_to_the_reader_and_back() {
    const FARTHER_NS: u32 = 100;
    let near = exact(machine("spr-2s56c", 1, 1, 2, 1));
    let far = with_costs(near.clone(), |cost| cost.line_llc_ns += FARTHER_NS);
    let per_round = |machine: &Machine, (kind, bytes): (&str, u32), more: usize| {
        let text = format!(
            "channels = {{ there = \"{kind}\", back = \"{kind}\" }}\n\
             [[task]]\nname = \"a\"\nprogram = [{{ run = \"20us\" }}, {{ send = \"there\", bytes = {bytes} }}, {{ run = \"20us\" }}, {}{{ recv = \"back\" }}, {{ count = 1 }}]\n\
             [[task]]\nname = \"b\"\nprogram = [{{ recv = \"there\" }}, {{ run = \"60us\" }}, {}{{ send = \"back\" }}]\n",
            format!("{{ send = \"there\", bytes = {bytes} }}, ").repeat(more),
            "{ recv = \"there\" }, ".repeat(more)
        );
        let result = run(machine, &program(&text, 1), &policy("-AUTOGROUP"), 20 * MS, 400 * MS);
        cost_ns(&result) / result.operations as f64
    };
    let slope = |channel, more| per_round(&far, channel, more) - per_round(&near, channel, more);
    let unix = f64::from(near.cost.unix_lines - 2);
    for (channel, lines) in
        [(("unix", 100), unix), (("pipe", 33), 0.5), (("pipe", 65), 1.0), (("pipe", 1000), 1.0)]
    {
        // The reader has taken the first before the others are sent, and takes them after all are.
        let more = slope(channel, 6) - slope(channel, 3);
        let buffers = 3.0 * 2.0 * lines * f64::from(FARTHER_NS);
        assert_near(&format!("three more messages, {channel:?}"), more, buffers, 0.02);
    }
}

/// A task that sends to a socket while another one wakes the reader waits until that wakeup is over.
#[test]
fn senders_wait_while_another_wakes_the_reader() {
    let machine = exact(machine("spr-2s56c", 1, 1, 4, 1));
    let machine = with_costs(machine, |cost| cost.ttwu_ns = 200_000);
    let per_wakeup = |kind: &str| {
        let text = format!(
            "channels = {{ to = \"{kind}\" }}\n\
             [[task]]\nname = \"reader\"\nprogram = [{{ recv = \"to\" }}, {{ count = 1 }}]\n\
             [[task]]\nname = \"sender\"\ncount = 3\nprogram = [{{ run = \"5us\" }}, {{ send = \"to\" }}]\n"
        );
        let result = run(&machine, &program(&text, 1), &policy(""), 20 * MS, 400 * MS);
        result.operations as f64 / result.counters.activations as f64
    };
    let (pipe, unix) = (per_wakeup("pipe"), per_wakeup("unix"));
    assert!(pipe > 20.0, "a pipe is only woken when it was empty: {pipe} messages per wakeup");
    assert!((1.0..10.0).contains(&unix), "{unix} messages per wakeup of a socket's reader");
}

/// Two tasks that take turns leave each other's data in the cache; more of them do not.
#[test]
fn pairs_that_share_a_cpu_find_its_cache_cold() {
    const REFILL_NS: u32 = 1000;
    let cost = |cold_shared_ns, n| {
        let machine = exact(machine("spr-2s56c", 1, 1, 1, 1));
        let machine = with_costs(machine, |cost| cost.cold_shared_ns = cold_shared_ns);
        let result = run(&machine, &pairs("pipe", n), &policy(""), 20 * MS, 100 * MS);
        cost_ns(&result) / result.counters.context_switches as f64
    };
    assert_eq!(cost(0, 1), cost(REFILL_NS, 1));
    let more = cost(REFILL_NS, 4) - cost(0, 4);
    assert!((1.0..=6.0).contains(&(more / f64::from(REFILL_NS))), "{more} ns per switch");
}

/// A wakee on the waker's own CPU needs no list.
#[test]
fn one_cpu_has_no_use_for_the_wake_list() {
    let machine = machine("spr-2s56c", 1, 1, 1, 1);
    let operations =
        |edits| run(&machine, &pairs("pipe", 3), &policy(edits), 20 * MS, 100 * MS).operations;
    assert_eq!(operations(""), operations("-TTWU_QUEUE"));
}

#[test]
fn only_idle_cpus_that_do_not_poll_are_woken_by_interrupts() {
    let text = "channels = { there = \"pipe\", back = \"pipe\" }\n\
         [[task]]\nname = \"a\"\nprogram = [{ run = \"40us\" }, { send = \"there\" }, { recv = \"back\" }, { count = 1 }]\n\
         [[task]]\nname = \"b\"\nprogram = [{ recv = \"there\" }, { run = \"40us\" }, { send = \"back\" }]\n";
    let result = |machine| run(&machine, &program(text, 1), &policy(""), 20 * MS, 100 * MS);
    let metal = result(machine("spr-2s56c", 1, 1, 4, 1));
    let m = halting(machine("spr-2s56c", 1, 1, 4, 1));
    let guest = result(m.clone());
    assert_eq!(metal.counters.ipis, 0, "MWAIT sees need-resched");
    let wakeups = guest.counters.activations as f64;
    assert_near("interrupts per wake-up", guest.counters.ipis as f64 / wakeups, 1.0, 0.02);
    // The flight and the way out of HLT are in the latency.
    let least = u64::from(m.cost.ipi_flight_ns + m.idle.last().expect("HLT").exit_ns);
    assert!(guest.wakeup_latency.quantile(0.5) >= least);
    assert!(metal.wakeup_latency.quantile(0.5) < least);
}

/// A timeout that fires while its CPU leaves idle, and a post that comes before it has:
/// the task is woken once. The post is moved across the whole idle exit.
#[test]
fn a_post_and_a_timeout_that_meet_wake_a_task_once() {
    let machine = halting(exact(machine("spr-2s56c", 1, 1, 4, 1)));
    for run_ns in (120_000..160_000).step_by(500) {
        let text = format!(
            "[[task]]\nname = \"limited\"\nprogram = [{{ post = \"patient\" }}, {{ wait = \"100us\" }}, {{ count = 1 }}]\n\
             [[task]]\nname = \"patient\"\nprogram = [{{ wait = true }}, {{ run = \"{run_ns}ns\" }}, {{ post = \"limited\" }}]\n"
        );
        let result = run(&machine, &program(&text, 1), &policy(""), 0, 5 * MS);
        let rounds = result.operations;
        let woken = result.counters.activations;
        assert!(rounds > 20, "{run_ns} ns: {rounds} rounds");
        assert!(woken <= 2 * rounds + 4, "{run_ns} ns: {woken} wake-ups in {rounds} rounds");
    }
}

/// A tick that comes to an idle CPU ends its idle state as any interrupt does: what a timer at the same
/// time wakes is late by the exit and the tick.
#[test]
fn a_timer_that_meets_a_tick_waits_for_the_idle_exit() {
    let late = |period_us: u32| {
        let mut machine = exact(machine("spr-2s56c", 1, 1, 1, 1));
        (machine.hz, machine.cost.timer_slack_ns) = (1000, 0);
        let tick_ns = Ns::from(machine.cost.tick_ns);
        let text = format!(
            "[[task]]\nname = \"a\"\nprogram = [{{ period = \"{period_us}us\" }}, {{ record = true }}, {{ count = 1 }}]\n"
        );
        let result = run(&machine, &program(&text, 1), &policy(""), 100 * MS, 2000 * MS);
        (result.recorded_latency[0].quantile(0.5), tick_ns)
    };
    let ((with_ticks, tick_ns), (without, _)) = (late(1000), late(1001));
    assert_near("tick", (with_ticks - without) as f64, tick_ns as f64, 0.05);
}

/// Without noise and slack, the constants are the only thing that a cost is made of.
#[test]
fn a_constant_that_grows_makes_a_hop_longer_by_as_much() {
    let base = exact(machine("spr-2s56c", 1, 1, 1, 1));
    let hop = |cost: CostModel| {
        let machine = Machine { cost, ..base.clone() };
        let result = run(&machine, &pairs("pipe", 1), &policy("-START_DEBIT"), 10 * MS, 200 * MS);
        result.elapsed_ns as f64 / result.operations as f64
    };
    let plain = hop(base.cost.clone());
    for key in ["syscall_ns", "ttwu_ns", "enqueue_ns", "dequeue_ns", "switch_ns", "pipe_read_ns"] {
        let mut cost = base.cost.clone();
        let value = cost.get(key).expect(key) + 200.0;
        cost.set(key, value).expect("a whole number");
        let entries = if key == "syscall_ns" { 2.0 } else { 1.0 };
        assert_near(key, hop(cost) - plain, entries * 200.0, 0.02);
    }
}
/// A post stays until its task waits, whatever the task does in between.
#[test]
fn a_post_during_a_sleep_is_kept() {
    let machine = exact(machine("spr-2s56c", 1, 1, 4, 1));
    let text = "[[task]]\nname = \"waits\"\nprogram = [{ wait = true }, { count = 1 }, { sleep = \"15ms\" }]\n\
         [[task]]\nname = \"posts\"\nprogram = [{ post = \"waits\" }, { sleep = \"10ms\" }]\n";
    let result = run(&machine, &program(text, 1), &policy(""), 100 * MS, 3000 * MS);
    // Posts come every 10 ms, so that one is always there when a sleep of 15 ms ends.
    assert_near("rounds", result.operations as f64, 3000.0 / 15.0, 0.02);
}

/// Several tasks may receive from one channel: each message goes to one of them.
#[test]
fn receivers_of_one_channel_all_take_part() {
    let machine = exact(machine("spr-2s56c", 1, 1, 8, 1));
    let text = "channels = { work = \"pipe\" }\n\
         [[task]]\nname = \"s\"\nprogram = [{ run = \"100us\" }, { send = \"work\" }]\n\
         [[task]]\nname = \"r\"\nprogram = [{ recv = \"work\" }, { run = \"150us\" }, { count = 1 }]\n\
         [[task]]\nname = \"q\"\nprogram = [{ recv = \"work\" }, { run = \"150us\" }, { count = 1 }]\n";
    let result = run(&machine, &program(text, 1), &policy(""), 20 * MS, 200 * MS);
    // Two receivers keep up with one sender; a single one would not.
    assert_near("messages", result.operations as f64, 2000.0, 0.05);
}

/// One CPU balances for all tickless ones, and a wakeup ends that between two of them, however long all
/// of them take.
#[test]
fn a_wakeup_ends_balancing_for_tickless_cpus() {
    let machine = exact(machine("spr-2s56c", 16, 4, 64, 2));
    let text = "channels = { x = \"tcp\" }\n\
         [[task]]\nname = \"a\"\nprogram = [{ send = \"x\", bytes = 16384 }]\n\
         [[task]]\nname = \"b\"\nprogram = [{ recv = \"x\" }, { count = 1 }]\n";
    let result = run(&machine, &program(text, 1), &baseline("v6.12"), 100 * MS, 20 * MS);
    assert!(result.operations > 3000, "{} messages", result.operations);
    assert!(result.wakeup_latency.max() < MS, "{} ns", result.wakeup_latency.max());
}

//! What the workloads do to channels, requests, locks and forks: a full channel blocks
//! its writer, a drained pipe costs one wake-up, and latencies are those of the originals.

mod common;

use common::{MS, assert_near, catalogue, exact, machine, policy, program, run};

/// One sender and one receiver that is much slower, or much faster.
fn stream(kind: &str, bytes: u32, receiver_us: u32) -> reveille_workload::Program {
    let text = format!(
        "channels = {{ data = \"{kind}\" }}\n\
         [[task]]\nname = \"sender\"\nprogram = [{{ send = \"data\", bytes = {bytes} }}]\n\
         [[task]]\nname = \"receiver\"\n\
         program = [{{ recv = \"data\" }}, {{ run = \"{receiver_us}us\" }}, {{ count = 1 }}]\n"
    );
    program(&text, 1)
}

#[test]
fn a_fast_sender_is_held_to_the_speed_of_its_receiver() {
    let machine = exact(machine("spr-2s56c", 1, 1, 2, 1));
    for kind in ["pipe", "unix", "tcp"] {
        let result = run(&machine, &stream(kind, 4096, 20), &policy(""), 50 * MS, 200 * MS);
        // The receiver never waits: 20 us of computing, and the calls.
        assert_near(kind, result.operations as f64, 200_000.0 / 21.0, 0.08);
        let idle: u64 = result.cpus.iter().map(|c| c.idle_ns).sum();
        assert!(idle > 150 * MS, "{kind}: the sender sleeps, {idle} ns idle");
    }
    // A datagram without room is lost, and its sender goes on.
    let text = "channels = { data = \"udp\" }\n\
                [[task]]\nname = \"sender\"\nprogram = [{ send = \"data\" }, { run = \"1us\" }]\n\
                [[task]]\nname = \"receiver\"\n\
                program = [{ recv = \"data\" }, { run = \"20us\" }, { count = 1 }]\n";
    let udp = run(&machine, &program(text, 1), &policy(""), 50 * MS, 200 * MS);
    assert_eq!(udp.cpus.iter().map(|c| c.idle_ns).sum::<u64>(), 0);
    assert_near("udp", udp.operations as f64, 200_000.0 / 21.0, 0.08);
}

#[test]
fn one_wakeup_drains_a_pipe() {
    let machine = exact(machine("spr-2s56c", 1, 1, 1, 1));
    let result = run(&machine, &stream("pipe", 100, 0), &policy(""), 50 * MS, 500 * MS);
    let per_wakeup = result.operations as f64 / result.counters.activations as f64;
    // On one CPU the writer fills it or has its slice, and the reader empties it.
    assert!(per_wakeup > 10.0, "{per_wakeup} messages per wake-up");
    let unix = run(&machine, &stream("unix", 100, 0), &policy(""), 50 * MS, 500 * MS);
    assert!(unix.operations > 0 && unix.operations < result.operations, "{}", unix.operations);
}

#[test]
fn a_writer_that_waits_for_a_page_is_woken_less_often() {
    let machine = exact(machine("spr-2s56c", 1, 1, 2, 1));
    let wakeups = |edits: &str| {
        let result = run(&machine, &stream("pipe", 100, 5), &policy(edits), 50 * MS, 200 * MS);
        // A read, and the channel's lines from the other CPU, come on top of the 5 us.
        assert_near(edits, result.operations as f64, 200_000.0 / 5.9, 0.15);
        result.counters.activations
    };
    let (each_read, each_page) = (wakeups(""), wakeups("+PIPE_WAKE_FREED"));
    assert!(each_page * 20 < each_read, "{each_page} and {each_read} wakeups");
}

#[test]
fn tasks_released_together_run_on_when_the_last_has_come() {
    let machine = exact(machine("spr-2s56c", 1, 1, 8, 2));
    let body = |release: &str| {
        format!(
            "[[task]]\nname = \"worker\"\n{release}before = [{{ run = \"1us\" }}, {{ count = 1 }}]\n\
             program = [{{ sleep = \"1s\" }}]\n"
        )
    };
    let counted = |release: &str, until| {
        let program = program(&body(release), 1_000);
        run(&machine, &program, &policy(""), 0, until).operations
    };
    // Without a release, some run on before others have arrived.
    let soon = (1..100).map(|n| n * 50_000).find(|&until| counted("", until) >= 10);
    let soon = soon.expect("tasks run within 5 ms");
    assert!(counted("", soon) < 900);
    for way in ["together", "together-sync"] {
        let release = format!("release = \"{way}\"\n");
        assert_eq!(counted(&release, soon), 0, "{way}: none runs on before the last has come");
        assert_eq!(counted(&release, 50 * MS), 1_000, "{way}");
    }
}

/// tbench's clients are busy for a while after their fork, so that the next ones go to the other socket.
#[test]
fn tasks_that_set_up_before_they_wait_start_on_both_sockets() {
    let program = catalogue("tbench", 112, &[]);
    let [one, two] = [1, 2].map(|sockets| {
        let machine = machine("spr-2s56c", sockets, 1, 28, 2);
        run(&machine, &program, &policy(""), 60 * MS, 10 * MS).throughput()
    });
    assert!(two > 1.7 * one, "{one} and {two} kB/s");
}

#[test]
fn hackbench_scales_from_one_group_to_a_full_machine() {
    let machine = machine("spr-2s56c", 1, 1, 8, 2);
    for transport in ["socket", "pipe"] {
        let rate = |groups| {
            let program = catalogue("hackbench", groups, &[("transport", transport), ("fds", "4")]);
            run(&machine, &program, &policy(""), 20 * MS, 50 * MS).throughput()
        };
        let (one, four) = (rate(1), rate(4));
        assert!(four > one && four < 6.0 * one, "{transport}: {one} and {four} messages/s");
    }
}

/// Tasks that start at once first run whole slices: writers fill pipes, readers empty them.
#[test]
fn a_short_warm_up_reaches_the_switches_of_a_long_run() {
    let machine = machine("spr-2s56c", 1, 1, 8, 2);
    let program = catalogue("hackbench", 8, &[("transport", "pipe")]);
    let switches = |warmup| {
        let result = run(&machine, &program, &policy(""), warmup, 100 * MS);
        result.counters.context_switches as f64 / result.operations as f64
    };
    let (short, long) = (switches(100 * MS), switches(1500 * MS));
    assert!(short > 0.5 * long, "{short} switches a message, after a longer warm-up {long}");
}

#[test]
fn requests_are_recorded_less_their_own_work() {
    let machine = exact(machine("spr-2s56c", 1, 1, 4, 1));
    let params = [("workers", "3"), ("cputime", "20ms"), ("rps", "10")];
    let classic = catalogue("schbench_classic", 1, &params);
    let result = run(&machine, &classic, &policy(""), 1000 * MS, 4000 * MS);
    // Two requests every 200 ms: a CPU for each, so that nothing but waking takes time.
    assert_near("requests", result.operations as f64, 40.0, 0.1);
    let latency = &result.recorded_latency[0];
    assert_eq!(latency.count(), result.operations);
    assert!(latency.max() < 300_000, "{} ns", latency.max());

    let slow = [("workers", "3"), ("cputime", "250ms"), ("rps", "10")];
    let slow = run(&machine, &catalogue("schbench_classic", 1, &slow), &policy(""), 0, 4000 * MS);
    // Three workers serve 12/s, ten come: requests queue behind the last of their worker.
    assert!(slow.recorded_latency[0].quantile(0.9) < 400 * MS);
    assert!(slow.recorded_latency[0].quantile(0.5) > 0);
}

#[test]
fn the_lock_of_a_cpu_serves_one_at_a_time() {
    // Four workers on one CPU: who is preempted in its work holds up the next.
    let machine = exact(machine("spr-2s56c", 1, 1, 1, 1));
    let program = catalogue("schbench_current", 1, &[("workers", "4"), ("work", "5ms")]);
    let result = run(&machine, &program, &policy(""), 200 * MS, 2000 * MS);
    let most = 2000.0 / 5.0;
    let done = result.operations as f64;
    assert!(done < most && done > most / 8.0, "{done} requests");
    assert_eq!(result.recorded_latency.len(), 2);
    assert!(result.recorded_latency.iter().all(|l| l.count() > 0));
}

#[test]
fn mutexes_exclude_and_pass_on() {
    let machine = exact(machine("spr-2s56c", 1, 1, 4, 1));
    let text = "locks = [\"m\"]\n[[task]]\nname = \"a\"\ncount = 4\nprogram = [\
                { lock = \"m\" }, { run = \"50us\" }, { unlock = \"m\" }, { count = 1 }]\n";
    let result = run(&machine, &program(text, 1), &policy(""), 50 * MS, 200 * MS);
    let most = 200_000.0 / 50.0;
    let done = result.operations as f64;
    assert!(done <= most + 1.0 && done > most / 2.0, "{done} holdings of at most {most}");
}

#[test]
fn successors_spread_over_the_machine_and_have_no_past() {
    let machine = machine("spr-2s56c", 2, 1, 4, 2);
    let params = [("compute", "500us"), ("file", "50us")];
    let program = catalogue("kernel_compile", 16, &params);
    let result = run(&machine, &program, &policy(""), 100 * MS, 400 * MS);
    // 16 threads at the speed of two per core, 10 x 500 us each and the waits.
    let share = machine.cost.smt_share;
    let alone = 16.0 * 400_000.0 / (10.0 * 550.0);
    let rate = result.operations as f64;
    assert!(rate > 0.8 * share * alone && rate < alone, "{rate} of {alone} compilers");
    let busy = result.cpus.iter().filter(|c| c.busy_ns > 200 * MS).count();
    assert!(busy >= 12, "{busy} of 16 CPUs are busy more than half of the time");
}

#[test]
fn periods_do_not_drift() {
    let machine = exact(machine("spr-2s56c", 1, 1, 1, 1));
    let text = "[[task]]\nname = \"a\"\nprogram = [\
                { run = \"300us\" }, { period = \"1ms\" }, { count = 1 }]\n";
    let result = run(&machine, &program(text, 1), &policy(""), 50 * MS, 1000 * MS);
    assert_eq!(result.operations, 1000);
}

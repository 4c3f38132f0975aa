//! What operations do here is what they do in the simulator.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use reveille_host::program::{HostRun, Setting};
use reveille_measure::Observed;

use crate::{MS, program, run, run_two, run_until, run_until_enough, try_run, two_counts};

/// Small enough that each is finished many times in 100 ms.
const SMALL: [(&str, &str); 7] = [
    ("cputime", "200us"),
    ("sleeptime", "500us"),
    ("work", "50us"),
    ("compute", "50us"),
    ("workers", "4"),
    ("rps", "2000"),
    ("fds", "4"),
];

#[test]
fn every_workload_of_the_catalogue_runs() {
    for name in reveille_workload::names() {
        let workload = reveille_workload::find(name).unwrap();
        let known = |(key, _): &&(&str, &str)| workload.params.iter().any(|p| p.name == *key);
        let params: BTreeMap<String, String> = SMALL
            .iter()
            .filter(known)
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        let program = workload.build(2, &params).unwrap();
        let host = run(&program, 10, 60);
        let result = &host.result;
        let recorded: u64 = result.recorded_latency.iter().map(|l| l.count()).sum();
        assert!(result.operations > 0 || recorded > 0, "{name}: {result:?}");
        assert_eq!(recorded > 0, !program.records.is_empty(), "{name}");
        assert!(result.elapsed_ns >= 60 * MS, "{name}");
        assert!(host.loops_per_us > 1.0);
        for cpu in &result.cpus {
            assert_eq!(cpu.busy_ns + cpu.idle_ns, result.elapsed_ns);
        }
        let respawns = ["kernel_compile", "reaim"].contains(&name);
        assert_eq!(host.tasks.is_none(), respawns, "{name}");
        if let Some(tasks) = host.tasks {
            assert!(tasks.cpu_ns > 0, "{name}: {tasks:?}");
        }
    }
}

#[test]
fn what_is_not_seen_is_not_given_out_as_zero() {
    let program = program(
        "channels = { a = \"pipe\", b = \"pipe\" }\n\
         [[task]]\nname = \"one\"\nprogram = [{ send = \"a\" }, { recv = \"b\" }, { count = 1 }]\n\
         [[task]]\nname = \"two\"\nprogram = [{ recv = \"a\" }, { send = \"b\" }]\n",
    );
    let host = run(&program, 5, 50);
    assert!(matches!(host.result.observed, Observed::FromOutside { .. }));
    let explain = host.result.explain();
    assert!(explain.wakeup_p50_ns.is_nan() && explain.cost_pct.is_nan());
    assert!(explain.idle_task_pct >= 0.0 && explain.idle_task_pct <= 100.0);
    assert!(explain.context_switches_per_s > 0.0);
    assert!(host.tasks.unwrap().voluntary_switches > 0, "each waits for the other");
}

#[test]
fn each_message_is_received_once_over_every_kind_of_channel() {
    for kind in ["pipe", "unix", "udp", "tcp"] {
        // Sizes that differ: on streams their lengths travel with them.
        for sizes in [[700, 700], [3, 9000]] {
            let program = program(&format!(
                "channels = {{ a = \"{kind}\", b = \"{kind}\" }}\n\
                 [[task]]\nname = \"one\"\nprogram = [\
                 {{ send = \"a\", bytes = {} }}, {{ send = \"a\", bytes = {} }}, \
                 {{ recv = \"b\" }}, {{ count = 1 }}]\n\
                 [[task]]\nname = \"two\"\nprogram = [\
                 {{ recv = \"a\" }}, {{ recv = \"a\" }}, {{ count = 1000000 }}, \
                 {{ send = \"b\" }}]\n",
                sizes[0], sizes[1]
            ));
            let (one, two) = run_two(&program, 5, 40);
            // One exchange is under way at either end, and more if the reader of the two
            // counts is preempted between them.
            assert!(one > 0 && one.abs_diff(two) <= 1 + one / 20, "{kind} {sizes:?}: {one} {two}");
        }
    }
}

#[test]
fn receivers_that_share_a_channel_get_whole_messages() {
    for kind in ["pipe", "unix", "udp", "tcp"] {
        for bytes in [7, 9000] {
            // A task that got a part of a message would wait for the rest of it, and with
            // three of them all would stop.
            let program = program(&format!(
                "channels = {{ a = \"{kind}\", b = \"{kind}\" }}\n\
                 [[task]]\nname = \"server\"\nprogram = [\
                 {{ send = \"a\", bytes = {bytes} }}, {{ recv = \"b\" }}, {{ count = 1 }}]\n\
                 [[task]]\nname = \"client\"\ncount = 3\nprogram = [\
                 {{ recv = \"a\" }}, {{ count = 1000000 }}, {{ send = \"b\", bytes = 3 }}]\n"
            ));
            let (sent, received) = run_two(&program, 20, 40);
            let most = 1 + sent / 20;
            assert!(sent > 0 && sent.abs_diff(received) <= most, "{kind}: {sent} {received}");
        }
    }
}

#[test]
fn a_request_is_served_once_and_its_latency_holds_all_of_its_work() {
    let program = program(
        "[[task]]\nname = \"source\"\nprocess = \"run\"\n\
         program = [{ request = \"worker\", batch = 3 }, { count = 3 }, { sleep = \"2ms\" }]\n\
         [[task]]\nname = \"worker\"\ncount = 2\nprocess = \"run\"\n\
         program = [{ serve = true }, { spin = \"300us\" }, { record = \"all\" }, \
         { record = \"rest\", less = \"300us\" }, { count = 1000000 }]\n",
    );
    let both = |host: &HostRun| host.result.operations > 1_000_000;
    let result = run_until_enough(&program, 10, 80, both).result;
    let (sent, served) = two_counts(result.operations);
    assert!(served > 0, "{sent} sent, none served");
    let [all, rest] = &result.recorded_latency[..] else { panic!("two records") };
    // Two digits are kept of each.
    assert!(all.quantile(0.0) >= 297_000, "{} ns", all.quantile(0.0));
    let most = 4 + served / 20;
    assert!(rest.count().abs_diff(served) <= most && all.count().abs_diff(served) <= most);
    assert!(rest.quantile(0.5) < all.quantile(0.5));
}

#[test]
fn periods_are_counted_from_the_start_and_waits_end_with_their_time() {
    let program = program(
        "[[task]]\nname = \"clock\"\nprogram = [{ period = \"1ms\" }, { record = \"late\" }, \
         { count = 1 }]\n\
         [[task]]\nname = \"patient\"\nprogram = [{ wait = \"2ms\" }, { count = 1000000 }]\n",
    );
    let both = |host: &HostRun| {
        let (periods, waits) = two_counts(host.result.operations);
        periods > 0 && waits > 0
    };
    let host = run_until_enough(&program, 10, 100, both);
    let (periods, waits) = two_counts(host.result.operations);
    let ms = host.result.elapsed_ns / MS;
    // A busy machine makes a period late, and those missed are made up for.
    assert!((1..=ms + 20).contains(&periods), "{periods} in {ms} ms");
    assert!((1..=ms / 2 + 1).contains(&waits), "{waits} waits of 2 ms in {ms} ms");
    assert!(host.result.recorded_latency[0].count() > 0);
}

#[test]
fn who_has_a_lock_has_it_alone() {
    // Each locked part is a message that the same task takes back: with two inside, one
    // could take the other's, of another size, and a part would be left for the next.
    let program = program(
        "locks = [\"l\"]\nchannels = { a = \"pipe\" }\n\
         [[task]]\nname = \"small\"\nprocess = \"run\"\ncount = 2\nprogram = [{ lock = \"l\" }, \
         { send = \"a\", bytes = 5 }, { recv = \"a\" }, { unlock = \"l\" }, { run = \"2us\" }, \
         { count = 1 }]\n\
         [[task]]\nname = \"large\"\nprogram = [{ lock = \"l\" }, { send = \"a\", bytes = 50 }, \
         { recv = \"a\" }, { unlock = \"l\" }, { run = \"2us\" }, { count = 1000000 }]\n",
    );
    let (small, large) = run_two(&program, 10, 60);
    assert!(small > 0 && large > 0, "{small} {large}");
}

#[test]
fn computing_takes_the_cpu_time_that_it_says() {
    let program = program(
        "[[task]]\nname = \"runner\"\n\
         program = [{ repeat = 3, program = [{ run = \"100us\" }] }, { count = 3 }]\n",
    );
    let host = run(&program, 10, 100);
    let cpu_ns = host.tasks.expect("nothing is replaced").cpu_ns;
    let each = cpu_ns / host.result.operations.max(1);
    // Neighbours slow a virtual CPU down; nothing makes it faster than it can be.
    assert!((85_000..400_000).contains(&each), "{each} ns of CPU for 100 us");
}

#[test]
fn tasks_on_given_cpus_run_there() {
    let program = program(
        "[[task]]\nname = \"runner\"\ncount = 2\nprogram = [{ run = \"50us\" }, { count = 1 }]\n",
    );
    let setting = Setting { cpus: vec![0], groups: Vec::new() };
    let host = run_until(&program, &setting, (10, 100), &AtomicBool::new(false)).unwrap();
    assert_eq!(host.result.cpus.len(), 1);
    let tasks = host.tasks.unwrap();
    assert!(tasks.cpu_ns < host.result.elapsed_ns * 11 / 10, "{tasks:?}");
    assert_eq!(tasks.migrations, 0);
}

#[test]
fn what_a_channel_cannot_carry_is_refused_with_a_fix() {
    let program = program(
        "channels = { a = \"udp\" }\n\
         [[task]]\nname = \"one\"\nprogram = [{ send = \"a\", bytes = 70000 }, { run = \"1us\" }]\n\
         [[task]]\nname = \"two\"\nprogram = [{ recv = \"a\" }, { count = 1 }]\n",
    );
    let error = try_run(&program, 1, 10).unwrap_err();
    assert!(error.is_input(), "{error}");
    assert!(error.to_string().contains("70000 bytes"), "{error}");
}

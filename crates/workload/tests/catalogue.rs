//! Every workload of the catalogue builds into the tasks that its original runs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use reveille_workload::{
    ChannelKind, FOR_EVER, InputError, MetricKind, Op, Port, Program, Workload, WorkloadError,
    find, load, names,
};

fn build(name: &str, load: u64) -> Program {
    find(name).unwrap().build(load, &BTreeMap::new()).unwrap()
}

fn with(workload: &Workload, load: u64, params: &[(&str, &str)]) -> Result<Program, WorkloadError> {
    let params = params.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    workload.build(load, &params)
}

/// Tasks, processes, channels and lists of one instance.
const SIZES: [(&str, [usize; 4]); 13] = [
    ("context_switch1", [2, 2, 2, 0]),
    ("hackbench", [40, 40, 20, 0]),
    ("kernel_compile", [1, 1, 0, 0]),
    ("reaim", [1, 1, 1, 0]),
    ("redis", [51, 2, 2, 0]),
    ("schbench", [17, 1, 0, 1]),
    ("schbench_classic", [17, 1, 0, 0]),
    ("schbench_current", [17, 1, 0, 1]),
    ("schbench_current_rate", [17, 1, 0, 0]),
    ("tbench", [2, 2, 2, 0]),
    ("tcp_rr", [2, 2, 2, 0]),
    ("tcp_stream", [2, 2, 1, 0]),
    ("udp_rr", [2, 2, 2, 0]),
];

#[test]
fn each_builds_one_instance_per_unit_of_load() {
    assert!(names().eq(SIZES.iter().map(|s| s.0)));
    for (name, [tasks, processes, channels, lists]) in SIZES {
        for load in [1, 3] {
            let program = build(name, load as u64);
            assert_eq!(program.name, name);
            // Behind all others stands the task that releases them, if any does.
            let parents = usize::from(program.roles.last().unwrap().name == "parent");
            assert_eq!(parents == 1, ["hackbench", "tbench"].contains(&name), "{name}");
            assert_eq!(program.tasks.len(), tasks * load + parents, "{name}");
            assert_eq!(program.channels.len(), channels * load, "{name}");
            assert_eq!(program.n_lists as usize, lists * load, "{name}");
            let found: BTreeSet<u32> = program.tasks.iter().map(|t| t.process).collect();
            let expected =
                if name.starts_with("schbench") { 1 } else { processes * load + parents };
            assert!(found.into_iter().eq(0..expected as u32), "{name}: processes are dense");
            for (index, task) in program.tasks.iter().take(tasks * load).enumerate() {
                let instance = index / tasks;
                assert_eq!(task.task_base as usize, instance * tasks, "{name}");
                assert_eq!(task.channel_base as usize, instance * channels, "{name}");
                assert_eq!(task.list_base as usize, instance * lists, "{name}");
            }
        }
    }
}

#[test]
fn context_switch1_counts_two_per_round_trip() {
    let program = build("context_switch1", 1);
    let ops: Vec<&[Op]> = program.roles.iter().map(|r| r.ops.as_slice()).collect();
    assert_eq!(program.channels, [ChannelKind::Pipe; 2]);
    let send = |channel: u16| Op::Send { channel: channel.into(), bytes: 1 };
    let recv = |channel: u16| Op::Recv { channel: channel.into(), framed: false, discard: false };
    // Channels count in the order of the file.
    let (there, back) = (0, 1);
    assert_eq!(ops[0], [send(there), recv(back), Op::Count(2)]);
    assert_eq!(ops[1], [recv(there), send(back)]);
    assert_eq!(program.metric.kind, MetricKind::Throughput);
}

#[test]
fn netperf_exchanges_one_byte_by_default() {
    for (name, kind) in [("tcp_rr", ChannelKind::Tcp), ("udp_rr", ChannelKind::Udp)] {
        let program = build(name, 1);
        assert_eq!(program.channels, [kind; 2]);
        assert_eq!(program.roles[0].ops[0], Op::Send { channel: Port::from(0), bytes: 1 });
        let large = with(&find(name).unwrap(), 1, &[("bytes", "1400")]).unwrap();
        assert_eq!(large.roles[1].ops[1], Op::Send { channel: Port::from(1), bytes: 1400 });
    }
}

#[test]
fn schbench_follows_its_options() {
    let schbench = find("schbench").unwrap();
    let program = with(&schbench, 2, &[("workers", "24"), ("sleeptime", "10ms")]).unwrap();
    assert_eq!(program.tasks.len(), 2 * 25);
    assert_eq!(
        program.roles[0].ops,
        [
            Op::WakeList { list: 0 },
            Op::Wait { timeout: 10_000_000, jitter: 2_500_000 },
            Op::Sleep { time: 10_000_000, jitter: 2_500_000 },
        ]
    );
    assert_eq!(
        program.roles[1].ops,
        [
            Op::Spin(30_000_000),
            Op::Join { list: 0 },
            Op::Post { task: 0 },
            Op::Wait { timeout: 0, jitter: 0 },
            Op::Record { record: 0, less: 0 },
        ]
    );
    assert_eq!(program.metric.name, "p99 wakeup latency (ns)");
    assert_eq!(program.metric.kind, MetricKind::RecordedLatency { record: 0, quantile: 0.99 });
    assert_eq!(schbench.metrics.len(), 8);
    let defaults: Vec<_> = schbench.params.iter().map(|p| p.default.as_str()).collect();
    assert_eq!(defaults, ["16", "30ms", "30ms"]);
}

#[test]
fn hackbench_senders_write_to_every_receiver_of_their_group() {
    let hackbench = find("hackbench").unwrap();
    let program = with(&hackbench, 2, &[("transport", "pipe"), ("fds", "3")]).unwrap();
    assert_eq!(program.channels, [ChannelKind::Pipe; 6]);
    let send = |channel: u16| Op::Send { channel: channel.into(), bytes: 100 };
    let released = Op::AwaitRelease { sync: true };
    let again = |back| Op::Again { back, times: FOR_EVER, depth: 0 };
    assert_eq!(program.roles[1].ops, [released, send(0), send(1), send(2), again(3)]);
    let own = Port { first: 0, own: true };
    let recv = Op::Recv { channel: own, framed: false, discard: false };
    assert_eq!(program.roles[0].ops, [released, recv, Op::Count(1), again(2)]);
    let wait = Op::Wait { timeout: 0, jitter: 0 };
    assert_eq!(program.roles[2].ops, [Op::Release { sync: true }, wait]);
    let receivers = program.tasks.iter().filter(|t| t.role == 0);
    assert!(receivers.map(|t| t.channel(own)).eq(0..6), "each has its own");
    let processes: BTreeSet<u32> = program.tasks.iter().map(|t| t.process).collect();
    assert_eq!(processes.len(), 13);
    let threads = with(&hackbench, 2, &[("mode", "thread")]).unwrap();
    assert!(threads.tasks.iter().all(|t| t.process == 0));
    assert_eq!(threads.channels, [ChannelKind::Unix; 40]);
    let wrong = with(&hackbench, 1, &[("mode", "fibre")]).unwrap_err().to_string();
    assert!(wrong.contains("no choice of `mode` is called `fibre`"), "{wrong}");
}

#[test]
fn tbench_partners_agree_on_every_exchange() {
    let program = build("tbench", 1);
    // The sum over all rounds of the loops that an operation stands in.
    let sum = |role: usize, of: fn(&Op) -> Option<u32>| {
        let ops = &program.roles[role].ops;
        let values = ops.iter().enumerate().filter_map(|(at, op)| Some((at, of(op)?)));
        values.fold(0, |sum, (at, value)| {
            let rounds = ops[at..].iter().zip(at..).map(|(op, end)| match *op {
                Op::Again { times: FOR_EVER, .. } => 1,
                Op::Again { back, times, .. } if usize::from(back) >= end - at => times,
                _ => 1,
            });
            sum + value * rounds.product::<u32>()
        })
    };
    for role in [0, 1] {
        assert_eq!(sum(role, |op| matches!(op, Op::Send { .. }).then_some(1)), 110);
        assert_eq!(sum(role, |op| matches!(op, Op::Recv { .. }).then_some(1)), 110);
    }
    let counted = sum(0, |op| if let Op::Count(kb) = *op { Some(kb) } else { None });
    assert_eq!(counted, 594);
}

#[test]
fn schbench_classic_sends_batches_at_the_rate_asked_for() {
    let classic = find("schbench_classic").unwrap();
    let ops = |workers: &str, rps: &str| {
        let params = [("workers", workers), ("rps", rps), ("cputime", "80ms")];
        with(&classic, 1, &params).map(|p| p.roles[0].ops.clone())
    };
    let expected = |among, count, time| {
        [Op::Request { first: 1, among, count }, Op::Sleep { time, jitter: 0 }]
    };
    assert_eq!(ops("3", "10").unwrap(), expected(3, 2, 200_000_000));
    assert_eq!(ops("16", "25").unwrap(), expected(16, 10, 333_333_333));
    // The program dies of a division by zero with one worker.
    let problem = ops("1", "10").unwrap_err().to_string();
    assert!(problem.contains("is 0 (with workers = 1)"), "{problem}");
}

#[test]
fn wrong_loads_and_parameters_say_what_to_do() {
    let schbench = find("schbench").unwrap();
    for (load, params, reason) in [
        (0, &[][..], "at load 0: nothing would run"),
        (u64::MAX, &[], "more than 1000000 tasks"),
        (58_824, &[], "more than 1000000 tasks"),
        (1, &[("wrokers", "1")], "did you mean `workers`"),
        (1, &[("workers", "0")], "`count`: task `worker` has no task (with workers = 0)"),
        (1, &[("workers", "-1")], "`-1` is negative"),
        (1, &[("workers", "30ms")], "not a whole number"),
        (1, &[("workers", "1000001")], "has 1000001 tasks"),
        (1, &[("workers", "18446744073709551615")], "has 18446744073709551615 tasks"),
        (1, &[("cputime", "30")], "no unit of time"),
        (1, &[("cputime", "2h")], "not a time"),
        (1, &[("cputime", "3601s")], "more than an hour"),
        (1, &[("sleeptime", "0ms")], "`wait`: is a limit of 0 (with sleeptime = 0)"),
    ] {
        let problem = with(&schbench, load, params).unwrap_err().to_string();
        assert!(problem.contains(reason), "{load} {params:?}: {problem}");
    }
    assert_eq!(with(&schbench, 58_823, &[]).unwrap().tasks.len(), 999_991);
}

#[test]
fn a_spec_is_a_name_or_a_path() {
    let unknown = load("shcbench").unwrap_err().to_string();
    assert!(unknown.contains("did you mean `schbench`"), "{unknown}");
    assert!(matches!(load("none/such.toml"), Err(WorkloadError::Input(InputError::Read(_)))));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mine.toml");
    std::fs::write(&path, find("udp_rr").unwrap().source_text()).unwrap();
    assert_eq!(load(path.to_str().unwrap()).unwrap().name, "udp_rr");
}

#[test]
fn a_large_load_is_built_at_once() {
    let workloads: Vec<Workload> = names().map(|name| find(name).unwrap()).collect();
    let start = Instant::now();
    for workload in &workloads {
        workload.build(1024, &BTreeMap::new()).unwrap();
    }
    assert!(start.elapsed() < Duration::from_millis(500), "{:?}", start.elapsed());
}

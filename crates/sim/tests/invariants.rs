//! Whatever the machine, the workload and the policy, a run ends, and its figures
//! agree with each other. Debug builds check the simulator's own state besides:
//! each task in one place, each CPU's time accounted once, no event in the past.

mod common;

use common::{MS, baseline, catalogue, exact, machine, policy, program, run, run_seed};
use proptest::prelude::*;
use reveille_machine::{CostModel, Machine};
use reveille_measure::{Ns, RunResult};
use reveille_policy::{FEATURES, Policy, bits};
use reveille_workload::{ChannelKind, Op, Port, Program, Role};

/// One part of a workload; a workload has one or more, each with its own names.
#[derive(Clone, Debug)]
enum Part {
    /// Two tasks that pass a message back and forth.
    Pair { kind: &'static str, bytes: u32, run_us: u32 },
    /// Senders that never wait for an answer, and receivers that each have a channel.
    Flood { kind: &'static str, bytes: u32, senders: u32, receivers: u32, shared: bool },
    /// One task wakes a batch of workers, that post it when they are done.
    Batch { workers: u32, spin_us: u32, wait_us: u32, sleep_us: u32, shared: bool },
    /// Two tasks that post each other; one has a limit to its patience.
    Posts { wait_us: u32, jitter_us: u32, run_us: u32 },
    /// Tasks that work and sleep.
    Sleepers { tasks: u32, run_us: u32, sleep_us: u32, jitter_us: u32 },
    /// Tasks that never block.
    Runners { tasks: u32, run_us: u32, spin_us: u32 },
}

impl Part {
    /// Channels, lists and tasks of the part, with names that end in `n`.
    fn write(&self, n: usize, channels: &mut String, lists: &mut String) -> String {
        let task = |name: &str, count: u32, process: &str, ops: &str| {
            format!(
                "[[task]]\nname = \"{name}{n}\"\ncount = {count}\nprocess = \"{process}\"\nprogram = [{ops}]\n"
            )
        };
        match *self {
            Part::Pair { kind, bytes, run_us } => {
                channels.push_str(&format!("there{n} = \"{kind}\", back{n} = \"{kind}\", "));
                let ask = format!(
                    "{{ send = \"there{n}\", bytes = {bytes} }}, {{ recv = \"back{n}\" }}, {{ count = 1 }}"
                );
                let answer = format!(
                    "{{ recv = \"there{n}\" }}, {{ run = \"{run_us}us\" }}, {{ send = \"back{n}\" }}"
                );
                task("client", 1, "own", &ask) + &task("server", 1, "own", &answer)
            }
            Part::Flood { kind, bytes, senders, receivers, shared } => {
                let n_channels = if shared { 1 } else { receivers };
                channels.push_str(&format!(
                    "flood{n} = {{ kind = \"{kind}\", count = {n_channels} }}, "
                ));
                let own = if shared { "" } else { "[own]" };
                let send =
                    format!("{{ send = \"flood{n}[*]\", bytes = {bytes} }}, {{ run = \"1us\" }}");
                let receive = format!("{{ recv = \"flood{n}{own}\" }}, {{ count = 1 }}");
                task("sender", senders, "own", &send)
                    + &task("receiver", receivers, "own", &receive)
            }
            Part::Batch { workers, spin_us, wait_us, sleep_us, shared } => {
                lists.push_str(&format!("\"done{n}\", "));
                let process = if shared { "run" } else { "instance" };
                let message = format!(
                    "{{ wake_list = \"done{n}\" }}, {{ wait = \"{wait_us}us\", jitter = \"{wait_us}us/4\" }}, {{ sleep = \"{sleep_us}us\" }}"
                );
                let worker = format!(
                    "{{ spin = \"{spin_us}us\" }}, {{ join = \"done{n}\" }}, {{ post = \"message{n}\" }}, {{ wait = true }}, {{ record = true }}, {{ count = 1 }}"
                );
                task("message", 1, process, &message) + &task("worker", workers, process, &worker)
            }
            Part::Posts { wait_us, jitter_us, run_us } => {
                let limited = format!(
                    "{{ post = \"patient{n}\" }}, {{ wait = \"{wait_us}us\", jitter = \"{jitter_us}us\" }}, {{ count = 2 }}"
                );
                let patient = format!(
                    "{{ wait = true }}, {{ run = \"{run_us}us\" }}, {{ post = \"limited{n}\" }}"
                );
                task("limited", 1, "instance", &limited) + &task("patient", 1, "instance", &patient)
            }
            Part::Sleepers { tasks, run_us, sleep_us, jitter_us } => {
                let ops = format!(
                    "{{ run = \"{run_us}us\" }}, {{ sleep = \"{sleep_us}us\", jitter = \"{jitter_us}us\" }}, {{ count = 1 }}"
                );
                task("sleeper", tasks, "own", &ops)
            }
            Part::Runners { tasks, run_us, spin_us } => {
                let ops = format!(
                    "{{ run = \"{run_us}us\" }}, {{ spin = \"{spin_us}us\" }}, {{ count = 3 }}"
                );
                task("runner", tasks, "run", &ops)
            }
        }
    }
}

fn part() -> impl Strategy<Value = Part> {
    let kinds = || prop::sample::select(vec!["pipe", "udp", "tcp", "unix"]);
    prop_oneof![
        4 => (kinds(), 1..9000u32, 0..60u32)
            .prop_map(|(kind, bytes, run_us)| Part::Pair { kind, bytes, run_us }),
        2 => (kinds(), 1..30_000u32, 1..4u32, 1..4u32, any::<bool>()).prop_map(
            |(kind, bytes, senders, receivers, shared)| Part::Flood {
                kind, bytes, senders, receivers, shared,
            }
        ),
        2 => (1..9u32, 0..300u32, 1..500u32, 0..300u32, any::<bool>()).prop_map(
            |(workers, spin_us, wait_us, sleep_us, shared)| Part::Batch {
                workers, spin_us, wait_us, sleep_us, shared,
            }
        ),
        1 => (1..500u32, 0..200u32, 0..100u32).prop_map(|(wait_us, jitter_us, run_us)| {
            Part::Posts { wait_us, jitter_us, run_us }
        }),
        1 => (1..5u32, 0..500u32, 0..2000u32, 1..1000u32).prop_map(
            |(tasks, run_us, sleep_us, jitter_us)| Part::Sleepers {
                tasks, run_us, sleep_us, jitter_us,
            }
        ),
        1 => (1..4u32, 1..3000u32, 0..200u32)
            .prop_map(|(tasks, run_us, spin_us)| Part::Runners { tasks, run_us, spin_us }),
    ]
}

fn workload() -> impl Strategy<Value = Program> {
    (prop::collection::vec(part(), 1..4), 1..6u64).prop_map(|(parts, load)| {
        let (mut channels, mut lists, mut tasks) = Default::default();
        for (n, part) in parts.iter().enumerate() {
            let text: String = part.write(n, &mut channels, &mut lists);
            tasks = format!("{tasks}{text}");
        }
        let channels = match channels.as_str() {
            "" => String::new(),
            names => format!("channels = {{ {} }}\n", names.trim_end_matches(", ")),
        };
        let lists = match lists.as_str() {
            "" => String::new(),
            names => format!("lists = [{}]\n", names.trim_end_matches(", ")),
        };
        program(&format!("{channels}{lists}{tasks}"), load)
    })
}

/// A small machine with every constant anywhere in its plausible range, and sometimes
/// without noise, which is below that range.
fn any_machine() -> impl Strategy<Value = Machine> {
    let preset = prop::sample::select(reveille_machine::preset_names());
    let threads = prop::sample::select(vec![1u32, 2, 4]);
    let constants = prop::collection::vec(0..=4u32, CostModel::KEYS.len());
    (preset, 1..4u32, 1..3u32, 1..7u32, threads, constants, any::<bool>()).prop_map(
        |(preset, sockets, llcs, cores, threads, constants, noisy)| {
            let mut machine = machine(preset, sockets, llcs, cores, threads);
            for (constant, quarters) in machine.constants.clone().iter().zip(constants) {
                let value =
                    constant.low + (constant.high - constant.low) * f64::from(quarters) / 4.0;
                let whole = !matches!(constant.unit, "ratio" | "factor");
                let value = if whole { value.floor() } else { value };
                machine.set(constant.key, value).expect("a value within the range");
            }
            if noisy { machine } else { exact(machine) }
        },
    )
}

/// A baseline, or any set of features: each of them edits v6.2 or leaves it.
fn any_policy() -> impl Strategy<Value = Policy> {
    let n = FEATURES.len();
    prop_oneof![
        Just(policy("")),
        Just(baseline("v6.12")),
        Just(baseline("v6.18")),
        Just(baseline("v7.2")),
        Just(policy("+SIS_SHORT")),
        prop::sample::subsequence(
            vec![
                "+SWQUEUE_NEWIDLE",
                "+SWQUEUE_SKIP_IDLE",
                "+SWQUEUE_SHARD",
                "+SWQUEUE_ENQUEUE",
                "+SWQUEUE_GATE_ABOVE_LLC",
            ],
            0..=5
        )
        .prop_map(|forms| policy(&format!("+SWQUEUE {}", forms.join(" ")))),
        // Also those that edits may not make.
        prop::sample::subsequence(FEATURES.iter().map(|f| f.bit).collect::<Vec<_>>(), 1..=n)
            .prop_map(|bits| {
                let base = policy("");
                let features = bits.iter().fold(base.features, |features, bit| features ^ bit);
                Policy { edits: format!("^{features:x}"), features, ..base }
            }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn figures_of_any_run_agree(
        machine in any_machine(),
        program in workload(),
        policy in any_policy(),
        seed in any::<u64>(),
        warmup in prop_oneof![1 => Just(0), 4 => 1..10 * MS],
        duration in MS..30 * MS,
    ) {
        let result = run_seed(&machine, &program, &policy, seed, warmup, duration);
        time_is_spent_once(&machine, &result, duration)?;
        counters_agree(&machine, &program, &result)?;
        shared_queue_is_used_if_there(&policy, &result)?;
        work_fits_the_time(&machine, &program, &result)?;
        tasks_run(&machine, &program, &result, warmup)?;
    }
}

fn time_is_spent_once(
    machine: &Machine,
    result: &RunResult,
    duration: Ns,
) -> Result<(), TestCaseError> {
    prop_assert_eq!(result.elapsed_ns, duration);
    prop_assert_eq!(result.cpus.len(), machine.topology.n_cpus());
    for (number, cpu) in result.cpus.iter().enumerate() {
        let sum = cpu.busy_ns + cpu.idle_ns + cpu.cost_ns;
        prop_assert_eq!(sum, duration, "CPU {}: {:?}", number, cpu);
    }
    Ok(())
}

fn counters_agree(
    machine: &Machine,
    program: &Program,
    result: &RunResult,
) -> Result<(), TestCaseError> {
    let c = &result.counters;
    let n_cpus = machine.topology.n_cpus() as u64;
    let n_tasks = program.tasks.len() as u64;
    let placed = c.wakeups_same_cpu + c.wakeups_sibling + c.wakeups_same_llc + c.wakeups_remote;
    // A fork activates without placing, once per task. A wake-up is activated when it
    // begins and placed when it ends, so that one per CPU is in flight at either end.
    prop_assert!(placed <= c.activations + n_cpus, "{placed} placed, {c:?}");
    prop_assert!(c.activations <= placed + n_cpus + n_tasks, "{placed} placed, {c:?}");
    // Each task is at most once between being woken and running, at either end.
    let ran = result.wakeup_latency.count();
    prop_assert!(ran.abs_diff(c.activations) <= n_tasks, "{ran} latencies, {c:?}");

    prop_assert!(c.sis_failed <= c.sis_domain_search, "{c:?}");
    prop_assert!(c.idle_searches <= c.sis_domain_search, "{c:?}");
    prop_assert!(c.sis_domain_search <= c.sis_search, "{c:?}");
    prop_assert!(c.sis_search <= c.activations + n_cpus, "{c:?}");
    prop_assert!(c.sis_search + c.cpus_searched <= c.sis_scanned, "{c:?}");
    prop_assert!(c.newidle_pulls <= c.balance_migrations, "{c:?}");
    // The idle task is current while its CPU idles, and while it leaves idle.
    let idle_ns: Ns = result.cpus.iter().map(|cpu| cpu.idle_ns).sum();
    prop_assert!(c.idle_task_ns >= idle_ns, "{idle_ns} ns idle: {c:?}");
    prop_assert!(c.idle_searches <= c.activations + n_cpus, "{c:?}");
    // SIS_NODE goes on in other caches.
    prop_assert!(c.cpus_searched <= c.idle_searches * n_cpus, "{c:?}");
    prop_assert!(c.stacked_wakeups <= placed, "{c:?}");
    prop_assert!(c.wakeup_migrations <= placed, "{c:?}");
    let recorded: u64 = result.recorded_latency.iter().map(|latency| latency.count()).sum();
    prop_assert!(recorded <= ran + n_tasks, "{recorded} recorded, {ran} ran");
    // Each task that runs was switched to, and each idle CPU from and to.
    prop_assert!(c.context_switches + n_tasks >= ran, "{c:?}");
    if n_cpus == 1 {
        prop_assert_eq!((c.ipis, c.balance_migrations, c.wakeup_migrations), (0, 0, 0));
        prop_assert_eq!(c.wakeups_same_cpu, placed);
    }
    Ok(())
}

/// Pulls are migrations; and without the feature no task waits for the queue's lock.
fn shared_queue_is_used_if_there(policy: &Policy, result: &RunResult) -> Result<(), TestCaseError> {
    let c = &result.counters;
    prop_assert!(c.swqueue_pulls <= c.balance_migrations, "{c:?}");
    if policy.features & bits::SWQUEUE == 0 {
        let used = (c.swqueue_append_wait_ns, c.swqueue_remove_wait_ns, c.swqueue_pulls);
        prop_assert_eq!(used, (0, 0, 0));
    }
    Ok(())
}

/// Every task starts, and a task that never blocks keeps a CPU from idling.
fn tasks_run(
    machine: &Machine,
    program: &Program,
    result: &RunResult,
    warmup: Ns,
) -> Result<(), TestCaseError> {
    let n_tasks = program.tasks.len() as u64;
    if warmup == 0 {
        prop_assert!(result.counters.activations >= n_tasks, "{:?}", result.counters);
    }
    // A sender may wait for room.
    let blocks = |op: &Op| {
        matches!(op, Op::Send { .. } | Op::Recv { .. } | Op::Sleep { .. } | Op::Wait { .. })
    };
    if program.roles.iter().any(|role| !role.ops.iter().any(blocks)) {
        let active: Ns = result.cpus.iter().map(|cpu| result.elapsed_ns - cpu.idle_ns).sum();
        // Until its fork, and where it counts as idle, the first one does not run yet.
        let start = n_tasks + Ns::from(machine.idle.last().map_or(0, |state| state.exit_ns));
        prop_assert!(active + start >= result.elapsed_ns, "{active} ns of all CPUs");
    }
    Ok(())
}

/// Counted operations take at least their own work on some CPU, and one task does one
/// thing at a time.
fn work_fits_the_time(
    machine: &Machine,
    program: &Program,
    result: &RunResult,
) -> Result<(), TestCaseError> {
    let elapsed = result.elapsed_ns as f64;
    let all_cpus = elapsed * machine.topology.n_cpus() as f64;
    let (mut by_tasks, mut fastest, mut in_flight) = (0.0f64, 0.0f64, 0.0f64);
    for task in &program.tasks {
        let role = &program.roles[usize::from(task.role)];
        let counts: u64 =
            role.ops.iter().map(|op| if let Op::Count(n) = op { u64::from(*n) } else { 0 }).sum();
        let (work, wall) = loop_time(machine, program, task.channel_base, role);
        by_tasks += counts as f64 * elapsed / wall;
        if counts > 0 {
            fastest = fastest.max(counts as f64 / work);
        }
        in_flight += counts as f64;
    }
    let most = by_tasks.min(fastest * all_cpus) + in_flight;
    let operations = result.operations as f64;
    prop_assert!(operations <= most, "{operations} operations, at most {most}");
    Ok(())
}

/// Least CPU time, and least wall-clock time, of one round of a program.
fn loop_time(machine: &Machine, program: &Program, channel_base: u32, role: &Role) -> (f64, f64) {
    let cost = &machine.cost;
    let syscall = f64::from(cost.syscall_ns);
    let kind = |channel: Port| program.channels[(channel_base + u32::from(channel.first)) as usize];
    // Stated costs hold at the reference speed; a program's own computing takes its time anywhere.
    let (mut stated, mut wall) = (0.0, 0.0);
    for op in &role.ops {
        stated += match *op {
            Op::Run(ns) => ns as f64 * cost.speed,
            Op::Send { channel, bytes } => {
                let send = match kind(channel) {
                    ChannelKind::Pipe => cost.pipe_write_ns,
                    ChannelKind::Udp => cost.udp_send_ns,
                    ChannelKind::Tcp => cost.tcp_send_ns,
                    ChannelKind::Unix => cost.unix_send_ns,
                };
                let copy = (u64::from(cost.copy_kib_ns) * u64::from(bytes) / 1024) as f64;
                syscall + f64::from(send) + copy
            }
            Op::Recv { channel, .. } => {
                let receive = match kind(channel) {
                    ChannelKind::Pipe => cost.pipe_read_ns,
                    ChannelKind::Udp => cost.udp_recv_ns,
                    ChannelKind::Tcp => cost.tcp_recv_ns,
                    ChannelKind::Unix => cost.unix_recv_ns,
                };
                syscall + f64::from(receive)
            }
            Op::Post { .. } => syscall + f64::from(cost.futex_wake_ns),
            Op::Sleep { time, .. } => {
                wall += time as f64;
                syscall + f64::from(cost.futex_wait_ns)
            }
            Op::Wait { .. } => syscall + f64::from(cost.futex_wait_ns),
            Op::WakeList { .. } => syscall,
            Op::Spin(ns) => {
                wall += ns as f64;
                0.0
            }
            _ => 0.0, // takes no time, or is not among the parts above
        };
    }
    // Every piece of work may be shorter by `noise`, and by a rounding per operation.
    let work = stated / cost.speed * (1.0 - cost.noise) - 2.0 * role.ops.len() as f64;
    (work.max(1.0), work.max(1.0) + wall)
}

/// Numbers of CPUs fill their 16 bits, and those of a cache its words.
#[test]
fn the_largest_machines_run() {
    for (sockets, llcs, cores, threads) in [(256, 1, 128, 2), (8, 1024, 4, 2), (16, 1, 2048, 2)] {
        let machine = machine("spr-2s56c", sockets, llcs, cores, threads);
        assert_eq!(machine.topology.n_cpus(), 65_536);
        let program = catalogue("context_switch1", 300, &[]);
        let ran = run(&machine, &program, &policy("+SIS_SHORT"), 2 * MS, MS);
        assert!(ran.operations > 300, "{}", ran.operations);
        assert_eq!(ran.cpus.len(), 65_536);
    }
}

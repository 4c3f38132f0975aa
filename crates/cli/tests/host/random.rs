//! Any workload that can be built runs here: it ends in time, counts, and loses no task.

use proptest::prelude::*;

use crate::{MS, program, run};

/// A part of a workload; names end in its number.
#[derive(Clone, Debug)]
enum Part {
    /// A message back and forth.
    Pair { kind: &'static str, bytes: [u32; 2], process: &'static str },
    /// Senders and receivers that share a channel, or receivers that have one each.
    Flood { kind: &'static str, bytes: u32, senders: u32, receivers: u32, shared: bool },
    /// A batch of workers and who wakes them.
    Batch { workers: u32, spin_us: u32, wait_us: u32, process: &'static str },
    /// Requests to workers, who compute under a lock of some kind.
    Requests { workers: u32, batch: u32, work_us: u32, process: &'static str, lock: bool },
    /// Tasks that compute, sleep, and are replaced.
    Jobs { tasks: u32, run_us: u32, sleep_us: u32, process: &'static str },
    /// Two tasks that post each other, one of them on time.
    Posts { wait_us: u32, period_us: u32, process: &'static str },
}

impl Part {
    /// Adds its channels, lists and locks to `top`, and returns its tasks.
    fn write(&self, n: usize, top: &mut [String; 3]) -> String {
        let task = |name: &str, count: u32, process: &str, ops: &str| {
            format!(
                "[[task]]\nname = \"{name}{n}\"\ncount = {count}\nprocess = \"{process}\"\n\
                 program = [{ops}]\n"
            )
        };
        match *self {
            Part::Pair { kind, bytes: [a, b], process } => {
                top[0] += &format!("there{n} = \"{kind}\", back{n} = \"{kind}\", ");
                let ask = format!(
                    "{{ repeat = 2, program = [{{ send = \"there{n}\", bytes = {a} }}, \
                     {{ recv = \"back{n}\" }}] }}, {{ send = \"there{n}\", bytes = {b} }}, \
                     {{ recv = \"back{n}\" }}, {{ count = 3 }}"
                );
                let answer = format!("{{ recv = \"there{n}\" }}, {{ send = \"back{n}\" }}");
                task("client", 1, process, &ask) + &task("server", 1, process, &answer)
            }
            Part::Flood { kind, bytes, senders, receivers, shared } => {
                let channels = if shared { 1 } else { receivers };
                top[0] += &format!("flood{n} = {{ kind = \"{kind}\", count = {channels} }}, ");
                let own = if shared { "" } else { "[own]" };
                let send =
                    format!("{{ send = \"flood{n}[*]\", bytes = {bytes} }}, {{ run = \"5us\" }}");
                let receive = format!("{{ recv = \"flood{n}{own}\" }}, {{ count = 1 }}");
                task("sender", senders, "own", &send)
                    + &task("receiver", receivers, "own", &receive)
            }
            Part::Batch { workers, spin_us, wait_us, process } => {
                top[1] += &format!("\"done{n}\", ");
                let message = format!(
                    "{{ wake_list = \"done{n}\" }}, {{ wait = \"{wait_us}us\", jitter = \"9us\" }}"
                );
                let worker = format!(
                    "{{ spin = \"{spin_us}us\" }}, {{ join = \"done{n}\" }}, \
                     {{ post = \"message{n}\" }}, {{ wait = true }}, {{ record = true }}, \
                     {{ count = 1 }}"
                );
                task("message", 1, process, &message) + &task("worker", workers, process, &worker)
            }
            Part::Requests { workers, batch, work_us, process, lock } => {
                let (take, give) = match lock {
                    true => {
                        top[2] += &format!("\"lock{n}\", ");
                        (format!("lock = \"lock{n}\""), format!("unlock = \"lock{n}\""))
                    }
                    false => ("lock_cpu = true".to_owned(), "unlock_cpu = true".to_owned()),
                };
                // Slower than they can be served, even on a busy machine.
                let source = format!(
                    "{{ request = \"server{n}\", batch = {batch} }}, {{ sleep = \"3ms\" }}"
                );
                let server = format!(
                    "{{ serve = true }}, {{ {take} }}, {{ run = \"{work_us}us\" }}, {{ {give} }}, \
                     {{ record = \"request{n}\" }}, {{ count = 1 }}"
                );
                task("source", 1, process, &source) + &task("server", workers, process, &server)
            }
            Part::Jobs { tasks, run_us, sleep_us, process } => {
                let ops = format!(
                    "{{ run = \"{run_us}us\", random = true }}, \
                     {{ sleep = \"{sleep_us}us\", random = true }}, {{ count = 1 }}, \
                     {{ respawn = true }}"
                );
                task("job", tasks, process, &ops)
            }
            Part::Posts { wait_us, period_us, process } => {
                let limited = format!(
                    "{{ post = \"timed{n}\" }}, {{ wait = \"{wait_us}us\" }}, {{ count = 1 }}"
                );
                let timed = format!(
                    "{{ period = \"{period_us}us\", restart = true }}, \
                     {{ post = \"limited{n}\" }}, {{ wait = true }}"
                );
                task("limited", 1, process, &limited) + &task("timed", 1, process, &timed)
            }
        }
    }
}

fn part() -> impl Strategy<Value = Part> {
    let kind = || prop::sample::select(vec!["pipe", "udp", "tcp", "unix"]);
    let process = || prop::sample::select(vec!["own", "instance", "run"]);
    prop_oneof![
        (kind(), [1..9000u32, 1..9000u32], process())
            .prop_map(|(kind, bytes, process)| Part::Pair { kind, bytes, process }),
        (kind(), 1..20_000u32, 1..4u32, 1..4u32, any::<bool>()).prop_map(
            |(kind, bytes, senders, receivers, shared)| Part::Flood {
                kind,
                bytes,
                senders,
                receivers,
                shared,
            }
        ),
        (1..6u32, 1..100u32, 50..500u32, process()).prop_map(
            |(workers, spin_us, wait_us, process)| Part::Batch {
                workers,
                spin_us,
                wait_us,
                process,
            }
        ),
        (1..5u32, 1..9u32, 1..60u32, process(), any::<bool>()).prop_map(
            |(workers, batch, work_us, process, lock)| Part::Requests {
                workers,
                batch,
                work_us,
                process,
                lock,
            }
        ),
        (1..4u32, 1..200u32, 1..200u32, process()).prop_map(
            |(tasks, run_us, sleep_us, process)| Part::Jobs { tasks, run_us, sleep_us, process }
        ),
        (20..500u32, 20..500u32, process()).prop_map(|(wait_us, period_us, process)| Part::Posts {
            wait_us,
            period_us,
            process
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 10,
        max_shrink_iters: 20,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_workload_runs(parts in prop::collection::vec(part(), 1..4)) {
        let mut top: [String; 3] = Default::default();
        let tasks: String = parts.iter().enumerate().map(|(n, p)| p.write(n, &mut top)).collect();
        let [channels, lists, locks] = top.map(|list| list.trim_end_matches(", ").to_owned());
        let program = program(&format!(
            "channels = {{ {channels} }}\nlists = [{lists}]\nlocks = [{locks}]\n{tasks}"
        ));
        // Success says that all tasks were there at the end.
        let host = run(&program, 5, 25);
        let result = &host.result;
        prop_assert!(result.elapsed_ns >= 25 * MS);
        prop_assert!(result.operations > 0, "{:?}", parts);
        prop_assert_eq!(result.recorded_latency.len(), program.records.len());
        if let Some(tasks) = host.tasks {
            let cpu_time = result.elapsed_ns * result.cpus.len() as u64;
            prop_assert!(tasks.cpu_ns <= cpu_time * 5 / 4, "{:?} in {}", tasks, cpu_time);
        }
    }
}

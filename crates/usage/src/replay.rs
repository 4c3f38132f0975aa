//! Turns recordings into a program that replays them, in the simulator or on a kernel.

use reveille_place::Mistake;
use reveille_workload::{Arrival, Arrivals, Metric, MetricKind, Op, Program, Role, TaskSpec};

use crate::{InputError, Ns, Usage};

/// The program that replays recordings side by side: a role and a process per recording, and a task
/// per thread that has work, in this order. A task computes for each demand's CPU time when the
/// demand arrives, or after the previous one; its answers come task by task in order of arrival.
/// Record `n` holds the latencies of recording `n`.
///
/// Each recording starts over after its span. All start over after the longest span, which cuts off
/// shorter ones.
///
/// # Errors
/// [`InputError::File`] for a recording without work, by its name, and for more than 256
/// recordings.
pub fn program(recordings: &[&Usage]) -> Result<Program, InputError> {
    let names: Vec<String> = recordings.iter().map(|usage| usage.name.clone()).collect();
    let span_ns = recordings.iter().map(|usage| usage.span_ns).max().unwrap_or(0);
    let mut program = Program {
        name: names.join(" + "),
        roles: Vec::new(),
        tasks: Vec::new(),
        channels: Vec::new(),
        n_lists: 0,
        n_locks: 0,
        arrivals: Arrivals { begin_ns: 0, span_ns, of_task: Vec::new() },
        metric: Metric {
            name: "p99 latency (ns)".into(),
            kind: MetricKind::RecordedLatency { record: 0, quantile: 0.99 },
        },
        records: names,
    };
    for (number, usage) in recordings.iter().enumerate() {
        usage.validate()?;
        let record = u8::try_from(number).map_err(|_| {
            let problem = "is the 257th of the recordings, and at most 256 run together";
            Mistake::new(problem, "leave some out").in_file::<InputError>(&usage.name)
        })?;
        let threads: Vec<Vec<Arrival>> =
            usage.arrivals(span_ns).into_iter().filter(|own| !own.is_empty()).collect();
        if threads.is_empty() {
            let mistake = Mistake::new("has no work to replay", "leave it out, or record again");
            return Err(mistake.in_file(&usage.name));
        }
        let ops = vec![Op::Arrive, Op::RunArrived, Op::Record { record, less: 0 }, Op::Answer];
        program.roles.push(Role { name: usage.name.clone(), ops });
        let task_base = program.tasks.len() as u32;
        for own in 0..threads.len() {
            program.tasks.push(TaskSpec {
                process: record.into(),
                task_base,
                // At most 65,536 threads: see `Usage::validate`.
                own: own as u16,
                ..TaskSpec::of_role(record.into())
            });
        }
        program.arrivals.of_task.extend(threads);
    }
    Ok(program)
}

impl Usage {
    /// Arrivals before `until_ns` by thread, with the recording repeated.
    pub fn arrivals(&self, until_ns: Ns) -> Vec<Vec<Arrival>> {
        let mut of_thread = vec![Vec::new(); self.threads as usize];
        for round in 0..until_ns.div_ceil(self.span_ns) {
            for demand in &self.demands {
                let at_ns = round * self.span_ns + demand.at_ns;
                if at_ns >= until_ns {
                    break;
                }
                let arrival = Arrival { at_ns, work_ns: demand.cpu_ns };
                of_thread[demand.thread as usize].push(arrival);
            }
        }
        of_thread
    }
}

//! From recordings to the program that repeats them, in the simulator or on a kernel.

use reveille_place::Mistake;
use reveille_workload::{Arrival, Arrivals, Metric, MetricKind, Op, Program, Role, TaskSpec};

use crate::{Ns, Usage, UsageError};

/// The program that replays recordings beside each other: a role and a process for each,
/// and a task for each thread that has work, in this order. A task computes for the CPU
/// time of each demand when it arrives, or once it is done with the one before; its answers
/// come task by task in the order of arrival. Record `n` holds the latencies of recording
/// `n`.
///
/// Each starts over after its span, and all of it after the longest one's, where a shorter
/// one is cut off.
///
/// # Errors
/// [`UsageError::File`], by the name of a recording that has no work, and if there are more
/// than 256.
pub fn program(recordings: &[&Usage]) -> Result<Program, UsageError> {
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
            Mistake::new(problem, "leave some out").in_file::<UsageError>(&usage.name)
        })?;
        let threads: Vec<Vec<Arrival>> =
            usage.arrivals(span_ns).into_iter().filter(|own| !own.is_empty()).collect();
        if threads.is_empty() {
            let mistake = Mistake::new("has no work to replay", "leave it out, or record anew");
            return Err(mistake.in_file(&usage.name));
        }
        let ops = vec![Op::Arrive, Op::RunArrived, Op::Record { record, less: 0 }, Op::Answer];
        program.roles.push(Role { name: usage.name.clone(), ops });
        let task_base = program.tasks.len() as u32;
        for own in 0..threads.len() {
            program.tasks.push(TaskSpec {
                role: record.into(),
                process: record.into(),
                channel_base: 0,
                list_base: 0,
                task_base,
                lock_base: 0,
                // There are no more than 65,536 threads.
                own: own as u16,
            });
        }
        program.arrivals.of_task.extend(threads);
    }
    Ok(program)
}

impl Usage {
    /// What arrives before `until_ns` if it starts over again and again, by thread.
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

//! Recordings as one program for the simulator: a task per thread that has work, a role per
//! recording.

use std::ops::Range;
use std::sync::OnceLock;

use reveille_usage::Usage;
use reveille_workload::{Arrivals, Metric, MetricKind, Ns, Op, Program, Role, TaskSpec};

use crate::lean::LeanLoad;

/// A group's own work and that of its neighbours, ready to be replayed.
pub(crate) struct Load {
    pub(crate) program: Program,
    /// Which answers of a run belong to which recording, the group's own first.
    pub(crate) answers: Vec<Range<usize>>,
    /// As the lean replay takes it.
    lean: OnceLock<LeanLoad>,
}

impl Load {
    /// The recordings on one clock, for the span of the first. What is shorter comes again,
    /// what is longer is cut off.
    pub(crate) fn new(recordings: &[&Usage]) -> Load {
        let span_ns = recordings[0].span_ns;
        let (mut tasks, mut of_task, mut answers) = (Vec::new(), Vec::new(), Vec::new());
        let mut next = 0;
        for (role, usage) in recordings.iter().enumerate() {
            let begin = next;
            let threads = usage.arrivals(span_ns);
            next += threads.iter().map(Vec::len).sum::<usize>();
            // A thread without work must not ask for any.
            for own in threads.into_iter().filter(|own| !own.is_empty()) {
                tasks.push(task(role as u16));
                of_task.push(own);
            }
            answers.push(begin..next);
        }
        let ops = vec![Op::Arrive, Op::RunArrived, Op::Answer];
        let role = |usage: &&Usage| Role { name: usage.name.clone(), ops: ops.clone() };
        let program = Program {
            name: recordings[0].name.clone(),
            roles: recordings.iter().map(role).collect(),
            tasks,
            channels: Vec::new(),
            n_lists: 0,
            n_locks: 0,
            arrivals: Arrivals { begin_ns: 0, span_ns, of_task },
            records: Vec::new(),
            metric: Metric { name: "answers".into(), kind: MetricKind::Throughput },
        };
        Load { program, answers, lean: OnceLock::new() }
    }

    /// As the lean replay takes it; made once.
    pub(crate) fn lean(&self, make: impl FnOnce(&Arrivals) -> LeanLoad) -> &LeanLoad {
        self.lean.get_or_init(|| make(&self.program.arrivals))
    }

    pub(crate) fn span_ns(&self) -> Ns {
        self.program.arrivals.span_ns
    }

    /// When each piece of the neighbours' work arrives, in the order of answers.
    pub(crate) fn arrivals_of(&self, recording: usize) -> Vec<Ns> {
        let all = self.program.arrivals.of_task.iter().flatten().map(|arrival| arrival.at_ns);
        let range = self.answers[recording].clone();
        all.skip(range.start).take(range.len()).collect()
    }
}

fn task(role: u16) -> TaskSpec {
    TaskSpec {
        role,
        process: u32::from(role),
        channel_base: 0,
        list_base: 0,
        task_base: 0,
        lock_base: 0,
        own: 0,
    }
}

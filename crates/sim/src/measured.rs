//! Counters of a run since the start of measuring.

use crate::ids::TaskVec;
use reveille_measure::{Counters, Latency, Ns, UNANSWERED};
use reveille_policy::TaskId;
use reveille_workload::Program;

#[derive(Clone)]
pub(crate) struct Measured {
    pub(crate) counters: Counters,
    pub(crate) wakeup_latency: Latency,
    pub(crate) recorded_latency: Vec<Latency>,
    /// Latency of each request, task by task.
    pub(crate) answers: Vec<Ns>,
    /// Index of each task's first request.
    answers_of_task: TaskVec<usize>,
    pub(crate) operations: u64,
}

impl Measured {
    pub(crate) fn new(program: &Program) -> Measured {
        Measured {
            counters: Counters::default(),
            wakeup_latency: Latency::default(),
            recorded_latency: vec![Latency::default(); program.records.len()],
            answers: vec![UNANSWERED; program.arrivals.count()],
            answers_of_task: program.arrivals.first_of_task().into_iter().collect(),
            operations: 0,
        }
    }

    /// Records the latency of a completed request.
    pub(crate) fn answer(&mut self, task: TaskId, piece: usize, took: Ns) {
        self.answers[self.answers_of_task[task] + piece] = took;
    }

    /// Resets everything at the start of measuring.
    pub(crate) fn forget(&mut self) {
        self.counters = Counters::default();
        self.wakeup_latency = Latency::default();
        self.recorded_latency.fill(Latency::default());
        self.answers.fill(UNANSWERED);
        self.operations = 0;
    }
}

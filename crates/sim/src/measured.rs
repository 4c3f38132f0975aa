//! What a run has counted since measuring began.

use crate::ids::TaskVec;
use reveille_measure::{Counters, Latency, Ns, UNANSWERED};
use reveille_policy::TaskId;
use reveille_workload::Program;

pub(crate) struct Measured {
    pub(crate) counters: Counters,
    pub(crate) wakeup_latency: Latency,
    pub(crate) recorded_latency: Vec<Latency>,
    /// How long each piece of work took from its arrival to its end, task by task.
    pub(crate) answers: Vec<Ns>,
    /// Where the pieces of each task begin.
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

    /// The task has done this piece of its work.
    pub(crate) fn answer(&mut self, task: TaskId, piece: usize, took: Ns) {
        self.answers[self.answers_of_task[task] + piece] = took;
    }

    /// Measuring begins now.
    pub(crate) fn forget(&mut self) {
        self.counters = Counters::default();
        self.wakeup_latency = Latency::default();
        self.recorded_latency.fill(Latency::default());
        self.answers.fill(UNANSWERED);
        self.operations = 0;
    }
}

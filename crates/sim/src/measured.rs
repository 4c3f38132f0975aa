//! Counters of a run since the start of measuring.

use crate::ids::TaskVec;
use reveille_measure::{Counters, Latency, Ns, UNANSWERED};
use reveille_policy::TaskId;
use reveille_workload::Program;

/// Latencies below this are counted by the nanosecond.
const SHORT_NS: usize = 1 << 13;

/// Latencies of wakeups. Short ones are counted in one step, where the histogram needs sixty.
#[derive(Clone)]
pub(crate) struct Tally {
    short: Box<[u64; SHORT_NS]>,
    long: Latency,
}

impl Tally {
    fn new() -> Tally {
        Tally { short: Box::new([0; SHORT_NS]), long: Latency::default() }
    }

    #[inline]
    pub(crate) fn record(&mut self, ns: Ns) {
        match self.short.get_mut(ns as usize) {
            Some(count) => *count += 1,
            None => self.record_long(ns),
        }
    }

    #[cold]
    fn record_long(&mut self, ns: Ns) {
        self.long.record(ns);
    }

    pub(crate) fn histogram(mut self) -> Latency {
        for (ns, &count) in self.short.iter().enumerate().filter(|(_, count)| **count > 0) {
            self.long.record_n(ns as Ns, count);
        }
        self.long
    }
}

#[derive(Clone)]
pub(crate) struct Measured {
    pub(crate) counters: Counters,
    pub(crate) wakeup_latency: Tally,
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
            wakeup_latency: Tally::new(),
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
        self.wakeup_latency = Tally::new();
        self.recorded_latency.fill(Latency::default());
        self.answers.fill(UNANSWERED);
        self.operations = 0;
    }
}

//! Counters of a run since the start of measuring.

use crate::ids::TaskVec;
use reveille_measure::{Counters, Latency, Ns, UNANSWERED};
use reveille_policy::TaskId;
use reveille_workload::{Op, Program};

/// Latencies that differ in these highest bits are counted apart, as in [`Latency`].
const KEPT_BITS: u32 = 8;

/// Latencies of wakeups. Each is counted in a dozen steps, where the histogram needs sixty.
#[derive(Clone)]
pub(crate) struct Tally {
    /// By the number of bits that are cut off, and those that are left.
    counts: Box<[[u64; 1 << KEPT_BITS]; (u64::BITS - KEPT_BITS) as usize + 1]>,
}

impl Tally {
    fn new() -> Tally {
        Tally { counts: Box::new([[0; _]; _]) }
    }

    #[inline]
    pub(crate) fn record(&mut self, ns: Ns) {
        let cut = (ns | 1 << (KEPT_BITS - 1)).ilog2() - (KEPT_BITS - 1);
        self.counts[cut as usize][usize::from((ns >> cut) as u8)] += 1;
    }

    pub(crate) fn histogram(self) -> Latency {
        let mut latency = Latency::default();
        for (cut, counts) in self.counts.iter().enumerate() {
            for (ns, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                latency.record_n((ns as Ns) << cut, count);
            }
        }
        latency
    }
}

#[derive(Clone)]
pub(crate) struct Measured {
    pub(crate) counters: Counters,
    pub(crate) wakeup_latency: Tally,
    pub(crate) recorded_latency: Vec<Latency>,
    /// Latency of each request, task by task, if the program answers them.
    pub(crate) answers: Vec<Ns>,
    /// Index of each task's first request.
    answers_of_task: TaskVec<usize>,
    pub(crate) operations: u64,
}

impl Measured {
    pub(crate) fn new(program: &Program) -> Measured {
        let mut ops = program.roles.iter().flat_map(|role| &role.ops);
        let answers = ops.any(|op| matches!(op, Op::Answer));
        Measured {
            counters: Counters::default(),
            wakeup_latency: Tally::new(),
            recorded_latency: vec![Latency::default(); program.records.len()],
            answers: vec![UNANSWERED; if answers { program.arrivals.count() } else { 0 }],
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_is_the_histogram_of_its_latencies() {
        let (mut tally, mut latency) = (Tally::new(), Latency::default());
        let near = |bits: u32| [1 << bits, (1 << bits) + 1, (1 << bits) * 2 - 1];
        for ns in (0..40_000).chain((1..63).flat_map(near)).chain([Ns::MAX]) {
            tally.record(ns);
            latency.record(ns);
        }
        assert_eq!(tally.histogram().cdf(), latency.cdf());
        assert_eq!(Tally::new().histogram().count(), 0);
    }
}

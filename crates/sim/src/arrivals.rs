//! Work that arrives from outside, at its own times: which piece of it a task does, and how
//! long each piece took from its arrival to its end.

use reveille_measure::{Ns, UNANSWERED};
use reveille_policy::TaskId;
use reveille_workload::{Arrival, Arrivals};

use crate::cpu::at;
use crate::engine::Sim;

/// How long each piece of work took.
pub(crate) struct Answers {
    /// By piece, task by task.
    pub(crate) took_ns: Vec<Ns>,
    /// Where the pieces of each task begin.
    begins: Vec<usize>,
}

impl Answers {
    pub(crate) fn new(arrivals: &Arrivals) -> Answers {
        Answers { took_ns: vec![UNANSWERED; arrivals.count()], begins: arrivals.first_of_task() }
    }

    /// Measuring begins now.
    pub(crate) fn forget(&mut self) {
        self.took_ns.fill(UNANSWERED);
    }
}

impl Sim<'_> {
    /// A task asks for its next piece of work: when does or did it arrive?
    pub(crate) fn next_arrival(&mut self, task: TaskId) -> Ns {
        let arrivals = &self.program.arrivals;
        let own = &arrivals.of_task[at(task)];
        let t = &mut self.tasks[at(task)];
        let (round, piece) = (t.arrived / own.len() as u64, t.arrived % own.len() as u64);
        t.arrived += 1;
        t.noted_at = arrivals.begin_ns + round * arrivals.span_ns + own[piece as usize].at_ns;
        t.noted_at
    }

    /// Number of the piece that arrived last for this task, among its own.
    fn piece(&self, task: TaskId) -> usize {
        let own = self.program.arrivals.of_task[at(task)].len() as u64;
        ((self.tasks[at(task)].arrived - 1) % own) as usize
    }

    /// What the task works at.
    pub(crate) fn arrival_of(&self, task: TaskId) -> Arrival {
        self.program.arrivals.of_task[at(task)][self.piece(task)]
    }

    /// The task has done its piece of work.
    pub(crate) fn answer(&mut self, task: TaskId, took: Ns) {
        let piece = self.answers.begins[at(task)] + self.piece(task);
        self.answers.took_ns[piece] = took;
    }
}

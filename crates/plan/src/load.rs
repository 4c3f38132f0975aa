//! Recordings as one simulator program: a role per recording, a task per thread that has work.

use std::ops::Range;
use std::sync::OnceLock;

use reveille_usage::Usage;
use reveille_workload::{Arrival, Arrivals, Metric, MetricKind, Ns, Op, Program, Role, TaskSpec};

use crate::lean::LeanLoad;

/// Windows over which averages are merged; a period must hold at least two.
const MERGED_NS: [Ns; 4] = [0, 20_000_000, 50_000_000, 100_000_000];

/// Work of a group and its neighbours, ready to replay.
pub(crate) struct Load {
    pub(crate) program: Program,
    /// Which answers of a run belong to which recording; the group's come first.
    pub(crate) answers: Vec<Range<usize>>,
    /// For the lean replay, one per merge window.
    lean: [OnceLock<LeanLoad>; MERGED_NS.len()],
}

impl Load {
    /// The recordings on one clock, for the span of the first: shorter ones repeat, longer ones are
    /// cut off.
    pub(crate) fn new(recordings: &[&Usage]) -> Load {
        let span_ns = recordings[0].span_ns;
        let (mut tasks, mut of_task, mut answers) = (Vec::new(), Vec::new(), Vec::new());
        let mut next = 0;
        for (role, usage) in recordings.iter().enumerate() {
            let begin = next;
            let threads = usage.arrivals(span_ns);
            next += threads.iter().map(Vec::len).sum::<usize>();
            // A thread without work must not become a task.
            for own in threads.into_iter().filter(|own| !own.is_empty()) {
                tasks.push(task(role as u16));
                of_task.push(own);
            }
            answers.push(begin..next);
        }
        let ops = vec![Op::Arrive, Op::RunArrived, Op::Answer];
        let role = |usage: &&Usage| Role { name: usage.name.clone(), ops: ops.clone() };
        let roles = recordings.iter().map(role).collect();
        Load::of(roles, tasks, Arrivals { begin_ns: 0, span_ns, of_task }, answers)
    }

    fn of(
        roles: Vec<Role>,
        tasks: Vec<TaskSpec>,
        arrivals: Arrivals,
        answers: Vec<Range<usize>>,
    ) -> Load {
        let program = Program {
            name: roles[0].name.clone(),
            roles,
            tasks,
            channels: Vec::new(),
            n_lists: 0,
            n_locks: 0,
            arrivals,
            records: Vec::new(),
            metric: Metric { name: "answers".into(), kind: MetricKind::Throughput },
        };
        Load { program, answers, lean: Default::default() }
    }

    /// The group's work in these parts of the recording, concatenated.
    pub(crate) fn cut(&self, parts: &[Range<Ns>]) -> Load {
        let of_task = self.program.arrivals.of_task.iter().map(|own| {
            let mut to_ns = 0;
            let mut cut = Vec::new();
            for part in parts {
                let place = |ns: Ns| own.partition_point(|arrival| arrival.at_ns < ns);
                let inside = &own[place(part.start)..place(part.end)];
                cut.extend(inside.iter().map(|arrival| Arrival {
                    at_ns: arrival.at_ns - part.start + to_ns,
                    ..*arrival
                }));
                to_ns += part.end - part.start;
            }
            cut
        });
        let of_task: Vec<Vec<Arrival>> = of_task.filter(|own| !own.is_empty()).collect();
        let span_ns = parts.iter().map(|part| part.end - part.start).sum();
        let tasks = vec![task(0); of_task.len()];
        let arrivals = Arrivals { begin_ns: 0, span_ns, of_task };
        let answers = std::iter::once(0..arrivals.count()).collect();
        Load::of(self.program.roles[..1].to_vec(), tasks, arrivals, answers)
    }

    /// The load for the lean replay, cached. Work from `averages` is evenly spread, so it is merged
    /// over windows as long as each period holds the same amount.
    pub(crate) fn lean(&self, period_ns: Ns, averages: bool) -> &LeanLoad {
        let fits = |ns: &Ns| averages && period_ns.is_multiple_of(*ns) && 2 * ns <= period_ns;
        let place = MERGED_NS.iter().rposition(|ns| *ns > 0 && fits(ns)).unwrap_or(0);
        let arrivals = &self.program.arrivals;
        self.lean[place].get_or_init(|| match MERGED_NS[place] {
            0 => LeanLoad::new(&arrivals.of_task, arrivals.span_ns),
            ns => {
                let threads: Vec<_> = arrivals.of_task.iter().map(|own| merged(own, ns)).collect();
                LeanLoad::new(&threads, arrivals.span_ns)
            }
        })
    }

    pub(crate) fn span_ns(&self) -> Ns {
        self.program.arrivals.span_ns
    }

    /// Arrival of each of a recording's requests, in the order of answers.
    pub(crate) fn arrivals_of(&self, recording: usize) -> Vec<Ns> {
        let all = self.program.arrivals.of_task.iter().flatten().map(|arrival| arrival.at_ns);
        let range = self.answers[recording].clone();
        all.skip(range.start).take(range.len()).collect()
    }
}

/// Merges work that arrives within `within_ns` of the first into that one.
fn merged(own: &[Arrival], within_ns: Ns) -> Vec<Arrival> {
    let mut merged: Vec<Arrival> = Vec::new();
    for arrival in own {
        match merged.last_mut() {
            Some(last) if arrival.at_ns < last.at_ns + within_ns => last.work_ns += arrival.work_ns,
            _ => merged.push(*arrival),
        }
    }
    merged
}

fn task(role: u16) -> TaskSpec {
    TaskSpec { process: u32::from(role), ..TaskSpec::of_role(role) }
}

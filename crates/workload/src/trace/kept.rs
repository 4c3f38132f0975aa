//! The tasks of a trace that are kept, and their copies.

use std::collections::{BTreeMap, BTreeSet};

use reveille_place::Mistake;

use super::tasks::{Step, Trace, Traced};
use crate::program::{Arrival, Arrivals, Ns, Op, Role, TaskSpec};

/// The parameter that names tasks to keep.
pub(crate) const ONLY: &str = "only";

/// Tasks of a trace, by role.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) roles: Vec<Role>,
    passes: Vec<Pass>,
    processes: Vec<u32>,
    n_processes: u32,
    span_ns: Ns,
}

impl Kept {
    /// Wakeups from outside in a pass.
    pub(crate) fn n_arrivals(&self) -> usize {
        self.passes.iter().map(|pass| pass.arrivals.len()).sum()
    }

    /// Copies start at evenly spaced points of the trace, so that they do not all wake at once.
    pub(crate) fn copies(&self, load: u64) -> (Vec<TaskSpec>, Arrivals) {
        let (mut tasks, mut of_task) = (Vec::new(), Vec::new());
        for copy in 0..load as u32 {
            let from_ns = (u128::from(self.span_ns) * u128::from(copy) / u128::from(load)) as Ns;
            for (role, (process, pass)) in self.processes.iter().zip(&self.passes).enumerate() {
                let (first_op, arrivals) = pass.starting_at(from_ns, self.span_ns);
                tasks.push(TaskSpec {
                    process: copy * self.n_processes + process,
                    task_base: copy * self.roles.len() as u32,
                    first_op,
                    ..TaskSpec::of_role(role as u16)
                });
                of_task.push(arrivals);
            }
        }
        (tasks, Arrivals { begin_ns: 0, span_ns: self.span_ns, of_task })
    }
}

impl Trace {
    /// The tasks whose names or ids are in `only`, as docs/traces.md has it.
    ///
    /// # Errors
    /// A part of `only` that fits no task.
    pub(crate) fn kept(&self, only: &str) -> Result<Kept, Mistake> {
        let numbers = self.numbers(only)?;
        let mut kept = Kept { span_ns: self.span_ns, ..Kept::default() };
        let mut groups = BTreeMap::new();
        let free = self.free(&numbers);
        for (at, task) in self.tasks.iter().enumerate().filter(|(at, _)| numbers[*at].is_some()) {
            let (ops, pass) = operations(&task.steps, &numbers, free[at]);
            kept.roles.push(Role { name: format!("{}-{}", task.name, task.id), ops });
            kept.passes.push(pass);
            let next = groups.len() as u32;
            let group = task.process.map_or((false, task.id), |process| (true, process));
            kept.processes.push(*groups.entry(group).or_insert(next));
        }
        kept.n_processes = groups.len() as u32;
        Ok(kept)
    }

    /// The number of each task within a copy, if it is one of those to keep.
    fn numbers(&self, only: &str) -> Result<Vec<Option<u16>>, Mistake> {
        let patterns: Vec<&str> = only.split(',').map(str::trim).collect();
        for pattern in &patterns {
            if !self.tasks.iter().any(|task| task.acts() && task.is(pattern)) {
                let acting = self.tasks.iter().filter(|task| task.acts());
                let names: BTreeSet<&str> = acting.map(|task| task.name.as_str()).collect();
                return Err(Mistake::unknown("task", pattern, names));
            }
        }
        let mut numbers = 0..;
        let number = |task: &Traced| {
            let kept = task.acts() && patterns.iter().any(|pattern| task.is(pattern));
            if kept { numbers.next() } else { None }
        };
        Ok(self.tasks.iter().map(number).collect())
    }

    /// Tasks that wake each other, directly or through others, are a group. The tasks of a group that
    /// nothing from outside wakes, and of which one was at work when the trace ended, repeat as
    /// fast as they can. All others begin a pass when it is due.
    fn free(&self, numbers: &[Option<u16>]) -> Vec<bool> {
        let mut next: Vec<usize> = (0..self.tasks.len()).collect();
        fn first(next: &mut [usize], mut at: usize) -> usize {
            while next[at] != at {
                next[at] = next[next[at]];
                at = next[at];
            }
            at
        }
        let (mut from_outside, mut goes_on) = (Vec::new(), Vec::new());
        for (at, task) in self.tasks.iter().enumerate().filter(|(at, _)| numbers[*at].is_some()) {
            for step in &task.steps {
                match *step {
                    Step::Woken { by: Some(waker), .. } if numbers[waker].is_some() => {
                        let (one, other) = (first(&mut next, at), first(&mut next, waker));
                        next[one.max(other)] = one.min(other);
                    }
                    Step::Woken { .. } => from_outside.push(at),
                    _ => {}
                }
            }
            goes_on.extend(task.goes_on().then_some(at));
        }
        let mut free = vec![false; self.tasks.len()];
        goes_on.into_iter().for_each(|at| free[first(&mut next, at)] = true);
        from_outside.into_iter().for_each(|at| free[first(&mut next, at)] = false);
        (0..self.tasks.len()).map(|at| free[first(&mut next, at)]).collect()
    }
}

/// When a task does what, within the trace.
#[derive(Default)]
struct Pass {
    /// When interrupts and tasks that are not kept wake it.
    arrivals: Vec<Ns>,
    /// Up to each of these times, rising, an operation is still to be done, and so many arrivals are
    /// before it.
    to_do: Vec<(Ns, u32, usize)>,
}

impl Pass {
    /// A wakeup that came before the task had slept counts from the task's last event.
    fn then(&mut self, at_ns: Ns, op: usize) {
        let at_ns = at_ns.max(self.last_ns());
        self.to_do.push((at_ns, op as u32, self.arrivals.len()));
    }

    fn last_ns(&self) -> Ns {
        self.to_do.last().map_or(0, |last| last.0)
    }

    /// The first operation of a task that starts at this time of the trace, and its arrivals in the
    /// `span_ns` from there. Waker and wakee have the same time for a wakeup, so that each of the
    /// wakee's waits has its wakeup.
    fn starting_at(&self, from_ns: Ns, span_ns: Ns) -> (u32, Vec<Arrival>) {
        let next = self.to_do.partition_point(|(at_ns, ..)| *at_ns < from_ns);
        let (_, first_op, n) = self.to_do.get(next).copied().unwrap_or((0, 0, self.arrivals.len()));
        let (before, after) = self.arrivals.split_at(n);
        let after = after.iter().map(|at_ns| at_ns.saturating_sub(from_ns));
        let before = before.iter().map(|at_ns| at_ns + span_ns - from_ns);
        let arrival = |at_ns| Arrival { at_ns, work_ns: 0 };
        (first_op, after.chain(before).map(arrival).collect())
    }
}

/// What a task repeats. Unless it is `free`, each pass begins when the task was first seen.
fn operations(steps: &[Step], numbers: &[Option<u16>], free: bool) -> (Vec<Op>, Pass) {
    let (mut ops, mut pass) = (Vec::new(), Pass::default());
    let record = Op::Record { record: 0, less: 0 };
    for step in steps {
        let here = ops.len();
        if let Step::Began { at_ns } | Step::Woken { at_ns, .. } | Step::Device { at_ns, .. } =
            *step
        {
            pass.then(at_ns, here);
        }
        match *step {
            Step::Nothing => {}
            Step::Began { at_ns } => {
                if !free {
                    pass.arrivals.push(at_ns);
                    ops.push(Op::Arrive);
                }
            }
            Step::Run(ns) => {
                // A task that starts in the first half of it does it all, in the second nothing of it.
                pass.then(pass.last_ns() + ns / 2, here);
                ops.push(Op::Run(ns));
            }
            Step::Wake { wakee, at_ns } => {
                if let Some(first) = numbers[wakee] {
                    // It computes until then.
                    let computes = matches!(ops.last(), Some(Op::Run(_)));
                    pass.then(at_ns, here - usize::from(computes));
                    ops.push(Op::Request { first, among: 1, count: 1 });
                }
            }
            Step::Woken { by: Some(waker), .. } if numbers[waker].is_some() => {
                ops.extend([Op::Serve, record, Op::Count(1)]);
            }
            Step::Woken { at_ns, .. } => {
                pass.arrivals.push(at_ns);
                ops.extend([Op::Arrive, record, Op::Count(1)]);
            }
            Step::Device { ns, .. } => ops.extend([Op::Device(ns), Op::Count(1)]),
        }
    }
    if free {
        pass.to_do.clear();
    }
    (ops, pass)
}

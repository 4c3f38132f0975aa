//! Follows the tasks of a trace from event to event, and notes for each what it does: how long it
//! computes, whom it wakes, and what it waits for.

use std::collections::HashMap;

use reveille_measure::Ns;
use reveille_place::Mistake;

use super::line::{Event, Task, Wakeup, What, Why};

/// Operations number the tasks of an instance with 16 bits.
const MAX_TASKS: usize = 65_535;

pub(super) struct Tasks {
    all: Vec<Traced>,
    /// The number of a task in `all`, by its id.
    numbers: HashMap<u32, usize>,
    /// The task that runs on a CPU, `None` while it is idle.
    current: HashMap<u32, Option<usize>>,
    begin_ns: Ns,
    now: Ns,
}

/// A whole trace.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    pub(super) tasks: Vec<Traced>,
    /// From the first event to the last.
    pub(super) span_ns: Ns,
}

#[derive(Clone, Debug)]
pub(super) struct Traced {
    pub(super) id: u32,
    pub(super) name: String,
    pub(super) process: Option<u32>,
    pub(super) steps: Vec<Step>,
    pub(super) ran_ns: Ns,
    state: State,
    /// A wakeup seen while it had not yet left its CPU: it counts if the task next runs without
    /// another.
    early: Option<Wake>,
}

/// Tasks are given by their number, times from the start of the trace.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Run(Ns),
    Wake {
        wakee: usize,
        at_ns: Ns,
    },
    /// A wakeup that turned out to wake no task.
    Nothing,
    /// Seen for the first time, already woken: it ran, or waited to.
    Began {
        at_ns: Ns,
    },
    /// Waited until it was woken, by an interrupt if by no task.
    Woken {
        by: Option<usize>,
        at_ns: Ns,
    },
    /// Waited so long for a device, until `at_ns`.
    Device {
        ns: Ns,
        at_ns: Ns,
    },
}

#[derive(Clone, Copy, Debug)]
enum State {
    Running {
        since: Ns,
    },
    /// On a runqueue, or wherever it went unseen.
    Runnable,
    Blocked {
        since: Ns,
        device: bool,
    },
    /// Not seen yet.
    Unknown,
}

#[derive(Clone, Copy, Debug)]
struct Wake {
    at_ns: Ns,
    /// The waker and the number of its step.
    by: Option<(usize, usize)>,
}

impl Tasks {
    pub(super) fn new(begin_ns: Ns) -> Tasks {
        Tasks {
            all: Vec::new(),
            numbers: HashMap::new(),
            current: HashMap::new(),
            begin_ns,
            now: begin_ns,
        }
    }

    /// Takes the next event; those of kind [`Wakeup::Woken`] not if the trace has `waking` ones.
    pub(super) fn take(&mut self, event: &Event, waking: bool) -> Result<(), Mistake> {
        let at_ns = event.at_ns;
        match event.what {
            What::Lost => {
                let fix = "record for a shorter time or with a larger buffer (`-m 64M` for perf, \
                           `-b 65536` for trace-cmd, `buffer_size_kb` of tracefs), or keep only \
                           the lines behind the last loss";
                return Err(Mistake::new("the tracer lost events here", fix));
            }
            _ if at_ns < self.now => {
                let fix = "sort the lines by time, as `perf script` and `trace-cmd report` do";
                return Err(Mistake::new("is earlier than the event before it", fix));
            }
            _ => self.now = at_ns,
        }
        let by = self.runs_on(event)?;
        match event.what {
            What::Wake { event: Wakeup::Woken, .. } if waking => {}
            What::Wake { task, .. } => {
                let wakee = self.number(task)?;
                let in_interrupt = event.in_interrupt == Some(true);
                self.wake(by.filter(|by| *by != wakee && !in_interrupt), wakee);
            }
            What::Switch { why, to, .. } => {
                if let Some(number) = by {
                    self.leave(number, why);
                }
                let next = if to.id == 0 { None } else { Some(self.number(to)?) };
                if let Some(number) = next {
                    self.switch_to(number);
                }
                self.current.insert(event.cpu, next);
            }
            What::Lost => {}
        }
        Ok(())
    }

    /// The task in whose context the event happened. It runs on that CPU since it was switched to; if
    /// that is not in the trace, since the trace began or since now.
    fn runs_on(&mut self, event: &Event) -> Result<Option<usize>, Mistake> {
        let by = match (&event.what, event.by) {
            (What::Switch { from, .. }, _) => Some(*from),
            (_, by) => by,
        };
        let by = match by {
            None => return Ok(self.current.get(&event.cpu).copied().flatten()),
            Some(Task { id: 0, .. }) => None,
            // The kernel prints `<...>` if it has forgotten the name.
            Some(task) => Some(self.number(Task {
                name: if task.name == "<...>" { "" } else { task.name },
                ..task
            })?),
        };
        let first = !self.current.contains_key(&event.cpu);
        let before = self.current.insert(event.cpu, by).flatten();
        if let Some(left) = before.filter(|before| by != Some(*before)) {
            self.all[left].state = State::Runnable;
        }
        if let Some(by) = by {
            let task = &mut self.all[by];
            task.process = event.process.or(task.process);
            if !matches!(task.state, State::Running { .. }) {
                let since = match task.state {
                    State::Unknown if first => self.begin_ns,
                    _ => self.now,
                };
                let cancelled = task.run(since, self.begin_ns);
                self.cancel(cancelled);
            }
        }
        Ok(by)
    }

    fn number(&mut self, task: Task) -> Result<usize, Mistake> {
        if let Some(&number) = self.numbers.get(&task.id) {
            if !task.name.is_empty() {
                task.name.clone_into(&mut self.all[number].name);
            }
            return Ok(number);
        }
        if self.all.len() == MAX_TASKS {
            let problem = format!("is the first event of a task beyond {MAX_TASKS}");
            return Err(Mistake::new(problem, "cut the trace before this line"));
        }
        self.numbers.insert(task.id, self.all.len());
        self.all.push(Traced {
            id: task.id,
            name: task.name.to_owned(),
            process: None,
            steps: Vec::new(),
            ran_ns: 0,
            state: State::Unknown,
            early: None,
        });
        Ok(self.all.len() - 1)
    }

    fn wake(&mut self, waker: Option<usize>, wakee: usize) {
        let by = waker.map(|waker| {
            let task = &mut self.all[waker];
            task.compute_until(self.now);
            task.steps.push(Step::Wake { wakee, at_ns: self.now - self.begin_ns });
            (waker, task.steps.len() - 1)
        });
        let wake = Wake { at_ns: self.now, by };
        let task = &mut self.all[wakee];
        let cancelled = match task.state {
            State::Blocked { .. } | State::Unknown => {
                task.woken(wake, self.begin_ns);
                task.early.take()
            }
            State::Running { .. } | State::Runnable => task.early.replace(wake),
        };
        self.cancel(cancelled);
    }

    fn leave(&mut self, number: usize, why: Why) {
        let task = &mut self.all[number];
        task.compute_until(self.now);
        let device = why == Why::WaitsForDevice;
        task.state = match why {
            Why::Preempted => State::Runnable,
            _ => State::Blocked { since: self.now, device },
        };
    }

    fn switch_to(&mut self, number: usize) {
        let cancelled = self.all[number].run(self.now, self.begin_ns);
        self.cancel(cancelled);
    }

    fn cancel(&mut self, wake: Option<Wake>) {
        if let Some((waker, step)) = wake.and_then(|wake| wake.by) {
            self.all[waker].steps[step] = Step::Nothing;
        }
    }

    pub(super) fn end(mut self) -> Trace {
        for number in 0..self.all.len() {
            let task = &mut self.all[number];
            task.compute_until(self.now);
            let early = task.early.take();
            self.cancel(early);
        }
        Trace { tasks: self.all, span_ns: self.now - self.begin_ns }
    }
}

impl Traced {
    /// Does it more than wake others? Without that, its time is not in the trace.
    pub(super) fn acts(&self) -> bool {
        self.steps.iter().any(|step| waits(step) || matches!(step, Step::Run(_)))
    }

    pub(super) fn is(&self, pattern: &str) -> bool {
        let id = pattern.parse().ok();
        match pattern.strip_suffix('*') {
            Some(prefix) => self.name.starts_with(prefix),
            None => {
                self.name == pattern || id == Some(self.id) || (id.is_some() && id == self.process)
            }
        }
    }

    /// Would it have gone on computing after the trace ended, or once a device answers?
    pub(super) fn goes_on(&self) -> bool {
        matches!(
            self.state,
            State::Running { .. } | State::Runnable | State::Blocked { device: true, .. }
        )
    }

    /// It runs; without a wakeup in the trace, an interrupt woke it. Returns an early wakeup that was
    /// none.
    fn run(&mut self, since: Ns, begin_ns: Ns) -> Option<Wake> {
        let mut early = self.early.take();
        match self.state {
            State::Blocked { .. } => {
                let wake = early.take().unwrap_or(Wake { at_ns: since, by: None });
                self.woken(wake, begin_ns);
            }
            State::Unknown => self.steps.push(Step::Began { at_ns: since - begin_ns }),
            State::Running { .. } | State::Runnable => {}
        }
        self.state = State::Running { since };
        early
    }

    fn compute_until(&mut self, now: Ns) {
        let State::Running { since } = self.state else { return };
        self.state = State::Running { since: now };
        self.ran_ns += now - since;
        match self.steps.last_mut() {
            Some(Step::Run(ns)) => *ns += now - since,
            _ if now == since => {}
            _ => self.steps.push(Step::Run(now - since)),
        }
    }

    fn woken(&mut self, wake: Wake, begin_ns: Ns) {
        let at_ns = wake.at_ns - begin_ns;
        let step = match (wake.by, self.state) {
            (None, State::Blocked { since, device: true }) => {
                Step::Device { ns: wake.at_ns.saturating_sub(since), at_ns }
            }
            (by, _) => {
                // It had nothing left to do.
                self.steps.pop_if(|last| matches!(last, Step::Began { .. }));
                let by = by.map(|(waker, _)| waker);
                Step::Woken { by, at_ns }
            }
        };
        self.steps.push(step);
        self.state = State::Runnable;
    }
}

pub(super) fn waits(step: &Step) -> bool {
    matches!(step, Step::Woken { .. } | Step::Device { .. })
}

//! Reads a trace of the scheduler, as text, as a workload that does the same again: each task
//! computes as long as it did, wakes the tasks it woke, and waits for what woke it. docs/traces.md
//! has the rules.

mod line;
mod tasks;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use line::What;
use reveille_place::{Mistake, Source, counted};
use tasks::{Step, Tasks, Traced};

use crate::amount::MAX_TIME_NS;
use crate::build::MAX_TASKS;
use crate::error::Result;
use crate::file::{Param, Workload};
use crate::program::{Arrival, Arrivals, Metric, MetricKind, Ns, Op, Program, Role, TaskSpec};

#[derive(Clone, Debug)]
pub(crate) struct Trace {
    tasks: Vec<Traced>,
    span_ns: Ns,
}

/// Each takes up to 100 bytes.
const MAX_EVENTS: usize = 8_000_000;
/// Wakeups from outside, in all copies.
const MAX_ARRIVALS: u64 = 20_000_000;
const RECORD: &str = "record with `trace-cmd record -e sched_switch -e sched_waking -e \
                      sched_wakeup_new` and print with `trace-cmd report -l -t`, or use `perf sched \
                      record` and `perf script --ns`";
const ONLY: &str = "only";
/// Tasks in the summary.
const LISTED: usize = 40;

impl Workload {
    /// Reads a trace that `perf script`, `trace-cmd report` or the kernel's `trace` file printed;
    /// `file` names it in messages. A unit of load is a copy of all its tasks. The metrics are
    /// the time from wakeups until tasks run, and wakeups per second.
    ///
    /// # Errors
    /// [`InputError::File`](reveille_place::InputError::File) for a line of the scheduler's that
    /// is not understood, lost events, events that are not sorted by time, more than an hour,
    /// 65,535 tasks or 8 million events, and a trace without switches or wakeups.
    pub fn parse_trace(file: &str, text: String) -> Result<Workload> {
        let source = Source { file: file.to_owned(), text };
        let (trace, tells_interrupts) = read(&source)?;
        let stem = Path::new(file).file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let (about, by_interrupts) = about(&trace, tells_interrupts);
        Ok(Workload {
            name: stem.filter(|stem| !stem.trim().is_empty()).unwrap_or("trace".to_owned()),
            about,
            load_unit: "copies of the trace".to_owned(),
            params: vec![Param {
                name: ONLY.to_owned(),
                default: "*".to_owned(),
                about: "names or ids of the tasks to keep, separated by commas; * ends a prefix"
                    .to_owned(),
            }],
            metrics: metrics(by_interrupts > 0),
            pass_ns: trace.span_ns,
            param_kinds: Vec::new(),
            channels: Vec::new(),
            lists: Vec::new(),
            locks: Vec::new(),
            records: vec!["wakeup".to_owned()],
            tasks: Vec::new(),
            source: Source { file: source.file, text: summary(&trace.tasks) },
            trace: Some(trace),
        })
    }
}

/// The trace, and whether it tells what happens in interrupts.
fn read(source: &Source) -> Result<(Trace, bool)> {
    let text = &source.text;
    let waking = text.contains(" sched_waking: ") || text.contains(":sched_waking: ");
    let (mut tasks, mut events, mut tells_interrupts) = (None, 0, false);
    let (mut switches, mut wakes) = (false, false);
    let mut at = 0;
    for whole in text.split_inclusive('\n') {
        let span = at..at + whole.trim_end().len();
        at += whole.len();
        let wrong = |mistake| source.error(&span, None, mistake);
        let Some(event) = line::event(&text[span.clone()]) else { continue };
        let Some(event) = event else {
            let problem = "is not as perf, trace-cmd or the kernel print this event";
            return Err(wrong(Mistake::new(problem, RECORD)));
        };
        events += 1;
        if events > MAX_EVENTS {
            let problem = format!("is an event of the scheduler beyond {MAX_EVENTS}");
            return Err(wrong(Mistake::new(problem, "cut the trace before this line")));
        }
        tells_interrupts |= event.in_interrupt.is_some();
        switches |= matches!(event.what, What::Switch { .. });
        wakes |= matches!(event.what, What::Wake { .. });
        tasks.get_or_insert_with(|| Tasks::new(event.at_ns)).take(&event, waking).map_err(wrong)?;
    }
    let empty = |problem: &str| Mistake::new(problem, RECORD).in_file(&source.file);
    let tasks = tasks.ok_or_else(|| empty("has no event of the scheduler"))?;
    for (there, problem) in [
        (switches, "has no event sched_switch"),
        (wakes, "has neither sched_waking nor sched_wakeup"),
    ] {
        if !there {
            return Err(empty(problem));
        }
    }
    let (tasks, span_ns) = tasks.end();
    if span_ns > MAX_TIME_NS {
        let problem = format!("lasts {} s, more than an hour", span_ns / 1_000_000_000);
        let mistake = Mistake::new(problem, "cut it to the part that is to be repeated");
        return Err(mistake.in_file(&source.file));
    }
    if !tasks.iter().flat_map(|task| &task.steps).any(waits) || span_ns == 0 {
        return Err(empty("has no task that is woken"));
    }
    Ok((Trace { tasks, span_ns }, tells_interrupts))
}

fn waits(step: &Step) -> bool {
    matches!(step, Step::Woken { .. } | Step::Device { .. })
}

impl Traced {
    /// Does it more than wake others? Without that, its time is not in the trace.
    fn acts(&self) -> bool {
        self.steps.iter().any(|step| waits(step) || matches!(step, Step::Run(_)))
    }

    fn is(&self, pattern: &str) -> bool {
        let id = pattern.parse().ok();
        match pattern.strip_suffix('*') {
            Some(prefix) => self.name.starts_with(prefix),
            None => {
                self.name == pattern || id == Some(self.id) || (id.is_some() && id == self.process)
            }
        }
    }
}

impl Trace {
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

    /// Copies start at evenly spaced points of the trace, so that they do not all wake at once.
    pub(crate) fn program(
        &self,
        workload: &Workload,
        load: u64,
        params: &BTreeMap<String, String>,
    ) -> Result<Program> {
        let only = params.get(ONLY).map_or("*", String::as_str);
        let numbers = self.numbers(only).map_err(|mistake| workload.param_error(ONLY, mistake))?;
        let (mut roles, mut passes, mut processes) = (Vec::new(), Vec::new(), Vec::new());
        let mut groups = BTreeMap::new();
        let free = self.free(&numbers);
        for (at, task) in self.tasks.iter().enumerate().filter(|(at, _)| numbers[*at].is_some()) {
            let (ops, pass) = operations(&task.steps, &numbers, free[at]);
            roles.push(Role { name: format!("{}-{}", task.name, task.id), ops });
            passes.push(pass);
            let next = groups.len() as u32;
            let group = task.process.map_or((false, task.id), |process| (true, process));
            processes.push(*groups.entry(group).or_insert(next));
        }
        workload.check_number(load, roles.len() as u64, MAX_TASKS, "tasks")?;
        let n_arrivals = passes.iter().map(|pass| pass.arrivals.len()).sum::<usize>() as u64;
        workload.check_number(load, n_arrivals, MAX_ARRIVALS, "wakeups from outside")?;
        let (mut tasks, mut of_task) = (Vec::new(), Vec::new());
        for copy in 0..load as u32 {
            let from_ns = (u128::from(self.span_ns) * u128::from(copy) / u128::from(load)) as Ns;
            for (role, (process, pass)) in processes.iter().zip(&passes).enumerate() {
                let (first_op, arrivals) = pass.starting_at(from_ns, self.span_ns);
                tasks.push(TaskSpec {
                    process: copy * groups.len() as u32 + process,
                    task_base: copy * roles.len() as u32,
                    first_op,
                    ..TaskSpec::of_role(role as u16)
                });
                of_task.push(arrivals);
            }
        }
        Ok(Program {
            name: workload.name.clone(),
            roles,
            tasks,
            channels: Vec::new(),
            n_lists: 0,
            n_locks: 0,
            arrivals: Arrivals { begin_ns: 0, span_ns: self.span_ns, of_task },
            records: workload.records.clone(),
            metric: workload.metrics[0].clone(),
        })
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

/// Wakeups of a task by tasks, interrupts and devices.
fn wakeups(task: &Traced) -> [u64; 3] {
    let mut wakeups = [0; 3];
    for step in &task.steps {
        match step {
            Step::Woken { by: Some(_), .. } => wakeups[0] += 1,
            Step::Woken { by: None, .. } => wakeups[1] += 1,
            Step::Device { .. } => wakeups[2] += 1,
            _ => {}
        }
    }
    wakeups
}

/// One line, and the number of wakeups by interrupts.
fn about(trace: &Trace, tells_interrupts: bool) -> (String, u64) {
    let (mut all, mut ran_ns, mut active) = ([0; 3], 0, 0u64);
    for task in trace.tasks.iter().filter(|task| task.acts()) {
        let own = wakeups(task);
        all = std::array::from_fn(|cause| all[cause] + own[cause]);
        ran_ns += task.ran_ns;
        active += 1;
    }
    let [by_tasks, by_interrupts, by_devices] = all;
    let unknown = if tells_interrupts { "" } else { " (the trace does not tell interrupts)" };
    let text = format!(
        "{} in {:.3} s of a trace, using {:.2} CPUs; {by_tasks} wakeups by tasks{unknown}, \
         {by_interrupts} by interrupts, {by_devices} by devices",
        counted(active, "task"),
        trace.span_ns as f64 / 1e9,
        ran_ns as f64 / trace.span_ns as f64,
    );
    (text, by_interrupts)
}

/// A line for each of the tasks that run longest.
fn summary(tasks: &[Traced]) -> String {
    let mut all: Vec<&Traced> = tasks.iter().filter(|task| task.acts()).collect();
    all.sort_by_key(|task| (std::cmp::Reverse(task.ran_ns), task.id));
    let mut text = "CPU time (ms)    by tasks  interrupts     devices  task\n".to_owned();
    for task in all.iter().take(LISTED) {
        let [by_tasks, by_interrupts, by_devices] = wakeups(task);
        let ms = task.ran_ns as f64 / 1e6;
        text += &format!(
            "{ms:>13.3} {by_tasks:>11} {by_interrupts:>11} {by_devices:>11}  {}-{}\n",
            task.name, task.id
        );
    }
    if all.len() > LISTED {
        text += &format!("and {} more\n", all.len() - LISTED);
    }
    text
}

/// Where interrupts wake tasks, they fix how often tasks run, so that latency is what can differ.
fn metrics(timed: bool) -> Vec<Metric> {
    let latency = |(name, quantile): (&str, f64)| Metric {
        name: format!("{name} wakeup latency (ns)"),
        kind: MetricKind::RecordedLatency { record: 0, quantile },
    };
    let quantiles = [("p99", 0.99), ("p50", 0.5), ("p90", 0.9), ("p99.9", 0.999), ("max", 1.0)];
    let mut metrics: Vec<Metric> = quantiles.into_iter().map(latency).collect();
    let name = "throughput (wakeups/s)".to_owned();
    metrics.push(Metric { name, kind: MetricKind::Throughput });
    if !timed {
        metrics.rotate_right(1);
    }
    metrics
}

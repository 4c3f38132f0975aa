//! Turns scheduler events into demands: an activation of a thread lasts from when it becomes
//! runnable until it blocks, across preemption and throttling, and its demand is the CPU time used
//! in between.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use reveille_measure::{GroupStats, Ns};
use reveille_usage::{Demand, Sample};

use super::tracepoints::{Event, Kind, Left};

/// In place of an index: the thread is not in the group.
const OUTSIDE: u32 = 0;

/// State of a thread of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Unknown: not observed since it entered the group, or since events were lost.
    Unknown {
        since_ns: Ns,
    },
    Blocked,
    Runnable,
    Running {
        since_ns: Ns,
    },
}

impl State {
    fn counts_as_runnable(self) -> bool {
        matches!(self, State::Runnable | State::Running { .. })
    }
}

#[derive(Clone, Debug)]
struct Thread {
    id: u32,
    state: State,
    /// Its number among the demands, from its first activation on.
    number: Option<u32>,
    /// The current activation: its start and its CPU time so far.
    active: Option<(Ns, Ns)>,
    /// Number of consecutive thread lists without it.
    missed: u32,
}

/// What a CPU runs, if known.
#[derive(Clone, Copy, Debug)]
struct OnCpu {
    thread: Option<u32>,
    since_ns: Ns,
}

/// State of a group's threads, updated event by event.
#[derive(Debug)]
pub(super) struct Activations {
    /// Start of the recording, on the monotonic clock.
    start_ns: Ns,
    sample_ns: Ns,
    /// Time of the last event processed.
    now_ns: Ns,
    /// By thread id: its index in `threads` + 1, or [`OUTSIDE`].
    index: Vec<u32>,
    threads: Vec<Thread>,
    /// Free slots in `threads`.
    vacant: Vec<usize>,
    cpus: Vec<OnCpu>,
    /// Numbers of threads that have ended, lowest first, for reuse.
    free_numbers: BinaryHeap<Reverse<u32>>,
    /// Numbers assigned so far.
    numbers: u32,
    demands: Vec<Demand>,
    running: u32,
    runnable: u32,
    /// CPU time since the last sample.
    charged_ns: Ns,
    /// CPU time since the start.
    total_ns: Ns,
    /// Time that threads waited to run, from the start.
    waited_ns: Ns,
    samples: Vec<Sample>,
    /// Counter readings not yet in a sample, with their times.
    readings: VecDeque<(Ns, GroupStats)>,
    counters: GroupStats,
    /// Events that involve the group.
    own_events: u64,
    /// Switches, and those from another thread than the CPU was last seen to run: an event is
    /// missing before them.
    switches: u64,
    broken: u64,
}

/// Result of a recording.
#[derive(Debug)]
pub(super) struct Activity {
    /// Sorted by arrival.
    pub demands: Vec<Demand>,
    pub samples: Vec<Sample>,
    pub threads: u32,
    /// CPU time of all threads.
    pub cpu_ns: Ns,
    /// Time that its threads were ready to run and did not.
    pub waited_ns: Ns,
    pub own_events: u64,
    /// Share of switches before which an event is missing.
    pub broken_share: f64,
}

impl Activations {
    /// For a recording that starts at `start_ns` with a sample every `sample_ns`; thread ids are
    /// below `ids`, CPU numbers below `cpus`.
    pub fn new(start_ns: Ns, sample_ns: Ns, ids: usize, cpus: usize) -> Activations {
        Activations {
            start_ns,
            sample_ns,
            now_ns: start_ns,
            index: vec![OUTSIDE; ids],
            threads: Vec::new(),
            vacant: Vec::new(),
            cpus: vec![OnCpu { thread: None, since_ns: start_ns }; cpus],
            free_numbers: BinaryHeap::new(),
            numbers: 0,
            demands: Vec::new(),
            running: 0,
            runnable: 0,
            charged_ns: 0,
            total_ns: 0,
            waited_ns: 0,
            samples: Vec::new(),
            readings: VecDeque::new(),
            counters: GroupStats::default(),
            own_events: 0,
            switches: 0,
            broken: 0,
        }
    }

    /// Processes the next event. Events before the recording's start only update where threads are.
    pub fn take(&mut self, event: &Event) {
        // CPUs may write events slightly out of order.
        let at_ns = event.at_ns.max(self.now_ns);
        self.advance(at_ns);
        match event.kind {
            Kind::Switch { prev, left, next } => self.switch(event.cpu, prev, left, next),
            Kind::Wakeup { thread } => {
                if let Some(i) = self.find(thread) {
                    self.own_events += 1;
                    self.wake(i);
                }
            }
            Kind::Fork { parent, child } => {
                if self.find(parent).is_some() {
                    self.own_events += 1;
                    let i = self.enter(child);
                    if let State::Unknown { .. } = self.threads[i].state {
                        self.set(i, State::Blocked);
                    }
                }
            }
            Kind::Entered { thread } => {
                self.enter(thread);
            }
            Kind::Moved => {}
            Kind::Lost => self.lose(event.cpu),
        }
    }

    /// Adds a reading of the group's counters, relative to the start.
    pub fn read(&mut self, at_ns: Ns, counters: GroupStats) {
        self.readings.push_back((at_ns, counters));
    }

    pub fn knows(&self, thread: u32) -> bool {
        self.find(thread).is_some()
    }

    /// Time of the last event processed.
    pub fn now_ns(&self) -> Ns {
        self.now_ns
    }

    /// Removes threads that are missing from two lists in a row. `listed` is ascending.
    pub fn keep_only(&mut self, listed: &[u32]) {
        for i in 0..self.threads.len() {
            let thread = &mut self.threads[i];
            if self.index[thread.id as usize] != i as u32 + 1 {
                continue;
            }
            if listed.binary_search(&thread.id).is_ok() {
                thread.missed = 0;
                continue;
            }
            thread.missed += 1;
            if thread.missed > 1 {
                self.leave(i);
            }
        }
    }

    /// Share of switches so far before which an event is missing.
    pub fn broken_share(&self) -> f64 {
        self.broken as f64 / self.switches.max(1) as f64
    }

    pub fn finish(mut self, end_ns: Ns) -> Activity {
        self.advance(end_ns.max(self.now_ns));
        let broken_share = self.broken_share();
        let last_ns = self.samples.last().map_or(0, |sample| sample.at_ns);
        if self.now_ns - self.start_ns > last_ns {
            self.sample(self.now_ns);
        }
        for i in 0..self.threads.len() {
            self.settle(i);
            let thread = &self.threads[i];
            if let (Some((at_ns, cpu_ns @ 1..)), Some(number)) = (thread.active, thread.number) {
                self.demands.push(Demand { at_ns, cpu_ns, thread: number, done_ns: None });
            }
        }
        self.demands.sort_by_key(|demand| (demand.at_ns, demand.thread));
        Activity {
            demands: self.demands,
            samples: self.samples,
            threads: self.numbers,
            cpu_ns: self.total_ns,
            waited_ns: self.waited_ns,
            own_events: self.own_events,
            broken_share,
        }
    }

    fn find(&self, thread: u32) -> Option<usize> {
        match self.index.get(thread as usize).copied() {
            None | Some(OUTSIDE) => None,
            Some(i) => Some(i as usize - 1),
        }
    }

    /// Adds a thread to the group, unless it is in it.
    fn enter(&mut self, id: u32) -> usize {
        if let Some(i) = self.find(id) {
            return i;
        }
        let on_cpu = self.cpus.iter().any(|cpu| cpu.thread == Some(id));
        let state = match on_cpu {
            true => State::Running { since_ns: self.now_ns },
            false => State::Unknown { since_ns: self.now_ns },
        };
        let active = None;
        let thread = Thread { id, state: State::Blocked, number: None, active, missed: 0 };
        let i = match self.vacant.pop() {
            Some(i) => {
                self.threads[i] = thread;
                i
            }
            None => {
                self.threads.push(thread);
                self.threads.len() - 1
            }
        };
        if id as usize >= self.index.len() {
            self.index.resize(id as usize + 1, OUTSIDE);
        }
        self.index[id as usize] = i as u32 + 1;
        if on_cpu {
            self.begin(i, self.now_ns);
        }
        self.set(i, state);
        i
    }

    fn switch(&mut self, cpu: u32, prev: u32, left: Left, next: u32) {
        let now = OnCpu { thread: Some(next), since_ns: self.now_ns };
        let Some(on_cpu) = self.cpus.get_mut(cpu as usize) else { return };
        let before = std::mem::replace(on_cpu, now);
        self.switches += 1;
        self.broken += u64::from(before.thread.is_some_and(|thread| thread != prev));
        self.own_events += u64::from(self.knows(prev) || self.knows(next));
        if let Some(i) = self.find(prev) {
            if let State::Unknown { since_ns } = self.threads[i].state {
                // It has run since it entered, unobserved.
                let since_ns = since_ns.max(before.since_ns);
                self.begin(i, since_ns);
                self.set(i, State::Running { since_ns: self.now_ns });
                self.charge(i, self.now_ns - since_ns.min(self.now_ns), true);
            }
            self.settle(i);
            match left {
                Left::Runnable => self.set(i, State::Runnable),
                Left::Blocked | Left::Dead => {
                    self.done(i);
                    self.set(i, State::Blocked);
                }
            }
            if left == Left::Dead {
                self.leave(i);
            }
        }
        if let Some(i) = self.find(next) {
            match self.threads[i].state {
                // It has been waiting since it entered.
                State::Unknown { since_ns } => self.begin(i, since_ns),
                _ => self.begin(i, self.now_ns),
            }
            self.settle(i);
            self.set(i, State::Running { since_ns: self.now_ns });
        }
    }

    fn wake(&mut self, i: usize) {
        // A thread woken before it has blocked keeps running.
        if self.threads[i].active.is_none() {
            self.begin(i, self.now_ns);
        }
        if !self.threads[i].state.counts_as_runnable() {
            self.set(i, State::Runnable);
        }
    }

    /// Events of this CPU were lost: what it runs is unknown.
    fn lose(&mut self, cpu: u32) {
        let Some(on_cpu) = self.cpus.get_mut(cpu as usize) else { return };
        let thread = on_cpu.thread.take();
        on_cpu.since_ns = self.now_ns;
        if let Some(i) = thread.and_then(|id| self.find(id)) {
            self.settle(i);
            self.set(i, State::Unknown { since_ns: self.now_ns });
        }
    }

    fn leave(&mut self, i: usize) {
        self.settle(i);
        self.done(i);
        self.set(i, State::Blocked);
        let thread = &mut self.threads[i];
        self.free_numbers.extend(thread.number.take().map(Reverse));
        self.index[thread.id as usize] = OUTSIDE;
        self.vacant.push(i);
    }

    /// Starts an activation, unless one is in progress.
    fn begin(&mut self, i: usize, at_ns: Ns) {
        let thread = &mut self.threads[i];
        if thread.active.is_some() {
            return;
        }
        thread.active = Some((at_ns.saturating_sub(self.start_ns), 0));
        if thread.number.is_none() {
            let next = self.numbers;
            let number = self.free_numbers.pop().map_or(next, |Reverse(number)| number);
            self.numbers = self.numbers.max(number + 1);
            thread.number = Some(number);
        }
    }

    /// Ends the current activation.
    fn done(&mut self, i: usize) {
        let thread = &mut self.threads[i];
        let (Some((at_ns, cpu_ns)), Some(number)) = (thread.active.take(), thread.number) else {
            return;
        };
        // Activations that ended before the start are not recorded.
        if self.now_ns > self.start_ns {
            let done_ns = Some(self.now_ns - self.start_ns);
            self.demands.push(Demand { at_ns, cpu_ns, thread: number, done_ns });
        }
    }

    /// Charges a running thread up to now. Samples are summed separately.
    fn settle(&mut self, i: usize) {
        if let State::Running { since_ns } = self.threads[i].state {
            self.charge(i, self.now_ns - since_ns, false);
            self.threads[i].state = State::Running { since_ns: self.now_ns };
        }
    }

    fn charge(&mut self, i: usize, cpu_ns: Ns, unseen: bool) {
        if let Some((_, sum_ns)) = &mut self.threads[i].active {
            *sum_ns += cpu_ns;
        }
        if unseen {
            self.charged_ns += cpu_ns;
            self.total_ns += cpu_ns;
        }
    }

    fn set(&mut self, i: usize, state: State) {
        let old = std::mem::replace(&mut self.threads[i].state, state);
        let runs = |state| u32::from(matches!(state, State::Running { .. }));
        self.running = self.running + runs(state) - runs(old);
        self.runnable += u32::from(state.counts_as_runnable());
        self.runnable -= u32::from(old.counts_as_runnable());
    }

    /// Advances the time, and takes the samples that are due.
    fn advance(&mut self, to_ns: Ns) {
        loop {
            let next_ns = self.start_ns + (self.samples.len() as Ns + 1) * self.sample_ns;
            if next_ns > to_ns {
                break;
            }
            self.pass(next_ns);
            self.sample(next_ns);
        }
        self.pass(to_ns);
    }

    fn pass(&mut self, to_ns: Ns) {
        let ns = (to_ns - self.now_ns) * Ns::from(self.running);
        self.charged_ns += ns;
        self.total_ns += ns;
        self.waited_ns += (to_ns - self.now_ns) * Ns::from(self.runnable - self.running);
        self.now_ns = to_ns;
    }

    fn sample(&mut self, at_ns: Ns) {
        while self.readings.front().is_some_and(|&(read_ns, _)| read_ns <= at_ns) {
            self.counters = self.readings.pop_front().expect("one is in front").1;
        }
        self.samples.push(Sample {
            at_ns: at_ns - self.start_ns,
            runtime_ns: std::mem::take(&mut self.charged_ns),
            runnable: Some(self.runnable),
            nr_periods: self.counters.nr_periods,
            nr_throttled: self.counters.nr_throttled,
            throttled_ns: self.counters.throttled_ns,
        });
    }
}

#[cfg(test)]
#[path = "activations_tests.rs"]
mod tests;

//! The lean replay: one group's work on a few CPUs under quota, period and burst, with slices,
//! ticks and phase, but without costs and with a minimal scheduler. It is about ten times as fast
//! as the simulator and ranks settings; figures shown come from the simulator.

use std::collections::VecDeque;

use reveille_measure::UNANSWERED;
use reveille_policy::{BandwidthError, BandwidthLimits, LocalRuntime, PeriodStep, Pool};
use reveille_usage::Demand;
use reveille_workload::Arrival;

use crate::Ns;

const NEVER: Ns = Ns::MAX;
pub(crate) const SECOND_NS: Ns = 1_000_000_000;
const NO_THREAD: usize = usize::MAX;
/// Minimum turn of a thread while others wait (base_slice_ns), to be scaled with the logarithm of
/// the number of CPUs.
const TURN_NS: Ns = 750_000;

/// CPUs and kernel parameters of a replay.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lean {
    pub(crate) cpus: usize,
    /// CPU time that a CPU draws from the quota at once.
    pub(crate) slice_ns: Ns,
    pub(crate) tick_ns: Ns,
    /// Kernel overhead per request.
    pub(crate) more_ns: Ns,
}

/// Requests sorted by arrival, repeated after a span.
#[derive(Clone, Debug)]
pub(crate) struct LeanLoad {
    /// Thread of each arrival, in order.
    order: Vec<u32>,
    /// Requests, thread by thread.
    pieces: Vec<Arrival>,
    /// Index of each thread's first request, and the total.
    begins: Vec<usize>,
    span_ns: Ns,
}

/// Measured time, the start of the group's first period, and that of the recording.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeanSpan {
    pub(crate) begin_ns: Ns,
    pub(crate) end_ns: Ns,
    pub(crate) phase_ns: Ns,
    pub(crate) from_ns: Ns,
}

/// Results over the measured time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeanOutcome {
    /// Thread by thread; `UNANSWERED` for requests not completed.
    pub(crate) latencies: Vec<Ns>,
    pub(crate) nr_periods: u64,
    pub(crate) nr_throttled: u64,
    pub(crate) throttled_ns: Ns,
    pub(crate) used_ns: Ns,
    /// Seconds of the recording in which the group was throttled, including warm-up.
    pub(crate) throttled_in: Vec<bool>,
}

impl LeanLoad {
    /// From each thread's requests in order of arrival.
    pub(crate) fn new(threads: &[Vec<Arrival>], span_ns: Ns) -> LeanLoad {
        let mut begins = vec![0];
        begins.extend(threads.iter().scan(0, |end, own| {
            *end += own.len();
            Some(*end)
        }));
        let of_thread = |(thread, own): (usize, &Vec<Arrival>)| {
            own.iter().map(|arrival| (arrival.at_ns, thread as u32)).collect::<Vec<_>>()
        };
        let mut coming: Vec<(Ns, u32)> = threads.iter().enumerate().flat_map(of_thread).collect();
        // A stable sort: the input is a concatenation of sorted runs, which it merges.
        coming.sort();
        let order = coming.into_iter().map(|(_, thread)| thread).collect();
        LeanLoad { order, pieces: threads.concat(), begins, span_ns }
    }

    /// From requests in order of arrival, of threads below `threads`.
    pub(crate) fn of(demands: &[Demand], threads: u32, span_ns: Ns) -> LeanLoad {
        let mut counts = vec![0; threads as usize];
        for demand in demands {
            counts[demand.thread as usize] += 1;
        }
        // Threads without requests get no place.
        let (mut places, mut begins) = (Vec::with_capacity(counts.len()), vec![0]);
        let mut end = 0;
        for count in counts {
            places.push(begins.len() - 1);
            end += count;
            if count > 0 {
                begins.push(end);
            }
        }
        let mut next = begins.clone();
        let mut pieces = vec![Arrival { at_ns: 0, work_ns: 0 }; demands.len()];
        let place = |demand: &Demand| {
            let place = places[demand.thread as usize];
            pieces[next[place]] = Arrival { at_ns: demand.at_ns, work_ns: demand.cpu_ns };
            next[place] += 1;
            place as u32
        };
        let order = demands.iter().map(place).collect();
        LeanLoad { order, pieces, begins, span_ns }
    }

    fn threads(&self) -> usize {
        self.begins.len() - 1
    }
}

impl Lean {
    /// Replays the load; allocates nothing while it runs.
    pub(crate) fn replay(
        &self,
        load: &LeanLoad,
        limits: &BandwidthLimits,
        span: LeanSpan,
    ) -> Result<LeanOutcome, BandwidthError> {
        let LeanSpan { begin_ns, end_ns, phase_ns, from_ns } = span;
        let pool = Pool::new(limits, phase_ns % limits.period_ns.max(1), 0)?;
        let mut run = Run::new(*self, load, from_ns, pool, limits);
        run.advance_to(begin_ns);
        let before = run.counters();
        run.outcome.latencies.fill(UNANSWERED);
        run.advance_to(end_ns);
        let after = run.counters();
        Ok(LeanOutcome {
            nr_periods: after.nr_periods - before.nr_periods,
            nr_throttled: after.nr_throttled - before.nr_throttled,
            throttled_ns: after.throttled_ns - before.throttled_ns,
            used_ns: after.used_ns - before.used_ns,
            latencies: run.outcome.latencies,
            throttled_in: run.outcome.throttled_in,
        })
    }
}

#[derive(Clone)]
struct Cpu {
    local: LocalRuntime,
    /// The running thread.
    current: usize,
    /// Threads that wait for `current` to sleep, or for the CPU to be unthrottled.
    waiting: VecDeque<usize>,
    /// Runtime has been charged up to here.
    charged_ns: Ns,
    /// `current`'s request has run up to here.
    ran_ns: Ns,
    picked_ns: Ns,
    /// Time of the CPU's next event.
    due_ns: Ns,
}

#[derive(Clone)]
struct Thread {
    cpu: usize,
    /// The request being served, and the start of its repetition.
    piece: usize,
    round_ns: Ns,
    /// The next request to arrive.
    coming: usize,
    /// Requests that have arrived and are not completed.
    pending: u64,
    left_ns: Ns,
}

struct Run<'a> {
    lean: Lean,
    turn_ns: Ns,
    load: &'a LeanLoad,
    pool: Pool,
    cpus: Vec<Cpu>,
    threads: Vec<Thread>,
    /// Throttled CPUs in order of throttling.
    throttled: VecDeque<usize>,
    now: Ns,
    /// The next arrival by index and time, and the start of its repetition.
    coming: usize,
    coming_ns: Ns,
    round_ns: Ns,
    outcome: LeanOutcome,
}

impl<'a> Run<'a> {
    fn new(
        lean: Lean,
        load: &'a LeanLoad,
        from_ns: Ns,
        pool: Pool,
        limits: &BandwidthLimits,
    ) -> Run<'a> {
        // More CPUs than threads are never used.
        let n_cpus = lean.cpus.min(load.threads()).max(1);
        let cpu = Cpu {
            local: LocalRuntime::new(limits),
            current: NO_THREAD,
            waiting: VecDeque::with_capacity(load.threads().div_ceil(n_cpus) + 1),
            charged_ns: 0,
            ran_ns: 0,
            picked_ns: 0,
            due_ns: NEVER,
        };
        let thread = |number: usize| Thread {
            cpu: number % n_cpus,
            piece: load.begins[number],
            coming: load.begins[number],
            round_ns: from_ns,
            pending: 0,
            left_ns: 0,
        };
        let latencies = vec![UNANSWERED; load.pieces.len()];
        let throttled_in = vec![false; load.span_ns.div_ceil(SECOND_NS) as usize];
        let mut run = Run {
            lean,
            turn_ns: TURN_NS * Ns::from(1 + lean.cpus.clamp(1, 8).ilog2()),
            load,
            pool,
            cpus: vec![cpu; n_cpus],
            threads: (0..load.threads()).map(thread).collect(),
            throttled: VecDeque::with_capacity(n_cpus),
            now: 0,
            coming: 0,
            coming_ns: NEVER,
            round_ns: from_ns,
            outcome: LeanOutcome { latencies, throttled_in, ..LeanOutcome::default() },
        };
        run.look_ahead();
        run
    }

    fn counters(&self) -> LeanOutcome {
        let running = self.cpus.iter().filter(|cpu| cpu.current != NO_THREAD);
        let since = self.cpus.iter().filter_map(|cpu| cpu.local.throttled_since_ns());
        LeanOutcome {
            nr_periods: self.pool.nr_periods(),
            nr_throttled: self.pool.nr_throttled(),
            throttled_ns: self.pool.throttled_ns() + since.map(|at| self.now - at).sum::<Ns>(),
            used_ns: self.outcome.used_ns
                + running.map(|cpu| self.now - cpu.charged_ns).sum::<Ns>(),
            ..LeanOutcome::default()
        }
    }

    /// Processes events before `end`; of simultaneous ones, CPUs first, then arrivals, then timers.
    fn advance_to(&mut self, end_ns: Ns) {
        loop {
            let (mut cpu, mut due_ns) = (0, NEVER);
            for (number, of) in self.cpus.iter().enumerate() {
                if of.due_ns < due_ns {
                    (cpu, due_ns) = (number, of.due_ns);
                }
            }
            let refill_ns = self.pool.refill_at_ns().unwrap_or(NEVER);
            let timer_ns = refill_ns.min(self.pool.slack_at_ns().unwrap_or(NEVER));
            let next_ns = due_ns.min(self.coming_ns).min(timer_ns);
            if next_ns >= end_ns {
                self.now = end_ns;
                return;
            }
            self.now = next_ns;
            if due_ns == next_ns {
                self.serve(cpu);
            } else if self.coming_ns == next_ns {
                self.arrive();
            } else {
                self.fire();
            }
        }
    }

    /// Computes the time of the next arrival.
    fn look_ahead(&mut self) {
        if let Some(&thread) = self.load.order.get(self.coming) {
            let next = self.threads[thread as usize].coming;
            self.coming_ns = self.round_ns + self.load.pieces[next].at_ns;
        }
    }

    /// A request arrives and wakes its thread if it sleeps.
    fn arrive(&mut self) {
        let thread = self.load.order[self.coming] as usize;
        let of = &mut self.threads[thread];
        of.coming += 1;
        if of.coming == self.load.begins[thread + 1] {
            of.coming = self.load.begins[thread];
        }
        of.pending += 1;
        let wakes = of.pending == 1;
        if wakes {
            of.left_ns = self.load.pieces[of.piece].work_ns + self.lean.more_ns;
        }
        self.coming += 1;
        if self.coming == self.load.order.len() {
            (self.coming, self.round_ns) = (0, self.round_ns + self.load.span_ns);
        }
        self.look_ahead();
        if !wakes {
            return;
        }
        // On the previous CPU, else on an idle one; a throttled CPU looks idle as well.
        let n_cpus = self.cpus.len();
        let before = self.threads[thread].cpu;
        let all = (0..n_cpus).map(|more| (before + more) % n_cpus);
        let cpu = { all }.find(|&cpu| self.cpus[cpu].current == NO_THREAD).unwrap_or(before);
        let empty = self.cpus[cpu].current == NO_THREAD && self.cpus[cpu].waiting.is_empty();
        self.cpus[cpu].waiting.push_back(thread);
        if empty {
            // check_enqueue_throttle()
            self.charge(cpu);
            self.throttle(cpu);
        }
        match self.cpus[cpu].current {
            NO_THREAD => self.pick(cpu),
            // The running thread has had its turn: the wakee preempts it.
            _ if self.now - self.cpus[cpu].picked_ns >= self.turn_ns => {
                self.cpus[cpu].due_ns = self.now
            }
            _ => self.plan(cpu),
        }
    }

    /// The CPU's request completes, or a relevant tick fires.
    fn serve(&mut self, cpu: usize) {
        let of = &mut self.cpus[cpu];
        let thread = &mut self.threads[of.current];
        thread.left_ns -= self.now - of.ran_ns;
        of.ran_ns = self.now;
        if thread.left_ns > 0 {
            let in_turn = self.now - of.picked_ns < self.turn_ns || of.waiting.is_empty();
            if self.charge(cpu) && in_turn {
                return self.plan(cpu);
            }
            let of = &mut self.cpus[cpu];
            let current = std::mem::replace(&mut of.current, NO_THREAD);
            match in_turn {
                true => of.waiting.push_front(current),
                false => of.waiting.push_back(current),
            }
            self.throttle(cpu);
            return self.pick(cpu);
        }
        let piece = &self.load.pieces[thread.piece];
        let came_ns = thread.round_ns + piece.at_ns;
        self.outcome.latencies[thread.piece] = self.now - came_ns;
        thread.piece += 1;
        if thread.piece == self.load.begins[of.current + 1] {
            thread.piece = self.load.begins[of.current];
            thread.round_ns += self.load.span_ns;
        }
        thread.pending -= 1;
        if thread.pending > 0 {
            thread.left_ns = self.load.pieces[thread.piece].work_ns + self.lean.more_ns;
            return self.plan(cpu);
        }
        self.charge(cpu);
        let of = &mut self.cpus[cpu];
        of.current = NO_THREAD;
        if of.waiting.is_empty() {
            self.pool.give_back(&mut of.local, self.lean.slice_ns, self.now);
        }
        self.throttle(cpu);
        self.pick(cpu);
    }

    /// The period timer or the slack timer fires.
    fn fire(&mut self) {
        let mut distribute = false;
        while self.pool.refill_at_ns().is_some_and(|due| due <= self.now) {
            distribute |= self.pool.period_timer(self.now) == PeriodStep::Distribute;
        }
        if self.pool.slack_at_ns().is_some_and(|due| due <= self.now) {
            distribute |= self.pool.slack_timer(self.lean.slice_ns, self.now);
        }
        while distribute && self.pool.runtime_ns() > 0 {
            let Some(&cpu) = self.throttled.front() else { break };
            if !self.pool.grant(&mut self.cpus[cpu].local) {
                break;
            }
            self.throttled.pop_front();
            let since_ns = self.cpus[cpu].local.throttled_since_ns().unwrap_or(self.now);
            for second in since_ns / SECOND_NS..=self.now / SECOND_NS {
                let at_ns = second * SECOND_NS % self.load.span_ns;
                self.outcome.throttled_in[(at_ns / SECOND_NS) as usize] = true;
            }
            self.pool.unthrottle(&mut self.cpus[cpu].local, self.now);
            self.pick(cpu);
        }
    }

    /// Charges runtime since the last charge. Returns false if out of runtime.
    fn charge(&mut self, cpu: usize) -> bool {
        let of = &mut self.cpus[cpu];
        let delta_ns = match of.current {
            NO_THREAD => 0,
            _ => self.now - of.charged_ns,
        };
        of.charged_ns = self.now;
        self.outcome.used_ns += delta_ns;
        if delta_ns == 0 && of.local.remaining_ns() > 0 {
            return true;
        }
        !of.local.enabled()
            || self.pool.account(&mut of.local, delta_ns, self.lean.slice_ns, self.now)
    }

    fn throttle(&mut self, cpu: usize) {
        let local = &mut self.cpus[cpu].local;
        if local.remaining_ns() <= 0 && self.pool.throttle(local, self.now) {
            self.throttled.push_back(cpu);
        }
    }

    /// Picks the longest-waiting thread; pulls from another CPU if none waits here.
    fn pick(&mut self, cpu: usize) {
        self.cpus[cpu].due_ns = NEVER;
        if self.cpus[cpu].local.throttled() {
            return;
        }
        let from = match self.cpus[cpu].waiting.is_empty() {
            true => self.crowded().unwrap_or(cpu),
            false => cpu,
        };
        let Some(thread) = self.cpus[from].waiting.pop_front() else { return };
        self.threads[thread].cpu = cpu;
        let of = &mut self.cpus[cpu];
        (of.current, of.charged_ns, of.ran_ns, of.picked_ns) =
            (thread, self.now, self.now, self.now);
        if from != cpu {
            // The first enqueue on an empty runqueue.
            self.charge(cpu);
            self.throttle(cpu);
            if self.cpus[cpu].local.throttled() {
                self.cpus[cpu].current = NO_THREAD;
                return self.cpus[cpu].waiting.push_front(thread);
            }
        }
        self.plan(cpu);
    }

    /// A CPU with waiting threads.
    fn crowded(&self) -> Option<usize> {
        if self.threads.len() == self.cpus.len() {
            return None;
        }
        self.cpus.iter().position(|cpu| cpu.current != NO_THREAD && !cpu.waiting.is_empty())
    }

    /// Schedules the CPU's next event: the end of its request, or the first tick after its runtime
    /// or turn is used up.
    fn plan(&mut self, cpu: usize) {
        let tick_ns = self.lean.tick_ns;
        let of = &mut self.cpus[cpu];
        let end_ns = of.ran_ns + self.threads[of.current].left_ns;
        let mut matters_ns = match of.local.enabled() {
            true => of.charged_ns + of.local.remaining_ns().max(0) as Ns,
            false => NEVER,
        };
        if !of.waiting.is_empty() {
            matters_ns = matters_ns.min(of.picked_ns + self.turn_ns);
        }
        of.due_ns = end_ns;
        if matters_ns < end_ns {
            let tick = matters_ns.div_ceil(tick_ns).max(self.now / tick_ns + 1) * tick_ns;
            of.due_ns = end_ns.min(tick);
        }
    }
}

//! A task: interprets its role's operations in real time. Between the operations of the original
//! program it executes only a few instructions: no allocation, no system call, no access to
//! contended cache lines.

use std::fs;
use std::io;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use reveille_measure::{Ns, Random};
use reveille_workload::{Arrival, MAX_DEPTH, Op, Port, TaskSpec};
use rustix::thread::{gettid, set_current_timer_slack};

use super::arena::{Inbox, Own, stamp};
use super::fault::{Doing, Fault};
use super::{Run, histogram, sync, work};
use crate::sys::futex::Scope;
use crate::sys::process::{self, Alone, Fork, NoUnwinding};
use crate::sys::{clock, cpu};

/// Stack size of a thread; a task needs little.
const STACK_BYTES: usize = 128 << 10;
/// The minimum timer slack.
const NO_SLACK: Option<NonZeroU64> = NonZeroU64::new(1);
/// Exit code of a process whose task could not continue.
const FAULTY: i32 = 3;

/// A task and its state.
pub(super) struct Worker {
    run: &'static Run,
    number: u32,
    spec: TaskSpec,
    ops: &'static [Op],
    own: &'static Own,
    inbox: &'static Inbox,
    /// Futex scope of its instance.
    scope: Scope,
    random: Random,
    /// End of its last period.
    period_at: Ns,
    arrived: u64,
    /// Rounds done in each loop.
    rounds: [u32; MAX_DEPTH],
    /// Index of the next target among those it sends requests to.
    request_turn: u32,
    served: u64,
    /// The random part of its waits, once drawn.
    wait_jitter: Option<Ns>,
    cpu_lock: usize,
    buffer: Vec<u8>,
}

/// Runs the tasks of a freshly forked process: one in its main thread, several in a thread each.
pub(super) fn live(run: &'static Run, tasks: &[u32], alone: Alone) -> ! {
    let _guard = NoUnwinding;
    if process::die_with(run.coordinator).is_err() {
        process::exit_now(FAULTY);
    }
    let group = run.common_group(tasks);
    if let Some(group) = group {
        enter(run, tasks[0], &run.groups[group].procs);
    }
    if let [task] = *tasks {
        let mut worker = Worker::new(run, task);
        worker.begin();
        worker.go_on(Some(&alone));
        process::exit_now(0);
    }
    for &task in tasks {
        let worker = move || {
            let _guard = NoUnwinding;
            if let (None, Some(own)) = (group, run.group_of(task)) {
                enter(run, task, &run.groups[own].threads);
            }
            let mut worker = Worker::new(run, task);
            worker.begin();
            worker.go_on(None);
        };
        if let Err(error) = start_thread(worker) {
            fail(run, Fault::system(Doing::StartThread, task, &error));
        }
    }
    loop {
        std::thread::park();
    }
}

fn start_thread(body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().stack_size(STACK_BYTES).spawn(body).map(drop)
}

/// Puts the calling thread or process into a task group through its files.
fn enter(run: &Run, task: u32, files: &[PathBuf]) {
    let id = gettid().as_raw_nonzero().to_string();
    if let Err(error) = files.iter().try_for_each(|file| fs::write(file, &id)) {
        fail(run, Fault::system(Doing::Enter, task, &error));
    }
}

fn fail(run: &Run, fault: Fault) -> ! {
    run.arena.set_fault(fault);
    process::exit_now(FAULTY)
}

impl Worker {
    fn new(run: &'static Run, number: u32) -> Worker {
        let index = number as usize;
        let spec = run.program.tasks[index];
        let ops: &'static [Op] = &run.program.roles[usize::from(spec.role)].ops;
        let buffer = ops.iter().filter_map(|op| match *op {
            Op::Send { channel, .. } | Op::Recv { channel, .. } => {
                Some(run.channels[spec.channel(channel)].buffer())
            }
            _ => None,
        });
        let seed = run.seed ^ (u64::from(number) << 32);
        Worker {
            run,
            number,
            spec,
            ops,
            own: &run.arena.own[index],
            inbox: &run.arena.inbox[index],
            scope: run.scope_of(&spec),
            random: Random::new(seed),
            period_at: 0,
            arrived: 0,
            rounds: [0; MAX_DEPTH],
            request_turn: 0,
            served: 0,
            wait_jitter: None,
            cpu_lock: 0,
            buffer: vec![1; buffer.max().unwrap_or(0)],
        }
    }

    /// Waits until all tasks are ready.
    fn begin(&mut self) {
        let arena = &self.run.arena;
        histogram::touch(&arena.latencies[arena.histograms(self.number as usize, self.spec.role)]);
        self.introduce();
        let waits_for_device = self.ops.iter().any(|op| matches!(op, Op::Device(_)));
        if self.run.program.arrivals.some() || waits_for_device {
            // Arrivals and devices are outside, so timer slack must not delay them.
            let _ = set_current_timer_slack(NO_SLACK);
        }
        arena.wait_for_start();
        self.start_over();
    }

    fn introduce(&self) {
        self.own.process.store(std::process::id(), Ordering::Relaxed);
        self.own.thread.store(gettid().as_raw_nonzero().get() as u32, Ordering::Release);
    }

    fn start_over(&mut self) {
        let now = clock::now();
        self.period_at = now;
        self.rounds = [0; MAX_DEPTH];
        self.request_turn = 0;
        self.inbox.noted.store(now, Ordering::Relaxed);
    }

    /// Interprets the operations in a loop. Returns when another thread has replaced it; a replaced
    /// process exits. `alone` is set if the task has a process to itself.
    fn go_on(mut self, alone: Option<&Alone>) {
        let run = self.run;
        let arena = &run.arena;
        let mut at = self.spec.first_op as usize;
        loop {
            match self.ops[at] {
                Op::Run(ns) => work::compute(run.speed.rounds(ns)),
                Op::RunRandom(mean) => {
                    work::compute(run.speed.rounds(self.random.exponential(mean as f64) as Ns))
                }
                Op::Spin(ns) => clock::spin_until(clock::now() + ns),
                Op::Send { channel, bytes } => self.send(channel, bytes),
                Op::Recv { channel, discard, .. } => self.receive(channel, discard),
                Op::Syscall(ns) => work::syscall(run.speed.rounds(ns)),
                Op::Sleep { time, jitter } => clock::sleep(time + self.random.below(jitter)),
                Op::SleepRandom(mean) => clock::sleep(self.random.exponential(mean as f64) as Ns),
                Op::Period { period, restart } => self.period(period, restart),
                Op::Arrive => self.arrive(),
                Op::Device(ns) => clock::sleep(ns),
                Op::RunArrived => work::compute_for(self.arrival().1.work_ns),
                Op::SpinArrived => clock::spin_until(clock::now() + self.arrival().1.work_ns),
                Op::Answer => self.answer(),
                Op::Wait { timeout, jitter } => {
                    let limit = (timeout > 0).then(|| timeout + self.wait_jitter(jitter));
                    self.inbox.bell.wait(self.scope, limit);
                }
                Op::Post { task } => {
                    let posted = self.spec.task_base + u32::from(task);
                    arena.inbox[posted as usize].bell.post(self.scope);
                }
                Op::Join { list } => sync::join(arena, self.list(list), self.number),
                Op::WakeList { list } => {
                    self.inbox.bell.reset();
                    sync::wake_list(arena, self.list(list), clock::now, self.scope);
                }
                Op::Request { first, among, count } => self.request(first, among, count),
                Op::Serve => {
                    let ring = arena.ring(self.number as usize);
                    let sent = sync::serve(self.inbox, ring, self.served, self.scope);
                    self.served += 1;
                    self.inbox.noted.store(sent, Ordering::Relaxed);
                }
                Op::Note => self.inbox.noted.store(clock::now(), Ordering::Relaxed),
                Op::Record { record, less } => {
                    if arena.measures() {
                        self.record(record, less);
                    }
                }
                Op::LockCpu => self.lock_cpu(),
                Op::UnlockCpu => arena.cpu_locks[self.cpu_lock].store(0, Ordering::Release),
                Op::Lock { lock } => arena.locks[self.lock(lock)].take(self.scope),
                Op::Unlock { lock } => arena.locks[self.lock(lock)].give(self.scope),
                Op::AwaitRelease { .. } => run.gate.wait(&arena.gate[0]),
                Op::Release { .. } => run.gate.release(&arena.gate[0]),
                Op::Count(n) => {
                    let count = self.own.count.load(Ordering::Relaxed) + u64::from(n);
                    self.own.count.store(count, Ordering::Relaxed);
                }
                Op::Again { back, times, depth } => {
                    let rounds = &mut self.rounds[usize::from(depth)];
                    *rounds += 1;
                    if *rounds < times {
                        at -= usize::from(back);
                        continue;
                    }
                    *rounds = 0;
                }
                Op::Respawn => {
                    self.respawn_in_time();
                    match alone {
                        Some(alone) => {
                            self.succeed_by_process(alone);
                            at = 0;
                            continue;
                        }
                        None => return self.succeed_by_thread(),
                    }
                }
            }
            at += 1;
            if at == self.ops.len() {
                at = 0;
            }
        }
    }

    #[inline]
    fn send(&mut self, port: Port, bytes: u32) {
        let number = self.spec.channel(port);
        let channel = &self.run.channels[number];
        let turns = channel.senders_take_turns.then(|| &self.run.arena.senders[number]);
        if let Some(turns) = turns {
            turns.take(self.run.scope);
        }
        if let Err(error) = channel.send(bytes, &mut self.buffer) {
            fail(self.run, Fault::system(Doing::Send, self.number, &error.into()));
        }
        if let Some(turns) = turns {
            turns.give(self.run.scope);
        }
    }

    #[inline]
    fn receive(&mut self, port: Port, discard: bool) {
        let number = self.spec.channel(port);
        let channel = &self.run.channels[number];
        let turns = channel.receivers_take_turns.then(|| &self.run.arena.receivers[number]);
        if let Some(turns) = turns {
            turns.take(self.run.scope);
        }
        if let Err(error) = channel.receive(&mut self.buffer, discard) {
            fail(self.run, Fault::system(Doing::Receive, self.number, &error.into()));
        }
        if let Some(turns) = turns {
            turns.give(self.run.scope);
        }
    }

    fn period(&mut self, period: Ns, restart: bool) {
        self.period_at += period;
        let now = clock::now();
        self.inbox.noted.store(self.period_at.max(now), Ordering::Relaxed);
        if self.period_at > now {
            clock::sleep_until(self.period_at);
        } else if restart {
            self.period_at = now;
        }
    }

    /// Waits for its next request, unless that has arrived.
    fn arrive(&mut self) {
        self.arrived += 1;
        let (round, arrival) = self.arrival();
        let arrivals = &self.run.program.arrivals;
        let begin = self.run.arena.started_at() + arrivals.begin_ns;
        let due = begin + round * arrivals.span_ns + arrival.at_ns;
        self.inbox.noted.store(due, Ordering::Relaxed);
        if due > clock::now() {
            clock::sleep_until(due);
        }
    }

    /// The latest arrival, and its repetition.
    fn arrival(&self) -> (u64, Arrival) {
        let own = &self.run.program.arrivals.of_task[self.number as usize];
        let number = self.arrived - 1;
        (number / own.len() as u64, own[(number % own.len() as u64) as usize])
    }

    /// Records that request's latency.
    fn answer(&self) {
        let arena = &self.run.arena;
        if arena.measures() {
            let own = self.run.program.arrivals.of_task[self.number as usize].len() as u64;
            let piece =
                arena.answers_of[self.number as usize] + ((self.arrived - 1) % own) as usize;
            let took = clock::now().saturating_sub(self.inbox.noted.load(Ordering::Relaxed));
            arena.answers[piece].store(stamp(took), Ordering::Relaxed);
        }
    }

    fn request(&mut self, first: u16, among: u32, count: u32) {
        for _ in 0..count {
            // Another request operation may have a larger set of targets.
            let to = self.spec.task_base + u32::from(first) + self.request_turn % among;
            self.request_turn = (self.request_turn + 1) % among;
            let (inbox, ring) =
                (&self.run.arena.inbox[to as usize], self.run.arena.ring(to as usize));
            if !sync::request(inbox, ring, clock::now(), self.scope) {
                fail(self.run, Fault { doing: Doing::Request, task: to, errno: 0 });
            }
        }
    }

    #[inline]
    fn record(&self, record: u8, less: Ns) {
        let since = clock::now().saturating_sub(self.inbox.noted.load(Ordering::Relaxed));
        let arena = &self.run.arena;
        let cells = arena.histograms(self.number as usize, self.spec.role);
        let own = &arena.recorded_by[usize::from(self.spec.role)];
        let nth = own.iter().position(|&r| r == record).unwrap_or(0);
        let first = cells.start + nth * histogram::CELLS;
        histogram::record(
            &arena.latencies[first..first + histogram::CELLS],
            since.saturating_sub(less),
        );
    }

    /// As schbench does: spins until it has the lock of its current CPU, and retries if it has been
    /// migrated meanwhile.
    fn lock_cpu(&mut self) {
        let locks = &self.run.arena.cpu_locks;
        loop {
            let here = cpu::current() as usize % locks.len();
            let lock: &AtomicU32 = &locks[here];
            while lock.load(Ordering::Relaxed) != 0 || lock.swap(1, Ordering::Acquire) != 0 {
                std::hint::spin_loop();
            }
            if here == cpu::current() as usize % locks.len() {
                self.cpu_lock = here;
                return;
            }
            lock.store(0, Ordering::Release);
        }
    }

    /// A new task has no lag, so a chain of short tasks could starve the coordinator that should
    /// kill it: stop respawning at the deadline.
    fn respawn_in_time(&self) {
        while !self.run.arena.respawns() {
            clock::sleep(1_000_000_000);
        }
    }

    /// Replaces this process by a fork.
    fn succeed_by_process(&mut self, alone: &Alone) {
        match alone.fork_sibling() {
            Ok(Fork::Parent(_)) => process::exit_now(0),
            Ok(Fork::Child) => {
                if process::die_with(self.run.coordinator).is_err() {
                    process::exit_now(FAULTY);
                }
                self.introduce();
                self.inbox.bell.reset();
                self.start_over();
            }
            Err(error) => fail(self.run, Fault::system(Doing::Respawn, self.number, &error)),
        }
    }

    /// Replaces this thread by a new one.
    fn succeed_by_thread(mut self) {
        let (run, number) = (self.run, self.number);
        let started = start_thread(move || {
            let _guard = NoUnwinding;
            self.introduce();
            self.inbox.bell.reset();
            self.start_over();
            self.go_on(None);
        });
        if let Err(error) = started {
            fail(run, Fault::system(Doing::Respawn, number, &error));
        }
    }

    fn wait_jitter(&mut self, jitter: Ns) -> Ns {
        if let Some(drawn) = self.wait_jitter {
            return drawn;
        }
        let drawn = self.random.below(jitter);
        self.wait_jitter = Some(drawn);
        drawn
    }

    fn list(&self, list: u16) -> usize {
        (self.spec.list_base + u32::from(list)) as usize
    }

    fn lock(&self, lock: u16) -> usize {
        (self.spec.lock_base + u32::from(lock)) as usize
    }
}

//! What tasks share, however they are spread over processes: memory that is mapped before
//! the first fork. What one task writes has cache lines of its own.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use reveille_workload::{Op, Program};

use super::fault::{Fault, FaultCell};
use super::gate::GateWords;
use super::histogram::CELLS;
use super::sync::Turns;
use crate::Ns;
use crate::sys::clock;
use crate::sys::futex::{self, Doorbell, Scope};
use crate::sys::shared::{OwnLine, SharedSlice, shareable};

/// How many requests a task may be behind. schbench's have no limit; at 30 ms each this is
/// two minutes of work.
pub(super) const MAX_REQUESTS: usize = 4096;
/// Locks of CPUs, by the CPU's number: what the kernel's masks hold that are asked for here.
const MAX_CPUS: usize = 1024;

/// How far the run is. Tasks look at it, the coordinator moves it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Phase {
    /// Tasks are being made, and wait.
    Start = 0,
    /// They run; nothing is recorded.
    WarmUp = 1,
    /// Latencies are recorded.
    Measure = 2,
    /// The result is being read.
    End = 3,
}

shareable! {
    /// What a task alone writes.
    pub(super) struct Own {
        /// Operations that it has counted.
        pub(super) count: AtomicU64,
        /// Its process.
        pub(super) process: AtomicU32,
        /// Its thread; 0 before it is there.
        pub(super) thread: AtomicU32,
    }
}

shareable! {
    /// Where other tasks reach a task.
    pub(super) struct Inbox {
        /// What it waits on, and others post.
        pub(super) bell: Doorbell,
        /// What it waits on for requests.
        pub(super) request_bell: Doorbell,
        /// The next task on the list that it has joined: 1 more than its number, or 0.
        pub(super) next: AtomicU32,
        /// The moment that its latencies count from.
        pub(super) noted: AtomicU64,
        /// Requests sent to it so far.
        pub(super) requests: AtomicU64,
    }
}

/// All of it.
#[derive(Debug)]
pub(super) struct Arena {
    phase: SharedSlice<OwnLine<AtomicU32>>,
    ready: SharedSlice<OwnLine<AtomicU32>>,
    /// When the run begins.
    started_at: SharedSlice<OwnLine<AtomicU64>>,
    /// When tasks are replaced no more.
    last_respawn_at: SharedSlice<OwnLine<AtomicU64>>,
    fault: SharedSlice<OwnLine<FaultCell>>,
    /// By task.
    pub(super) own: SharedSlice<OwnLine<Own>>,
    /// By task.
    pub(super) inbox: SharedSlice<OwnLine<Inbox>>,
    /// Heads of lists: 1 more than the number of the task that joined last, or 0.
    pub(super) lists: SharedSlice<OwnLine<AtomicU32>>,
    /// What tasks wait for that are released together.
    pub(super) gate: SharedSlice<OwnLine<GateWords>>,
    /// Mutexes.
    pub(super) locks: SharedSlice<OwnLine<Turns>>,
    /// By CPU: 1 if a task has its lock.
    pub(super) cpu_locks: SharedSlice<OwnLine<AtomicU32>>,
    /// By channel: whose turn it is to send.
    pub(super) senders: SharedSlice<OwnLine<Turns>>,
    /// By channel: whose turn it is to receive.
    pub(super) receivers: SharedSlice<OwnLine<Turns>>,
    /// When requests were sent, in rings of [`MAX_REQUESTS`]; 0 is a free place.
    pub(super) stamps: SharedSlice<AtomicU64>,
    /// By task: where its ring begins in `stamps`.
    pub(super) ring_of: Vec<usize>,
    /// Histograms of [`CELLS`] counts, of each task and of each latency that it records.
    pub(super) latencies: SharedSlice<AtomicU32>,
    /// By task: its first histogram.
    pub(super) latencies_of: Vec<usize>,
    /// By role: the latencies that it records, in the order of its histograms.
    pub(super) recorded_by: Vec<Vec<u8>>,
    /// How long each piece of work that arrived took, task by task; 0 if it was not done.
    pub(super) answers: SharedSlice<AtomicU64>,
    /// By task: where its pieces begin.
    pub(super) answers_of: Vec<usize>,
}

impl Arena {
    /// Maps what a program needs.
    pub(super) fn new(program: &Program) -> io::Result<Arena> {
        let tasks = program.tasks.len();
        let serves: Vec<bool> =
            program.roles.iter().map(|role| role.ops.contains(&Op::Serve)).collect();
        let recorded_by: Vec<Vec<u8>> =
            program.roles.iter().map(|role| records(&role.ops)).collect();
        let rings = program.tasks.iter().map(|t| usize::from(serves[usize::from(t.role)]));
        let (ring_of, n_rings) = starts(rings);
        let histograms = program.tasks.iter().map(|t| recorded_by[usize::from(t.role)].len());
        let (latencies_of, n_histograms) = starts(histograms);
        let locks_cpu = program.roles.iter().any(|role| role.ops.contains(&Op::LockCpu));
        Ok(Arena {
            phase: SharedSlice::new(1)?,
            ready: SharedSlice::new(1)?,
            started_at: SharedSlice::new(1)?,
            last_respawn_at: SharedSlice::new(1)?,
            fault: SharedSlice::new(1)?,
            own: SharedSlice::new(tasks)?,
            inbox: SharedSlice::new(tasks)?,
            lists: SharedSlice::new(program.n_lists as usize)?,
            gate: SharedSlice::new(1)?,
            locks: SharedSlice::new(program.n_locks as usize)?,
            cpu_locks: SharedSlice::new(if locks_cpu { MAX_CPUS } else { 0 })?,
            senders: SharedSlice::new(program.channels.len())?,
            receivers: SharedSlice::new(program.channels.len())?,
            stamps: SharedSlice::new(n_rings * MAX_REQUESTS)?,
            ring_of: ring_of.iter().map(|ring| ring * MAX_REQUESTS).collect(),
            latencies: SharedSlice::new(n_histograms * CELLS)?,
            latencies_of,
            recorded_by,
            answers: SharedSlice::new(program.arrivals.count())?,
            answers_of: program.arrivals.first_of_task(),
        })
    }

    /// A task is ready: blocks until all are.
    pub(super) fn wait_for_start(&self) {
        self.ready[0].fetch_add(1, Ordering::AcqRel);
        while self.phase[0].load(Ordering::Acquire) == Phase::Start as u32 {
            futex::wait(&self.phase[0], Phase::Start as u32, Scope::Shared, None);
        }
    }

    /// How many tasks are ready.
    pub(super) fn ready(&self) -> usize {
        self.ready[0].load(Ordering::Acquire) as usize
    }

    /// The run enters its next phase; whoever waits for that is woken.
    pub(super) fn enter(&self, phase: Phase) {
        self.phase[0].store(phase as u32, Ordering::Release);
        if phase == Phase::WarmUp {
            futex::wake(&self.phase[0], i32::MAX as u32, Scope::Shared);
        }
    }

    /// The run is about to begin, at `at`.
    pub(super) fn start_at(&self, at: Ns) {
        self.started_at[0].store(at, Ordering::Release);
    }

    /// When it begins.
    pub(super) fn started_at(&self) -> Ns {
        self.started_at[0].load(Ordering::Acquire)
    }

    /// Tasks are replaced until `at`, and not for ever if the coordinator should not come
    /// to end them.
    pub(super) fn respawn_until(&self, at: Ns) {
        self.last_respawn_at[0].store(at, Ordering::Relaxed);
    }

    /// May a task be replaced now?
    pub(super) fn respawns(&self) -> bool {
        clock::now() < self.last_respawn_at[0].load(Ordering::Relaxed)
    }

    /// Are latencies recorded now?
    #[inline]
    pub(super) fn measures(&self) -> bool {
        self.phase[0].load(Ordering::Relaxed) == Phase::Measure as u32
    }

    /// Operations counted so far by all tasks.
    pub(super) fn counted(&self) -> u64 {
        self.own.iter().map(|own| own.count.load(Ordering::Relaxed)).sum()
    }

    /// Why a task could not go on, if one could not.
    pub(super) fn fault(&self) -> Option<Fault> {
        self.fault[0].get()
    }

    /// Says why a task cannot go on; the first to say so is heard.
    pub(super) fn set_fault(&self, fault: Fault) {
        self.fault[0].set(fault);
    }

    /// The ring of a task that serves requests.
    #[inline]
    pub(super) fn ring(&self, task: usize) -> &[AtomicU64] {
        &self.stamps[self.ring_of[task]..][..MAX_REQUESTS]
    }

    /// The histograms of a task in `latencies`.
    pub(super) fn histograms(&self, task: usize, role: u16) -> Range<usize> {
        let first = self.latencies_of[task];
        first * CELLS..(first + self.recorded_by[usize::from(role)].len()) * CELLS
    }
}

/// The numbers of the latencies that are recorded, each once.
fn records(ops: &[Op]) -> Vec<u8> {
    let recorded = |op: &Op| match *op {
        Op::Record { record, .. } => Some(record),
        _ => None,
    };
    let mut records: Vec<u8> = ops.iter().filter_map(recorded).collect();
    records.sort_unstable();
    records.dedup();
    records
}

/// Where each of some parts begins if they lie one after the other, and where all end.
fn starts(sizes: impl Iterator<Item = usize>) -> (Vec<usize>, usize) {
    let mut end = 0;
    let starts = sizes
        .map(|size| {
            let start = end;
            end += size;
            start
        })
        .collect();
    (starts, end)
}

/// When a request or a latency began; 0 stands for nothing.
pub(super) fn stamp(now: Ns) -> Ns {
    now.max(1)
}

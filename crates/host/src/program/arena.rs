//! State that tasks share across processes: memory mapped before the first fork. Each task's own
//! words have their own cache lines.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use reveille_measure::Ns;
use reveille_workload::{Op, Program};

use super::fault::{Fault, FaultCell, MAX_REQUESTS};
use super::gate::GateWords;
use super::histogram::CELLS;
use super::turns::Turns;
use crate::sys::clock;
use crate::sys::futex::{self, Doorbell, Scope};
use crate::sys::shared::{OwnLine, SharedSlice, shareable};

/// Size of the array of per-CPU locks, indexed by CPU number.
const MAX_CPUS: usize = 1024;

/// Phase of the run. The coordinator advances it, tasks read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Phase {
    /// Tasks are being created and wait.
    Start = 0,
    /// Tasks run; nothing is recorded.
    WarmUp = 1,
    /// Latencies are recorded.
    Measure = 2,
    /// Results are being read.
    End = 3,
}

shareable! {
    /// Words that only the task itself writes.
    pub(super) struct Own {
        /// Operations counted so far.
        pub(super) count: AtomicU64,
        pub(super) process: AtomicU32,
        /// Its thread id; 0 before it starts.
        pub(super) thread: AtomicU32,
    }
}

shareable! {
    /// Words through which other tasks reach a task.
    pub(super) struct Inbox {
        /// It waits on this for posts.
        pub(super) bell: Doorbell,
        /// It waits on this for requests.
        pub(super) request_bell: Doorbell,
        /// The next task on the list it has joined: number plus 1, or 0 at the end.
        pub(super) next: AtomicU32,
        /// Start time of its latencies.
        pub(super) noted: AtomicU64,
        /// Requests sent to it so far.
        pub(super) requests: AtomicU64,
    }
}

/// The whole shared mapping.
#[derive(Debug)]
pub(super) struct Arena {
    phase: SharedSlice<OwnLine<AtomicU32>>,
    ready: SharedSlice<OwnLine<AtomicU32>>,
    /// Start time of the run.
    started_at: SharedSlice<OwnLine<AtomicU64>>,
    /// Until when tasks are respawned.
    last_respawn_at: SharedSlice<OwnLine<AtomicU64>>,
    fault: SharedSlice<OwnLine<FaultCell>>,
    /// By task.
    pub(super) own: SharedSlice<OwnLine<Own>>,
    /// By task.
    pub(super) inbox: SharedSlice<OwnLine<Inbox>>,
    /// Heads of lists: number plus 1 of the task that joined last, or 0.
    pub(super) lists: SharedSlice<OwnLine<AtomicU32>>,
    /// Gates at which tasks wait to be released together.
    pub(super) gate: SharedSlice<OwnLine<GateWords>>,
    pub(super) locks: SharedSlice<OwnLine<Turns>>,
    /// By CPU: 1 if its lock is held.
    pub(super) cpu_locks: SharedSlice<OwnLine<AtomicU32>>,
    /// By channel: queue of senders.
    pub(super) senders: SharedSlice<OwnLine<Turns>>,
    /// By channel: queue of receivers.
    pub(super) receivers: SharedSlice<OwnLine<Turns>>,
    /// Times of sent requests, in rings of [`MAX_REQUESTS`]; 0 is a free slot.
    pub(super) stamps: SharedSlice<AtomicU64>,
    /// By task: start of its ring in `stamps`.
    pub(super) ring_of: Vec<usize>,
    /// Histograms of [`CELLS`] counts, one per task and latency it records.
    pub(super) latencies: SharedSlice<AtomicU32>,
    /// By task: index of its first histogram.
    pub(super) latencies_of: Vec<usize>,
    /// By role: the latencies it records, in the order of its histograms.
    pub(super) recorded_by: Vec<Vec<u8>>,
    /// Latency of each request, task by task; 0 if it was not completed.
    pub(super) answers: SharedSlice<AtomicU64>,
    /// By task: index of its first request in `answers`.
    pub(super) answers_of: Vec<usize>,
}

impl Arena {
    /// Maps the state that a program needs.
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

    /// Reports a task as ready, and blocks until all are.
    pub(super) fn wait_for_start(&self) {
        self.ready[0].fetch_add(1, Ordering::AcqRel);
        while self.phase[0].load(Ordering::Acquire) == Phase::Start as u32 {
            futex::wait(&self.phase[0], Phase::Start as u32, Scope::Shared, None);
        }
    }

    pub(super) fn ready(&self) -> usize {
        self.ready[0].load(Ordering::Acquire) as usize
    }

    /// Enters the next phase and wakes the tasks that wait for it.
    pub(super) fn enter(&self, phase: Phase) {
        self.phase[0].store(phase as u32, Ordering::Release);
        if phase == Phase::WarmUp {
            futex::wake(&self.phase[0], i32::MAX as u32, Scope::Shared);
        }
    }

    pub(super) fn start_at(&self, at: Ns) {
        self.started_at[0].store(at, Ordering::Release);
    }

    pub(super) fn started_at(&self) -> Ns {
        self.started_at[0].load(Ordering::Acquire)
    }

    /// Sets until when tasks are respawned: the chain must end even if the coordinator is never
    /// scheduled to kill them.
    pub(super) fn respawn_until(&self, at: Ns) {
        self.last_respawn_at[0].store(at, Ordering::Relaxed);
    }

    pub(super) fn respawns(&self) -> bool {
        clock::now() < self.last_respawn_at[0].load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn measures(&self) -> bool {
        self.phase[0].load(Ordering::Relaxed) == Phase::Measure as u32
    }

    pub(super) fn counted(&self) -> u64 {
        self.own.iter().map(|own| own.count.load(Ordering::Relaxed)).sum()
    }

    pub(super) fn fault(&self) -> Option<Fault> {
        self.fault[0].get()
    }

    pub(super) fn set_fault(&self, fault: Fault) {
        self.fault[0].set(fault);
    }

    #[inline]
    pub(super) fn ring(&self, task: usize) -> &[AtomicU64] {
        &self.stamps[self.ring_of[task]..][..MAX_REQUESTS]
    }

    pub(super) fn histograms(&self, task: usize, role: u16) -> Range<usize> {
        let first = self.latencies_of[task];
        first * CELLS..(first + self.recorded_by[usize::from(role)].len()) * CELLS
    }
}

/// Numbers of the recorded latencies, without duplicates.
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

/// Start of each part in a concatenation, and the total length.
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

/// A nonzero timestamp; 0 means none.
pub(super) fn stamp(now: Ns) -> Ns {
    now.max(1)
}

//! The shared wake queues' lists, locks and lines. Which wakee and which queue is decided
//! in policy/swqueue.h.

use crate::ids::{CpuVec, Known};
use std::collections::VecDeque;

use reveille_measure::Ns;
use reveille_policy::{
    CpuId, TaskId, Tunables, bits, swqueue_shard, swqueue_shard_tried, swqueue_shards,
};

use crate::hw::contention::Lock;

/// A wakee on a queue.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) task: TaskId,
    /// The CPU that appended it: its node's line is there.
    pub(crate) by: CpuId,
    /// When other CPUs begin to see it: its append waits for the lock.
    pub(crate) seen_from: Ns,
}

/// The cache line of a queue's head and lock. Acquiring the lock transfers the line from its last
/// owner, or from CPUs that have read it since. A read delays no other CPU.
#[derive(Clone)]
pub(crate) struct Head {
    pub(crate) owner: CpuId,
    reader: CpuId,
    shared: bool,
    version: u32,
    /// Version that each CPU last saw.
    seen: CpuVec<u32>,
}

impl Head {
    pub(crate) fn look(&mut self, cpu: CpuId, transfer: impl Fn(CpuId, CpuId) -> Ns) -> Ns {
        if self.seen[cpu] == self.version {
            return 0;
        }
        self.seen[cpu] = self.version;
        self.shared = true;
        self.reader = cpu;
        transfer(self.owner, cpu)
    }

    pub(crate) fn take(&mut self, cpu: CpuId, transfer: impl Fn(CpuId, CpuId) -> Ns) -> Ns {
        let own = self.owner == cpu;
        if own && !self.shared {
            return 0;
        }
        let from = if own { self.reader } else { self.owner };
        self.version = self.version.wrapping_add(1);
        self.seen[cpu] = self.version;
        self.owner = cpu;
        self.shared = false;
        transfer(from, cpu)
    }
}

/// One queue. A task joins and leaves `list` when its CPU asks for the lock, because the lock is
/// granted in that order. A CPU that reads without the lock sees the list as it is.
#[derive(Clone)]
pub(crate) struct Queue {
    pub(crate) list: VecDeque<Entry>,
    /// When other CPUs still see a task whose removal waits for the lock: from, until.
    pub(crate) leaving: VecDeque<(Ns, Ns)>,
    pub(crate) lock: Lock,
    pub(crate) head: Head,
}

impl Queue {
    /// list_empty() at `when`, without the lock.
    pub(crate) fn looks_empty(&mut self, now: Ns, when: Ns) -> bool {
        while self.leaving.front().is_some_and(|&(_, gone)| gone <= now) {
            self.leaving.pop_front();
        }
        let listed = self.list.front().is_some_and(|e| e.seen_from <= when);
        !listed && !self.leaving.iter().any(|&(from, gone)| from <= when && when < gone)
    }
}

#[derive(Clone)]
pub(crate) struct SharedQueues {
    pub(crate) queues: Vec<Queue>,
    /// Per LLC, the first of its queues and their number.
    pub(crate) of_llc: Vec<(usize, u32)>,
    /// Removals and appends by balancing, to be charged to the pass in progress.
    pub(crate) balancing: Ns,
    /// Every enqueue appends, not wakeups alone (SWQUEUE_ENQUEUE).
    pub(crate) at_every_enqueue: bool,
}

impl SharedQueues {
    /// The queues of a machine, if the policy has them.
    pub(crate) fn new(tunables: &Tunables, world: &Known) -> Option<Box<SharedQueues>> {
        if !tunables.has(bits::SWQUEUE) {
            return None;
        }
        let mut first = 0;
        let mut of_llc = Vec::new();
        for llc in 0..world.n_llcs() {
            let shards = swqueue_shards(tunables, world.llc_weight(llc));
            of_llc.push((first, shards));
            first += shards as usize;
        }
        let seen = CpuVec::filled(0, world.n_cpus());
        let queue = || Queue {
            list: VecDeque::new(),
            leaving: VecDeque::new(),
            lock: Lock::default(),
            head: Head {
                owner: CpuId(0),
                reader: CpuId(0),
                shared: false,
                version: 0,
                seen: seen.clone(),
            },
        };
        Some(Box::new(SharedQueues {
            queues: (0..first).map(|_| queue()).collect(),
            of_llc,
            balancing: 0,
            at_every_enqueue: tunables.has(bits::SWQUEUE_ENQUEUE),
        }))
    }

    /// The `k`-th queue of its cache that a CPU of this LLC looks at, its own first.
    pub(crate) fn tried(&self, llc: usize, cpu: CpuId, k: u32) -> Option<usize> {
        let (first, shards) = self.of_llc[llc];
        let own = swqueue_shard(cpu, shards);
        (k < shards).then(|| first + swqueue_shard_tried(own, k, shards) as usize)
    }
}

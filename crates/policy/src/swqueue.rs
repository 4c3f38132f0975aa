//! The shared wake queue's rules: the Rust face of `policy/swqueue.h`. Every index
//! that the C code follows is checked here.
#![allow(unsafe_code)]

use crate::state::RawWorld;
use crate::{CpuId, TaskId, Tunables, World};

unsafe extern "C" {
    fn reveille_swqueue_shards(t: *const Tunables, llc_weight: u32) -> u32;
    fn reveille_swqueue_shard(cpu: CpuId, shards: u32) -> u32;
    fn reveille_swqueue_shard_tried(own: u32, k: u32, shards: u32) -> u32;
    fn reveille_swqueue_appends(
        w: *const RawWorld,
        t: *const Tunables,
        cpu: CpuId,
        nr_allowed: u32,
        migrated: bool,
    ) -> bool;
    fn reveille_swqueue_pops(
        w: *const RawWorld,
        t: *const Tunables,
        head: TaskId,
        cpu: CpuId,
    ) -> bool;
    fn reveille_swqueue_takes(w: *const RawWorld, p: TaskId, cpu: CpuId, queued: bool) -> bool;
}

/// How many shared wake queues a last-level cache of `llc_weight` CPUs has: one, or
/// with SWQUEUE_SHARD one for every six CPUs (shared_runq v3, 2023-08-09).
pub fn swqueue_shards(tunables: &Tunables, llc_weight: u32) -> u32 {
    // SAFETY: arithmetic on its arguments only, behind a shared reference.
    unsafe { reveille_swqueue_shards(tunables, llc_weight) }
}

/// Which of its cache's `shards` queues a CPU uses, from 0 (shared_runq v3).
pub fn swqueue_shard(cpu: CpuId, shards: u32) -> u32 {
    // SAFETY: arithmetic on its arguments only.
    unsafe { reveille_swqueue_shard(cpu, shards) }
}

/// The `k`-th of `shards` queues that a CPU with the shard `own` looks at before it
/// goes idle: its own for 0, then round (shared_runq v3). `own` and `k` are below `shards`.
pub fn swqueue_shard_tried(own: u32, k: u32, shards: u32) -> u32 {
    // SAFETY: arithmetic on its arguments only.
    unsafe { reveille_swqueue_shard_tried(own, k, shards) }
}

impl<const CHECKED: bool> World<CHECKED> {
    /// Is `wakee`, which is about to be queued on `cpu`, also appended to the shared
    /// wake queue there? `migrated`: selection has moved it to another CPU. Ask before
    /// it counts in `nr_running`. RFC of 2023-06-13; shared_runq v4 for SWQUEUE_SKIP_IDLE.
    pub fn swqueue_appends(
        &mut self,
        tunables: &Tunables,
        wakee: TaskId,
        cpu: CpuId,
        migrated: bool,
    ) -> bool {
        assert!(self.has(cpu), "no CPU {cpu}");
        let nr_allowed = self.n_allowed(self.task(wakee).affinity);
        // SAFETY: the world points into live vectors, and the CPU was checked.
        unsafe { reveille_swqueue_appends(self.raw(), tunables, cpu, nr_allowed, migrated) }
    }

    /// Does `cpu`, in search of work, take this task off the head of a shared wake
    /// queue? From shared_runq v2 on (SWQUEUE_NEWIDLE) only if it may run there.
    pub fn swqueue_pops(&mut self, tunables: &Tunables, head: TaskId, cpu: CpuId) -> bool {
        self.check_pull(head, cpu);
        // SAFETY: as above; task, CPU and affinity set were checked.
        unsafe { reveille_swqueue_pops(self.raw(), tunables, head, cpu) }
    }

    /// May `cpu` move a task here that it took off a shared wake queue? `queued`: the
    /// task still waits on a runqueue. If not, the task is lost from the shared queue.
    pub fn swqueue_takes(&mut self, task: TaskId, cpu: CpuId, queued: bool) -> bool {
        self.check_pull(task, cpu);
        // SAFETY: as above; the task's own CPU was checked too.
        unsafe { reveille_swqueue_takes(self.raw(), task, cpu, queued) }
    }

    fn check_pull(&self, task: TaskId, cpu: CpuId) {
        let t = self.task(task);
        assert!(
            self.has(cpu) && self.has(t.prev_cpu) && self.knows(t.affinity),
            "task {task} or CPU {cpu} refers to a CPU or affinity set that does not exist"
        );
    }
}

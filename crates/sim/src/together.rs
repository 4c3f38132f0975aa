//! One run for several policies, as long as all of them decide alike at every wakeup.

use reveille_policy::{CpuId, Pick, Policy, Task, TaskId, Tunables, Wakeup, bits};

use crate::sim::Sim;

/// Features that only [`Sim::select_cpu`] and [`Sim::ttwu_queue`] heed.
pub(crate) const AT_WAKEUPS: u64 = bits::SIS_SHORT
    | bits::SIS_SHORT_V4
    | bits::SIS_CLUSTER
    | bits::WA_IDLE
    | bits::WA_WEIGHT
    | bits::WA_BIAS
    | bits::TTWU_QUEUE
    | bits::TTWU_QUEUE_ON_CPU
    | bits::TTWU_QUEUE_IDLE;

/// Features whose search leaves more behind than `has_idle_cores` of the target's cache.
const LEAVE_MORE: u64 = bits::SIS_PROP | bits::SIS_AGE | bits::SIS_FILTER | bits::SIS_NODE;

/// Can the decisions of one policy be checked while the other runs?
pub(crate) fn checkable(run: &Policy, other: &Policy) -> bool {
    (run.features ^ other.features) & !AT_WAKEUPS == 0
        && run.features & LEAVE_MORE == 0
        && run.file.is_none()
        && other.file.is_none()
}

/// A policy that has decided as the one that runs, so far.
pub(crate) struct Follower {
    pub(crate) index: usize,
    pub(crate) tunables: Tunables,
    /// What it would last have decided, and what it would have left in wakee and waker.
    pub(crate) decided: Option<(Pick, [Task; 2])>,
}

impl Sim<'_> {
    /// Asks the policy, and those that have agreed with it so far.
    #[inline(always)]
    pub(crate) fn select_cpu(
        &mut self,
        wakee: TaskId,
        waker: TaskId,
        this_cpu: CpuId,
        flags: u32,
    ) -> Pick {
        let now_j = self.jiffies();
        if self.followers.is_empty() && self.file.is_none() {
            let tunables = &self.rules.tunables;
            return self.world.select_cpu(tunables, wakee, waker, this_cpu, flags, now_j);
        }
        self.select_cpu_for_all(wakee, waker, this_cpu, flags, now_j)
    }

    #[cold]
    fn select_cpu_for_all(
        &mut self,
        wakee: TaskId,
        waker: TaskId,
        this_cpu: CpuId,
        flags: u32,
        now_j: u64,
    ) -> Pick {
        if self.file.is_some() {
            return self.select_cpu_by_file(Wakeup { wakee, waker, this_cpu, flags, now_j });
        }
        let world = &mut self.world;
        let ids = [wakee, if waker == TaskId::NONE { wakee } else { waker }];
        let before = ids.map(|id| *world.task(id));
        for follower in &mut self.followers {
            let tunables = &follower.tunables;
            let pick = world.select_cpu(tunables, wakee, waker, this_cpu, flags, now_j);
            follower.decided = Some((pick, ids.map(|id| *world.task(id))));
            for (id, task) in ids.into_iter().zip(before) {
                *world.task_mut(id) = task;
            }
            if pick.cleared_idle_cores() {
                world.set_has_idle_cores(world.llc(pick.target), true);
            }
        }
        let tunables = &self.rules.tunables;
        let pick = world.select_cpu(tunables, wakee, waker, this_cpu, flags, now_j);
        let decided = Some((pick, ids.map(|id| *world.task(id))));
        self.followers.retain(|follower| follower.decided == decided);
        pick
    }

    /// May this wakeup go to the wake list of `dst`?
    #[inline]
    pub(crate) fn ttwu_queue(&mut self, cpu: CpuId, dst: CpuId, on_cpu: bool) -> bool {
        let (world, tunables) = (&mut self.world, &self.rules.tunables);
        let queues = world.ttwu_queue(tunables, cpu, dst, on_cpu);
        if !self.followers.is_empty() {
            let same = |f: &Follower| world.ttwu_queue(&f.tunables, cpu, dst, on_cpu) == queues;
            self.followers.retain(same);
        }
        queues
    }
}

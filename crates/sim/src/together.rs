//! One run for several policies, as long as all of them decide alike at every wakeup. A policy that
//! begins to decide differently goes on from the last checkpoint, a copy of the whole state.

use std::rc::Rc;

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

/// Checkpoints are this many CPUs per check apart: a copy grows with the number of CPUs, and takes
/// far less time than the events between two copies.
const CPUS_PER_CHECK: u64 = 16;

/// A policy that has decided as the one that runs, so far.
#[derive(Clone)]
pub(crate) struct Follower {
    pub(crate) index: usize,
    pub(crate) tunables: Tunables,
    /// What it would last have decided, and what it would have left in wakee and waker.
    pub(crate) decided: Option<(Pick, [Task; 2])>,
}

/// Policies that the run is checked against, and what became of them.
#[derive(Default)]
pub(crate) struct Together<'a> {
    /// Those that have always agreed.
    pub(crate) followers: Vec<Follower>,
    /// A recent state of this run; every follower would be in it.
    checkpoint: Option<Rc<Sim<'a>>>,
    /// Those that agreed up to a checkpoint, and that checkpoint.
    departed: Vec<(Follower, Rc<Sim<'a>>)>,
}

impl<'a> Together<'a> {
    /// Goes on with the followers that `agree`. Others depart, unless there is no checkpoint yet.
    fn retain(&mut self, mut agree: impl FnMut(&Follower) -> bool) {
        if self.followers.iter().all(&mut agree) {
            return;
        }
        let (agreeing, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.followers).into_iter().partition(agree);
        self.followers = agreeing;
        if let Some(checkpoint) = &self.checkpoint {
            self.departed.extend(others.into_iter().map(|other| (other, Rc::clone(checkpoint))));
        }
        if self.followers.is_empty() {
            self.checkpoint = None;
        }
    }

    /// For each checkpoint from which followers departed: a run of the first of them, which the
    /// others follow, and its index.
    pub(crate) fn forks(self) -> Vec<(usize, Sim<'a>)> {
        let alike = self.departed.chunk_by(|(_, a), (_, b)| Rc::ptr_eq(a, b));
        alike.map(|of| of[0].1.forked(of.iter().map(|(follower, _)| follower.clone()))).collect()
    }
}

impl<'a> Sim<'a> {
    /// Keeps a checkpoint now and then, if there are followers, after so many checks for a stop.
    pub(crate) fn keep_checkpoint(&mut self, checks: u64) {
        let interval = 1 + self.cpus.len() as u64 / CPUS_PER_CHECK;
        if !self.together.followers.is_empty() && checks.is_multiple_of(interval) {
            self.together.checkpoint = Some(Rc::new(self.copy()));
        }
    }

    /// This state under the first of the followers. The rest of a policy is as this one's, see
    /// [`checkable`].
    fn forked(&self, mut followers: impl Iterator<Item = Follower>) -> (usize, Sim<'a>) {
        let first = followers.next().expect("a checkpoint is kept for its followers");
        let mut fork = self.copy();
        fork.rules.tunables = first.tunables;
        fork.together.followers = followers.collect();
        (first.index, fork)
    }

    /// The state without followers; there is no policy file where there are some.
    fn copy(&self) -> Sim<'a> {
        Sim {
            now: self.now,
            warmed_up: self.warmed_up,
            rules: self.rules.clone(),
            hw: self.hw.clone(),
            agenda: self.agenda.clone(),
            world: self.world.clone(),
            cpus: self.cpus.clone(),
            tasks: self.tasks.clone(),
            work: self.work.clone(),
            balancer: self.balancer.clone(),
            shared_queues: self.shared_queues.clone(),
            bandwidth: self.bandwidth.clone(),
            together: Together::default(),
            file: None,
            chance: self.chance.clone(),
            measured: self.measured.clone(),
        }
    }
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
        if self.together.followers.is_empty() && self.file.is_none() {
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
        for follower in &mut self.together.followers {
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
        self.together.retain(|follower| follower.decided == decided);
        pick
    }

    /// May this wakeup go to the wake list of `dst`?
    #[inline(always)]
    pub(crate) fn ttwu_queue(&mut self, cpu: CpuId, dst: CpuId, on_cpu: bool) -> bool {
        let (world, tunables) = (&mut self.world, &self.rules.tunables);
        let queues = world.ttwu_queue(tunables, cpu, dst, on_cpu);
        if !self.together.followers.is_empty() {
            let same = |f: &Follower| world.ttwu_queue(&f.tunables, cpu, dst, on_cpu) == queues;
            self.together.retain(same);
        }
        queues
    }
}

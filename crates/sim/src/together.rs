//! One run for several policies, as long as all of them decide alike at every wakeup. A policy that
//! begins to decide differently goes on from the last checkpoint, a copy of the whole state.

use std::rc::Rc;

use reveille_policy::{CpuId, Pick, Policy, TaskId, Wakeup, bits};

use crate::followers::{Follower, Followers};
use crate::rules::AT_WAKEUPS;
use crate::sim::Sim;

/// Features whose search leaves more behind than `has_idle_cores` of the target's cache.
const LEAVE_MORE: u64 = bits::SIS_PROP | bits::SIS_AGE | bits::SIS_FILTER | bits::SIS_NODE;

/// Can the decisions of one policy be checked while the other runs?
pub(crate) fn checkable(run: &Policy, other: &Policy) -> bool {
    run.differs_only_in(AT_WAKEUPS, other)
        && run.features & LEAVE_MORE == 0
        && run.file.is_none()
        && other.file.is_none()
}

/// Checkpoints are this many CPUs per check apart: a copy grows with the number of CPUs, and takes
/// far less time than the events between two copies.
const CPUS_PER_CHECK: u64 = 16;

/// Checkpoints of a run, and what became of policies that followed it.
#[derive(Default)]
pub(crate) struct Together<'a> {
    /// A recent state of the run; every follower would be in it.
    checkpoint: Option<Rc<Sim<'a>>>,
    /// Those that agreed up to a checkpoint, and that checkpoint.
    departed: Vec<(Follower, Rc<Sim<'a>>)>,
}

impl<'a> Together<'a> {
    /// Keeps a checkpoint now and then, if there are followers, after so many checks for a stop.
    pub(crate) fn keep_checkpoint(&mut self, sim: &mut Sim<'a>, checks: u64) {
        self.part(sim);
        let interval = 1 + sim.cpus.len() as u64 / CPUS_PER_CHECK;
        if !sim.followers.agreeing.is_empty() && checks.is_multiple_of(interval) {
            self.checkpoint = Some(Rc::new(sim.copy()));
        }
    }

    /// Followers that departed since the last checkpoint go on from there; without one, they need a
    /// run of their own.
    pub(crate) fn part(&mut self, sim: &mut Sim<'a>) {
        let departed = sim.followers.departed.drain(..);
        if let Some(checkpoint) = &self.checkpoint {
            self.departed.extend(departed.map(|follower| (follower, Rc::clone(checkpoint))));
        }
        if sim.followers.agreeing.is_empty() {
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
    /// This state under the first of the followers. The rest of a policy is as this one's, see
    /// [`checkable`].
    fn forked(&self, mut followers: impl Iterator<Item = Follower>) -> (usize, Sim<'a>) {
        let first = followers.next().expect("a checkpoint is kept for its followers");
        let mut fork = self.copy();
        fork.rules.tunables = first.tunables;
        fork.followers.agreeing = followers.collect();
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
            group_load: self.group_load,
            gathering: self.gathering.clone(),
            shared_queues: self.shared_queues.clone(),
            bandwidth: self.bandwidth.clone(),
            followers: Followers::default(),
            file: None,
            unseen: self.unseen.clone(),
            chance: self.chance.clone(),
            background: self.background.clone(),
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
        if self.followers.agreeing.is_empty() && self.file.is_none() {
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
        let world = &mut self.world;
        if let Some(file) = &mut self.file {
            let wakeup = Wakeup { wakee, waker, this_cpu, flags, now_j };
            return file.select_cpu(world, &self.rules.tunables, &wakeup, self.now);
        }
        let ids = [wakee, if waker == TaskId::NONE { wakee } else { waker }];
        let before = ids.map(|id| *world.task(id));
        for follower in &mut self.followers.agreeing {
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
    #[inline(always)]
    pub(crate) fn ttwu_queue(&mut self, cpu: CpuId, dst: CpuId, on_cpu: bool) -> bool {
        let (world, tunables) = (&mut self.world, &self.rules.tunables);
        let queues = world.ttwu_queue(tunables, cpu, dst, on_cpu);
        if !self.followers.agreeing.is_empty() {
            let same = |f: &Follower| world.ttwu_queue(&f.tunables, cpu, dst, on_cpu) == queues;
            self.followers.retain(same);
        }
        queues
    }
}

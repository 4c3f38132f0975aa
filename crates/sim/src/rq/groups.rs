//! Task groups with a quota: who is in which group, what each group's queue on each
//! CPU has drawn, and what has been used. The arithmetic is in policy/bandwidth.h.

use crate::ids::CpuVec;
use std::collections::VecDeque;

use reveille_measure::{GroupStats, Ns, Random};
use reveille_policy::{CpuId, Groups, LocalRuntime, Pool, TaskId};
use reveille_workload::Program;

use crate::error::SimError;
use crate::hw::clock::NEVER;

/// A group's queue on one CPU (`struct cfs_rq` of a task group).
#[derive(Clone, Debug)]
pub(crate) struct GroupQueue {
    pub(crate) runtime: LocalRuntime,
    /// Tasks and groups within that are on it, the current one included.
    pub(crate) entities: u32,
    /// The group itself is on the queue of the group around it.
    pub(crate) on_parent: bool,
}

/// One task group.
#[derive(Clone)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) parent: Option<usize>,
    pub(crate) pool: Pool,
    pub(crate) queues: CpuVec<GroupQueue>,
    /// CPUs whose queues are throttled, first come first.
    pub(crate) throttled: VecDeque<CpuId>,
    /// Its next timer, and the CPU on which that was started.
    pub(crate) timer_at: Ns,
    pub(crate) timer_cpu: CpuId,
    usage_ns: Ns,
    /// Its figures when measuring began.
    pub(crate) before: GroupStats,
}

/// Bandwidth control of a run.
#[derive(Clone)]
pub(crate) struct Bandwidth {
    pub(crate) groups: Vec<Group>,
    pub(crate) slice_ns: Ns,
    /// Group of the tasks of each role, if they are in one.
    of_role: Vec<Option<usize>>,
    /// Runnable tasks of throttled queues, by CPU, in the order in which they would run.
    pub(crate) held: CpuVec<Vec<TaskId>>,
    /// Earliest timer of any group.
    pub(crate) timer_at: Ns,
    /// History of the groups, if requested.
    pub(crate) history: Option<Vec<GroupMoment>>,
}

/// A group's pool at a moment at which something happened to it: just before and after a
/// refill, and just after a queue was throttled or runs again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupMoment {
    /// Virtual time since the start of the run, warm-up included.
    pub at_ns: Ns,
    /// Index of the group.
    pub group: usize,
    /// What could be drawn.
    pub runtime_ns: Ns,
    /// CPU time charged to it so far.
    pub usage_ns: Ns,
    /// CPUs on which it was throttled.
    pub throttled_cpus: u32,
}

impl Bandwidth {
    /// Groups whose limits are set at the start of the run; nothing if there are none.
    /// Errors: limits that the kernel refuses, or a parent that does not come before.
    pub(crate) fn new(
        groups: &Groups,
        program: &Program,
        n_cpus: usize,
        seed: u64,
    ) -> Result<Option<Box<Bandwidth>>, SimError> {
        if groups.groups.is_empty() {
            return Ok(None);
        }
        // Of its own, so that settings change no other random choice.
        let mut random = Random::second(seed);
        let mut made = Vec::with_capacity(groups.groups.len());
        for (index, group) in groups.groups.iter().enumerate() {
            if let Some(parent) = group.parent.filter(|&parent| parent >= index) {
                return Err(SimError::GroupOrder { group: group.name.clone(), parent });
            }
            let period = group.limits.period_ns;
            let drawn = random.below(period);
            let phase = group.phase_ns.map_or(drawn, |phase| phase % period.max(1));
            let pool = Pool::new(&group.limits, phase, 0)
                .map_err(|error| SimError::Limits { group: group.name.clone(), error })?;
            let queue = GroupQueue {
                runtime: LocalRuntime::new(&group.limits),
                entities: 0,
                on_parent: false,
            };
            made.push(Group {
                name: group.name.clone(),
                parent: group.parent,
                pool,
                queues: CpuVec::filled(queue, n_cpus),
                throttled: VecDeque::new(),
                timer_at: NEVER,
                timer_cpu: CpuId(0),
                usage_ns: 0,
                before: GroupStats::default(),
            });
        }
        let mut of_role = vec![None; program.roles.len()];
        for (index, group) in groups.groups.iter().enumerate() {
            for (role, member) in of_role.iter_mut().enumerate() {
                if group.roles.is_empty() || group.roles.contains(&(role as u16)) {
                    *member = Some(index);
                }
            }
        }
        Ok(Some(Box::new(Bandwidth {
            groups: made,
            slice_ns: groups.slice_ns,
            of_role,
            held: CpuVec::filled(Vec::new(), n_cpus),
            timer_at: NEVER,
            history: None,
        })))
    }

    /// The group of the tasks of a role.
    #[inline]
    pub(crate) fn of_role(&self, role: u16) -> Option<usize> {
        self.of_role[usize::from(role)]
    }

    /// The group around a group, or none.
    #[inline]
    pub(crate) fn around(&self, group: Option<usize>) -> Option<usize> {
        group.and_then(|g| self.groups[g].parent)
    }

    /// Is a group, or one around it, throttled on this CPU (`throttled_hierarchy()`)?
    pub(crate) fn held_back(&self, mut group: Option<usize>, cpu: CpuId) -> bool {
        while let Some(g) = group {
            if self.groups[g].queues[cpu].runtime.throttled() {
                return true;
            }
            group = self.groups[g].parent;
        }
        false
    }

    /// Is `inner` the group `outer`, or does it lie in it?
    pub(crate) fn lies_in(&self, mut inner: Option<usize>, outer: usize) -> bool {
        while let Some(g) = inner {
            if g == outer {
                return true;
            }
            inner = self.groups[g].parent;
        }
        false
    }

    /// account_cfs_rq_runtime() at every level. False if some level is out of runtime.
    pub(crate) fn charge(
        &mut self,
        cpu: CpuId,
        mut group: Option<usize>,
        delta: Ns,
        now: Ns,
    ) -> bool {
        let mut runs_on = true;
        while let Some(g) = group {
            let slice = self.slice_ns;
            let around = &mut self.groups[g];
            around.usage_ns += delta;
            let queue = &mut around.queues[cpu].runtime;
            if queue.enabled() {
                runs_on &= around.pool.account(queue, delta, slice, now);
                self.timer_moved(g, cpu);
            }
            group = self.groups[g].parent;
        }
        runs_on
    }

    /// A timer of this group may have been started on `cpu`.
    #[inline]
    pub(crate) fn timer_moved(&mut self, g: usize, cpu: CpuId) {
        let group = &mut self.groups[g];
        let at = group.next_timer();
        if at != group.timer_at {
            (group.timer_at, group.timer_cpu) = (at, cpu);
            self.timer_at = self.timer_at.min(at);
        }
    }

    /// Something happened to this group.
    pub(crate) fn note(&mut self, g: usize, now: Ns) {
        let Some(history) = &mut self.history else { return };
        let group = &self.groups[g];
        history.push(GroupMoment {
            at_ns: now,
            group: g,
            runtime_ns: group.pool.runtime_ns(),
            usage_ns: group.usage_ns,
            throttled_cpus: group.throttled.len() as u32,
        });
    }

    pub(crate) fn figures(&self, g: usize, now: Ns) -> GroupStats {
        let group = &self.groups[g];
        let still: Ns = group
            .queues
            .iter()
            .filter_map(|q| q.runtime.throttled_since_ns())
            .map(|since| now - since)
            .sum();
        GroupStats {
            name: group.name.clone(),
            usage_ns: group.usage_ns,
            nr_periods: group.pool.nr_periods(),
            nr_throttled: group.pool.nr_throttled(),
            throttled_ns: group.pool.throttled_ns() + still,
            nr_bursts: group.pool.nr_bursts(),
            burst_ns: group.pool.burst_used_ns(),
        }
    }
}

impl Group {
    pub(crate) fn next_timer(&self) -> Ns {
        let refill = self.pool.refill_at_ns().unwrap_or(NEVER);
        refill.min(self.pool.slack_at_ns().unwrap_or(NEVER))
    }
}

impl Bandwidth {
    /// An entity leaves the queue of `group`; an emptied group leaves the one around it.
    pub(crate) fn leave_queues(&mut self, mut group: Option<usize>, cpu: CpuId, now: Ns) {
        while let Some(g) = group {
            let slice = self.slice_ns;
            let around = &mut self.groups[g];
            let queue = &mut around.queues[cpu];
            queue.entities -= 1;
            if queue.entities > 0 {
                return;
            }
            if queue.runtime.enabled() {
                around.pool.give_back(&mut queue.runtime, slice, now);
                self.timer_moved(g, cpu);
            }
            if !std::mem::take(&mut self.groups[g].queues[cpu].on_parent) {
                return;
            }
            group = self.groups[g].parent;
        }
    }
}

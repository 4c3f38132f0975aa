//! Task groups with a quota: who is in which group, what each group's queue on each
//! CPU has drawn, what has been used, and the two timers of each pool. The arithmetic
//! stands in policy/bandwidth.h; who is thrown off a CPU, in throttle.rs.

use std::collections::VecDeque;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use reveille_measure::{GroupStats, Ns};
use reveille_policy::{CpuId, Groups, LocalRuntime, NONE, PeriodStep, Pool, TaskId};
use reveille_workload::Program;

use crate::clock::NEVER;
use crate::cpu::{Step, at, some_task};
use crate::engine::{Sim, Toll};

use crate::SimError;

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
pub(crate) struct Group {
    name: String,
    pub(crate) parent: Option<usize>,
    pub(crate) pool: Pool,
    pub(crate) queues: Vec<GroupQueue>,
    /// CPUs whose queues are throttled, first come first.
    pub(crate) throttled: VecDeque<CpuId>,
    /// Its next timer, and the CPU on which that was started.
    timer_at: Ns,
    timer_cpu: CpuId,
    usage_ns: Ns,
    /// Its figures when measuring began.
    before: GroupStats,
}

/// Bandwidth control of a run.
pub(crate) struct Bandwidth {
    pub(crate) groups: Vec<Group>,
    pub(crate) slice_ns: Ns,
    /// Group of the tasks of each role, if they are in one.
    of_role: Vec<Option<usize>>,
    /// Runnable tasks of throttled queues, by CPU, in the order in which they would run.
    pub(crate) held: Vec<Vec<TaskId>>,
    /// Earliest timer of any group.
    timer_at: Ns,
    /// What happened to the groups, if that is to be known.
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
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        rng.jump();
        let mut made = Vec::with_capacity(groups.groups.len());
        for (index, group) in groups.groups.iter().enumerate() {
            if let Some(parent) = group.parent.filter(|&parent| parent >= index) {
                return Err(SimError::GroupOrder { group: group.name.clone(), parent });
            }
            let period = group.limits.period_ns;
            let drawn = ((u128::from(rng.next_u64()) * u128::from(period)) >> 64) as Ns;
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
                queues: vec![queue; n_cpus],
                throttled: VecDeque::new(),
                timer_at: NEVER,
                timer_cpu: 0,
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
            held: vec![Vec::new(); n_cpus],
            timer_at: NEVER,
            history: None,
        })))
    }

    /// The group around a group, or none.
    #[inline]
    pub(crate) fn around(&self, group: Option<usize>) -> Option<usize> {
        group.and_then(|g| self.groups[g].parent)
    }

    /// Is a group, or one around it, throttled on this CPU (`throttled_hierarchy()`)?
    pub(crate) fn held_back(&self, mut group: Option<usize>, cpu: CpuId) -> bool {
        while let Some(g) = group {
            if self.groups[g].queues[at(cpu)].runtime.throttled() {
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
    fn charge(&mut self, cpu: CpuId, mut group: Option<usize>, delta: Ns, now: Ns) -> bool {
        let mut runs_on = true;
        while let Some(g) = group {
            let slice = self.slice_ns;
            let around = &mut self.groups[g];
            around.usage_ns += delta;
            let queue = &mut around.queues[at(cpu)].runtime;
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

    fn figures(&self, g: usize, now: Ns) -> GroupStats {
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
    fn next_timer(&self) -> Ns {
        let refill = self.pool.refill_at_ns().unwrap_or(NEVER);
        refill.min(self.pool.slack_at_ns().unwrap_or(NEVER))
    }
}

impl Sim<'_> {
    /// The group of a task, if bandwidth control is on and it is in one.
    #[inline]
    pub(crate) fn group_of(&self, task: TaskId) -> Option<usize> {
        self.bandwidth.as_ref()?.of_role[usize::from(self.tasks[at(task)].spec.role)]
    }

    /// update_curr() of the groups around the current task of `cpu`, which has run for
    /// `delta`. Out of runtime, it is asked to reschedule.
    #[cold]
    pub(crate) fn charge_groups(&mut self, cpu: CpuId, task: TaskId, delta: Ns) {
        let group = self.group_of(task);
        let Some(bandwidth) = &mut self.bandwidth else { return };
        let c = &mut self.cpus[at(cpu)];
        c.need_resched |= !bandwidth.charge(cpu, group, delta, self.now);
        self.replan_bandwidth();
    }

    /// The slot of the groups' timers follows the earliest.
    pub(crate) fn replan_bandwidth(&mut self) {
        if let Some(bandwidth) = &self.bandwidth {
            self.clock.set(self.cpus.len() + 1, bandwidth.timer_at);
        }
    }

    /// Timers of groups that are due: refill first, then what was given back.
    pub(crate) fn fire_bandwidth_timers(&mut self) {
        let now = self.now;
        let n = self.bandwidth.as_ref().map_or(0, |b| b.groups.len());
        for g in 0..n {
            let Some(bandwidth) = &mut self.bandwidth else { return };
            let slice = bandwidth.slice_ns;
            let group = &mut bandwidth.groups[g];
            if group.next_timer() > now {
                continue;
            }
            let cpu = group.timer_cpu;
            bandwidth.note(g, now);
            let group = &mut bandwidth.groups[g];
            let mut distribute = false;
            while group.pool.refill_at_ns().is_some_and(|due| due <= now) {
                distribute |= group.pool.period_timer(now) == PeriodStep::Distribute;
            }
            if group.pool.slack_at_ns().is_some_and(|due| due <= now) {
                distribute |= group.pool.slack_timer(slice, now);
            }
            bandwidth.note(g, now);
            let mut toll = Toll::cost(self.cost.irq_ns);
            if distribute {
                toll += self.distribute(g, cpu);
            }
            // An idle CPU serves it without leaving idle.
            if self.cpus[at(cpu)].step != Step::Idle {
                self.cpus[at(cpu)].interrupt(now, toll.stall, toll.cost);
                self.replan(cpu);
            }
        }
        if let Some(bandwidth) = &mut self.bandwidth {
            for group in &mut bandwidth.groups {
                group.timer_at = group.next_timer();
            }
            let earliest = bandwidth.groups.iter().map(|g| g.timer_at).min();
            bandwidth.timer_at = earliest.unwrap_or(NEVER);
        }
        self.replan_bandwidth();
    }

    /// Limits are in force from the start: so are their timers.
    pub(crate) fn start_bandwidth(&mut self) {
        let Some(bandwidth) = &mut self.bandwidth else { return };
        for g in 0..bandwidth.groups.len() {
            bandwidth.timer_moved(g, 0);
        }
        self.replan_bandwidth();
    }

    /// Figures of a group up to now: what its running tasks have not been charged for
    /// yet is added.
    fn group_figures(&self, bandwidth: &Bandwidth, g: usize) -> GroupStats {
        let mut figures = bandwidth.figures(g, self.now);
        for cpu in 0..self.cpus.len() as CpuId {
            let Some(task) = some_task(self.world.curr(cpu)) else { continue };
            if bandwidth.lies_in(self.group_of(task), g) {
                figures.usage_ns += self.now.saturating_sub(self.tasks[at(task)].exec_start);
            }
        }
        figures
    }

    fn all_figures(&self) -> Vec<GroupStats> {
        let Some(bandwidth) = &self.bandwidth else { return Vec::new() };
        (0..bandwidth.groups.len()).map(|g| self.group_figures(bandwidth, g)).collect()
    }

    /// Measuring begins now.
    pub(crate) fn forget_groups(&mut self) {
        let figures = self.all_figures();
        let Some(bandwidth) = &mut self.bandwidth else { return };
        for (group, before) in bandwidth.groups.iter_mut().zip(figures) {
            group.before = before;
        }
    }

    /// What bandwidth control did to each group since measuring began.
    pub(crate) fn group_results(&self) -> Vec<GroupStats> {
        let Some(bandwidth) = &self.bandwidth else { return Vec::new() };
        let since = |(group, now): (&Group, GroupStats)| GroupStats {
            usage_ns: now.usage_ns - group.before.usage_ns,
            nr_periods: now.nr_periods - group.before.nr_periods,
            nr_throttled: now.nr_throttled - group.before.nr_throttled,
            throttled_ns: now.throttled_ns - group.before.throttled_ns,
            nr_bursts: now.nr_bursts - group.before.nr_bursts,
            burst_ns: now.burst_ns - group.before.burst_ns,
            name: now.name,
        };
        bandwidth.groups.iter().zip(self.all_figures()).map(since).collect()
    }

    /// Does the current task of `cpu` run in this group?
    pub(crate) fn runs_in(&self, cpu: CpuId, g: usize) -> bool {
        let (Some(bandwidth), curr) = (&self.bandwidth, self.world.curr(cpu)) else { return false };
        curr != NONE && bandwidth.lies_in(self.group_of(curr), g)
    }
}

//! Bandwidth control: charges running tasks to their groups, and fires each pool's two timers.
//! throttle.rs throttles and unthrottles.

use reveille_measure::{GroupStats, Ns};
use reveille_policy::{CpuId, PeriodStep, TaskId};

use crate::hw::clock::NEVER;
use crate::hw::cpu::Toll;
use crate::rq::groups::{Bandwidth, Group};
use crate::sim::Sim;

impl Sim<'_> {
    /// The group of a task, if bandwidth control is on and it is in one.
    #[inline]
    pub(crate) fn group_of(&self, task: TaskId) -> Option<usize> {
        self.bandwidth.as_ref()?.of_role(self.tasks[task].spec.role)
    }

    /// Does the current task of `cpu` run in this group?
    pub(crate) fn runs_in(&self, cpu: CpuId, g: usize) -> bool {
        let (Some(bandwidth), curr) = (&self.bandwidth, self.world.curr(cpu)) else { return false };
        curr != TaskId::NONE && bandwidth.lies_in(self.group_of(curr), g)
    }

    /// update_curr() of the groups of the current task of `cpu`, which has run for `delta`. If out
    /// of runtime, the CPU is asked to reschedule.
    #[cold]
    pub(crate) fn charge_groups(&mut self, cpu: CpuId, task: TaskId, delta: Ns) -> bool {
        let group = self.group_of(task);
        let Some(bandwidth) = &mut self.bandwidth else { return false };
        let spent = !bandwidth.charge(cpu, group, delta, self.now);
        self.cpus[cpu].need_resched |= spent;
        self.replan_bandwidth();
        spent
    }

    /// Sets the slot of the groups' timers to the earliest.
    pub(crate) fn replan_bandwidth(&mut self) {
        if let Some(bandwidth) = &self.bandwidth {
            self.agenda.set_bandwidth(bandwidth.timer_at);
        }
    }

    /// Due timers of groups: the period timer first, then the slack timer.
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
            let mut toll = Toll::cost(self.hw.cost.irq_ns);
            if distribute {
                toll += self.distribute(g, cpu);
            }
            // An idle CPU handles it without exiting idle.
            if !self.cpus[cpu].is_idle() {
                self.cpus[cpu].interrupt(now, toll.stall, toll.cost);
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

    /// Starts the timers: limits are in force from the beginning.
    pub(crate) fn start_bandwidth(&mut self) {
        let Some(bandwidth) = &mut self.bandwidth else { return };
        for g in 0..bandwidth.groups.len() {
            bandwidth.timer_moved(g, CpuId(0));
        }
        self.replan_bandwidth();
    }

    /// Statistics of a group up to now, including runtime not charged yet.
    fn group_figures(&self, bandwidth: &Bandwidth, g: usize) -> GroupStats {
        let mut figures = bandwidth.figures(g, self.now);
        for cpu in self.cpus.ids() {
            let Some(task) = self.world.curr(cpu).some() else { continue };
            if bandwidth.lies_in(self.group_of(task), g) {
                figures.usage_ns += self.now.saturating_sub(self.tasks[task].exec_start);
            }
        }
        figures
    }

    fn all_figures(&self) -> Vec<GroupStats> {
        let Some(bandwidth) = &self.bandwidth else { return Vec::new() };
        (0..bandwidth.groups.len()).map(|g| self.group_figures(bandwidth, g)).collect()
    }

    /// Resets statistics at the start of measuring.
    pub(crate) fn forget_groups(&mut self) {
        let figures = self.all_figures();
        let Some(bandwidth) = &mut self.bandwidth else { return };
        for (group, before) in bandwidth.groups.iter_mut().zip(figures) {
            group.before = before;
        }
    }

    /// Statistics of each group since the start of measuring.
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
}

//! The slow path of fork, find_idlest_cpu(): descends from the whole machine to a CPU, at each
//! level into the group with the most idle CPUs, or without idle CPUs the least loaded; the forking
//! CPU's group wins ties. New tasks start there.

use reveille_measure::Ns;
use reveille_policy::{CpuId, TaskId};

use crate::sched::domains::{Domain, Level};
use crate::sim::Sim;
use crate::tasks::task::Task;

/// Criteria for comparing groups.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    cpus: u64,
    idle: u64,
    running: u64,
    util: u64,
    load: u64,
}

impl Group {
    fn avg_load(&self) -> u64 {
        self.load / self.cpus
    }
}

impl Sim<'_> {
    /// The current task exits; its successor starts where a child of it would be placed.
    pub(crate) fn respawn(&mut self, cpu: CpuId, task: TaskId) {
        self.block(cpu);
        self.detach(task, cpu);
        let old = &self.tasks[task];
        let successor = Task {
            place: old.place,
            timer: old.timer,
            wait_jitter: old.wait_jitter,
            on_cpu_until: 0,
            ..Task::new(old.spec, self.work.code.begin(old.spec.role), cpu)
        };
        self.tasks[task] = successor;
        let flip_decay_j = self.jiffies();
        let memory = self.world.task_mut(task);
        *memory = reveille_policy::Task::new(task, cpu);
        memory.wakee_flip_decay_j = flip_decay_j;
        self.fork(task, cpu, self.now + 1);
        self.agenda.replan_timers();
    }

    /// Forks a task on `cpu` at that time: places it, and wakes it there.
    pub(crate) fn fork(&mut self, task: TaskId, cpu: CpuId, at_ns: Ns) {
        let t = &mut self.tasks[task];
        t.period_at = at_ns;
        t.unborn = true;
        self.set_timer(cpu, task, at_ns);
    }

    /// sched_fork() and wake_up_new_task() up to the placement: returns the CPU on which a child
    /// forked on `cpu` starts. It counts `cpu` as the one it used before.
    pub(crate) fn place_forked(&mut self, task: TaskId, cpu: CpuId) -> CpuId {
        let dst = self.find_idlest_cpu(cpu);
        let memory = self.world.task_mut(task);
        (memory.prev_cpu, memory.recent_used_cpu) = (dst, cpu);
        let t = &mut self.tasks[task];
        (t.warm_cpu, t.waker_cpu) = (dst, dst);
        t.averages.at = self.now;
        t.unborn = false;
        self.advance_cpu(dst);
        self.new_task_averages(task, dst);
        dst
    }

    /// The CPU for a child forked on `cpu`.
    fn find_idlest_cpu(&self, cpu: CpuId) -> CpuId {
        let domains = &self.balancer.domains;
        let forker = cpu;
        let (mut cpu, mut span) = (cpu, usize::MAX);
        // The next domain is the largest of the CPU chosen so far below the last one.
        while let Some((member, domain)) = domains.of_cpu[cpu]
            .iter()
            .rev()
            .map(|m| (m, &domains.all[m.domain as usize]))
            .find(|(_, domain)| domain.span.len() < span)
        {
            span = domain.span.len();
            if let Some(group) = self.idlest_group(domain, member.group as usize, forker) {
                cpu = self.idlest_of(group);
            }
        }
        cpu
    }

    /// find_idlest_group(): `None` if the local group is as good. Of groups with equally many idle
    /// CPUs the less utilised is better (update_pick_idlest()): a task that was just forked there
    /// and already sleeps still counts.
    fn idlest_group<'a>(
        &self,
        domain: &'a Domain,
        local: usize,
        forker: CpuId,
    ) -> Option<&'a [u16]> {
        let sum = |group: &[u16]| {
            group.iter().fold(Group::default(), |mut sum, &cpu| {
                // The forking task itself is running.
                let forks = u32::from(CpuId::from(cpu) == forker);
                let nr = self.world.nr_running(CpuId::from(cpu)).max(forks);
                let published = &self.balancer.published[CpuId::from(cpu)];
                sum.cpus += 1;
                sum.idle += u64::from(nr == 0);
                sum.running += u64::from(nr);
                sum.util += u64::from(published.util);
                sum.load += u64::from(published.load);
                sum
            })
        };
        let better = |a: &Group, b: &Group| match (a.idle, b.idle) {
            (0, 0) => a.avg_load() < b.avg_load(),
            (x, y) => x > y || x == y && a.util < b.util,
        };
        let mut best: Option<(usize, Group)> = None;
        // Start at the local group, as groups are linked in a circle.
        for index in (local + 1..domain.groups.len()).chain(0..local) {
            let sums = sum(&domain.groups[index]);
            if best.as_ref().is_none_or(|(_, b)| better(&sums, b)) {
                best = Some((index, sums));
            }
        }
        let ((other, there), here) = (best?, sum(&domain.groups[local]));
        let stays = if here.idle > 0 || there.idle > 0 {
            here.idle >= there.idle || domain.leaves_imbalance(there.idle - here.idle, here.running)
        } else {
            // A loaded local group is kept unless another has that much less load; another memory
            // node must have less by that much of a task's weight, too.
            let pct = domain.imbalance_pct;
            let margin = 1024 * (pct - 100) / 100;
            let far = domain.level == Level::Numa;
            far && there.avg_load() + margin >= here.avg_load()
                || 100 * here.avg_load() <= pct * there.avg_load()
        };
        (!stays).then(|| &domain.groups[other][..])
    }

    /// find_idlest_group_cpu(): the idle CPU with the shortest exit latency, among ties the one
    /// idle for the shortest time; without an idle CPU the least loaded.
    fn idlest_of(&self, group: &[u16]) -> CpuId {
        let key = |&cpu: &u16| {
            let c = &self.cpus[CpuId::from(cpu)];
            let idle = self.world.nr_running(CpuId::from(cpu)) == 0;
            let (state, since) = if idle { (c.idle_state, Ns::MAX - c.idle_from) } else { (0, 0) };
            let load = if idle { 0 } else { self.balancer.published[CpuId::from(cpu)].load };
            (!idle, state, since, load)
        };
        CpuId::from(*group.iter().min_by_key(|cpu| key(cpu)).expect("a group has CPUs"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::start::with_pairs;

    /// wake_up_new_task(): `p->recent_used_cpu = task_cpu(p)`, before the child has a CPU.
    #[test]
    fn a_child_has_been_on_its_parents_cpu() {
        with_pairs(1, |sim| {
            let (child, parent) = (TaskId::at(0), CpuId(3));
            let placed = sim.place_forked(child, parent);
            let memory = sim.world.task(child);
            assert_eq!((memory.prev_cpu, memory.recent_used_cpu), (placed, parent));
            assert_ne!(placed, parent);
        });
    }
}

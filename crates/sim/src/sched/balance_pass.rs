//! load_balance(): one pass of one CPU over one domain: whether this CPU should balance, the
//! busiest group, the imbalance, the queue to pull from, and the tasks to move.

use std::rc::Rc;

use reveille_measure::Ns;
use reveille_policy::{CpuId, TaskId};

use crate::hw::cpu::{Step, Toll};
use crate::ids::{CpuVec, Known};
use crate::rq::runqueue::Arrival;
use crate::sched::balancer::{Balancer, Published};
use crate::sched::domains::{Domain, Domains, Level, Membership};
use crate::sched::imbalance::{
    Group, GroupType, Imbalance, Kind, MIGRATION_COST_NS, Pass, busiest, imbalance, ranked,
};
use crate::sched::sums::DomainSums;
use crate::sim::Sim;
use crate::tasks::task::Saved;

/// A pass moves at most this many tasks (sysctl_sched_nr_migrate).
const MAX_MOVED: usize = 32;

impl Sim<'_> {
    /// One pass of `dst` over its domain at `level`; returns its duration.
    pub(crate) fn balance_pass(&mut self, dst: CpuId, level: usize, kind: Kind) -> (Pass, Ns) {
        let domains = Rc::clone(&self.balancer.domains);
        let member = domains.of_cpu[dst][level];
        let domain = &domains.all[member.domain as usize];
        let base = Ns::from(self.hw.cost.balance_base_ns);
        let min_interval = domain.min_interval_ns();
        let state = &mut self.balancer.state[dst][level];
        if kind != Kind::NewIdle {
            state.interval_ns = (state.interval_ns * 2).min(2 * min_interval);
        }
        if !self.should_balance(dst, domain, member.group as usize, kind) {
            self.balancer.state[dst][level].failed = 0;
            return (Pass::Elsewhere, base);
        }
        let read = domain.span.len() as u64 * Ns::from(self.hw.cost.balance_cpu_ns);
        let failed = self.balancer.state[dst][level].failed;
        if kind == Kind::NewIdle && failed == 0 && !self.gathers_in(domain) && !self.crowded(domain)
        {
            // Without a queue of two tasks nothing can be pulled, and without failures nothing is
            // pushed, whatever the statistics say. They would only do this, and reset the interval.
            self.balancer.overload &= domain.span.len() != self.cpus.len();
            return (Pass::Balanced, base + read);
        }
        let (pass, more) = self.pull(dst, level, kind, &domains, member);
        let state = &mut self.balancer.state[dst][level];
        if pass != Pass::Balanced {
            state.interval_ns = min_interval;
        }
        if pass != Pass::Failed {
            state.failed = 0;
        }
        (pass, base + read + more)
    }

    /// Does some CPU of the domain have two tasks?
    fn crowded(&self, domain: &Domain) -> bool {
        let crowded = self.balancer.sums.some_crowded(domain);
        #[cfg(debug_assertions)]
        {
            let some = domain.span.iter().any(|&c| self.world.nr_running(CpuId::from(c)) > 1);
            assert_eq!(crowded, some, "crowded CPUs of {:?}", domain.span);
        }
        crowded
    }

    /// should_we_balance(): whether `dst` is the CPU of its group that balances this domain.
    fn should_balance(&self, dst: CpuId, domain: &Domain, group: usize, kind: Kind) -> bool {
        if kind == Kind::NewIdle {
            return self.world.nr_running(dst) == 0 && self.cpus[dst].wake_list.is_empty();
        }
        let idle = |cpu: u16| self.world.available_idle(CpuId::from(cpu));
        let core = |cpu: u16| self.world.smt_cpus(CpuId::from(cpu)).iter().all(|&c| idle(c));
        let cores = self.rules.idle_core_balances && domain.level != Level::Smt;
        CpuId::from(balances(&domain.groups[group], idle, |cpu| cores && core(cpu))) == dst
    }

    fn pull(
        &mut self,
        dst: CpuId,
        level: usize,
        kind: Kind,
        domains: &Domains,
        member: Membership,
    ) -> (Pass, Ns) {
        let domain = &domains.all[member.domain as usize];
        let plan = self.plan(dst, level, kind, domains, member);
        let Some((src, imbalance)) = plan else { return (Pass::Balanced, 0) };
        let (moved, kept) = self.detach_tasks(src, dst, level, kind, domain, imbalance);
        if kind == Kind::NewIdle {
            self.measured.counters.newidle_pulls += u64::from(moved);
        }
        if moved == 0 {
            let state = &mut self.balancer.state[dst][level];
            state.failed += u32::from(kind != Kind::NewIdle && !kept);
            let pushes = match imbalance {
                Imbalance::Preferring(_) => true,
                Imbalance::Tasks(_) => state.failed > domain.cache_nice_tries + 2,
                _ => false,
            };
            if !pushes || self.push_breaks_gathering(src, dst) || !self.push(src, dst) {
                return (Pass::Failed, 0);
            }
        }
        let pass = if moved == 0 { Pass::Pushed } else { Pass::Moved };
        let relisting = self.take_shared_costs();
        (pass, u64::from(moved.max(1)) * Ns::from(self.hw.cost.migrate_ns) + relisting)
    }

    /// The queue to pull from, and how much; `None` if the domain is balanced. Updates what
    /// collecting statistics updates.
    fn plan(
        &mut self,
        dst: CpuId,
        level: usize,
        kind: Kind,
        domains: &Domains,
        member: Membership,
    ) -> Option<(CpuId, Imbalance)> {
        let (number, local) = (member.domain as usize, member.group as usize);
        let domain = &domains.all[number];
        let smt = self.rules.smt_balance && domain.of_smt_cores;
        let fresh = if self.gathers_in(domain) {
            let mut groups = self.busy_view(domain);
            self.mark_gathering(dst, level, kind, (domain, local), &mut groups);
            Some(groups)
        } else if smt && kind == Kind::Busy {
            Some(self.busy_view(domain))
        } else {
            let (world, Balancer { sums, published, .. }) = (&self.world, &mut self.balancer);
            sums.refresh(domains, number, |domain, g| group(world, published, domain, g, smt));
            None
        };
        // At the root, every pass checks whether some queue has two tasks.
        if domain.span.len() == self.cpus.len() {
            self.balancer.overload = self.crowded(domain);
        }
        if kind != Kind::NewIdle && self.spans_llc(dst, domain) {
            let util = |&cpu: &u16| u64::from(self.balancer.published[CpuId::from(cpu)].util);
            let util = domain.span.iter().map(util).sum();
            self.refresh_nr_idle_scan(dst, util);
        }
        let idle = self.world.nr_running(dst) == 0;
        let Balancer { sums, published, .. } = &mut self.balancer;
        let DomainSums { groups, ranks } = sums.of(number);
        let busiest = match &fresh {
            Some(groups) => busiest(&ranked(groups).collect::<Vec<_>>(), local)?,
            None => busiest(ranks, local)?,
        };
        let known = fresh.as_ref().unwrap_or(groups);
        let sum = |g: usize| match known.get(g) {
            Some(group) => *group,
            None => group(&self.world, published, domain, g, smt),
        };
        let mine =
            if smt { group(&self.world, published, domain, local, false) } else { sum(local) };
        let may_spread = idle || !self.rules.smt_balance;
        let imbalance = imbalance(domain, sum, (&mine, &sum(busiest)), idle, may_spread)?;
        let src = self.busiest_queue(&domain.groups[busiest], dst, imbalance)?;
        Some((src, imbalance))
    }

    /// Sums of all groups, of the types that they have to a busy CPU.
    fn busy_view(&self, domain: &Domain) -> Vec<Group> {
        let all = 0..domain.groups.len();
        all.map(|g| group(&self.world, &self.balancer.published, domain, g, false)).collect()
    }

    /// The queue to pull from, by the kind of imbalance.
    fn busiest_queue(&self, cpus: &[u16], dst: CpuId, imbalance: Imbalance) -> Option<CpuId> {
        let nr = |cpu: u16| match self.rules.delayed_not_busy {
            true => u64::from(self.h_nr_runnable(cpu.into())),
            false => u64::from(self.world.nr_running(cpu.into())),
        };
        let candidates = cpus.iter().copied().filter(|&c| CpuId::from(c) != dst && nr(c) > 0);
        let best = match imbalance {
            // The kernel keeps the first of equals.
            Imbalance::Tasks(_) => candidates.first_max_by_key(nr),
            Imbalance::Preferring(_) => {
                candidates.first_max_by_key(|c| self.preferring(c.into(), dst))
            }
            Imbalance::Util(_) => candidates
                .filter(|&c| nr(c) > 1)
                .first_max_by_key(|c| u64::from(self.balancer.published[CpuId::from(c)].util)),
            Imbalance::Load(limit) => candidates
                .filter(|&c| {
                    nr(c) > 1 || u64::from(self.balancer.published[CpuId::from(c)].load) <= limit
                })
                .first_max_by_key(|c| u64::from(self.balancer.published[CpuId::from(c)].load)),
        };
        best.map(CpuId::from)
    }

    /// detach_tasks() and attach_tasks(). Returns the number of tasks moved, and whether some were kept for
    /// the cache that they prefer (LBF_LLC_PINNED).
    fn detach_tasks(
        &mut self,
        src: CpuId,
        dst: CpuId,
        level: usize,
        kind: Kind,
        domain: &Domain,
        imbalance: Imbalance,
    ) -> (u32, bool) {
        let failed = self.balancer.state[dst][level].failed;
        let mut left = imbalance;
        let (mut moved, mut kept, mut last) = (0, false, None);
        for _ in 0..MAX_MOVED {
            last = self.coldest(src, last);
            let Some((_, task)) = last else { break };
            if kind != Kind::Busy && self.world.nr_running(src) <= 1 {
                break;
            }
            if !self.may_migrate(task, src, dst) {
                continue;
            }
            if self.degrades_gathering(task, (src, dst), domain, imbalance, failed) {
                kept |= !matches!(imbalance, Imbalance::Preferring(_));
                continue;
            }
            if self.cache_hot(task, src, dst, domain, failed) {
                continue;
            }
            match &mut left {
                Imbalance::Tasks(n) | Imbalance::Preferring(n) => *n -= 1,
                Imbalance::Load(l) => {
                    let load = u64::from(self.task_load(task)).max(1);
                    if load >> failed.min(63) > *l {
                        continue;
                    }
                    *l = l.saturating_sub(load);
                }
                Imbalance::Util(u) => {
                    let t = &self.tasks[task];
                    let util = t.util_est().max(t.averages.util) as u64;
                    if util >> failed.min(63) > *u {
                        continue;
                    }
                    *u = u.saturating_sub(util.max(1));
                }
            }
            self.move_task(task, src, dst);
            moved += 1;
            let only_one = kind == Kind::NewIdle && !self.rules.newidle_before_v5_16;
            if only_one || left.is_none() {
                break;
            }
        }
        (moved, kept)
    }

    /// can_migrate_task() but for the caches: `dst` is allowed, and the task's group is throttled on neither CPU.
    fn may_migrate(&self, task: TaskId, src: CpuId, dst: CpuId) -> bool {
        self.world.allows(self.world.task(task).affinity, dst)
            && !self.throttled_pair(task, src, dst)
    }

    /// Of the tasks that wait on `src`, the one that was enqueued or picked longest ago, and when: the
    /// tail of rq->cfs_tasks, or what comes before `last` there.
    fn coldest(&self, src: CpuId, last: Option<(Ns, TaskId)>) -> Option<(Ns, TaskId)> {
        let waiting = self.cpus[src].rq.waiting();
        let listed = waiting.map(|task| (self.tasks[task].listed_at, task));
        listed.filter(|&of| Some(of) > last).min()
    }

    /// task_hot(): it ran here within the migration cost, or it is a buddy and `dst` has work.
    fn cache_hot(
        &self,
        task: TaskId,
        src: CpuId,
        dst: CpuId,
        domain: &Domain,
        failed: u32,
    ) -> bool {
        if domain.level == Level::Smt || failed > domain.cache_nice_tries {
            return false;
        }
        let t = &self.tasks[task];
        self.world.nr_running(dst) > 0 && self.cpus[src].rq.is_buddy(task)
            || self.now.saturating_sub(t.exec_start) < MIGRATION_COST_NS
    }

    pub(crate) fn move_task(&mut self, task: TaskId, src: CpuId, dst: CpuId) {
        self.remove_shared_in_balance(dst, task);
        self.measured.counters.balance_migrations += 1;
        self.charge_both(src, dst);
        if self.bandwidth.is_some() {
            self.dequeue_groups(task, src);
        }
        self.advance_cpu(src);
        let t = &mut self.tasks[task];
        t.averages.advance(&self.rules.decay, self.now, false, u64::from(t.se.weight), 1);
        let c = &mut self.cpus[src];
        c.averages.detach(&t.averages);
        c.removed = true;
        c.rq.remove(task, &mut t.se);
        c.util_est = (c.util_est - t.util_est()).max(0.0);
        t.attaching = true;
        self.publish_load(src);
        let nr = self.world.nr_running(src) - 1;
        self.set_nr_running(src, nr);
        self.world.task_mut(task).prev_cpu = dst;
        self.enqueue(task, dst, Arrival::Moved);
        self.append_shared_in_balance(dst, task);
        // wakeup_preempt(). No interrupt is sent: `dst` balances itself, or is idle.
        self.preempted_by(dst, dst, task, true);
    }

    /// active_load_balance_cpu_stop(): a task of `src` goes to `dst`, hot or not: of those that may, the one
    /// that was enqueued or picked longest ago. What runs there is put back first, unless a wakeup of its own is
    /// under way, and the next pick decides.
    fn push(&mut self, src: CpuId, dst: CpuId) -> bool {
        let running = self.world.curr(src).some();
        let stays = |task| !self.world.allows(self.world.task(task).affinity, dst);
        if running.is_some_and(stays) {
            return false;
        }
        let running = running.filter(|_| self.cpus[src].step == Step::Op);
        if let Some(task) = running {
            let c = &mut self.cpus[src];
            c.settle(self.now);
            let left = c.activity;
            self.tasks[task].saved = Saved {
                busy_ns: left.busy,
                overhead_ns: left.stall + left.cost,
                user: left.user,
                some: true,
            };
            self.put_back(src);
        }
        let mut last = None;
        let moved = loop {
            last = self.coldest(src, last);
            let Some((_, task)) = last else { break false };
            if self.may_migrate(task, src, dst) {
                self.move_task(task, src, dst);
                break true;
            }
        };
        if running.is_some() {
            self.run_next(src, running, Toll::cost(self.hw.cost.migrate_ns));
            self.replan(src);
        }
        moved
    }
}

/// The CPU of a group that balances: the first of an idle core, else the first idle one, else
/// the group's first CPU.
fn balances(group: &[u16], idle: impl Fn(u16) -> bool, core: impl Fn(u16) -> bool) -> u16 {
    let free = || group.iter().copied().filter(|&cpu| idle(cpu));
    free().find(|&cpu| core(cpu)).or_else(|| free().next()).unwrap_or(group[0])
}

/// Sums over one group of a domain. `smt` if it is a core, and an idle CPU asks.
#[inline(always)]
fn group(
    world: &Known,
    published: &CpuVec<Published>,
    domain: &Domain,
    index: usize,
    smt: bool,
) -> Group {
    let cpus = &domain.groups[index];
    let mut g = Group::of(cpus.len());
    let mut runnable = 0.0;
    for &cpu in cpus {
        let c = &published[CpuId::from(cpu)];
        g.load += u64::from(c.load);
        g.util += u64::from(c.util);
        runnable += f64::from(c.runnable);
        let (nr, idle) = world.occupancy(CpuId::from(cpu));
        g.nr += u64::from(nr);
        g.idle += u64::from(idle);
    }
    let pct = domain.imbalance_pct;
    let runnable = || runnable as i64 as u64;
    let strained = || g.capacity * 100 < g.util * pct || g.capacity * pct < runnable() * 100;
    let spare = || g.capacity * 100 > g.util * pct && g.capacity * pct >= runnable() * 100;
    let overloaded = g.nr > g.weight && strained();
    g.kind = if smt && g.nr > 1 && !overloaded {
        GroupType::TwoTasks
    } else if g.nr < g.weight {
        GroupType::HasSpare
    } else if overloaded {
        GroupType::Overloaded
    } else if spare() {
        GroupType::HasSpare
    } else {
        GroupType::FullyBusy
    };
    g
}

/// The first maximum, as in loops that compare with `>`.
trait FirstMax: Iterator<Item = u16> + Sized {
    fn first_max_by_key(self, key: impl Fn(u16) -> u64) -> Option<u16> {
        self.fold(None, |best: Option<(u64, u16)>, cpu| {
            let value = key(cpu);
            match best {
                Some((most, _)) if value <= most => best,
                _ => Some((value, cpu)),
            }
        })
        .map(|(_, cpu)| cpu)
    }
}

impl<I: Iterator<Item = u16>> FirstMax for I {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_core_balances_before_an_idle_thread() {
        // CPUs 4 and 0, 5 and 1, 6 and 2 are cores.
        let of = |idle: &[u16], cores: bool| {
            let free = |cpu: u16| idle.contains(&cpu);
            balances(&[0, 1, 2, 4, 5, 6], free, |cpu| cores && free(cpu) && free((cpu + 4) % 8))
        };
        assert_eq!(of(&[1, 2, 6], true), 2);
        assert_eq!(of(&[1, 2, 6], false), 1);
        assert_eq!(of(&[5, 2], true), 2);
        assert_eq!(of(&[], true), 0);
    }
}

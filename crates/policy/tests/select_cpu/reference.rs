//! The wakeup path of Linux 6.2 with SIS_SHORT, clusters and SIS_NODE, and other kernels'
//! where they differ (see `variants`), written a second time: CPU by CPU,
//! slowly, and without looking at `policy/`, so that the two can be compared.
//! Names in comments are the kernel's functions in kernel/sched/fair.c and core.c.

use reveille_policy::{Rule, Tunables, bits};

use crate::variants::{Era, Scan, era};

#[derive(Clone, Debug)]
pub struct Cpu {
    pub available_idle: bool,
    pub sched_idle: bool,
    /// cache_hot_timeout of SIS_CACHE is in the future.
    pub cache_hot: bool,
    pub nr_running: u32,
    pub curr: Option<usize>,
    pub load: u32,
    pub capacity: u16,
    pub scan: Scan,
    pub llc: usize,
    /// All hardware threads of the core, by number.
    pub core: Vec<usize>,
    /// Its cluster, where there are some.
    pub cluster: usize,
}

#[derive(Clone, Debug)]
pub struct Llc {
    /// By number.
    pub cpus: Vec<usize>,
    pub has_idle_cores: bool,
    pub nr_idle_scan: u32,
    /// sds->icpus of SIS_FILTER: some of `cpus`. Without any the state is sd_is_busy.
    pub icpus: Vec<usize>,
    /// Memory node.
    pub node: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    pub wakee_flips: u32,
    pub decay_j: u64,
    pub last_wakee: Option<usize>,
    pub recent_used_cpu: usize,
}

#[derive(Clone, Debug)]
pub struct Task {
    pub history: History,
    pub dur_avg_ns: u64,
    pub prev_cpu: usize,
    pub load: u32,
    /// One entry per CPU.
    pub allowed: Vec<bool>,
    pub per_cpu_kthread: bool,
}

#[derive(Clone, Debug)]
pub struct Machine {
    pub cpus: Vec<Cpu>,
    pub llcs: Vec<Llc>,
    pub tasks: Vec<Task>,
    pub has_clusters: bool,
}

#[derive(Clone, Debug)]
pub struct Wakeup {
    pub wakee: usize,
    /// None: the idle task is current.
    pub waker: Option<usize>,
    pub this_cpu: usize,
    pub sync: bool,
    /// All others on its CPU are delayed.
    pub alone: bool,
    pub in_task: bool,
    pub now_j: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub cpu: usize,
    pub target: usize,
    pub rule: Rule,
    pub tested: u32,
    pub searched: u32,
    pub siblings: u32,
    pub far: u32,
    pub far_llcs: u32,
    pub asked: u32,
    pub search: bool,
    pub core_search: bool,
    pub cleared: bool,
    pub exhausted: bool,
}

impl Decision {
    /// SIS_NODE found it.
    pub fn cpu_is_far(&self, machine: &Machine) -> bool {
        machine.cpus[self.cpu].llc != machine.cpus[self.target].llc
    }

    /// A search came between the candidate and its choice.
    pub fn kept(&self) -> bool {
        self.search && matches!(self.rule, Rule::PrevIdle | Rule::RecentIdle)
    }
}

/// nr_hot of SIS_CACHE, and the first CPU that was passed over.
struct Hot {
    nr: i64,
    first: Option<usize>,
}

/// How a search ended.
enum Found {
    Cpu(usize, Rule),
    Nothing,
}

pub struct Reference<'a> {
    pub machine: &'a mut Machine,
    pub tunables: &'a Tunables,
    pub wakeup: &'a Wakeup,
    pub tested: u32,
    pub searched: u32,
    pub siblings: u32,
    far: u32,
    far_llcs: u32,
    asked: u32,
    pub search: bool,
    pub core_search: bool,
    cleared: bool,
    exhausted: bool,
}

/// select_task_rq_fair() with WF_TTWU.
pub fn select_cpu(machine: &mut Machine, tunables: &Tunables, wakeup: &Wakeup) -> Decision {
    let mut reference = Reference {
        machine,
        tunables,
        wakeup,
        tested: 0,
        searched: 0,
        siblings: 0,
        far: 0,
        far_llcs: 0,
        asked: 0,
        search: false,
        core_search: false,
        cleared: false,
        exhausted: false,
    };
    let (target, cpu, rule) = reference.select_task_rq_fair();
    Decision {
        cpu,
        target,
        rule,
        tested: reference.tested,
        searched: reference.searched,
        siblings: reference.siblings,
        far: reference.far,
        far_llcs: reference.far_llcs,
        asked: reference.asked,
        search: reference.search,
        core_search: reference.core_search,
        cleared: reference.cleared,
        exhausted: reference.exhausted,
    }
}

/// ttwu_queue_cond() of each era, behind the feature; `on_cpu`: try_to_wake_up() asks
/// before it would wait for the wakee to leave its CPU, which 5.8 was first to do.
pub fn ttwu_queue(
    machine: &Machine,
    tunables: &Tunables,
    this_cpu: usize,
    cpu: usize,
    on_cpu: bool,
) -> bool {
    let (v58, v60) = (tunables.has(bits::TTWU_QUEUE_ON_CPU), tunables.has(bits::TTWU_QUEUE_IDLE));
    if !tunables.has(bits::TTWU_QUEUE) || (on_cpu && !v58 && !v60) {
        return false;
    }
    let nr_running = machine.cpus[cpu].nr_running;
    if machine.cpus[this_cpu].llc != machine.cpus[cpu].llc {
        return true;
    }
    this_cpu != cpu && ((v60 && nr_running == 0) || (v58 && on_cpu && nr_running < 2))
}

impl Reference<'_> {
    pub fn cpu(&self, cpu: usize) -> &Cpu {
        &self.machine.cpus[cpu]
    }

    pub fn wakee(&self) -> &Task {
        &self.machine.tasks[self.wakeup.wakee]
    }

    pub fn available_idle(&self, cpu: usize) -> bool {
        self.cpu(cpu).available_idle
    }

    fn usable(&self, cpu: usize) -> bool {
        self.cpu(cpu).available_idle || self.cpu(cpu).sched_idle
    }

    pub fn share_cache(&self, a: usize, b: usize) -> bool {
        self.cpu(a).llc == self.cpu(b).llc
    }

    /// cpus_share_resources() of two CPUs that share a cache, while clusters count.
    fn share_cluster(&self, a: usize, b: usize) -> bool {
        !self.machine.has_clusters
            || !self.tunables.has(bits::SIS_CLUSTER)
            || self.cpu(a).cluster == self.cpu(b).cluster
    }

    pub fn allowed(&self, cpu: usize) -> bool {
        self.wakee().allowed[cpu]
    }

    /// is_short_task() of the mail.
    fn is_short(&self, task: Option<usize>) -> bool {
        let Some(task) = task.map(|t| &self.machine.tasks[t]) else { return false };
        self.tunables.has(bits::SIS_SHORT)
            && task.history.wakee_flips == 0
            && task.dur_avg_ns != 0
            && task.dur_avg_ns * 8 < self.tunables.min_granularity_ns
    }

    /// is_short_task() of SIS_SHORT v4.
    fn is_short_v4(&self, task: Option<usize>) -> bool {
        let dur_avg = task.map_or(0, |t| self.machine.tasks[t].dur_avg_ns);
        self.tunables.has(bits::SIS_SHORT_V4)
            && dur_avg != 0
            && dur_avg * 8 <= self.tunables.min_granularity_ns
    }

    /// wake_on_current() of SIS_CURRENT v8, where the wakee may run here.
    fn wakes_on_current(&self) -> bool {
        let Some(waker) = self.wakeup.waker else { return false };
        let this = self.wakeup.this_cpu;
        if !self.tunables.has(bits::SIS_CURRENT) || self.cpu(this).nr_running > 1 {
            return false;
        }
        let of = |task: usize| &self.machine.tasks[task];
        let long = |task: usize| of(task).dur_avg_ns == 0 || of(task).dur_avg_ns >= 500_000;
        if long(waker) || long(self.wakeup.wakee) {
            return false;
        }
        let (a, b) = (&of(waker).history, &of(self.wakeup.wakee).history);
        if a.wakee_flips > 0 || b.wakee_flips > 0 {
            return false;
        }
        let mutual = a.last_wakee == Some(self.wakeup.wakee) && b.last_wakee == Some(waker);
        mutual && self.allowed(this)
    }

    fn record_wakee(&mut self) {
        let Some(waker) = self.wakeup.waker else { return };
        let hz = u64::from(self.tunables.hz);
        let history = &mut self.machine.tasks[waker].history;
        if self.wakeup.now_j > history.decay_j + hz {
            history.wakee_flips /= 2;
            history.decay_j = self.wakeup.now_j;
        }
        if history.last_wakee != Some(self.wakeup.wakee) {
            history.last_wakee = Some(self.wakeup.wakee);
            history.wakee_flips += 1;
        }
    }

    fn wake_wide(&self) -> bool {
        let waker = self.wakeup.waker.map_or(0, |w| self.machine.tasks[w].history.wakee_flips);
        let wakee = self.wakee().history.wakee_flips;
        let master = u64::from(waker.max(wakee));
        let slave = u64::from(waker.min(wakee));
        let factor = self.machine.llcs[self.cpu(self.wakeup.this_cpu).llc].cpus.len() as u64;
        !(slave < factor || master < slave * factor)
    }

    fn select_task_rq_fair(&mut self) -> (usize, usize, Rule) {
        let this = self.wakeup.this_cpu;
        let prev = self.wakee().prev_cpu;
        self.record_wakee();
        if self.wakes_on_current() {
            return (this, this, Rule::Short);
        }
        let want_affine = !self.wake_wide() && self.allowed(this);
        let mut target = prev;
        if want_affine && this != prev {
            target = self.wake_affine(this, prev);
        }
        let era = era(self.tunables);
        let (cpu, rule) = match era {
            Era::V45 => self.select_idle_sibling_v45(prev, target),
            _ => self.select_idle_sibling(prev, target),
        };
        if era == Era::V513
            && !self.tunables.has(bits::RECENT_PREV)
            && want_affine
            && self.tunables.has(bits::RECENT_USED_CPU)
            && let Some(waker) = self.wakeup.waker
        {
            self.machine.tasks[waker].history.recent_used_cpu = this;
        }
        (target, cpu, rule)
    }

    fn wake_affine(&mut self, this: usize, prev: usize) -> usize {
        let mut target = None;
        if self.tunables.has(bits::WA_IDLE) {
            target = self.wake_affine_idle(this, prev);
        }
        if self.tunables.has(bits::WA_WEIGHT) && target.is_none() {
            target = if self.tunables.has(bits::WA_EFFECTIVE_LOAD) {
                self.wake_affine_v45(this, prev)
            } else {
                self.wake_affine_weight(this, prev)
            };
        }
        target.unwrap_or(prev)
    }

    fn wake_affine_idle(&mut self, this: usize, prev: usize) -> Option<usize> {
        let nr_running = self.cpu(this).nr_running;
        if self.available_idle(this) && self.share_cache(this, prev) {
            self.tested += 1;
            return if self.available_idle(prev) { Some(prev) } else { Some(this) };
        }
        if self.wakeup.sync && (nr_running == 1 || self.wakeup.alone) {
            return Some(this);
        }
        self.tested += 1;
        if self.available_idle(prev) {
            return Some(prev);
        }
        let curr = self.cpu(this).curr;
        if nr_running == 1 && (self.is_short(curr) || self.is_short_v4(curr)) {
            return Some(this);
        }
        None
    }

    fn wake_affine_weight(&self, this: usize, prev: usize) -> Option<usize> {
        // The lowest domain that spans both: of hardware threads, or a larger one.
        let siblings = self.cpu(this).core.contains(&prev);
        let pct =
            if siblings { self.tunables.smt_imbalance_pct } else { self.tunables.imbalance_pct };
        let mut this_eff_load = i128::from(self.cpu(this).load);
        if self.wakeup.sync {
            let current = self.wakeup.waker.map_or(0, |w| self.machine.tasks[w].load);
            if i128::from(current) > this_eff_load {
                return Some(this);
            }
            this_eff_load -= i128::from(current);
        }
        let task_load = i128::from(self.wakee().load);
        this_eff_load += task_load;
        if self.tunables.has(bits::WA_BIAS) {
            this_eff_load *= 100;
        }
        this_eff_load *= i128::from(self.cpu(prev).capacity);
        let mut prev_eff_load = i128::from(self.cpu(prev).load);
        prev_eff_load -= task_load;
        if self.tunables.has(bits::WA_BIAS) {
            prev_eff_load *= 100 + (i128::from(pct) - 100) / 2;
        }
        prev_eff_load *= i128::from(self.cpu(this).capacity);
        if self.wakeup.sync {
            prev_eff_load += 1;
        }
        if this_eff_load < prev_eff_load { Some(this) } else { None }
    }

    fn select_idle_sibling(&mut self, prev: usize, target: usize) -> (usize, Rule) {
        let this = self.wakeup.this_cpu;
        // 6.8: idle CPUs of other clusters are for when the search finds none.
        let mut kept = Vec::new();
        self.tested += 1;
        if self.usable(target) {
            return (target, Rule::TargetIdle);
        }
        if prev != target && self.share_cache(prev, target) {
            self.tested += 1;
            if self.usable(prev) {
                if self.share_cluster(prev, target) {
                    return (prev, Rule::PrevIdle);
                }
                kept.push((prev, Rule::PrevIdle));
            }
        }
        let kthread = self.wakeup.waker.is_some_and(|w| self.machine.tasks[w].per_cpu_kthread);
        let v513 = era(self.tunables) == Era::V513;
        if kthread
            && (self.wakeup.in_task || v513)
            && prev == this
            && self.cpu(this).nr_running <= 1
        {
            return (prev, Rule::Kthread);
        }
        let recent = self.wakee().history.recent_used_cpu;
        let tries_recent = self.tunables.has(bits::RECENT_USED_CPU);
        if tries_recent && (!v513 || self.tunables.has(bits::RECENT_PREV)) {
            self.machine.tasks[self.wakeup.wakee].history.recent_used_cpu = prev;
        }
        if tries_recent && recent != prev && recent != target && self.share_cache(recent, target) {
            self.tested += 1;
            if self.usable(recent) && self.allowed(recent) {
                self.machine.tasks[self.wakeup.wakee].history.recent_used_cpu = prev;
                if self.share_cluster(recent, target) {
                    return (recent, Rule::RecentIdle);
                }
                kept.push((recent, Rule::RecentIdle));
            }
        }
        // A cache with one CPU has no domain: sd_llc is null.
        if self.machine.llcs[self.cpu(target).llc].cpus.len() == 1 {
            return (target, Rule::Target);
        }
        let mut has_idle_core = false;
        if self.smt_active() {
            has_idle_core = self.machine.llcs[self.cpu(target).llc].has_idle_cores;
            if !has_idle_core && self.share_cache(prev, target) {
                for sibling in self.cpu(prev).core.clone() {
                    self.siblings += 1;
                    if sibling == prev || !self.allowed(sibling) {
                        continue;
                    }
                    self.tested += 1;
                    if self.usable(sibling) {
                        return (sibling, Rule::SiblingIdle);
                    }
                }
            }
        }
        if !has_idle_core
            && self.cpu(target).nr_running == 1
            && self.is_short_v4(self.cpu(target).curr)
            && self.is_short_v4(Some(self.wakeup.wakee))
        {
            return (target, Rule::Short);
        }
        if let Found::Cpu(cpu, rule) = self.select_idle_cpu(has_idle_core, target) {
            return (cpu, rule);
        }
        if let Some(&first) = kept.first() {
            return first;
        }
        match self.select_idle_node(target) {
            Found::Cpu(cpu, rule) => (cpu, rule),
            Found::Nothing => (target, Rule::Target),
        }
    }

    /// select_idle_node() of tip in June 2023, its limit, and the domain of two caches.
    fn select_idle_node(&mut self, target: usize) -> Found {
        if !self.tunables.has(bits::SIS_NODE) {
            return Found::Nothing;
        }
        let llcs = &self.machine.llcs;
        let own = self.cpu(target).llc;
        // The groups of the domain above, from the target's own on.
        let mut groups: Vec<usize> =
            (0..llcs.len()).filter(|&llc| llcs[llc].node == llcs[own].node).collect();
        groups.sort_by_key(|&llc| llcs[llc].cpus[0]);
        if self.tunables.has(bits::SIS_NODE_TOPOEXT) {
            groups = groups.chunks(2).find(|pair| pair.contains(&own)).unwrap().to_vec();
        }
        let at = groups.iter().position(|&llc| llc == own).unwrap();
        groups.rotate_left(at);
        groups.retain(|&llc| llc != own && llcs[llc].cpus.len() > 1);
        if self.tunables.has(bits::SIS_NODE_LIMIT) {
            groups.truncate(4);
        }
        for llc in groups {
            let has_idle_core = self.smt_active() && self.machine.llcs[llc].has_idle_cores;
            let first = self.machine.llcs[llc].cpus[0];
            let before = (self.searched, self.core_search, self.cleared, self.exhausted);
            let found = self.select_idle_cpu(has_idle_core, first);
            self.far += self.searched - before.0;
            self.far_llcs += 1;
            // What is told of a search is of that in the target's own cache.
            (_, self.core_search, self.cleared, self.exhausted) = before;
            if matches!(found, Found::Cpu(..)) {
                return found;
            }
        }
        Found::Nothing
    }

    /// sched_smt_active(): some core of the machine has more than one thread.
    fn smt_active(&self) -> bool {
        self.machine.cpus.iter().any(|cpu| cpu.core.len() > 1)
    }

    fn select_idle_cpu(&mut self, has_idle_core: bool, target: usize) -> Found {
        let llc = self.cpu(target).llc;
        let mut span = self.machine.llcs[llc].cpus.clone();
        let weight = span.len() as u64;
        let filter = self.tunables.has(bits::SIS_FILTER) && self.smt_active();
        if filter {
            span = self.machine.llcs[llc].icpus.clone();
            if span.is_empty() {
                return Found::Nothing; // sd_is_busy
            }
        }
        let mut nr = u64::MAX;
        let mut hot = Hot { nr: 0, first: None };
        if self.tunables.has(bits::SIS_UTIL) {
            nr = u64::from(self.machine.llcs[llc].nr_idle_scan) + 1;
            hot.nr = nr as i64 >> 1;
            if has_idle_core && self.tunables.has(bits::SIS_LIMITED_CORES) {
                nr = if nr > 1 { u64::MAX } else { 3 };
            } else if nr == 1 {
                return Found::Nothing;
            } else if has_idle_core {
                nr = u64::MAX;
            }
            if !has_idle_core
                && self.wakeup.this_cpu == target
                && 5 * nr < 3 * weight
                && self.cpu(target).nr_running <= 1
                && self.is_short(Some(self.wakeup.wakee))
                && self.is_short(self.cpu(target).curr)
                && self.allowed(target)
            {
                return Found::Cpu(target, Rule::Short);
            }
        }
        let v513 = era(self.tunables) == Era::V513;
        if v513 && !has_idle_core {
            nr = self.nr_by_cost(weight);
        }
        self.search = true;
        self.core_search = has_idle_core;

        // for_each_cpu_wrap(cpu, cpus, target + 1); up to 5.14 from target itself
        let from_target = v513 && !self.tunables.has(bits::RECENT_PREV);
        let first = if from_target { target } else { target + 1 };
        let mut in_mask = vec![false; self.machine.cpus.len()];
        for &cpu in &span {
            in_mask[cpu] = self.allowed(cpu);
        }
        let above = span.iter().copied().filter(|cpu| *cpu >= first);
        let below = span.iter().copied().filter(|cpu| *cpu < first);
        let mut order: Vec<usize> = above.chain(below).collect();
        // 6.8: first the cluster of the target.
        order.sort_by_key(|&cpu| !self.share_cluster(cpu, target));
        let mut fallback = None;
        // idle_cpu of the patch, which the end of the loop leaves as the last round set it.
        let mut idle_cpu = None;
        let mut spent = false;
        for cpu in order {
            if !in_mask[cpu] {
                continue;
            }
            nr -= 1;
            if nr == 0 {
                spent = true;
                break;
            }
            if has_idle_core {
                if self.select_idle_core(cpu, &mut in_mask, &mut fallback)
                    && !self.cache_hot_cpu(cpu, &mut hot)
                {
                    return Found::Cpu(cpu, Rule::IdleCore);
                }
                continue;
            }
            self.searched += 1;
            idle_cpu = self.usable(cpu).then_some(cpu);
            if idle_cpu.is_some() && !self.cache_hot_cpu(cpu, &mut hot) {
                return Found::Cpu(cpu, Rule::IdleCpu);
            }
        }
        self.exhausted |= spent;
        if !has_idle_core && !spent {
            let v1 = self.tunables.has(bits::SIS_CACHE_V1);
            fallback = if v1 { hot.first } else { idle_cpu.or(hot.first) };
        }
        if filter && fallback.is_none() {
            self.machine.llcs[llc].icpus.clear();
        }
        if has_idle_core || filter && fallback.is_none() {
            self.machine.llcs[llc].has_idle_cores = false;
            self.cleared = true;
        }
        fallback.map_or(Found::Nothing, |cpu| Found::Cpu(cpu, Rule::IdleCpu))
    }

    /// cache_hot_cpu() of SIS_CACHE, asked of an idle CPU as long as v2 allows.
    fn cache_hot_cpu(&mut self, cpu: usize, hot: &mut Hot) -> bool {
        if !self.tunables.has(bits::SIS_CACHE) {
            return false;
        }
        hot.nr -= 1;
        if hot.nr < 0 && !self.tunables.has(bits::SIS_CACHE_V1) {
            return false;
        }
        self.asked += 1;
        let is = self.cpu(cpu).cache_hot;
        if is && hot.first.is_none() {
            hot.first = Some(cpu);
        }
        is
    }

    /// Is every thread of the core idle? If not, remembers one that is usable.
    fn select_idle_core(
        &mut self,
        cpu: usize,
        in_mask: &mut [bool],
        fallback: &mut Option<usize>,
    ) -> bool {
        let core = self.cpu(cpu).core.clone();
        let mut idle = true;
        for &thread in &core {
            self.searched += 1;
            if !self.available_idle(thread) {
                idle = false;
                if fallback.is_some() {
                    break;
                }
                if self.cpu(thread).sched_idle && self.allowed(thread) {
                    *fallback = Some(thread);
                    break;
                }
                continue;
            }
            if fallback.is_none() && self.allowed(thread) {
                *fallback = Some(thread);
            }
        }
        if idle {
            return true;
        }
        for &thread in &core {
            in_mask[thread] = false;
        }
        false
    }
}

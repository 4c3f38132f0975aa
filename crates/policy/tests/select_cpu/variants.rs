//! What other kernels do otherwise than 6.2, for the reference: v4.5 with its search
//! by groups and the patch that takes the first idle thread, v5.13 with searches bounded
//! by what they cost, and SIS_FILTER's mask. Written without looking at `policy/`, as is the rest.

use std::collections::BTreeMap;

use reveille_policy::{Rule, Tunables, bits};

use crate::reference::{Cpu, Decision, Machine, Reference};

/// `avg_idle` and what belongs to it, of one CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    pub avg_idle: u64,
    pub avg_scan_cost: u64,
    pub wake_avg_idle: u64,
    pub wake_stamp: u64,
}

/// The kernels whose select_idle_sibling() differs in more than its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    V45,
    V513,
    V62,
}

pub fn era(tunables: &Tunables) -> Era {
    if tunables.has(bits::SIS_GROUP) || tunables.has(bits::SIS_FIRST) {
        Era::V45
    } else if tunables.has(bits::SIS_PROP) && !tunables.has(bits::SIS_UTIL) {
        Era::V513
    } else {
        Era::V62
    }
}

impl Reference<'_> {
    /// select_idle_sibling() of 4.5; idle_cpu() there knows nothing of SCHED_IDLE.
    pub fn select_idle_sibling_v45(&mut self, prev: usize, target: usize) -> (usize, Rule) {
        self.tested += 1;
        if self.available_idle(target) {
            return (target, Rule::TargetIdle);
        }
        if prev != target && self.share_cache(prev, target) {
            self.tested += 1;
            if self.available_idle(prev) {
                return (prev, Rule::PrevIdle);
            }
        }
        let span = self.machine.llcs[self.cpu(target).llc].cpus.clone();
        if span.len() == 1 {
            return (target, Rule::Target);
        }
        self.search = true;
        if self.tunables.has(bits::SIS_FIRST) {
            for cpu in span {
                if self.allowed(cpu) {
                    self.searched += 1;
                    if self.available_idle(cpu) {
                        return (cpu, Rule::IdleCpu);
                    }
                }
            }
            return (target, Rule::Target);
        }
        self.core_search = true;
        let core = self.cpu(target).core.clone();
        if core.len() < span.len() {
            let mut cores = BTreeMap::new();
            for &cpu in &span {
                cores.insert(*self.cpu(cpu).core.iter().min().unwrap(), self.cpu(cpu).core.clone());
            }
            let cores: Vec<Vec<usize>> = cores.into_values().collect();
            if let Some(cpu) = self.idle_group(cores, target) {
                return (cpu, Rule::IdleCore);
            }
        }
        match self.idle_group(core.into_iter().map(|cpu| vec![cpu]).collect(), target) {
            Some(cpu) => (cpu, Rule::SiblingIdle),
            None => (target, Rule::Target),
        }
    }

    /// The circular list of a domain's groups, from the one that holds the target.
    fn idle_group(&mut self, mut groups: Vec<Vec<usize>>, target: usize) -> Option<usize> {
        let own = groups.iter().position(|group| group.contains(&target)).unwrap();
        groups.rotate_left(own);
        'groups: for group in groups {
            let Some(&first) = group.iter().find(|&&cpu| self.allowed(cpu)) else { continue };
            for &cpu in &group {
                if cpu == target {
                    continue 'groups;
                }
                self.searched += 1;
                if !self.available_idle(cpu) {
                    continue 'groups;
                }
            }
            return Some(first);
        }
        None
    }

    /// wake_affine() of 4.5 with loads as source_load() and target_load() give them for
    /// index 0, of runnable tasks; the wakee sleeps and is none.
    pub fn wake_affine_v45(&self, this: usize, prev: usize) -> Option<usize> {
        let load = |cpu: usize| match self.cpu(cpu).nr_running {
            0 => 0,
            _ => i128::from(self.cpu(cpu).load),
        };
        let weight = i128::from(self.wakee().load);
        let mut this_load = load(this);
        let prev_load = (load(prev) - weight).max(0);
        if self.wakeup.sync {
            this_load -= self.wakeup.waker.map_or(0, |w| i128::from(self.machine.tasks[w].load));
        }
        let siblings = self.cpu(this).core.contains(&prev);
        let pct =
            if siblings { self.tunables.smt_imbalance_pct } else { self.tunables.imbalance_pct };
        let mut this_eff = 100 * i128::from(self.cpu(prev).capacity);
        let mut prev_eff =
            (100 + (i128::from(pct) - 100) / 2) * i128::from(self.cpu(this).capacity);
        if this_load > 0 {
            this_eff *= this_load + weight;
            prev_eff *= prev_load;
        }
        if this_eff <= prev_eff { Some(this) } else { None }
    }

    /// nr of SIS_PROP, of 5.13 or aged as in 5.14.
    pub fn nr_by_cost(&mut self, span_weight: u64) -> u64 {
        let now = self.wakeup.now_j;
        let aged = self.tunables.has(bits::SIS_AGE);
        let rq = &mut self.machine.cpus[self.wakeup.this_cpu].scan;
        let idle = if aged {
            while rq.wake_stamp < now && rq.wake_avg_idle > 0 {
                rq.wake_stamp += 1;
                rq.wake_avg_idle /= 2;
            }
            rq.wake_avg_idle
        } else {
            rq.avg_idle / 512
        };
        let cost = rq.avg_scan_cost + 1;
        let span = span_weight * idle;
        if span > 4 * cost { span / cost } else { 4 }
    }
}

/// What the end of select_idle_cpu() does when the search took `time`.
pub fn scan_done(
    machine: &mut Machine,
    tunables: &Tunables,
    this: usize,
    end: &Decision,
    time: u64,
) {
    if era(tunables) != Era::V513 || !end.search || end.core_search || end.exhausted {
        return;
    }
    let rq = &mut machine.cpus[this].scan;
    if tunables.has(bits::SIS_AGE) {
        rq.wake_avg_idle -= rq.wake_avg_idle.min(time);
    }
    let diff = time as i64 - rq.avg_scan_cost as i64;
    rq.avg_scan_cost = (rq.avg_scan_cost as i64 + diff / 8) as u64;
}

/// __update_idle_core() of SIS_FILTER: sets `cpu` in the mask, if that is what it does.
pub fn joins_filter(machine: &Machine, cpu: usize) -> bool {
    let Cpu { core, llc, .. } = &machine.cpus[cpu];
    let present = |cpu: usize| machine.llcs[*llc].icpus.contains(&cpu);
    let mut exist = present(cpu);
    for &sibling in core.iter().filter(|s| **s != cpu) {
        let state = &machine.cpus[sibling];
        if !state.available_idle && (exist || !state.sched_idle) {
            continue;
        }
        exist |= present(sibling);
    }
    !exist
}

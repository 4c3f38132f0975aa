//! Counters of one run and the figures derived from them.

use serde::{Deserialize, Serialize};

use crate::{Ns, Observed, RunResult};

/// What the scheduler did in the measured time. All are counts unless named `_ns`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Wake-ups placed on the CPU where the wakee last ran, or on the waker's own.
    pub wakeups_same_cpu: u64,
    /// Wake-ups placed on an SMT sibling of the waker's CPU.
    pub wakeups_sibling: u64,
    /// Wake-ups placed elsewhere in the waker's last-level cache.
    pub wakeups_same_llc: u64,
    /// Wake-ups placed in another last-level cache.
    pub wakeups_remote: u64,
    /// Searches of a last-level cache for an idle CPU.
    pub idle_searches: u64,
    /// CPUs that those searches looked at.
    pub cpus_searched: u64,
    /// Searches that found one.
    pub searches_found: u64,
    /// Wake-ups that chose a CPU which another waker had already chosen while
    /// it still looked idle (the race of the SIS_SHORT mail).
    pub stacked_wakeups: u64,
    /// Tasks that changed CPU at a wake-up.
    pub wakeup_migrations: u64,
    /// Tasks moved by load balancing, or pulled from a shared wake queue.
    pub balance_migrations: u64,
    /// Inter-processor interrupts sent.
    pub ipis: u64,
    /// Context switches from one task to another or to and from idle.
    pub context_switches: u64,
    /// Preemptions of a running task by a wake-up or a tick.
    pub preemptions: u64,
    /// Time spent waiting for runqueue locks, over all CPUs.
    pub lock_wait_ns: Ns,
    /// Time spent waiting for contended cache lines, over all CPUs.
    pub hot_line_wait_ns: Ns,
    /// Time spent waiting for the locks of shared wake queues to append a wakee.
    pub swqueue_append_wait_ns: Ns,
    /// The same to take one off: at its pick, at its dequeue, or to pull it elsewhere.
    pub swqueue_remove_wait_ns: Ns,
    /// Tasks that a CPU about to go idle pulled from a shared wake queue; they are
    /// among `balance_migrations` too.
    pub swqueue_pulls: u64,
    /// Time that the idle task was current, over all CPUs: idle, and the way in and out.
    pub idle_task_ns: Ns,
    /// Task activations: wake, place, run, block.
    pub activations: u64,
}

/// How one CPU spent the measured time. The three add up to the elapsed time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTime {
    /// Doing the workload's own work, system calls included.
    pub busy_ns: Ns,
    /// Idle.
    pub idle_ns: Ns,
    /// Kernel cost of scheduling: placement, switches, locks, idle exit, balancing.
    pub cost_ns: Ns,
}

/// The numbers that explain a result: shown below each row of a comparison. A number that
/// was not observed is NaN, which is another thing than 0; JSON has it as null.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Explain {
    /// Share of all CPU time spent idle, in percent.
    pub idle_pct: f64,
    /// Share of all CPU time that the idle task was current, in percent. The kernel
    /// calls all of it idle, leaving idle and queueing a wakee there included.
    pub idle_task_pct: f64,
    /// Share of all CPU time spent on scheduling itself, in percent.
    pub cost_pct: f64,
    /// Wake-ups per second placed on the waker's CPU.
    pub wakeups_same_cpu_per_s: f64,
    /// Wake-ups per second placed on an SMT sibling of the waker's CPU.
    pub wakeups_sibling_per_s: f64,
    /// Wake-ups per second placed elsewhere in the waker's last-level cache.
    pub wakeups_same_llc_per_s: f64,
    /// Wake-ups per second placed in another last-level cache.
    pub wakeups_remote_per_s: f64,
    /// Idle searches per second.
    pub idle_searches_per_s: f64,
    /// CPUs looked at per idle search.
    pub cpus_per_search: f64,
    /// Share of idle searches that found a CPU, in percent.
    pub search_success_pct: f64,
    /// Wake-ups per second that stacked onto a CPU already chosen by another waker.
    pub stacked_wakeups_per_s: f64,
    /// Migrations per second, by wake-ups and by balancing.
    pub migrations_per_s: f64,
    /// Inter-processor interrupts per second.
    pub ipis_per_s: f64,
    /// Context switches per second.
    pub context_switches_per_s: f64,
    /// Share of all CPU time lost waiting for runqueue locks, in percent.
    pub lock_wait_pct: f64,
    /// Share of all CPU time lost waiting for contended cache lines, in percent.
    pub hot_line_wait_pct: f64,
    /// Share of all CPU time lost waiting for the locks of shared wake queues to append
    /// a wakee, in percent. Not part of `lock_wait_pct`.
    pub swqueue_append_wait_pct: f64,
    /// The same to take a wakee off, in percent.
    pub swqueue_remove_wait_pct: f64,
    /// Both as a share of the CPU time that was not idle, in percent: what a profile of
    /// CPU cycles shows.
    pub swqueue_wait_busy_pct: f64,
    /// Tasks per second pulled from a shared wake queue before going idle.
    pub swqueue_pulls_per_s: f64,
    /// Median wakeup latency in ns.
    pub wakeup_p50_ns: f64,
    /// 99th percentile of wakeup latency in ns.
    pub wakeup_p99_ns: f64,
    /// Largest wakeup latency in ns.
    pub wakeup_max_ns: f64,
}

impl PartialEq for Explain {
    /// Are all figures the same? What is unknown in both is.
    fn eq(&self, other: &Explain) -> bool {
        let same = |a: f64, b: f64| a == b || a.is_nan() && b.is_nan();
        self.figures().iter().zip(other.figures()).all(|(a, b)| same(a.1, b.1))
    }
}

/// `part` of `whole` in percent; 0 of nothing is 0.
fn pct(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { 100.0 * part / whole }
}

impl Explain {
    /// What is known of a run of which nothing was observed.
    const UNKNOWN: Explain = Explain {
        idle_pct: f64::NAN,
        idle_task_pct: f64::NAN,
        cost_pct: f64::NAN,
        wakeups_same_cpu_per_s: f64::NAN,
        wakeups_sibling_per_s: f64::NAN,
        wakeups_same_llc_per_s: f64::NAN,
        wakeups_remote_per_s: f64::NAN,
        idle_searches_per_s: f64::NAN,
        cpus_per_search: f64::NAN,
        search_success_pct: f64::NAN,
        stacked_wakeups_per_s: f64::NAN,
        migrations_per_s: f64::NAN,
        ipis_per_s: f64::NAN,
        context_switches_per_s: f64::NAN,
        lock_wait_pct: f64::NAN,
        hot_line_wait_pct: f64::NAN,
        swqueue_append_wait_pct: f64::NAN,
        swqueue_remove_wait_pct: f64::NAN,
        swqueue_wait_busy_pct: f64::NAN,
        swqueue_pulls_per_s: f64::NAN,
        wakeup_p50_ns: f64::NAN,
        wakeup_p99_ns: f64::NAN,
        wakeup_max_ns: f64::NAN,
    };

    /// Derives the figures of one run.
    pub fn of(run: &RunResult) -> Explain {
        let all = Explain::of_counters(run);
        let Observed::FromOutside { migrations } = run.observed else { return all };
        let migrations_per_s = match (migrations, run.elapsed_ns) {
            (None, _) => f64::NAN,
            (Some(_), 0) => 0.0,
            (Some(count), elapsed) => count as f64 * 1e9 / elapsed as f64,
        };
        Explain {
            idle_task_pct: all.idle_task_pct,
            context_switches_per_s: all.context_switches_per_s,
            migrations_per_s,
            ..Explain::UNKNOWN
        }
    }

    /// Derives the figures of a run of which everything was observed.
    fn of_counters(run: &RunResult) -> Explain {
        let c = &run.counters;
        let cpu_time = (run.elapsed_ns as f64) * run.cpus.len() as f64;
        let per_s = |count: u64| {
            if run.elapsed_ns == 0 { 0.0 } else { count as f64 * 1e9 / run.elapsed_ns as f64 }
        };
        let idle: Ns = run.cpus.iter().map(|t| t.idle_ns).sum();
        let cost: Ns = run.cpus.iter().map(|t| t.cost_ns).sum();
        let searches = c.idle_searches as f64;
        Explain {
            idle_pct: pct(idle as f64, cpu_time),
            idle_task_pct: pct(c.idle_task_ns as f64, cpu_time),
            cost_pct: pct(cost as f64, cpu_time),
            wakeups_same_cpu_per_s: per_s(c.wakeups_same_cpu),
            wakeups_sibling_per_s: per_s(c.wakeups_sibling),
            wakeups_same_llc_per_s: per_s(c.wakeups_same_llc),
            wakeups_remote_per_s: per_s(c.wakeups_remote),
            idle_searches_per_s: per_s(c.idle_searches),
            cpus_per_search: if searches == 0.0 { 0.0 } else { c.cpus_searched as f64 / searches },
            search_success_pct: pct(c.searches_found as f64, searches),
            stacked_wakeups_per_s: per_s(c.stacked_wakeups),
            migrations_per_s: per_s(c.wakeup_migrations + c.balance_migrations),
            ipis_per_s: per_s(c.ipis),
            context_switches_per_s: per_s(c.context_switches),
            lock_wait_pct: pct(c.lock_wait_ns as f64, cpu_time),
            hot_line_wait_pct: pct(c.hot_line_wait_ns as f64, cpu_time),
            swqueue_append_wait_pct: pct(c.swqueue_append_wait_ns as f64, cpu_time),
            swqueue_remove_wait_pct: pct(c.swqueue_remove_wait_ns as f64, cpu_time),
            swqueue_wait_busy_pct: pct(
                (c.swqueue_append_wait_ns + c.swqueue_remove_wait_ns) as f64,
                cpu_time - idle as f64,
            ),
            swqueue_pulls_per_s: per_s(c.swqueue_pulls),
            wakeup_p50_ns: run.wakeup_latency.quantile(0.5) as f64,
            wakeup_p99_ns: run.wakeup_latency.quantile(0.99) as f64,
            wakeup_max_ns: run.wakeup_latency.max() as f64,
        }
    }

    /// Each figure with its name and value, in the order they are printed.
    pub fn figures(&self) -> [(&'static str, f64); 23] {
        [
            ("idle_pct", self.idle_pct),
            ("idle_task_pct", self.idle_task_pct),
            ("cost_pct", self.cost_pct),
            ("wakeups_same_cpu_per_s", self.wakeups_same_cpu_per_s),
            ("wakeups_sibling_per_s", self.wakeups_sibling_per_s),
            ("wakeups_same_llc_per_s", self.wakeups_same_llc_per_s),
            ("wakeups_remote_per_s", self.wakeups_remote_per_s),
            ("idle_searches_per_s", self.idle_searches_per_s),
            ("cpus_per_search", self.cpus_per_search),
            ("search_success_pct", self.search_success_pct),
            ("stacked_wakeups_per_s", self.stacked_wakeups_per_s),
            ("migrations_per_s", self.migrations_per_s),
            ("ipis_per_s", self.ipis_per_s),
            ("context_switches_per_s", self.context_switches_per_s),
            ("lock_wait_pct", self.lock_wait_pct),
            ("hot_line_wait_pct", self.hot_line_wait_pct),
            ("swqueue_append_wait_pct", self.swqueue_append_wait_pct),
            ("swqueue_remove_wait_pct", self.swqueue_remove_wait_pct),
            ("swqueue_wait_busy_pct", self.swqueue_wait_busy_pct),
            ("swqueue_pulls_per_s", self.swqueue_pulls_per_s),
            ("wakeup_p50_ns", self.wakeup_p50_ns),
            ("wakeup_p99_ns", self.wakeup_p99_ns),
            ("wakeup_max_ns", self.wakeup_max_ns),
        ]
    }

    /// The mean of each figure over `runs`; all zero if there are none.
    pub fn mean(runs: &[Explain]) -> Explain {
        let n = runs.len().max(1) as f64;
        let mean_of = |get: fn(&Explain) -> f64| runs.iter().map(get).sum::<f64>() / n;
        Explain {
            idle_pct: mean_of(|e| e.idle_pct),
            idle_task_pct: mean_of(|e| e.idle_task_pct),
            cost_pct: mean_of(|e| e.cost_pct),
            wakeups_same_cpu_per_s: mean_of(|e| e.wakeups_same_cpu_per_s),
            wakeups_sibling_per_s: mean_of(|e| e.wakeups_sibling_per_s),
            wakeups_same_llc_per_s: mean_of(|e| e.wakeups_same_llc_per_s),
            wakeups_remote_per_s: mean_of(|e| e.wakeups_remote_per_s),
            idle_searches_per_s: mean_of(|e| e.idle_searches_per_s),
            cpus_per_search: mean_of(|e| e.cpus_per_search),
            search_success_pct: mean_of(|e| e.search_success_pct),
            stacked_wakeups_per_s: mean_of(|e| e.stacked_wakeups_per_s),
            migrations_per_s: mean_of(|e| e.migrations_per_s),
            ipis_per_s: mean_of(|e| e.ipis_per_s),
            context_switches_per_s: mean_of(|e| e.context_switches_per_s),
            lock_wait_pct: mean_of(|e| e.lock_wait_pct),
            hot_line_wait_pct: mean_of(|e| e.hot_line_wait_pct),
            swqueue_append_wait_pct: mean_of(|e| e.swqueue_append_wait_pct),
            swqueue_remove_wait_pct: mean_of(|e| e.swqueue_remove_wait_pct),
            swqueue_wait_busy_pct: mean_of(|e| e.swqueue_wait_busy_pct),
            swqueue_pulls_per_s: mean_of(|e| e.swqueue_pulls_per_s),
            wakeup_p50_ns: mean_of(|e| e.wakeup_p50_ns),
            wakeup_p99_ns: mean_of(|e| e.wakeup_p99_ns),
            wakeup_max_ns: mean_of(|e| e.wakeup_max_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(observed: Observed) -> RunResult {
        let counters = Counters {
            idle_task_ns: 500,
            context_switches: 30,
            wakeup_migrations: 4,
            ..Counters::default()
        };
        RunResult {
            elapsed_ns: 1000,
            operations: 1,
            wakeup_latency: crate::Latency::default(),
            recorded_latency: Vec::new(),
            answers: Vec::new(),
            observed,
            counters,
            cpus: vec![CpuTime::default(); 2],
            groups: Vec::new(),
        }
    }

    #[test]
    fn what_was_not_observed_is_no_number_and_not_zero() {
        let seen = run(Observed::FromOutside { migrations: Some(7) }).explain();
        let known = ["idle_task_pct", "context_switches_per_s", "migrations_per_s"];
        for (name, value) in seen.figures() {
            assert_eq!(known.contains(&name), value.is_finite(), "{name} is {value}");
        }
        assert_eq!((seen.idle_task_pct, seen.migrations_per_s), (25.0, 7e6));
        assert!(
            run(Observed::FromOutside { migrations: None }).explain().migrations_per_s.is_nan()
        );
        let all = run(Observed::Everything).explain();
        assert!(all.figures().iter().all(|(_, value)| value.is_finite()));
        assert_eq!(all.migrations_per_s, 4e6);
        assert_eq!(seen, seen.clone());
        assert_ne!(seen, all);
    }
}

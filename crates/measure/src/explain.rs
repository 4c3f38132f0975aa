//! The figures that explain a run, derived from its counters.
//!
//! Those of idle searches are defined as in commit 70fb5ccf2ebb ("sched/fair: Introduce
//! SIS_UTIL"), whose tables were made with the counters of Mel Gorman's "sched/fair: Track
//! efficiency of select_idle_sibling" (linux-kernel, 2021-07-26).

use serde::Serialize;

use crate::{Counters, CpuTime, Direction, Latency, Ns, Observed, RunResult, enough_for};

#[derive(Debug)]
pub struct ExplainFigure {
    /// Its key in JSON, and what studies call it.
    pub name: &'static str,
    pub unit: &'static str,
    /// Which way is better. Rates follow throughput and idle time follows load, so neither is
    /// better by itself.
    pub direction: Direction,
    /// Which quantile of wakeup latency it is, if it is one.
    pub quantile: Option<f64>,
    pub value: fn(&Explain) -> f64,
}

/// Defines [`Explain`], each figure by its unit, which way is better, its quantile if it is one,
/// and how it follows from a run of which everything was observed, in the order in which they
/// are printed.
macro_rules! explain {
    ($(
        $(#[$doc:meta])*
        $name:ident: $unit:literal, $way:ident $(, $quantile:literal)? = $of:expr;
    )*) => {
        /// The numbers that explain a result: shown below each row of a comparison. A number
        /// that was not observed is NaN, which is another thing than 0; JSON has it as null.
        #[derive(Clone, Debug, Default, Serialize)]
        pub struct Explain {
            $($(#[$doc])* pub $name: f64,)*
            /// Wake-ups whose latency was measured, in the run that has fewest; `None` if
            /// latencies were not observed.
            #[serde(skip)]
            pub latencies: Option<u64>,
        }

        impl Explain {
            /// What is known of a run of which nothing was observed.
            const UNKNOWN: Explain = Explain { $($name: f64::NAN,)* latencies: None };

            fn of_counters(run: &RunResult) -> Explain {
                let seen = Seen::of(run);
                $(let $name: fn(&Seen<'_>) -> f64 = $of;)*
                Explain { $($name: $name(&seen),)* latencies: Some(seen.latency.count()) }
            }

            pub const FIGURES: &'static [ExplainFigure] = &[$(ExplainFigure {
                name: stringify!($name),
                unit: $unit,
                direction: Direction::$way,
                quantile: { let given: &[f64] = &[$($quantile)?]; given.first().copied() },
                value: |explain| explain.$name,
            }),*];

            pub fn figures(&self) -> impl Iterator<Item = (&'static str, f64)> {
                Explain::FIGURES.iter().map(|figure| (figure.name, (figure.value)(self)))
            }

            /// The mean of each figure over `runs`; all zero if there are none. A quantile for
            /// which some run has too few samples ([`enough_for`]) is NaN.
            pub fn mean(runs: &[Explain]) -> Explain {
                let n = runs.len().max(1) as f64;
                let latencies = runs.iter().map(|e| e.latencies).min().flatten();
                let mut mean = Explain {
                    $($name: runs.iter().map(|e| e.$name).sum::<f64>() / n,)*
                    latencies,
                };
                $($(if latencies.is_some_and(|samples| !enough_for(samples, $quantile)) {
                    mean.$name = f64::NAN;
                })?)*
                mean
            }
        }
    };
}

explain! {
    /// Share of all CPU time spent idle, in percent.
    idle_pct: "%", Neither = |s| pct(s.idle, s.cpu_time);
    /// Share of all CPU time that the idle task was current, in percent. The kernel
    /// calls all of it idle, leaving idle and queueing a wakee there included.
    idle_task_pct: "%", Neither = |s| pct(s.c.idle_task_ns as f64, s.cpu_time);
    /// Share of all CPU time spent on scheduling itself, in percent.
    cost_pct: "%", Lower = |s| pct(s.cost, s.cpu_time);
    /// Wake-ups per second: `ttwu_count` of /proc/schedstat, over all CPUs.
    ttwu_count_per_s: "1/s", Neither = |s| s.per_s(s.wakeups());
    /// Wake-ups per second placed on the waker's CPU: `ttwu_local`.
    ttwu_local_per_s: "1/s", Neither = |s| s.per_s(s.c.wakeups_same_cpu);
    /// Wake-ups per second placed on another: `ttwu_wake_remote`, over all domains.
    ttwu_wake_remote_per_s: "1/s", Neither = |s| s.per_s(s.wakeups() - s.c.wakeups_same_cpu);
    /// Wake-ups per second placed on the waker's CPU.
    wakeups_same_cpu_per_s: "1/s", Neither = |s| s.per_s(s.c.wakeups_same_cpu);
    /// Wake-ups per second placed on an SMT sibling of the waker's CPU.
    wakeups_sibling_per_s: "1/s", Neither = |s| s.per_s(s.c.wakeups_sibling);
    /// Wake-ups per second placed elsewhere in the waker's last-level cache.
    wakeups_same_llc_per_s: "1/s", Neither = |s| s.per_s(s.c.wakeups_same_llc);
    /// Wake-ups per second placed in another last-level cache.
    wakeups_remote_per_s: "1/s", Neither = |s| s.per_s(s.c.wakeups_remote);
    idle_searches_per_s: "1/s", Neither = |s| s.per_s(s.c.idle_searches);
    /// CPUs looked at per idle search.
    cpus_per_search: "CPUs", Lower = |s| ratio(s.c.cpus_searched as f64, s.c.idle_searches as f64);
    /// Idle CPUs found by runqueues scanned, in percent (se_eff% of commit 70fb5ccf2ebb).
    search_efficiency_pct: "%", Higher = |s| pct(s.found(), s.c.sis_scanned as f64);
    /// Efficiency of searches that went beyond target, previous and recent CPU, in percent
    /// (dom_eff%).
    domain_efficiency_pct: "%", Higher =
        |s| pct(s.found() - s.fast(), s.c.sis_scanned as f64 - s.fast());
    /// Share of searches that found one of those three idle, in percent (fast_rate%).
    fast_path_pct: "%", Higher = |s| pct(s.fast(), s.c.sis_search as f64);
    /// Share of searches that found an idle CPU at all, in percent (success_rate%).
    search_success_pct: "%", Higher = |s| pct(s.found(), s.c.sis_search as f64);
    /// Wake-ups per second that stacked onto a CPU already chosen by another waker.
    stacked_wakeups_per_s: "1/s", Lower = |s| s.per_s(s.c.stacked_wakeups);
    /// Migrations per second, by wake-ups and by balancing.
    migrations_per_s: "1/s", Neither = |s| s.per_s(s.c.wakeup_migrations + s.c.balance_migrations);
    /// Tasks per second that new-idle balancing pulled: `lb_gained[CPU_NEWLY_IDLE]`, over
    /// all domains.
    lb_gained_newidle_per_s: "1/s", Neither = |s| s.per_s(s.c.newidle_pulls);
    /// Inter-processor interrupts per second.
    ipis_per_s: "1/s", Neither = |s| s.per_s(s.c.ipis);
    context_switches_per_s: "1/s", Neither = |s| s.per_s(s.c.context_switches);
    /// Share of all CPU time lost waiting for runqueue locks, in percent.
    lock_wait_pct: "%", Lower = |s| pct(s.c.lock_wait_ns as f64, s.cpu_time);
    /// Share of all CPU time lost waiting for contended cache lines, in percent.
    hot_line_wait_pct: "%", Lower = |s| pct(s.c.hot_line_wait_ns as f64, s.cpu_time);
    /// Share of all CPU time lost waiting for the locks of shared wake queues to append
    /// a wakee, in percent. Not part of `lock_wait_pct`.
    swqueue_append_wait_pct: "%", Lower = |s| pct(s.c.swqueue_append_wait_ns as f64, s.cpu_time);
    /// Share of all CPU time lost waiting for the same locks to remove a wakee, in percent.
    swqueue_remove_wait_pct: "%", Lower = |s| pct(s.c.swqueue_remove_wait_ns as f64, s.cpu_time);
    /// Both as a share of the CPU time that was not idle, in percent: what a profile of
    /// CPU cycles shows.
    swqueue_wait_busy_pct: "%", Lower = |s| {
        let wait = s.c.swqueue_append_wait_ns + s.c.swqueue_remove_wait_ns;
        pct(wait as f64, s.cpu_time - s.idle)
    };
    /// Tasks per second pulled from a shared wake queue before going idle.
    swqueue_pulls_per_s: "1/s", Neither = |s| s.per_s(s.c.swqueue_pulls);
    /// Median wakeup latency in ns.
    wakeup_p50_ns: "ns", Lower, 0.5 = |s| s.latency.quantile(0.5) as f64;
    /// 99th percentile of wakeup latency in ns.
    wakeup_p99_ns: "ns", Lower, 0.99 = |s| s.latency.quantile(0.99) as f64;
    /// Largest wakeup latency in ns.
    wakeup_max_ns: "ns", Lower = |s| s.latency.max() as f64;
}

/// A run as its figures are read off it.
struct Seen<'a> {
    c: &'a Counters,
    latency: &'a Latency,
    elapsed_ns: Ns,
    /// These three over all CPUs.
    cpu_time: f64,
    idle: f64,
    cost: f64,
}

impl Seen<'_> {
    fn of(run: &RunResult) -> Seen<'_> {
        let sum = |of: fn(&CpuTime) -> Ns| run.cpus.iter().map(of).sum::<Ns>() as f64;
        Seen {
            c: &run.counters,
            latency: &run.wakeup_latency,
            elapsed_ns: run.elapsed_ns,
            cpu_time: run.elapsed_ns as f64 * run.cpus.len() as f64,
            idle: sum(|t| t.idle_ns),
            cost: sum(|t| t.cost_ns),
        }
    }

    fn per_s(&self, count: u64) -> f64 {
        ratio(count as f64 * 1e9, self.elapsed_ns as f64)
    }

    fn wakeups(&self) -> u64 {
        let c = self.c;
        c.wakeups_same_cpu + c.wakeups_sibling + c.wakeups_same_llc + c.wakeups_remote
    }

    /// Searches that found an idle CPU.
    fn found(&self) -> f64 {
        self.c.sis_search as f64 - self.c.sis_failed as f64
    }

    /// Searches that ended before the cache was looked through.
    fn fast(&self) -> f64 {
        self.c.sis_search as f64 - self.c.sis_domain_search as f64
    }
}

impl PartialEq for Explain {
    /// Are all figures the same? What is unknown in both is.
    fn eq(&self, other: &Explain) -> bool {
        let same = |a: f64, b: f64| a == b || a.is_nan() && b.is_nan();
        self.figures().zip(other.figures()).all(|(a, b)| same(a.1, b.1))
    }
}

/// `part` by `whole`; 0 of nothing is 0.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { part / whole }
}

fn pct(part: f64, whole: f64) -> f64 {
    100.0 * ratio(part, whole)
}

impl Explain {
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
        assert!(all.figures().all(|(_, value)| value.is_finite()));
        assert_eq!(all.migrations_per_s, 4e6);
        assert_eq!(seen, seen.clone());
        assert_ne!(seen, all);
    }

    /// Netperf TCP_RR of 224 clients in commit 70fb5ccf2ebb: 4.874, 3.661, 25.775, 99.767%.
    #[test]
    fn efficiencies_are_those_of_the_published_table() {
        let mut run = run(Observed::Everything);
        run.counters.sis_search = 100_000;
        run.counters.sis_domain_search = 74_225;
        run.counters.sis_scanned = 2_046_922;
        run.counters.sis_failed = 233;
        let e = run.explain();
        let rates = [e.search_efficiency_pct, e.domain_efficiency_pct, e.fast_path_pct];
        assert_eq!(rates.map(|x| (1e3 * x).round()), [4874.0, 3661.0, 25_775.0]);
        assert_eq!((1e3 * e.search_success_pct).round(), 99_767.0);
        run.counters = Counters::default();
        assert_eq!(run.explain().domain_efficiency_pct, 0.0);
    }
}

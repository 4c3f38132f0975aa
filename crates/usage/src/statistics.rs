//! Summary of a recording, and what it is too short to tell.

use reveille_measure::statistics::nearest_rank;
use reveille_measure::{BEYOND_QUANTILE, enough_for, needed_for, seconds_text};
use reveille_policy::BandwidthLimits;
use serde::Serialize;

use crate::{HostLoad, Ns, Origin, Usage};

/// Default period of kernels and container runtimes.
const DEFAULT_PERIOD_NS: Ns = 100_000_000;

/// A stretch of a thread's work on unlimited CPUs.
struct Run {
    begin_ns: Ns,
    end_ns: Ns,
}

/// CPU time per period of 100 ms on unlimited CPUs, as a share of one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PeriodUse {
    /// Median over periods; `None` if there are too few ([`enough_for`]).
    pub p50: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
    pub max: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    pub name: String,
    pub origin: Origin,
    pub span_ns: Ns,
    pub threads: u32,
    pub demands: usize,
    pub samples: usize,
    pub mean_cpus: f64,
    /// Maximum number of threads busy at once on unlimited CPUs.
    pub max_parallel: u32,
    /// Use by period; `None` if the recording is shorter than one.
    pub period_use: Option<PeriodUse>,
    /// Limits in force during the recording, if known.
    pub limits: Option<BandwidthLimits>,
    /// Periods counted during the recording.
    pub nr_periods: u64,
    pub nr_throttled: u64,
    pub throttled_ns: Ns,
    /// CPUs of the recorded host, if known.
    pub host_cpus: Option<u32>,
    /// Start, in nanoseconds of Unix time, if known.
    pub began_unix_ns: Option<u64>,
    /// [`Usage::unseen_ns`].
    pub unseen_ns: Option<Ns>,
    /// CPUs used by the recorder, if measured.
    pub overhead: Option<f64>,
    /// Load of the recorded host, if measured.
    pub host_load: Option<HostLoad>,
    /// Share of its periods in which a group around this one was throttled, the largest; if counted.
    pub throttled_around: Option<f64>,
    /// The recording's own warnings, and those of [`Usage::check`].
    pub warnings: Vec<String>,
}

impl Usage {
    pub fn mean_cpus(&self) -> f64 {
        let cpu_ns: u128 = self.demands.iter().map(|demand| u128::from(demand.cpu_ns)).sum();
        cpu_ns as f64 / self.span_ns as f64
    }

    /// Maximum number of threads busy at once, given a CPU for each and no limit.
    pub fn max_parallel(&self) -> u32 {
        let runs: Vec<Run> = self.runs().filter(|run| run.end_ns > run.begin_ns).collect();
        let mut begins: Vec<Ns> = runs.iter().map(|run| run.begin_ns).collect();
        let mut ends: Vec<Ns> = runs.iter().map(|run| run.end_ns).collect();
        begins.sort_unstable();
        ends.sort_unstable();
        let (mut ended, mut most) = (0, 0);
        for (begun, begin_ns) in begins.iter().enumerate() {
            while ends[ended] <= *begin_ns {
                ended += 1;
            }
            most = most.max(begun + 1 - ended);
        }
        most as u32
    }

    /// CPU time that it would use in each period of `period_ns`, given a CPU for each thread and no
    /// limit. The first period begins at `phase_ns`. The recording wraps around; an incomplete last
    /// period is left out.
    ///
    /// # Panics
    /// If `period_ns` is 0.
    pub fn per_period(&self, period_ns: Ns, phase_ns: Ns) -> Vec<Ns> {
        let span_ns = self.span_ns;
        let mut used = vec![0; (span_ns / period_ns) as usize];
        let phase_ns = phase_ns % span_ns;
        let mut everywhere: Ns = 0;
        for Run { begin_ns, end_ns } in self.runs() {
            // Work past the end runs in the repetition.
            let mut at_ns = (begin_ns % span_ns + (span_ns - phase_ns)) % span_ns;
            everywhere = everywhere.saturating_add((end_ns - begin_ns) / span_ns);
            let mut left_ns = (end_ns - begin_ns) % span_ns;
            while left_ns > 0 {
                let period = at_ns / period_ns;
                let end_ns = ((period + 1) * period_ns).min(span_ns);
                let here_ns = left_ns.min(end_ns - at_ns);
                if let Some(used) = used.get_mut(period as usize) {
                    *used += here_ns;
                }
                left_ns -= here_ns;
                at_ns = (at_ns + here_ns) % span_ns;
            }
        }
        for used in &mut used {
            *used = used.saturating_add(everywhere.saturating_mul(period_ns));
        }
        used
    }

    /// Each thread's work, served in order without waiting.
    fn runs(&self) -> impl Iterator<Item = Run> {
        let mut free_at = vec![0; self.threads as usize];
        self.demands.iter().map(move |demand| {
            let free = &mut free_at[demand.thread as usize];
            let begin_ns = demand.at_ns.max(*free);
            let end_ns = begin_ns.saturating_add(demand.cpu_ns);
            *free = end_ns;
            Run { begin_ns, end_ns }
        })
    }

    /// Is it long enough for this quantile of latency? At least ten demands must lie beyond it.
    ///
    /// # Errors
    /// Why not, and how much is needed, as whole sentences.
    pub fn enough_for(&self, quantile: f64) -> Result<(), String> {
        let percent = format!("p{}", (quantile * 1e8).round() / 1e6);
        if let Origin::Averaged { step_ns } = self.origin {
            return Err(format!(
                "Averages over {} s say nothing about {percent}: use `reveille record`.",
                step_ns as f64 / 1e9
            ));
        }
        if quantile >= 1.0 {
            return Err("No recording is long enough for the largest of all latencies; a longer \
                        one can always hold a larger one."
                .into());
        }
        let count = self.demands.len() as u64;
        if enough_for(count, quantile) {
            return Ok(());
        }
        let needed = needed_for(quantile);
        if count == 0 {
            return Err(format!("It has no demands; {percent} needs {needed} of them."));
        }
        let span_s = self.span_ns as f64 / 1e9;
        Err(format!(
            "It is too short for {percent}: {count} demands in {span_s:.3} s, and {needed} are \
             needed for {BEYOND_QUANTILE} beyond it, which is about {:.0} s at that rate.",
            (span_s * needed as f64 / count as f64).ceil()
        ))
    }

    pub fn check(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.demands.iter().all(|demand| demand.cpu_ns == 0) {
            warnings.push("It needs no CPU time at all.".into());
            return warnings;
        }
        warnings.extend(self.crowding());
        if self.span_ns < 100 * DEFAULT_PERIOD_NS {
            warnings.push(format!(
                "It is {} long, fewer than a hundred periods of 100 ms.",
                seconds_text(self.span_ns)
            ));
        }
        if !matches!(self.origin, Origin::Averaged { .. }) {
            warnings.extend(self.enough_for(0.99).err());
        }
        if let Origin::Sampled { resolution_ns } = self.origin
            && resolution_ns > 2_000_000
        {
            warnings.push(format!(
                "It was sampled every {} ms: shorter pieces of work run together.",
                resolution_ns as f64 / 1e6
            ));
        }
        let overloaded = self.overloaded();
        if overloaded > 0 {
            warnings.push(format!(
                "{overloaded} of {} threads have more work than time: repeated, it is never done.",
                self.threads
            ));
        }
        warnings
    }

    /// Number of threads with more CPU time than the recording is long.
    pub fn overloaded(&self) -> usize {
        let mut cpu_ns = vec![0; self.threads as usize];
        for demand in &self.demands {
            cpu_ns[demand.thread as usize] += u128::from(demand.cpu_ns);
        }
        cpu_ns.iter().filter(|&&cpu_ns| cpu_ns > u128::from(self.span_ns)).count()
    }

    pub fn summary(&self) -> Summary {
        let last = self.samples.last().copied().unwrap_or_default();
        Summary {
            name: self.name.clone(),
            origin: self.origin,
            span_ns: self.span_ns,
            threads: self.threads,
            demands: self.demands.len(),
            samples: self.samples.len(),
            mean_cpus: self.mean_cpus(),
            max_parallel: self.max_parallel(),
            period_use: match self.origin {
                Origin::Averaged { .. } => None,
                _ => period_use(self.per_period(DEFAULT_PERIOD_NS, 0)),
            },
            limits: self.limits,
            nr_periods: last.nr_periods,
            nr_throttled: last.nr_throttled,
            throttled_ns: last.throttled_ns,
            host_cpus: self.host_cpus,
            began_unix_ns: self.began_unix_ns,
            unseen_ns: self.unseen_ns,
            overhead: self.overhead,
            host_load: self.host_load,
            throttled_around: self.throttled_around,
            warnings: self.warnings.iter().cloned().chain(self.check()).collect(),
        }
    }
}

fn period_use(mut used: Vec<Ns>) -> Option<PeriodUse> {
    used.sort_unstable();
    let max = used.last()?;
    let share = |ns: Ns| ns as f64 / DEFAULT_PERIOD_NS as f64;
    let quantile = |q: f64| {
        let index = nearest_rank(used.len(), q).filter(|_| enough_for(used.len() as u64, q));
        index.map(|index| share(used[index]))
    };
    Some(PeriodUse {
        p50: quantile(0.5),
        p95: quantile(0.95),
        p99: quantile(0.99),
        max: share(*max),
    })
}

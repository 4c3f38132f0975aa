//! Repeated runs of one command on this host, and two such sets side by side.

use reveille_host::command::CommandRun;
use reveille_measure::statistics::{interpolated, sorted};
use reveille_measure::{Direction, GroupStats, HostContext, Metric, Ns, enough_for};
use serde::{Deserialize, Serialize};

use crate::judge::statistics::{Figure, change_pct, figure, welch_p};

/// The form of [`BenchRuns`] as JSON; changes when a key is renamed or changes its unit.
pub const BENCH_FORMAT: u32 = 1;

/// What `reveille bench -- COMMAND` measured, as `--save` and `--json` write it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BenchRuns {
    pub format: u32,
    /// The program, then its arguments.
    pub command: Vec<String>,
    /// CPUs that it ran on; all that were allowed if there are none.
    pub cpus: Vec<u32>,
    /// Did each run have a fresh task group?
    pub task_group: bool,
    pub limit: Option<String>,
    /// Runs before these, which do not count.
    pub warmup: u32,
    /// The kernel's tick, if known.
    #[serde(default)]
    pub tick_ns: Option<Ns>,
    pub runs: Vec<CommandRun>,
    pub group: Option<GroupStats>,
    pub host: HostContext,
}

/// One metric over all runs.
#[derive(Clone, Debug, Serialize)]
pub struct BenchFigure {
    /// A count has no unit.
    pub metric: Metric,
    /// Half of the runs took no more; null with fewer than 20.
    pub p50: Option<f64>,
    /// Null with fewer than 100 runs.
    pub p90: Option<f64>,
    /// Null with fewer than 1,000 runs.
    pub p99: Option<f64>,
    /// All figures of user and of system time are NaN, null in JSON, if the CPU time is too short.
    pub min: f64,
    pub max: f64,
    #[serde(flatten)]
    pub figure: Figure,
}

#[derive(Clone, Debug, Serialize)]
pub struct BenchChange {
    pub metric: Metric,
    pub before: BenchFigure,
    pub after: BenchFigure,
    /// Of the mean, in percent; a negative one is less.
    pub change_pct: f64,
    /// Welch's t-test of the means; null with fewer than two runs on a side.
    pub p_value: Option<f64>,
    /// `p_value` < 0.05.
    pub significant: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct BenchComparison {
    pub rows: Vec<BenchChange>,
    /// What besides time may have changed the figures: another command, kernel or CPUs.
    pub differences: Vec<String>,
}

/// Name, unit, is it part of the CPU time, and what it is of a run.
type Taken = (&'static str, &'static str, bool, fn(&CommandRun) -> u64);

/// The kernel sees at ticks whether a task runs in user space or in the kernel, and splits CPU time
/// by what it saw: less time than this many ticks is split by chance.
const TICKS: Ns = 10;
/// The tick of kernels with HZ=250, the usual one.
const USUAL_TICK_NS: Ns = 4_000_000;

const METRICS: [Taken; 6] = [
    ("wall time", "ns", false, |run| run.wall_ns),
    ("CPU time", "ns", false, |run| run.user_ns + run.system_ns),
    ("user time", "ns", true, |run| run.user_ns),
    ("system time", "ns", true, |run| run.system_ns),
    ("voluntary switches", "", false, |run| run.voluntary_switches),
    ("involuntary switches", "", false, |run| run.involuntary_switches),
];

impl BenchRuns {
    pub fn figures(&self) -> Vec<BenchFigure> {
        METRICS.iter().map(|taken| self.figure(taken)).collect()
    }

    fn samples(&self, taken: &Taken) -> Vec<f64> {
        let told =
            |run| if taken.2 && self.is_hardly_split() { f64::NAN } else { taken.3(run) as f64 };
        self.runs.iter().map(told).collect()
    }

    /// CPU time of a run from which on its parts are told.
    pub fn split_from_ns(&self) -> Ns {
        TICKS * self.tick_ns.unwrap_or(USUAL_TICK_NS)
    }

    /// Is the CPU time of a run too short to tell its parts?
    pub fn is_hardly_split(&self) -> bool {
        let used: Ns = self.runs.iter().map(|run| run.user_ns + run.system_ns).sum();
        used < self.split_from_ns() * self.runs.len() as Ns
    }

    fn figure(&self, taken: &Taken) -> BenchFigure {
        let samples = self.samples(taken);
        let sorted = sorted(&samples);
        let enough = |q: f64| enough_for(samples.len() as u64, q);
        let at = |q: f64| enough(q).then(|| interpolated(&sorted, q));
        BenchFigure {
            metric: Metric::new(taken.0, taken.1, Direction::Lower),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            min: interpolated(&sorted, 0.0),
            max: interpolated(&sorted, 1.0),
            figure: figure(&samples),
        }
    }

    pub fn compare(&self, after: &BenchRuns) -> BenchComparison {
        let change = |taken: &Taken| {
            let samples = [self.samples(taken), after.samples(taken)];
            let [before, after] = [self.figure(taken), after.figure(taken)];
            let p_value = welch_p(&samples[0], &samples[1]);
            BenchChange {
                metric: before.metric.clone(),
                change_pct: change_pct(Direction::Neither, before.figure.mean, after.figure.mean),
                before,
                after,
                p_value,
                significant: p_value.is_some_and(|p| p < 0.05),
            }
        };
        BenchComparison {
            rows: METRICS.iter().map(change).collect(),
            differences: self.differences(after),
        }
    }

    fn differences(&self, after: &BenchRuns) -> Vec<String> {
        let cpus = |runs: &BenchRuns| match runs.cpus.as_slice() {
            [] => "all".to_owned(),
            cpus => cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(","),
        };
        let group = |runs: &BenchRuns| match (&runs.limit, runs.task_group) {
            (Some(limit), _) => limit.clone(),
            (None, true) => "without a limit".to_owned(),
            (None, false) => "none".to_owned(),
        };
        let facts = |runs: &BenchRuns| {
            [
                ("command", runs.command.join(" ")),
                ("CPUs", cpus(runs)),
                ("task group", group(runs)),
                ("kernel", runs.host.kernel.clone()),
                ("processor", runs.host.cpu.clone()),
                ("governor", runs.host.governor.clone().unwrap_or_else(|| "none".to_owned())),
                ("scheduler", runs.host.sched_ext.clone().unwrap_or_else(|| "none".to_owned())),
            ]
        };
        let both = facts(self).into_iter().zip(facts(after));
        let unlike = both.filter(|(before, after)| before != after);
        unlike.map(|((what, was), (_, is))| format!("{what}: {was} before, {is} after")).collect()
    }
}

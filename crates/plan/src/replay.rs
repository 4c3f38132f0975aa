//! One simulator run: recordings under limits at one phase of the period, and the figures that
//! goals refer to.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use reveille_machine::{Machine, Topology};
use reveille_measure::{RunResult, RunSpec, UNANSWERED};
use reveille_place::Mistake;
use reveille_policy::{BandwidthLimits, Groups, Policy, TaskGroup};
use reveille_sim::MAX_RUN_NS;
use reveille_workload::Program;

use crate::figures::Figures;
use crate::goal::{Goal, Subject, quantile_of};
use crate::lean::Lean;
use crate::load::Load;
use crate::{Ns, PlanError, Result};

/// Minimum warm-up, in time and in periods: long enough for banks and backlog to reach a steady state.
const WARMUP_NS: Ns = 2_000_000_000;
const WARMUP_PERIODS: Ns = 5;

/// Golden ratio: its multiples are evenly spread over the circle for any count.
const GOLDEN: f64 = 0.618_033_988_749_894_9;
/// The same, in no simple relation to the golden ratio.
const SILVER: f64 = std::f64::consts::SQRT_2 - 1.0;

/// Parameters shared by all runs.
pub(crate) struct Stage<'a> {
    pub(crate) machine: Machine,
    pub(crate) policy: Policy,
    pub(crate) slice_ns: Ns,
    pub(crate) within: Option<BandwidthLimits>,
    /// Limits of the neighbours, in the order of their recordings.
    pub(crate) neighbours: Vec<Option<BandwidthLimits>>,
    pub(crate) goals: &'a [Goal],
    /// What a latency of the model stands for, as a multiple.
    pub(crate) latency_times: f64,
    pub(crate) seed: u64,
    pub(crate) stop: &'a AtomicBool,
    pub(crate) runs: AtomicU64,
    pub(crate) simulated_ns: AtomicU64,
    /// Called after each run.
    pub(crate) tell: &'a (dyn Fn() + Sync),
}

impl<'a> Stage<'a> {
    /// Without neighbours, a parent's limit and goals.
    pub(crate) fn new(
        machine: Machine,
        policy: Policy,
        (slice_ns, seed): (Ns, u64),
        stop: &'a AtomicBool,
        tell: &'a (dyn Fn() + Sync),
    ) -> Stage<'a> {
        Stage {
            machine,
            policy,
            slice_ns,
            within: None,
            neighbours: Vec::new(),
            goals: &[],
            latency_times: 1.0,
            seed,
            stop,
            runs: AtomicU64::new(0),
            simulated_ns: AtomicU64::new(0),
            tell,
        }
    }
}

/// `cpus` CPUs without SMT, with costs, tick and idle states of `like`: recorded CPU time already
/// includes effects of SMT and of noise.
///
/// # Errors
/// [`InputError::Option`](reveille_place::InputError::Option) for an impossible number of CPUs.
pub fn cpus_like(like: &Machine, cpus: u32) -> Result<Machine> {
    let topology = Topology::uniform(1, 1, cpus, 1).map_err(|error| {
        let help = "name as many CPUs as the group may run on";
        PlanError::option("--cpus", Mistake::new(error.to_string(), help))
    })?;
    let mut machine = Machine { topology, ..like.clone() };
    machine.cost.noise = 0.0;
    Ok(machine)
}

/// Where a run's clocks stand when the recording begins: each group's period and the tick, which a
/// host sets independently of the load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Phase {
    /// Of the group's own period, as a fraction of it.
    pub(crate) own: f64,
    /// Of the first neighbour's; the following ones are derived from it.
    pub(crate) others: f64,
    /// Of the tick.
    pub(crate) tick: f64,
}

impl Phase {
    /// Midpoint of part `index` of `of` equal parts.
    pub(crate) fn of_grid(index: u32, of: u32) -> Phase {
        let own = (f64::from(index) + 0.5) / f64::from(of);
        let part = |ratio: f64| (f64::from(index) * ratio).fract();
        Phase { own, others: part(GOLDEN), tick: part(SILVER) }
    }

    /// Start of the group's first period in the run.
    pub(crate) fn of_period(&self, period_ns: Ns) -> Ns {
        (self.own * period_ns as f64) as Ns
    }

    /// Phase of a draw: even draws are evenly spaced, odd ones fall between them.
    pub(crate) fn of_draw(draw: u32, of: u32) -> Phase {
        if draw.is_multiple_of(2) {
            return Phase::of_grid(draw / 2, of / 2);
        }
        let part = |ratio: f64, from: f64| (f64::from(draw) * ratio + from).fract();
        let (own, others) = (part(GOLDEN, 0.0), part(GOLDEN * GOLDEN, 0.5));
        Phase { own, others, tick: part(SILVER, 0.5) }
    }
}

/// Latencies and counters of a run.
pub(crate) struct Outcome {
    result: RunResult,
}

impl Stage<'_> {
    /// Replays the load under `limits`; without any, the group has no cgroup of its own.
    pub(crate) fn replay(
        &self,
        load: &Load,
        limits: Option<BandwidthLimits>,
        phase: Phase,
    ) -> Result<Outcome> {
        let groups = self.groups(load, limits, phase);
        let spec = self.spec(load, &groups);
        let mut program = load.program.clone();
        program.arrivals.begin_ns = self.begin_ns(phase);
        self.run(&program, &groups, &spec)
    }

    /// Time from a tick to the begin of the recording.
    pub(crate) fn begin_ns(&self, phase: Phase) -> Ns {
        (phase.tick * self.tick_ns() as f64) as Ns
    }

    /// One whole span after the warm-up.
    pub(crate) fn spec(&self, load: &Load, groups: &Groups) -> RunSpec {
        let longest = groups.groups.iter().map(|g| g.limits.period_ns).max().unwrap_or(0);
        let warmup_ns = warmup_ns(longest);
        // Late arrivals get half the warm-up to complete; their repetition counts if they don't.
        let duration_ns = load.span_ns() + warmup_ns / 2;
        RunSpec { seed: self.seed, warmup_ns, duration_ns }
    }

    pub(crate) fn run(
        &self,
        program: &Program,
        groups: &Groups,
        spec: &RunSpec,
    ) -> Result<Outcome> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(PlanError::Interrupted);
        }
        let result =
            reveille_sim::run(&self.machine, program, &self.policy, groups, spec, self.stop)?;
        self.runs.fetch_add(1, Ordering::Relaxed);
        self.simulated_ns.fetch_add(spec.warmup_ns + spec.duration_ns, Ordering::Relaxed);
        (self.tell)();
        Ok(Outcome { result })
    }

    /// Groups of a run: the parent, the group, and its neighbours.
    pub(crate) fn groups(
        &self,
        load: &Load,
        limits: Option<BandwidthLimits>,
        phase: Phase,
    ) -> Groups {
        let mut groups = Groups { slice_ns: self.slice_ns, groups: Vec::new() };
        let mut add = |name: &str, parent, limits: BandwidthLimits, role: usize, part: f64| {
            groups.groups.push(TaskGroup {
                parent,
                roles: vec![role as u16],
                phase_ns: Some((part * limits.period_ns as f64) as Ns),
                ..TaskGroup::new(name, limits)
            });
        };
        let role = &load.program.roles[0].name;
        if let Some(within) = self.within {
            add("around", None, within, 0, phase.others);
        }
        let parent = self.within.is_some().then_some(0);
        add(role, parent, limits.unwrap_or_default(), 0, phase.own);
        for (number, limits) in self.neighbours.iter().enumerate() {
            let Some(limits) = limits else { continue };
            let part = (phase.others + (number + 1) as f64 * GOLDEN).fract();
            let recording = number + 1;
            // Skip recordings without work here.
            if let Some(role) = load.program.roles.get(recording) {
                add(&role.name, None, *limits, recording, part);
            }
        }
        groups
    }

    /// These CPUs for the lean replay.
    pub(crate) fn lean(&self) -> Lean {
        let cpus = self.machine.topology.n_cpus();
        Lean { cpus, slice_ns: self.slice_ns, tick_ns: self.tick_ns(), more_ns: 0 }
    }

    pub(crate) fn tick_ns(&self) -> Ns {
        1_000_000_000 / Ns::from(self.machine.hz)
    }

    /// Index of the group's own statistics.
    pub(crate) fn own(&self) -> usize {
        usize::from(self.within.is_some())
    }

    /// Figures of a run; `tardiness_ns` is the neighbours' worst lateness.
    pub(crate) fn figures(
        &self,
        load: &Load,
        outcome: &Outcome,
        tardiness_ns: f64,
    ) -> Figures<f64> {
        let mut took = outcome.latencies(load, 0).to_vec();
        let mut latency =
            |quantile: f64| self.latency_times * as_f64(quantile_of(&mut took, quantile));
        let group = &outcome.result.groups[self.own()];
        let elapsed_ns = outcome.result.elapsed_ns as f64;
        let throttled_share = group.nr_throttled as f64 / group.nr_periods.max(1) as f64;
        let lost_share = group.throttled_ns as f64 / elapsed_ns;
        let goals = self.goals.iter().map(|goal| match goal.subject {
            Subject::Latency(quantile) => latency(quantile),
            Subject::Throttled => throttled_share,
            Subject::Lost => lost_share,
            Subject::Tardiness => tardiness_ns,
        });
        let goals = goals.collect();
        Figures {
            p50_ns: latency(0.5),
            p90_ns: latency(0.9),
            p99_ns: latency(0.99),
            p999_ns: latency(0.999),
            max_ns: latency(1.0),
            throttled_share,
            lost_share,
            cpus_used: group.usage_ns as f64 / elapsed_ns,
            goals,
        }
    }

    pub(crate) fn hold(&self, figures: &Figures<f64>) -> bool {
        self.goals.iter().zip(&figures.goals).all(|(goal, figure)| goal.holds(*figure))
    }
}

impl Outcome {
    /// Scales a run of some parts to the whole, which has `periods` and `used_ns`.
    pub(crate) fn of_whole(
        mut self,
        own: usize,
        elapsed_ns: Ns,
        periods: u64,
        used_ns: Ns,
    ) -> Outcome {
        self.result.elapsed_ns = elapsed_ns;
        let group = &mut self.result.groups[own];
        (group.nr_periods, group.usage_ns) = (periods.max(group.nr_throttled), used_ns);
        self
    }

    /// From a run on the host.
    pub(crate) fn of(result: RunResult) -> Outcome {
        Outcome { result }
    }

    /// Latency of each request of a recording.
    pub(crate) fn latencies<'o>(&'o self, load: &Load, recording: usize) -> &'o [Ns] {
        &self.result.answers[load.answers[recording].clone()]
    }
}

/// Nanoseconds; infinite for requests not completed.
pub(crate) fn as_f64(took: Ns) -> f64 {
    if took == UNANSWERED { f64::INFINITY } else { took as f64 }
}

pub(crate) fn warmup_ns(longest_period_ns: Ns) -> Ns {
    WARMUP_NS.max(WARMUP_PERIODS * longest_period_ns)
}

/// Can the simulator run a recording of this length?
pub(crate) fn fits(span_ns: Ns) -> bool {
    span_ns < MAX_RUN_NS / 2
}

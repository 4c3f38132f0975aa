//! From a recording and goals to a plan: what is possible, the search, and everything about
//! the settings that are shown.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rayon::iter::{IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};
use reveille_machine::Machine;
use reveille_policy::Policy;
use reveille_usage::{Origin, Usage};

use crate::fluid::closed_form;
use crate::goal::{Goal, Subject};
use crate::neighbours::{Runs, effect};
use crate::plan::{
    Alternative, Change, Figures, Interval, Map, Model, NeighbourGiven, Plan, Range, Recording,
    Shown,
};
use crate::range::distribution;
use crate::replay::{Outcome, Phase, Stage, as_f64, cpus_like, fits};
use crate::search::{BURSTS, DRAWS, Found, PERIODS_NS, Row, Search};
use crate::worst_case::worst_case;
use crate::{Limits, Ns, PlanError};

/// A group on the same CPUs.
#[derive(Clone, Debug)]
pub struct Neighbour {
    /// What it does.
    pub usage: Usage,
    /// Its limits; those in its recording if none are given, else none.
    pub limits: Option<Limits>,
}

/// What to plan.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The group's recording.
    pub usage: &'a Usage,
    /// All of them are to hold.
    pub goals: Vec<Goal>,
    /// Others on the same CPUs.
    pub neighbours: Vec<Neighbour>,
    /// Today's setting; that in the recording if none is given.
    pub today: Option<Limits>,
    /// Whose costs, tick and idle states to take.
    pub machine: &'a Machine,
    /// CPUs that the group may run on.
    pub cpus: u32,
    /// The kernel.
    pub policy: Policy,
    /// What a CPU draws at a time.
    pub slice_ns: Ns,
    /// A limit around the group.
    pub within: Option<Limits>,
    /// CPUs that the group and its neighbours may reserve together; all CPUs if there are
    /// neighbours, else any number.
    pub quota_sum_cpus: Option<f64>,
    /// Phases at which a setting that is shown is simulated.
    pub phases: u32,
    /// Share of the draws in which the goals must hold.
    pub confidence: f64,
    /// Seed of all randomness.
    pub seed: u64,
    /// Simulate every setting of the grid, also those below one that fails clearly.
    pub exhaustive: bool,
}

/// Finds settings on `jobs` threads; the result is the same for any number. `progress` is
/// told, by any thread, how many runs are done and about how many there will be.
///
/// # Errors
/// [`PlanError`]: goals that cannot be reached, with the reason; interrupted by `stop`.
pub fn plan(
    request: &Request<'_>,
    jobs: usize,
    stop: &AtomicBool,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Plan, PlanError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs.max(1)).build();
    let pool = pool.map_err(|e| PlanError::Threads { jobs, reason: e.to_string() })?;
    pool.install(|| planned(request, stop, progress))
}

/// About how many runs a plan takes.
const USUAL_RUNS: usize = 3000;

fn planned(
    request: &Request<'_>,
    stop: &AtomicBool,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Plan, PlanError> {
    let usage = request.usage;
    check(request)?;
    let done = AtomicU64::new(0);
    let tell = || {
        let done = 1 + done.fetch_add(1, Ordering::Relaxed) as usize;
        progress(done, USUAL_RUNS.max(done + done / 8));
    };
    let stage = stage(request, stop, &tell)?;
    let today = request.today.or(recorded(usage));
    let others: Vec<&Usage> = request.neighbours.iter().map(|n| &n.usage).collect();
    let mut search = Search::new(&stage, usage, &others)?;
    search.confidence = request.confidence;
    search.exhaustive = request.exhaustive;
    search.from = today.filter(|l| l.quota_ns.is_some()).map_or(search.from, |l| Row::of(&l));
    search.most_millicpus = most_millicpus(request, &stage)?;
    reachable(request, &search)?;

    let (found, mut counts) = search.search()?;
    let exhibit = Exhibit::new(&search, request.phases)?;
    let recommended = found.first().copied();
    let today = today.map(|limits| exhibit.shown(limits)).transpose()?;
    let shown = recommended.map(|found| exhibit.shown(found.limits)).transpose()?;
    let alternatives = alternatives(&search, &found)
        .into_iter()
        .map(|(change, found)| Ok(Alternative { change, shown: exhibit.shown(found.limits)? }))
        .collect::<Result<Vec<Alternative>, PlanError>>()?;
    let map = recommended.map(|found| map(&search, found)).transpose()?;
    counts.runs = stage.runs.load(Ordering::Relaxed);
    counts.simulated_ns = stage.simulated_ns.load(Ordering::Relaxed);
    let mut plan = Plan {
        recording: recording(usage),
        goals: request.goals.iter().map(|goal| goal.text.clone()).collect(),
        neighbours: given(request, &stage),
        model: model(request, &stage),
        today,
        recommended: shown,
        alternatives,
        map,
        counts,
        warnings: Vec::new(),
    };
    plan.warnings = warnings(request, &plan);
    Ok(plan)
}

/// Where a request is simulated.
pub(crate) fn stage<'a>(
    request: &'a Request<'_>,
    stop: &'a AtomicBool,
    tell: &'a (dyn Fn() + Sync),
) -> Result<Stage<'a>, PlanError> {
    let neighbour_limits = request.neighbours.iter().map(|n| n.limits.or(recorded(&n.usage)));
    Ok(Stage {
        machine: cpus_like(request.machine, request.cpus)?,
        policy: request.policy.clone(),
        slice_ns: request.slice_ns,
        within: request.within,
        neighbours: neighbour_limits.collect(),
        goals: &request.goals,
        seed: request.seed,
        stop,
        runs: AtomicU64::new(0),
        simulated_ns: AtomicU64::new(0),
        tell,
    })
}

/// Limits that were in force while it was recorded.
fn recorded(usage: &Usage) -> Option<Limits> {
    usage.limits.map(Limits::from)
}

/// Is there work to plan for, and do the goals suit it?
fn check(request: &Request<'_>) -> Result<(), PlanError> {
    for usage in request.neighbours.iter().map(|n| &n.usage).chain([request.usage]) {
        let refuse = |problem: &str, help: &str| {
            let (name, problem) = (usage.name.clone(), problem.to_owned());
            Err(PlanError::Recording { name, problem, help: help.to_owned() })
        };
        if usage.mean_cpus() == 0.0 {
            let help = "record it while it works; a group that only sleeps needs no quota";
            return refuse("asks for no CPU time at all", help);
        }
        if !fits(usage.span_ns) {
            return refuse("is longer than 19 hours", "take a shorter part of the recording");
        }
    }
    if request.goals.is_empty() {
        return Err(PlanError::Option {
            option: "--goal",
            problem: "no goal is given".into(),
            help: "say what is to be reached, such as --goal p99=20ms or --goal 'throttled<0.1%'"
                .into(),
        });
    }
    let goals = &request.goals;
    goals.iter().try_for_each(|goal| goal.check(request.usage, !request.neighbours.is_empty()))
}

/// The largest reservation that is looked at, in thousandths of a CPU.
fn most_millicpus(request: &Request<'_>, stage: &Stage<'_>) -> Result<u64, PlanError> {
    let usage = request.usage;
    let mean = usage.mean_cpus();
    let (cpus, others): (f64, f64) =
        (f64::from(request.cpus), request.neighbours.iter().map(|n| n.usage.mean_cpus()).sum());
    let goal = || request.goals[0].text.clone();
    if mean + others >= cpus {
        let with = if others > 0.0 { " and its neighbours ask" } else { " asks" };
        let total = mean + others;
        return Err(PlanError::Impossible {
            goal: goal(),
            problem: format!(
                "the group{with} for {total:.2} CPUs on average, and there are {}",
                request.cpus
            ),
            help: "give more CPUs: --cpus".into(),
        });
    }
    // Nobody is throttled who may use all CPUs that its threads do at once; neighbours make
    // them meet that would not.
    let alone = request.neighbours.is_empty();
    let threads = if alone { usage.max_parallel() } else { threads(usage) };
    let threads = f64::from(threads).min(cpus);
    // Slices that stay on other CPUs are lost to a period: a quarter more loses nothing.
    let mut most = threads * 1.25;
    let sum = request.quota_sum_cpus.or((!request.neighbours.is_empty()).then_some(cpus));
    if let Some(sum) = sum {
        let reserved = stage.neighbours.iter().flatten().filter_map(|limits| limits.cpus());
        let reserved: f64 = reserved.sum();
        most = most.min(sum - reserved);
        if most <= mean {
            return Err(PlanError::Impossible {
                goal: goal(),
                problem: format!(
                    "the group asks for {mean:.2} CPUs on average, and of {sum:.2} CPUs its \
                     neighbours' quotas leave {:.2}",
                    (sum - reserved).max(0.0)
                ),
                help: "allow more: --quota-sum CPUS".into(),
            });
        }
    }
    Ok((most * 1000.0).floor() as u64)
}

/// Without a limit the goals hold, or no quota makes them hold.
fn reachable(request: &Request<'_>, search: &Search<'_>) -> Result<(), PlanError> {
    let phase = Phase::of_grid(0, 1);
    let (figures, _) = search.figures(&search.load, None, phase, None)?;
    for (goal, figure) in request.goals.iter().zip(&figures.goals) {
        if goal.subject != Subject::Tardiness && !goal.holds(*figure) {
            return Err(PlanError::Impossible {
                goal: goal.text.clone(),
                problem: format!(
                    "without any limit it is {:.3} ms on {} CPUs already",
                    figure / 1e6,
                    request.cpus
                ),
                help: "ask for a longer time, or give more CPUs: --cpus".into(),
            });
        }
    }
    Ok(())
}

/// What the plan shows beside the recommended setting.
fn alternatives(search: &Search<'_>, found: &[Found]) -> Vec<(Change, Found)> {
    let Some(recommended) = found.first() else { return Vec::new() };
    // Where the recommended setting is a change, it needs no second one.
    let taken = search.change(&recommended.row);
    let changes = [Change::Burst, Change::LongerPeriod, Change::Quota].into_iter();
    let best = |change| {
        let best = found.iter().find(|f| search.change(&f.row) == Some(change));
        best.map(|f| (change, *f))
    };
    changes.filter(|change| taken != Some(*change)).filter_map(best).collect()
}

fn map(search: &Search<'_>, found: Found) -> Result<Map, PlanError> {
    let cells: Vec<Row> = PERIODS_NS
        .into_iter()
        .flat_map(|period_ns| BURSTS.map(|burst| Row { period_ns, burst }))
        .collect();
    let p99 = cells.par_iter().map(|row| search.map_cell(*row, found.millicpus));
    let p99: Vec<Option<f64>> = p99.collect::<Result<_, PlanError>>()?;
    Ok(Map {
        cpus: found.millicpus as f64 / 1000.0,
        periods_ns: PERIODS_NS.to_vec(),
        burst_shares: BURSTS.iter().map(|&burst| burst as f64 / 100.0).collect(),
        p99_ns: p99.chunks(BURSTS.len()).map(<[_]>::to_vec).collect(),
    })
}

/// Makes all that is shown of a setting.
struct Exhibit<'a> {
    search: &'a Search<'a>,
    phases: u32,
    /// The neighbours alone at each phase.
    alone: Vec<Outcome>,
}

impl<'a> Exhibit<'a> {
    fn new(search: &'a Search<'a>, phases: u32) -> Result<Exhibit<'a>, PlanError> {
        let n = if search.neighbours.is_empty() { 0 } else { phases };
        let alone = (0..n)
            .into_par_iter()
            .map(|index| search.stage.replay(&search.alone, None, Phase::of_grid(index, phases)));
        Ok(Exhibit { search, phases, alone: alone.collect::<Result<_, PlanError>>()? })
    }

    fn shown(&self, limits: Limits) -> Result<Shown, PlanError> {
        let (search, load) = (self.search, &self.search.load);
        let runs = self.runs(limits)?;
        let (figures, outcomes): (Vec<Figures<f64>>, Vec<Outcome>) = runs.into_iter().unzip();
        let draws = (0..DRAWS).into_par_iter().map(|draw| search.draw(Some(limits), draw));
        let draws: Vec<Figures<f64>> = draws.collect::<Result<_, PlanError>>()?;
        let held = draws.iter().filter(|figures| search.stage.hold(figures)).count();
        let holds_share = held as f64 / f64::from(DRAWS);
        let latencies = outcomes.iter().flat_map(|outcome| outcome.latencies(load, 0));
        let without_burst = match limits.burst_ns {
            _ if search.neighbours.is_empty() => Vec::new(),
            0 => Vec::new(),
            _ => self.runs(Limits { burst_ns: 0, ..limits })?,
        };
        let per_phase: Vec<Runs<'_>> = self
            .alone
            .iter()
            .enumerate()
            .map(|(phase, alone)| Runs {
                alone: (&search.alone, alone),
                without_burst: without_burst.get(phase).map_or(&outcomes[phase], |run| &run.1),
                joint: &outcomes[phase],
            })
            .collect();
        let tolerance_ns = search.stage.tick_ns();
        let neighbours = search.neighbours.iter().zip(&search.stage.neighbours).enumerate();
        let neighbours = neighbours
            .map(|(n, (usage, l))| effect(usage, n + 1, *l, load, &per_phase, tolerance_ns))
            .collect();
        let mut groups = vec![(search.usage, Some(limits))];
        groups.extend(search.neighbours.iter().copied().zip(search.stage.neighbours.clone()));
        let cpus = search.stage.machine.topology.n_cpus() as u32;
        Ok(Shown {
            limits,
            reserved_cpus: limits.cpus(),
            effect: Figures::over(&figures, Range::over),
            phases: self.phases,
            intervals: Figures::over(&draws, Interval::over),
            holds_share,
            meets_goals: holds_share >= search.confidence - 1e-9,
            worst_case: worst_case(search.stage, search.usage, limits)?,
            latency: distribution(latencies.map(|&took| as_f64(took)).collect()),
            neighbours,
            closed_form: closed_form(&groups, cpus, search.stage.seed),
        })
    }

    /// The setting at each phase.
    fn runs(&self, limits: Limits) -> Result<Vec<(Figures<f64>, Outcome)>, PlanError> {
        let (search, phases) = (self.search, self.phases);
        let runs = (0..phases).into_par_iter().map(|index| {
            let alone = self.alone.get(index as usize);
            let phase = Phase::of_grid(index, phases);
            search.figures(&search.load, Some(limits), phase, alone)
        });
        runs.collect()
    }
}

fn threads(usage: &Usage) -> u32 {
    let mut seen = vec![false; usage.threads as usize];
    for demand in usage.demands.iter().filter(|demand| demand.cpu_ns > 0) {
        seen[demand.thread as usize] = true;
    }
    seen.into_iter().filter(|seen| *seen).count() as u32
}

fn recording(usage: &Usage) -> Recording {
    Recording {
        name: usage.name.clone(),
        origin: usage.origin,
        span_ns: usage.span_ns,
        threads: threads(usage),
        demands: usage.demands.len(),
        mean_cpus: usage.mean_cpus(),
        longest_ns: usage.demands.iter().map(|demand| demand.cpu_ns).max().unwrap_or(0),
        limits: recorded(usage),
    }
}

fn given(request: &Request<'_>, stage: &Stage<'_>) -> Vec<NeighbourGiven> {
    let neighbours = request.neighbours.iter().zip(&stage.neighbours);
    neighbours
        .map(|(n, limits)| NeighbourGiven { recording: recording(&n.usage), limits: *limits })
        .collect()
}

fn model(request: &Request<'_>, stage: &Stage<'_>) -> Model {
    Model {
        machine: request.machine.name.clone(),
        cpus: request.cpus,
        hz: stage.machine.hz,
        base: request.policy.base.clone(),
        slice_ns: request.slice_ns,
        within: request.within,
        quota_sum_cpus: request.quota_sum_cpus,
        confidence: request.confidence,
        draws: DRAWS,
        seed: request.seed,
    }
}

fn warnings(request: &Request<'_>, plan: &Plan) -> Vec<String> {
    let usage = request.usage;
    let mut warnings = usage.warnings.clone();
    for goal in &request.goals {
        if let Subject::Latency(quantile) = goal.subject {
            if quantile < 1.0 {
                let short = usage.enough_for(quantile).err();
                warnings.extend(short.map(|why| format!("{}: {why}", goal.text)));
            }
            if let Origin::Sampled { resolution_ns } = usage.origin
                && goal.limit < 3.0 * resolution_ns as f64
            {
                warnings.push(format!(
                    "`{}` is hardly more than the {:.1} ms between two samples of the \
                         recording: work that came and went between them was not seen.",
                    goal.text,
                    resolution_ns as f64 / 1e6
                ));
            }
        }
    }
    if matches!(usage.origin, Origin::Averaged { .. }) {
        warnings.push(
            "The recording holds averages: bursts within a step are spread out, and throttling \
             is less than it will be."
                .into(),
        );
    }
    match &plan.recommended {
        None => warnings.push(
            "No setting was found whose goals hold with this confidence; a goal a little \
             easier, or more CPUs, may help."
                .into(),
        ),
        Some(shown) if !shown.meets_goals => {
            warnings.push("The recommended setting holds in fewer draws than asked for.".into());
        }
        Some(_) => {}
    }
    warnings
}

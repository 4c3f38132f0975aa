//! From a recording and goals to a plan: feasibility, the search, and everything about the settings
//! shown.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rayon::iter::{IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};
use reveille_measure::enough_for;
use reveille_policy::BandwidthLimits;
use reveille_usage::Usage;

use crate::facts::{given, model, recording, too_few, unmet_anyway, warnings};
use crate::figures::{Figures, Interval, Range, distribution};
use crate::fluid::closed_form;
use crate::grid::{BURSTS, DRAWS, Halves, PERIODS_NS, Row, half_of};
use crate::growth::{grown, until_it_breaks};
use crate::inferred::Inferred;
use crate::neighbours::{Runs, effect};
use crate::observed::Observed;
use crate::obstacle::obstacle;
use crate::plan::{Alternative, Map, Plan, Shown};
use crate::possible::{check, most_millicpus, reachable, untold};
use crate::replay::{Outcome, Phase, as_f64};
use crate::request::{Request, pool};
use crate::search::{Found, Search};
use crate::short::{self, pieces, too_short};
use crate::sketch::Sketch;
use crate::worst_case::worst_case;
use crate::{PlanError, Result};

/// Finds settings on `jobs` threads; the result does not depend on their number. `progress` is
/// called on any thread with the number of completed runs and the expected total.
///
/// # Errors
/// [`PlanError`]: goals that cannot be met, with the reason; interrupted by `stop`.
pub fn plan(
    request: &Request<'_>,
    jobs: usize,
    stop: &AtomicBool,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Plan> {
    pool(jobs)?.install(|| planned(request, stop, progress))
}

/// Typical number of runs in a plan, for the progress bar.
const USUAL_RUNS: usize = 2000;

fn planned(
    request: &Request<'_>,
    stop: &AtomicBool,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Plan> {
    let usage = request.usage;
    check(request)?;
    let done = AtomicU64::new(0);
    let tell = || {
        let done = 1 + done.fetch_add(1, Ordering::Relaxed) as usize;
        progress(done, USUAL_RUNS.max(done + done / 8));
    };
    let stage = request.stage(stop, &tell)?;
    let today = request.today.or(usage.limits);
    let others: Vec<&Usage> = request.neighbours.iter().map(|n| &n.usage).collect();
    let prepared = |usage, as_likely, grown| {
        let mut search = Search::new(&stage, usage, as_likely, &others)?;
        search.confidence = request.confidence;
        search.exhaustive = request.exhaustive;
        search.from = today.filter(|l| l.quota_ns.is_some()).map_or(search.from, |l| Row::of(&l));
        search.allowed = request.allowed;
        let cpus_used = reachable(request, &search, grown)?;
        if !request.exhaustive {
            search.sketch = Sketch::new(&stage, &search.load, pieces(usage) == 0, cpus_used);
        }
        Ok::<_, PlanError>(search)
    };
    // The search uses the grown demand; figures shown are of the recorded one.
    let more = |usage: &Usage| grown(usage, request.headroom, request.growth);
    let (wanted, wanted_too) =
        (more(usage), request.as_likely.iter().map(more).collect::<Vec<_>>());
    let most_millicpus = most_millicpus(request, &wanted, &stage)?;
    let as_recorded = prepared(usage, request.as_likely, false)?;
    let mut search = prepared(&wanted, &wanted_too, true)?;
    search.most_millicpus = most_millicpus;
    let least_by_use = search.least_millicpus;
    if let Some(floor) = request.floor() {
        let failed = search.unmet_anyway()?;
        if 2 * failed > DRAWS as usize {
            return Err(untold(request, failed));
        }
        search.stay_above(floor)?;
    }

    let (mut found, mut counts) = search.search()?;
    // Where the order of threads on a CPU decides, the lean replay may find nothing.
    if found.is_empty() && search.sketch.take().is_some() {
        (found, counts) = search.search()?;
    }
    let exhibit = Exhibit::new(&as_recorded, request)?;
    // Where it would limit nothing, what is advised is no quota.
    let fits = |found: &Found| request.fits(found.millicpus);
    let advised = |found: Found| {
        let limits = match fits(&found) {
            true => found.rounded(&request.allowed).limits,
            false => BandwidthLimits::default(),
        };
        let set_by_use = limits.quota_ns.map(|_| found.millicpus <= least_by_use);
        let mut shown = exhibit.shown(limits)?;
        if shown.meets_goals {
            // The search has tried that much.
            shown.growth = shown.growth.map(|growth| growth.max(request.headroom));
        }
        Ok::<_, PlanError>(Shown { set_by_use, ..shown })
    };
    let today = today.map(|limits| exhibit.shown(limits)).transpose()?;
    let as_today = today.as_ref().filter(|today| Some(today.limits) == usage.limits);
    // A recording of requests without known limits is assumed to have had no effective limit.
    let observed = match (as_today, usage.limits) {
        (Some(today), _) => Observed::new(usage, &today.effect),
        (None, None) if usage.demands.iter().any(|demand| demand.done_ns.is_some()) => {
            let runs = exhibit.runs(BandwidthLimits::default())?;
            let figures: Vec<Figures<f64>> = runs.into_iter().map(|run| run.0).collect();
            Observed::new(usage, &Figures::over(&figures, Range::over))
        }
        (None, _) => None,
    };
    let recommended = search.recommended(&found).map(advised).transpose()?;
    // Where today's limit stays, there is nothing to choose from.
    let stays = recommended.as_ref().is_some_and(|shown| request.floor() == Some(shown.limits));
    let others = if stays { Vec::new() } else { search.alternatives(&found) };
    let alternatives = others
        .into_iter()
        .filter(|(_, found)| fits(found))
        .map(|(change, found)| Ok(Alternative { change, shown: advised(found)? }))
        .collect::<Result<Vec<Alternative>>>()?;
    let reserved = recommended.as_ref().and_then(|shown| shown.reserved_cpus);
    let reserved = reserved.filter(|_| enough_for(pieces(usage), 0.99));
    let map = reserved.map(|cpus| map(&as_recorded, cpus)).transpose()?;
    counts.runs = stage.runs.load(Ordering::Relaxed);
    counts.simulated_ns = stage.simulated_ns.load(Ordering::Relaxed);
    let acted_on = recommended.as_ref().map_or(BandwidthLimits::default(), |shown| shown.limits);
    let too_short = too_short(request, acted_on);
    let mut plan = Plan {
        recording: recording(usage),
        inferred: request.inferred.cloned(),
        goals: request.goals.clone(),
        neighbours: given(request, &stage),
        model: model(request, &stage),
        today,
        observed,
        threads: Vec::new(),
        obstacle: match recommended {
            None => obstacle(request, &search)?,
            Some(_) => None,
        },
        recommended,
        too_few: too_few(request),
        too_short,
        alternatives,
        map,
        counts,
        warnings: Vec::new(),
    };
    plan.warnings = warnings(request, &plan);
    plan.warnings.extend(short::warnings(request, &plan.too_short, acted_on.period_ns));
    if plan.recommended.is_some() {
        let fail = search.unmet_anyway()?;
        if fail > 0 {
            plan.warnings.push(unmet_anyway(fail, request));
        }
    }
    Ok(plan)
}

/// p99 over period and burst for `cpus` reserved.
fn map(search: &Search<'_>, cpus: f64) -> Result<Map> {
    let millicpus = (1000.0 * cpus).round() as u64;
    let cells: Vec<Row> = PERIODS_NS
        .into_iter()
        .flat_map(|period_ns| BURSTS.map(|burst| Row { period_ns, burst }))
        .collect();
    let p99 = cells.par_iter().map(|row| search.map_cell(*row, millicpus));
    let p99: Vec<Option<f64>> = p99.collect::<Result<_>>()?;
    Ok(Map {
        cpus: millicpus as f64 / 1000.0,
        periods_ns: PERIODS_NS.to_vec(),
        burst_shares: BURSTS.iter().map(|&burst| burst as f64 / 100.0).collect(),
        p99_ns: p99.chunks(BURSTS.len()).map(<[_]>::to_vec).collect(),
    })
}

/// Computes everything shown about a setting.
struct Exhibit<'a> {
    search: &'a Search<'a>,
    phases: u32,
    /// Of requests that were inferred from counters, neither growth nor the longest is known.
    of_counters: bool,
    /// Runs of the neighbours alone, one per phase.
    alone: Vec<Outcome>,
}

impl<'a> Exhibit<'a> {
    fn new(search: &'a Search<'a>, request: &Request<'_>) -> Result<Exhibit<'a>> {
        let phases = request.phases;
        let n = if search.neighbours.is_empty() { 0 } else { phases };
        let alone = (0..n)
            .into_par_iter()
            .map(|index| search.stage.replay(&search.alone, None, Phase::of_grid(index, phases)));
        let alone = alone.collect::<Result<_>>()?;
        let of_counters = request.inferred.is_some_and(Inferred::of_counters);
        Ok(Exhibit { search, phases, of_counters, alone })
    }

    fn shown(&self, limits: BandwidthLimits) -> Result<Shown> {
        let (search, load) = (self.search, &self.search.load);
        let runs = self.runs(limits)?;
        let (figures, outcomes): (Vec<Figures<f64>>, Vec<Outcome>) = runs.into_iter().unzip();
        // Every other draw uses the recording itself, possibly at one of these phases.
        let known = |draw: u32| {
            let even = draw.is_multiple_of(2) && self.phases == DRAWS / 2 && search.certain();
            even.then(|| figures[draw as usize / 2].clone())
        };
        let draws = (0..DRAWS)
            .into_par_iter()
            .map(|draw| known(draw).map_or_else(|| search.draw(Some(limits), draw), Ok));
        let draws: Vec<Figures<f64>> = draws.collect::<Result<_>>()?;
        let (mut held, mut kept) = (Halves::default(), Halves::default());
        for (draw, figures) in (0..).zip(&draws) {
            let holds = search.stage.hold(figures);
            held[half_of(draw)] += usize::from(holds);
            kept[half_of(draw)] += usize::from(holds || !search.holds_without_limit(draw)?);
        }
        let least = |of: Halves| of[0].min(of[1]) as f64 / f64::from(DRAWS / 2);
        // Averages have no latency.
        let told = outcomes.iter().filter(|_| pieces(search.usage) > 0);
        let latencies = told.flat_map(|outcome| outcome.latencies(load, 0));
        let without_burst = match limits.burst_ns {
            _ if search.neighbours.is_empty() => Vec::new(),
            0 => Vec::new(),
            _ => self.runs(BandwidthLimits { burst_ns: 0, ..limits })?,
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
        let (pieces, goals) = (pieces(search.usage), search.stage.goals);
        // Of several loads that may be meant, the first is no likelier than the others.
        let of = if search.certain() { &figures } else { &draws };
        let mut effect = Figures::over(of, Range::over);
        effect.leave_out(pieces, goals, Range::UNKNOWN);
        let mut intervals = Figures::over(&draws, Interval::over);
        intervals.leave_out(pieces, goals, Interval::UNKNOWN);
        // A load that was inferred and fails without a limit too may be the one that runs.
        let met = least(if self.of_counters { held } else { kept });
        let meets_goals = met >= search.confidence - 1e-9;
        Ok(Shown {
            limits,
            set_by_use: None,
            growth: match meets_goals {
                true => self.growth(limits)?,
                // Goals that already fail leave no room.
                false => search.sketch.filter(|_| !self.of_counters).map(|_| 0.0),
            },
            reserved_cpus: limits.cpus(),
            effect,
            phases: self.phases,
            intervals,
            holds_share: least(held),
            meets_goals,
            worst_case: match self.of_counters {
                true => None,
                false => worst_case(search.stage, search.usage, limits)?,
            },
            latency: distribution(
                latencies.map(|&took| search.stage.latency_times * as_f64(took)).collect(),
            ),
            neighbours,
            closed_form: closed_form(&groups, cpus, search.stage.seed),
        })
    }

    /// How much the work of a request can grow; `None` where the lean replay does not apply, or
    /// where requests are not known.
    fn growth(&self, limits: BandwidthLimits) -> Result<Option<f64>> {
        let Search { stage, usage, sketch, .. } = self.search;
        let growth = |sketch| until_it_breaks(stage, sketch, usage, limits);
        sketch.as_ref().filter(|_| !self.of_counters).map(growth).transpose()
    }

    /// Runs the setting at each phase.
    fn runs(&self, limits: BandwidthLimits) -> Result<Vec<(Figures<f64>, Outcome)>> {
        let (search, phases) = (self.search, self.phases);
        let runs = (0..phases).into_par_iter().map(|index| {
            let alone = self.alone.get(index as usize);
            let phase = Phase::of_grid(index, phases);
            search.figures(&search.load, Some(limits), phase, alone)
        });
        runs.collect()
    }
}

//! The search for settings that meet the goals: a grid over period, burst and quota at a few
//! phases, then the smallest quota of the best rows over draws of phase and recording. The lean
//! replay proposes settings where it applies; the simulator confirms those shown.

use std::cell::Cell;
use std::sync::OnceLock;

use rayon::iter::{IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};
use reveille_policy::BandwidthLimits;
use reveille_usage::Usage;

use crate::Result;
use crate::figures::Figures;
use crate::goal::Subject;
use crate::grid::{BURSTS, DRAWS, Halves, MOST_USED, PERIODS_NS, Row, half_of};
use crate::load::Load;
use crate::neighbours::worst_tardiness_ns;
use crate::plan::{Change, Counts};
use crate::platform::Allowed;
use crate::replay::{Outcome, Phase, Stage};
use crate::replica::Replicas;
use crate::sketch::{Look, Sketch, worst_strain};
use crate::worst_case::worst_case_bound_ns;

/// Quotas of the grid, from the mean demand to the most the threads can use.
const QUOTAS: u32 = 25;
/// Phases per setting of the grid.
const GRID_PHASES: u32 = 2;
/// Draws evaluated at once before checking whether more are needed.
const DRAWS_AT_ONCE: usize = 4;
/// Toughest draws beyond the number that may fail: they decide on most settings.
const TOUGH: usize = 6;
/// Maximum number of requests in cached resampled recordings.
const KEPT: usize = 12_000_000;
/// Resolution of the quota: 1/100 of itself.
const PRECISION: u64 = 100;
/// Best rows of the grid to refine: by the lean replay, or by the simulator.
const CLOSELY: [usize; 2] = [8, 6];
/// Minimum number of recommendable rows among them.
const ALLOWED: usize = 4;
/// Alternatives that a plan shows.
const CHANGES: [Change; 3] = [Change::Burst, Change::LongerPeriod, Change::Quota];
/// Reservations within this factor of the smallest count as equally cheap.
const SAME_COST: f64 = 1.02;

/// The loads to search with, with and without the group.
pub(crate) struct Search<'a> {
    pub(crate) stage: &'a Stage<'a>,
    pub(crate) usage: &'a Usage,
    pub(crate) neighbours: &'a [&'a Usage],
    /// Resamplers of the recording and of its equally likely alternatives.
    replicas: Vec<Replicas<'a>>,
    /// The recording itself.
    pub(crate) load: Load,
    /// Equally likely alternatives.
    as_likely: Vec<Load>,
    /// Resampled recordings, for every other draw.
    resampled: Vec<OnceLock<Load>>,
    /// Do the goals hold without a limit, in each draw?
    without_limit: Vec<OnceLock<bool>>,
    /// The lean replay; `None` to search with the simulator.
    pub(crate) sketch: Option<Sketch>,
    /// The neighbours alone and their runs at the grid's and the draws' phases; `None` unless a
    /// goal limits their lateness.
    pub(crate) alone: Load,
    pub(crate) alone_grid: Vec<Outcome>,
    pub(crate) alone_draws: Vec<Outcome>,
    pub(crate) confidence: f64,
    /// Today's period and burst.
    pub(crate) from: Row,
    /// The smallest and the largest reservation to search, in thousandths of a CPU.
    pub(crate) least_millicpus: u64,
    pub(crate) most_millicpus: u64,
    pub(crate) allowed: Allowed,
    /// The limit below which nothing is advised.
    floor: Option<BandwidthLimits>,
    /// Draws that the grid looks at instead of the recording, which of many loads is only the first.
    grid_draws: Vec<u32>,
    /// Simulate every setting of the grid.
    pub(crate) exhaustive: bool,
}

/// A setting whose goals hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) row: Row,
    pub(crate) millicpus: u64,
    pub(crate) limits: BandwidthLimits,
}

impl Found {
    /// The row with this quota, if a kernel accepts it.
    fn at(row: Row, millicpus: u64) -> Option<Found> {
        Some(Found { row, millicpus, limits: row.at(millicpus)? })
    }

    /// With the quota rounded up to what the platform can write.
    pub(crate) fn rounded(self, allowed: &Allowed) -> Found {
        Found::at(self.row, allowed.rounded_up(self.millicpus)).unwrap_or(self)
    }
}

/// A row whose quota is the lean replay's guess.
struct Open {
    row: Row,
    /// The largest quota that has failed.
    failed: Option<u64>,
    /// All draws, toughest first; empty until ordered.
    draws: Vec<u32>,
}

/// Result of the grid for a row.
struct Scouted {
    row: Row,
    /// The smallest quota of the grid above which all goals hold, and the next smaller one.
    holds: Option<(u64, u64)>,
    settings: u32,
    simulated: u32,
}

impl<'a> Search<'a> {
    pub(crate) fn new(
        stage: &'a Stage<'a>,
        usage: &'a Usage,
        as_likely: &'a [Usage],
        neighbours: &'a [&'a Usage],
    ) -> Result<Search<'a>> {
        let all = |own: &'a Usage| {
            let mut all = vec![own];
            all.extend(neighbours);
            Load::new(&all)
        };
        let nobody = Usage { demands: Vec::new(), samples: Vec::new(), ..usage.clone() };
        let mut without = vec![&nobody];
        without.extend(neighbours);
        let alone = Load::new(&without);
        let runs = |n: u32, phase: &(dyn Fn(u32) -> Phase + Sync)| {
            let n = if neighbours.is_empty() { 0 } else { n };
            (0..n).into_par_iter().map(|i| stage.replay(&alone, None, phase(i))).collect()
        };
        // The use of a load that was inferred from counters is known, and no draw should exceed it.
        let by_time = as_likely.len() >= DRAWS as usize;
        let replicas = |usage| Replicas::new(usage, by_time);
        let alone_grid: Result<_> = runs(GRID_PHASES, &grid_phase);
        let alone_draws: Result<_> = runs(DRAWS, &|draw| Phase::of_draw(draw, DRAWS));
        Ok(Search {
            load: all(usage),
            resampled: (0..DRAWS).map(|_| OnceLock::new()).collect(),
            without_limit: (0..DRAWS).map(|_| OnceLock::new()).collect(),
            sketch: None,
            replicas: [usage].into_iter().chain(as_likely).map(replicas).collect(),
            as_likely: as_likely.iter().map(all).collect(),
            alone_grid: alone_grid?,
            alone_draws: alone_draws?,
            alone,
            stage,
            usage,
            neighbours,
            confidence: 0.95,
            from: Row::USUAL,
            least_millicpus: least_millicpus([usage].into_iter().chain(as_likely)),
            most_millicpus: 0,
            allowed: Allowed::ANY,
            floor: None,
            grid_draws: Vec::new(),
            exhaustive: false,
        })
    }

    /// Figures at a phase; `alone` is the run without the group at that phase.
    pub(crate) fn figures(
        &self,
        load: &Load,
        limits: Option<BandwidthLimits>,
        phase: Phase,
        alone: Option<&Outcome>,
    ) -> Result<(Figures<f64>, Outcome)> {
        if let (Some(sketch), Some(limits)) = (&self.sketch, limits)
            && let Some((parts, outcome)) = sketch.simulate(self.stage, load, limits, phase)?
        {
            return Ok((self.stage.figures(&parts, &outcome, 0.0), outcome));
        }
        let outcome = self.stage.replay(load, limits, phase)?;
        let tardiness_ns =
            alone.map_or(0.0, |alone| worst_tardiness_ns(load, (&self.alone, alone), &outcome));
        Ok((self.stage.figures(load, &outcome, tardiness_ns), outcome))
    }

    /// Figures of one draw: a phase, and alternately the recording itself and a resampled one.
    pub(crate) fn draw(&self, limits: Option<BandwidthLimits>, draw: u32) -> Result<Figures<f64>> {
        let alone = self.alone_draws.get(draw as usize);
        let figures = |load: &Load| self.figures(load, limits, Phase::of_draw(draw, DRAWS), alone);
        Ok(self.with_draw(draw, figures)?.0)
    }

    /// Calls `act` with a draw's load: alternately a recording itself and a resampled one, rotating
    /// through equally likely recordings. The first of several takes queues for single requests,
    /// which bounds latency from above: it has to hold as it is, and is not resampled.
    fn with_draw<T>(&self, draw: u32, act: impl FnOnce(&Load) -> T) -> T {
        let turn = (draw / 2) as usize;
        // Where there are as many as that, every draw has its own.
        let many = self.as_likely.len() >= DRAWS as usize;
        let own = turn + half_of(draw) * (DRAWS / 2) as usize;
        let one = |number: usize| number.checked_sub(1).map_or(&self.load, |n| &self.as_likely[n]);
        if draw.is_multiple_of(2) {
            return act(one(if many { own } else { turn % self.replicas.len() }));
        }
        let number = match self.as_likely.len() {
            0 => 0,
            _ if many => own,
            others => 1 + turn % others,
        };
        let made = || {
            let seed = self.stage.seed.wrapping_add(u64::from(draw));
            let replica = self.replicas[number].draw(seed);
            let mut all = vec![&replica];
            all.extend(self.neighbours);
            Load::new(&all)
        };
        if self.usage.demands.len() * (DRAWS / 2) as usize > KEPT {
            return act(&made());
        }
        act(self.resampled[draw as usize].get_or_init(made))
    }

    /// Looks at no setting below this limit: neither a smaller share nor a shorter period.
    pub(crate) fn stay_above(&mut self, floor: BandwidthLimits) -> Result<()> {
        let millicpus = (1000.0 * floor.cpus().unwrap_or(0.0) - 1e-6).ceil() as u64;
        self.least_millicpus = self.least_millicpus.max(millicpus);
        self.most_millicpus = self.most_millicpus.max(self.least_millicpus);
        self.floor = Some(floor);
        for draw in 0..DRAWS {
            if self.grid_draws.len() < GRID_PHASES as usize && self.holds_without_limit(draw)? {
                self.grid_draws.push(draw);
            }
        }
        Ok(())
    }

    /// Is the recording's demand known, not inferred?
    pub(crate) fn certain(&self) -> bool {
        self.as_likely.is_empty()
    }

    /// The worst goal's figure relative to its limit in a draw; a goal fails above 1.
    fn strain_of_draw(&self, look: Look, limits: BandwidthLimits, draw: u32) -> Result<f64> {
        if let (Look::Lean, Some(sketch)) = (look, &self.sketch) {
            let phase = Phase::of_draw(draw, DRAWS);
            return self.with_draw(draw, |load| sketch.strain(self.stage, load, limits, phase));
        }
        let figures = self.draw(Some(limits), draw)?;
        Ok(worst_strain(self.stage.goals, figures.goals.into_iter()))
    }

    /// Do the goals hold in a draw without any limit? Where they do not, no quota is to blame. A
    /// neighbour's lateness is: a smaller quota may mend it.
    pub(crate) fn holds_without_limit(&self, draw: u32) -> Result<bool> {
        if self.stage.goals.iter().any(|goal| goal.subject == Subject::Tardiness) {
            return Ok(true);
        }
        let known = &self.without_limit[draw as usize];
        if let Some(holds) = known.get() {
            return Ok(*holds);
        }
        let holds = match self.sketch {
            Some(_) => self.strain_of_draw(Look::Lean, BandwidthLimits::default(), draw)? <= 1.0,
            None => self.stage.hold(&self.draw(None, draw)?),
        };
        Ok(*known.get_or_init(|| holds))
    }

    /// Number of draws in which the goals fail without any limit.
    pub(crate) fn unmet_anyway(&self) -> Result<usize> {
        let holds = (0..DRAWS).into_par_iter().map(|draw| self.holds_without_limit(draw));
        let holds: Vec<bool> = holds.collect::<Result<_>>()?;
        Ok(holds.iter().filter(|holds| !**holds).count())
    }

    /// Number of draws of each half that may fail.
    fn may_fail(&self) -> usize {
        ((1.0 - self.confidence) * f64::from(DRAWS / 2) + 1e-9).floor() as usize
    }

    /// Number of failing draws of each half, counting those in `failed`; `None` once more fail than
    /// may.
    fn failures(
        &self,
        look: Look,
        limits: BandwidthLimits,
        draws: &[u32],
        failed: Halves,
    ) -> Result<Option<Halves>> {
        if self.too_long_at_worst(limits) {
            return Ok(None);
        }
        self.failing(draws, failed, |draw| Ok(self.strain_of_draw(look, limits, draw)? > 1.0))
    }

    /// [`Search::failures`] by any test of a draw. A draw whose goals fail without a limit too does not
    /// count.
    pub(crate) fn failing(
        &self,
        draws: &[u32],
        mut failed: Halves,
        fails: impl Fn(u32) -> Result<bool> + Sync,
    ) -> Result<Option<Halves>> {
        for some in draws.chunks(DRAWS_AT_ONCE) {
            let fail = some.par_iter().map(|&draw| fails(draw));
            let fail: Vec<bool> = fail.collect::<Result<_>>()?;
            for (&draw, _) in some.iter().zip(fail).filter(|(_, fails)| *fails) {
                failed[half_of(draw)] += usize::from(self.holds_without_limit(draw)?);
            }
            if failed[0].max(failed[1]) > self.may_fail() {
                return Ok(None);
            }
        }
        Ok(Some(failed))
    }

    /// Does the longest request's bound exceed the allowed one?
    fn too_long_at_worst(&self, limits: BandwidthLimits) -> bool {
        let longest_ns = || worst_case_bound_ns(self.stage, self.usage, limits);
        self.allowed.worst_case_ns.is_some_and(|most| longest_ns().is_none_or(|ns| ns > most))
    }

    /// All draws, ordered by descending strain in the lean replay.
    fn toughest(&self, limits: BandwidthLimits) -> Result<Vec<u32>> {
        let strains = (0..DRAWS).into_par_iter().map(|draw| {
            let strain = self.strain_of_draw(Look::Lean, limits, draw)?;
            let counts = strain <= 1.0 || self.holds_without_limit(draw)?;
            Ok((if counts { strain } else { 0.0 }, draw))
        });
        let mut strains: Vec<(f64, u32)> = strains.collect::<Result<_>>()?;
        strains.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        Ok(strains.into_iter().map(|(_, draw)| draw).collect())
    }

    /// Number of toughest draws, which decide on most settings.
    fn tough(&self) -> usize {
        (2 * self.may_fail() + TOUGH).min(DRAWS as usize)
    }

    /// Quotas of the grid in thousandths of a CPU, ascending.
    fn ladder(&self) -> Vec<u64> {
        let least = self.least_millicpus as f64;
        let most = self.most_millicpus as f64;
        let step = |k: u32| least * (most / least).powf(f64::from(k) / f64::from(QUOTAS - 1));
        let mut ladder: Vec<u64> = (0..QUOTAS).map(|k| step(k).ceil() as u64).collect();
        ladder.retain(|&millicpus| millicpus <= self.most_millicpus);
        ladder.push(self.most_millicpus);
        ladder.dedup();
        ladder
    }

    /// Periods and bursts to search.
    pub(crate) fn rows(&self) -> Vec<Row> {
        let mut rows: Vec<Row> = PERIODS_NS
            .into_iter()
            .chain([self.from.period_ns])
            .chain(self.allowed.period())
            .flat_map(|period_ns| BURSTS.map(|burst| Row { period_ns, burst }))
            .chain([self.from])
            .collect();
        let only = self.allowed.period();
        let least_ns = self.floor.map_or(0, |floor| floor.period_ns);
        rows.retain(|row| row.period_ns >= least_ns || only == Some(row.period_ns));
        rows.sort_by_key(|row| (row.period_ns, row.burst));
        rows.dedup();
        rows
    }

    /// The smallest quota of the grid above which the goals hold: by bisection, or exhaustively.
    fn scout(&self, row: Row, ladder: &[u64]) -> Result<Scouted> {
        let rungs = ladder.iter().filter_map(|&millicpus| Some((millicpus, row.at(millicpus)?)));
        let rungs: Vec<(u64, BandwidthLimits)> = rungs.collect();
        let mut simulated = 0;
        let mut holds = |rung: usize| {
            simulated += 1;
            self.holds_on_grid(rungs[rung].1)
        };
        let mut first = rungs.len();
        if self.exhaustive {
            for rung in (0..rungs.len()).rev() {
                first = if holds(rung)? && first == rung + 1 { rung } else { first };
            }
        } else if first > 0 && holds(first - 1)? {
            let mut low = 0;
            first -= 1;
            while low < first {
                let middle = (low + first) / 2;
                match holds(middle)? {
                    true => first = middle,
                    false => low = middle + 1,
                }
            }
        }
        let below = first.checked_sub(1).map_or(self.least_millicpus - 1, |rung| rungs[rung].0);
        let holds = rungs.get(first).map(|&(millicpus, _)| (millicpus, below));
        Ok(Scouted { row, holds, settings: rungs.len() as u32, simulated })
    }

    /// Do the goals hold at a few phases of the recording itself?
    fn holds_on_grid(&self, limits: BandwidthLimits) -> Result<bool> {
        let mut holds = !self.too_long_at_worst(limits);
        for index in 0..GRID_PHASES {
            let phase = grid_phase(index);
            let strain = match &self.sketch {
                Some(_) if index < self.grid_draws.len() as u32 => {
                    self.strain_of_draw(Look::Lean, limits, self.grid_draws[index as usize])?
                }
                Some(sketch) => sketch.strain(self.stage, &self.load, limits, phase)?,
                None => {
                    let alone = self.alone_grid.get(index as usize);
                    let (figures, _) = self.figures(&self.load, Some(limits), phase, alone)?;
                    worst_strain(self.stage.goals, figures.goals.into_iter())
                }
            };
            holds &= strain <= 1.0;
            if !holds && !self.exhaustive {
                break;
            }
        }
        Ok(holds)
    }

    /// The smallest quota of a row whose goals hold over the draws.
    fn refine(&self, scouted: &Scouted) -> Result<Option<Found>> {
        let (row, Some((mut high, mut low))) = (scouted.row, scouted.holds) else {
            return Ok(None);
        };
        let (look, draws) = match (self.sketch, row.at(high)) {
            (Some(_), Some(limits)) => (Look::Lean, self.toughest(limits)?),
            _ => (Look::Simulator, (0..DRAWS).collect()),
        };
        let asked = if look == Look::Lean { &draws[..self.tough()] } else { &draws };
        let accepts = |limits| Ok(self.failures(look, limits, asked, Halves::default())?.is_some());
        loop {
            match Found::at(row, high) {
                Some(found) if accepts(found.limits)? => {
                    return self.halve(found, low, &accepts).map(Some);
                }
                _ if high >= self.most_millicpus => return Ok(None),
                _ => (low, high) = (high, self.grown(high, 16)),
            }
        }
    }

    /// `millicpus` increased by `1/part`, up to the largest reservation.
    fn grown(&self, millicpus: u64, part: u64) -> u64 {
        (millicpus + (millicpus / part).max(1)).min(self.most_millicpus)
    }

    /// The smallest quota, above the largest that failed, that the simulator accepts over all
    /// draws. The toughest draws locate it and the others confirm it; a guess that they reject has
    /// failed.
    fn settle(&self, guess: Found, open: &mut Open) -> Result<Option<Found>> {
        if open.draws.is_empty() {
            open.draws = self.toughest(guess.limits)?;
        }
        let (tough, others) = open.draws.split_at(self.tough());
        // Failing draws of the quota accepted last.
        let failed = Cell::new(Halves::default());
        let accepts = |limits| {
            let failures = self.failures(Look::Simulator, limits, tough, Halves::default())?;
            failures.inspect(|failures| failed.set(*failures));
            Ok(failures.is_some())
        };
        let mut least = guess;
        let mut holds = accepts(guess.limits)?;
        // Try 1%, 3%, 7% less: the lean replay may have overestimated.
        let mut step = (guess.millicpus / PRECISION).max(1);
        while holds && open.failed.is_none() {
            let millicpus = least.millicpus.saturating_sub(step).max(self.least_millicpus);
            match Found::at(guess.row, millicpus) {
                _ if least.millicpus <= self.least_millicpus => {
                    open.failed = Some(self.least_millicpus - 1);
                }
                Some(less) if accepts(less.limits)? => least = less,
                _ => open.failed = Some(millicpus),
            }
            step *= 2;
        }
        if let Some(low) = open.failed.filter(|_| holds) {
            least = self.halve(least, low, &accepts)?;
            let failures = self.failures(Look::Simulator, least.limits, others, failed.get())?;
            holds = failures.is_some();
        }
        if !holds {
            open.failed = Some(least.millicpus);
        }
        Ok(holds.then_some(least))
    }

    /// Bisects to 1% between a rejected and an accepted quota.
    fn halve(
        &self,
        accepted: Found,
        mut low: u64,
        accepts: &dyn Fn(BandwidthLimits) -> Result<bool>,
    ) -> Result<Found> {
        let mut least = accepted;
        while least.millicpus > low + (least.millicpus / PRECISION).max(1) {
            let middle = low + (least.millicpus - low) / 2;
            match Found::at(least.row, middle) {
                Some(found) if accepts(found.limits)? => least = found,
                _ => low = middle,
            }
        }
        Ok(least)
    }

    /// Runs the search; returns the settings found, cheapest first, one per row.
    pub(crate) fn search(&self) -> Result<(Vec<Found>, Counts)> {
        let ladder = self.ladder();
        let rows = self.rows();
        let scouted = rows.par_iter().map(|row| self.scout(*row, &ladder));
        let scouted: Vec<Scouted> = scouted.collect::<Result<_>>()?;
        let mut counts = Counts::default();
        for row in &scouted {
            counts.settings += row.settings;
            counts.simulated += row.simulated;
        }
        counts.pruned = counts.settings - counts.simulated;
        let closely: Vec<&Scouted> = self.promising(&scouted);
        let found = closely.par_iter().map(|scouted| self.refine(scouted));
        let found: Vec<Option<Found>> = found.collect::<Result<_>>()?;
        let mut found: Vec<Found> = found.into_iter().flatten().collect();
        self.by_cost(&mut found);
        if self.sketch.is_some() {
            self.settle_shown(&mut found)?;
        }
        Ok((found, counts))
    }

    /// Settles the settings that would be shown. A guess that fails grows by 2%, which may make
    /// another setting the cheapest.
    fn settle_shown(&self, found: &mut Vec<Found>) -> Result<()> {
        let open = |guess: &Found| Open { row: guess.row, failed: None, draws: Vec::new() };
        let mut open: Vec<Open> = found.iter().map(open).collect();
        loop {
            let alternatives = self.alternatives(found).into_iter().map(|(_, found)| found);
            let mut shown = self.recommended(found).into_iter().chain(alternatives);
            let next = shown.find_map(|f| Some((f, open.iter().position(|o| o.row == f.row)?)));
            let Some((guess, place)) = next else { return Ok(()) };
            let settled = self.settle(guess, &mut open[place])?;
            let failed = open[place].failed.filter(|failed| *failed < self.most_millicpus);
            found.retain(|f| f.row != guess.row);
            found.extend(match (settled, failed) {
                (None, Some(failed)) => Found::at(guess.row, self.grown(failed, 50)),
                _ => {
                    open.swap_remove(place);
                    settled
                }
            });
            self.by_cost(found);
        }
    }

    /// The cheapest setting that may be recommended.
    pub(crate) fn recommended(&self, found: &[Found]) -> Option<Found> {
        found.iter().find(|found| self.allowed.row(&found.row)).copied()
    }

    /// Alternatives to the recommended setting, each with its change: the cheapest overall comes
    /// first if it may not be recommended.
    pub(crate) fn alternatives(&self, found: &[Found]) -> Vec<(Change, Found)> {
        let recommended = self.recommended(found);
        let cheapest = found.first().filter(|cheapest| !self.allowed.row(&cheapest.row));
        // The recommended setting takes the place of its own kind of change.
        let taken = recommended.and_then(|found| self.change(&found.row));
        // Where --period or --for excludes today's period, what changes one thing of today's setting may
        // be less than what is recommended.
        let reserves = |found: &Found| found.rounded(&self.allowed).millicpus;
        let as_named = |change, found: &Found| match (change, recommended) {
            (Change::Quota, Some(of)) => reserves(found) > reserves(&of),
            (Change::LongerPeriod, Some(of)) => found.row.period_ns > of.row.period_ns,
            _ => true,
        };
        let best = |change| {
            let best = found.iter().find(|f| self.change(&f.row) == Some(change));
            best.filter(|f| as_named(change, f)).map(|f| (change, *f))
        };
        let changes = CHANGES.into_iter().filter(|change| taken != Some(*change));
        let changes = changes.filter_map(best);
        let others = changes.filter(|(_, f)| cheapest.is_none_or(|cheapest| cheapest.row != f.row));
        cheapest.map(|f| (Change::Cheapest, *f)).into_iter().chain(others).collect()
    }

    /// The rows with the smallest quotas, and the best row of each kind of change shown.
    fn promising<'s>(&self, scouted: &'s [Scouted]) -> Vec<&'s Scouted> {
        let mut order: Vec<&Scouted> = scouted.iter().filter(|s| s.holds.is_some()).collect();
        let need = |s: &&Scouted| {
            let (millicpus, _) = s.holds.unwrap_or_default();
            let most_ns = millicpus * s.row.period_ns * (100 + s.row.burst);
            (millicpus, most_ns)
        };
        order.sort_by_key(need);
        let closely = CLOSELY[usize::from(self.sketch.is_none())];
        let mut closely: Vec<&Scouted> = order.iter().take(closely).copied().collect();
        let changes =
            CHANGES.map(|change| order.iter().find(|s| self.change(&s.row) == Some(change)));
        let allowed = order.iter().filter(|s| self.allowed.row(&s.row));
        for best in changes.into_iter().flatten().chain(allowed.take(ALLOWED)) {
            if closely.iter().all(|s| s.row != best.row) {
                closely.push(best);
            }
        }
        closely
    }

    /// The kind of change from today's row, if it is a single one.
    pub(crate) fn change(&self, row: &Row) -> Option<Change> {
        let same_period = row.period_ns == self.from.period_ns;
        match row.burst {
            _ if *row == self.from => Some(Change::Quota),
            0 if row.period_ns > self.from.period_ns => Some(Change::LongerPeriod),
            1.. if same_period => Some(Change::Burst),
            _ => None,
        }
    }

    /// Sorts by cost: the reservation; among equals the largest use per period, then the size of
    /// the change.
    fn by_cost(&self, found: &mut Vec<Found>) {
        let mut left = std::mem::take(found);
        while let Some(least) = left.iter().map(|f| f.millicpus).min() {
            let same = |f: &Found| f.millicpus as f64 <= least as f64 * SAME_COST;
            let key = |f: &Found| {
                let most_ns = f.limits.quota_ns.unwrap_or(0) + f.limits.burst_ns;
                let period = f.row.period_ns.max(self.from.period_ns)
                    / f.row.period_ns.min(self.from.period_ns);
                (most_ns, period, f.row.burst.abs_diff(self.from.burst), f.row.period_ns)
            };
            let (number, _) = left
                .iter()
                .enumerate()
                .filter(|(_, f)| same(f))
                .min_by_key(|(_, f)| key(f))
                .expect("the least is among them");
            found.push(left.remove(number));
        }
    }

    /// p99 of a cell of the map: median of three phases.
    pub(crate) fn map_cell(&self, row: Row, millicpus: u64) -> Result<Option<f64>> {
        let Some(limits) = row.at(millicpus) else { return Ok(None) };
        const PHASES: u32 = 3;
        let simulated = |phase| {
            let outcome = self.stage.replay(&self.load, Some(limits), phase)?;
            Ok(self.stage.figures(&self.load, &outcome, 0.0).p99_ns)
        };
        let mut p99: Vec<(f64, u32)> = Vec::new();
        for index in 0..PHASES {
            let phase = Phase::of_grid(index, PHASES);
            let p99_ns = match &self.sketch {
                Some(sketch) => sketch.p99_ns(self.stage, &self.load, limits, phase)?,
                None => simulated(phase)?,
            };
            p99.push((p99_ns, index));
        }
        p99.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (median_ns, index) = p99[p99.len() / 2];
        match self.sketch {
            Some(_) => simulated(Phase::of_grid(index, PHASES)).map(Some),
            None => Ok(Some(median_ns)),
        }
    }
}

/// The smallest reservation, in thousandths of a CPU, that the mean demand of all these does not
/// use beyond [`MOST_USED`].
pub(crate) fn least_millicpus<'a>(usages: impl Iterator<Item = &'a Usage>) -> u64 {
    let mean = usages.map(Usage::mean_cpus).fold(0.0, f64::max);
    (1000.0 * mean / MOST_USED).ceil().max(1.0) as u64
}

fn grid_phase(index: u32) -> Phase {
    Phase::of_grid(index, GRID_PHASES)
}

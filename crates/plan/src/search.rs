//! Which settings reach the goals: a grid over period, burst and quota at a few phases, then
//! the smallest quota for the best periods and bursts, over draws of phase and recording. The
//! lean replay looks for them where it applies; what is shown has passed the simulator.

use std::cell::Cell;
use std::sync::OnceLock;

use rayon::iter::{IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};
use reveille_policy::BandwidthLimits;
use reveille_usage::Usage;

use crate::limits::limits_of;
use crate::load::Load;
use crate::neighbours::worst_tardiness_ns;
use crate::plan::{Change, Counts, Figures};
use crate::platform::Allowed;
use crate::replay::{Outcome, Phase, Stage};
use crate::replica::Replicas;
use crate::sketch::{Look, Sketch, worst_strain};
use crate::worst_case::worst_case_bound_ns;
use crate::{Ns, PlanError};

const MS: Ns = 1_000_000;
/// Periods of the grid.
pub(crate) const PERIODS_NS: [Ns; 8] =
    [5 * MS, 10 * MS, 20 * MS, 50 * MS, 100 * MS, 200 * MS, 500 * MS, 1000 * MS];
/// Bursts of the grid, in percent of the quota.
pub(crate) const BURSTS: [u64; 5] = [0, 25, 50, 75, 100];
/// Quotas of the grid, from the mean demand to all that the threads can use.
const QUOTAS: u32 = 25;
/// Phases at which each setting of the grid is looked at.
const GRID_PHASES: u32 = 2;
/// Draws of phase and recording by which a setting is accepted.
pub(crate) const DRAWS: u32 = 40;
/// So many draws are looked at before it is asked whether more are needed.
const DRAWS_AT_ONCE: usize = 4;
/// More than may fail of the draws with the highest strain: they decide about most settings.
const TOUGH: usize = 6;
/// Resampled recordings are kept if they have fewer pieces of work together.
const KEPT: usize = 12_000_000;
/// The quota is found to this part of itself.
const PRECISION: u64 = 100;
/// So many rows that looked best on the grid are looked at closely: by the lean replay, or by
/// the simulator.
const CLOSELY: [usize; 2] = [8, 6];
/// So many of the best that may be recommended are among them.
const ALLOWED: usize = 4;
/// What a plan shows beside the recommended setting.
const CHANGES: [Change; 3] = [Change::Burst, Change::LongerPeriod, Change::Quota];
/// Reservations within this part of the least cost as much as that.
const SAME_COST: f64 = 1.02;

/// A period and a burst in percent of the quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) period_ns: Ns,
    pub(crate) burst: u64,
}

impl Row {
    /// The row of these limits.
    pub(crate) fn of(limits: &BandwidthLimits) -> Row {
        let burst = limits.quota_ns.map_or(0, |quota| {
            ((200 * u128::from(limits.burst_ns) + u128::from(quota)) / (2 * u128::from(quota)))
                as u64
        });
        Row { period_ns: limits.period_ns, burst: burst.min(100) }
    }

    fn at(&self, millicpus: u64) -> Option<BandwidthLimits> {
        limits_of(millicpus, self.period_ns, self.burst)
    }
}

/// What is replayed, with and without the group itself.
pub(crate) struct Search<'a> {
    pub(crate) stage: &'a Stage<'a>,
    pub(crate) usage: &'a Usage,
    pub(crate) neighbours: &'a [&'a Usage],
    /// Of the recording, and of others as likely.
    replicas: Vec<Replicas<'a>>,
    /// The recording as it is.
    pub(crate) load: Load,
    /// Others as likely.
    as_likely: Vec<Load>,
    /// Resampled, for every other draw.
    resampled: Vec<OnceLock<Load>>,
    /// How the search looks at settings; nothing for the simulator.
    pub(crate) sketch: Option<Sketch>,
    /// The neighbours alone, and their runs at the phases of the grid and of the draws;
    /// nothing if nobody asks for their lateness.
    pub(crate) alone: Load,
    pub(crate) alone_grid: Vec<Outcome>,
    pub(crate) alone_draws: Vec<Outcome>,
    pub(crate) confidence: f64,
    /// The setting to change from.
    pub(crate) from: Row,
    /// The largest reservation allowed.
    pub(crate) most_millicpus: u64,
    /// What may be recommended.
    pub(crate) allowed: Allowed,
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
    /// So much quota, if a kernel accepts it.
    fn at(row: Row, millicpus: u64) -> Option<Found> {
        Some(Found { row, millicpus, limits: row.at(millicpus)? })
    }

    /// With a quota that can be written.
    pub(crate) fn rounded(self, allowed: &Allowed) -> Found {
        Found::at(self.row, allowed.rounded_up(self.millicpus)).unwrap_or(self)
    }
}

/// A row whose quota is a guess of the lean replay.
struct Open {
    row: Row,
    /// The largest quota that failed, if one has.
    failed: Option<u64>,
    /// All draws, the toughest first; nothing before it is settled.
    draws: Vec<u32>,
}

/// What the grid says of a row.
struct Scouted {
    row: Row,
    /// The smallest quota from which on all goals hold, and the next one below.
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
    ) -> Result<Search<'a>, PlanError> {
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
        let alone_grid: Result<_, PlanError> = runs(GRID_PHASES, &grid_phase);
        let alone_draws: Result<_, PlanError> = runs(DRAWS, &|draw| Phase::of_draw(draw, DRAWS));
        Ok(Search {
            load: all(usage),
            resampled: (0..DRAWS).map(|_| OnceLock::new()).collect(),
            sketch: None,
            replicas: [usage].into_iter().chain(as_likely).map(Replicas::new).collect(),
            as_likely: as_likely.iter().map(all).collect(),
            alone_grid: alone_grid?,
            alone_draws: alone_draws?,
            alone,
            stage,
            usage,
            neighbours,
            confidence: 0.95,
            from: Row { period_ns: 100 * MS, burst: 0 },
            most_millicpus: 0,
            allowed: Allowed::ANY,
            exhaustive: false,
        })
    }

    /// Figures at a phase; `alone` is the run without the group at the same phase.
    pub(crate) fn figures(
        &self,
        load: &Load,
        limits: Option<BandwidthLimits>,
        phase: Phase,
        alone: Option<&Outcome>,
    ) -> Result<(Figures<f64>, Outcome), PlanError> {
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

    /// Figures of one draw: a phase, and by turns the recording as it is and as it might have
    /// been as well.
    pub(crate) fn draw(
        &self,
        limits: Option<BandwidthLimits>,
        draw: u32,
    ) -> Result<Figures<f64>, PlanError> {
        let alone = self.alone_draws.get(draw as usize);
        let figures = |load: &Load| self.figures(load, limits, Phase::of_draw(draw, DRAWS), alone);
        Ok(self.with_draw(draw, figures)?.0)
    }

    /// Does something with the load of a draw: by turns a recording as it is, and resampled; of
    /// several that are as likely each has its turns.
    fn with_draw<T>(&self, draw: u32, act: impl FnOnce(&Load) -> T) -> T {
        let number = (draw / 2) as usize % self.replicas.len();
        if draw.is_multiple_of(2) {
            return act(number.checked_sub(1).map_or(&self.load, |other| &self.as_likely[other]));
        }
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

    /// Are there no others as likely as the recording?
    pub(crate) fn certain(&self) -> bool {
        self.as_likely.is_empty()
    }

    /// How much of its limit the worst goal needs in a draw; above 1 some goal fails.
    fn strain_of_draw(
        &self,
        look: Look,
        limits: BandwidthLimits,
        draw: u32,
    ) -> Result<f64, PlanError> {
        if let (Look::Lean, Some(sketch)) = (look, &self.sketch) {
            let phase = Phase::of_draw(draw, DRAWS);
            return self.with_draw(draw, |load| sketch.strain(self.stage, load, limits, phase));
        }
        let figures = self.draw(Some(limits), draw)?;
        Ok(worst_strain(self.stage.goals, figures.goals.into_iter()))
    }

    /// Draws that may fail.
    fn may_fail(&self) -> usize {
        ((1.0 - self.confidence) * f64::from(DRAWS) + 1e-9).floor() as usize
    }

    /// In how many of these draws a goal fails, beside those that have `failed`; nothing if in
    /// more than may.
    fn failures(
        &self,
        look: Look,
        limits: BandwidthLimits,
        draws: &[u32],
        mut failed: usize,
    ) -> Result<Option<usize>, PlanError> {
        if self.too_long_at_worst(limits) {
            return Ok(None);
        }
        for some in draws.chunks(DRAWS_AT_ONCE) {
            let strains = some.par_iter().map(|&draw| self.strain_of_draw(look, limits, draw));
            let strains: Vec<f64> = strains.collect::<Result<_, PlanError>>()?;
            failed += strains.iter().filter(|strain| **strain > 1.0).count();
            if failed > self.may_fail() {
                return Ok(None);
            }
        }
        Ok(Some(failed))
    }

    /// May the longest piece of work take longer than is allowed?
    fn too_long_at_worst(&self, limits: BandwidthLimits) -> bool {
        let longest_ns = || worst_case_bound_ns(self.stage, self.usage, limits);
        self.allowed.worst_case_ns.is_some_and(|most| longest_ns() > most)
    }

    /// All draws, those with the highest strain in the lean replay first.
    fn toughest(&self, limits: BandwidthLimits) -> Result<Vec<u32>, PlanError> {
        let strains = (0..DRAWS)
            .into_par_iter()
            .map(|draw| Ok((self.strain_of_draw(Look::Lean, limits, draw)?, draw)));
        let mut strains: Vec<(f64, u32)> = strains.collect::<Result<_, PlanError>>()?;
        strains.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        Ok(strains.into_iter().map(|(_, draw)| draw).collect())
    }

    /// So many of the toughest draws decide about most settings.
    fn tough(&self) -> usize {
        (self.may_fail() + TOUGH).min(DRAWS as usize)
    }

    /// Quotas of the grid in thousandths of a CPU, rising.
    fn ladder(&self) -> Vec<u64> {
        let least = 1000.0 * self.usage.mean_cpus() * 1.01;
        let most = self.most_millicpus as f64;
        let step = |k: u32| least * (most / least).powf(f64::from(k) / f64::from(QUOTAS - 1));
        let mut ladder: Vec<u64> = (0..QUOTAS).map(|k| step(k).ceil() as u64).collect();
        ladder.retain(|&millicpus| millicpus <= self.most_millicpus);
        ladder.push(self.most_millicpus);
        ladder.dedup();
        ladder
    }

    /// Periods and bursts to look at.
    fn rows(&self) -> Vec<Row> {
        let mut rows: Vec<Row> = PERIODS_NS
            .into_iter()
            .chain([self.from.period_ns])
            .chain(self.allowed.period())
            .flat_map(|period_ns| BURSTS.map(|burst| Row { period_ns, burst }))
            .chain([self.from])
            .collect();
        rows.sort_by_key(|row| (row.period_ns, row.burst));
        rows.dedup();
        rows
    }

    /// The smallest quota of the grid from which on the goals hold: by halves between all of
    /// them, or by looking at each.
    fn scout(&self, row: Row, ladder: &[u64]) -> Result<Scouted, PlanError> {
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
        let below = first.checked_sub(1).map_or(0, |rung| rungs[rung].0);
        let holds = rungs.get(first).map(|&(millicpus, _)| (millicpus, below));
        Ok(Scouted { row, holds, settings: rungs.len() as u32, simulated })
    }

    /// Do the goals hold at a few phases of the recording as it is?
    fn holds_on_grid(&self, limits: BandwidthLimits) -> Result<bool, PlanError> {
        let mut holds = !self.too_long_at_worst(limits);
        for index in 0..GRID_PHASES {
            let phase = grid_phase(index);
            let strain = match &self.sketch {
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
    fn refine(&self, scouted: &Scouted) -> Result<Option<Found>, PlanError> {
        let (row, Some((mut high, mut low))) = (scouted.row, scouted.holds) else {
            return Ok(None);
        };
        let (look, draws) = match (self.sketch, row.at(high)) {
            (Some(_), Some(limits)) => (Look::Lean, self.toughest(limits)?),
            _ => (Look::Simulator, (0..DRAWS).collect()),
        };
        let asked = if look == Look::Lean { &draws[..self.tough()] } else { &draws };
        let accepts = |limits| Ok(self.failures(look, limits, asked, 0)?.is_some());
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

    /// More by a part of itself, as far as may be reserved.
    fn grown(&self, millicpus: u64, part: u64) -> u64 {
        (millicpus + (millicpus / part).max(1)).min(self.most_millicpus)
    }

    /// The smallest quota above the one that failed that the simulator accepts over all draws. The
    /// toughest draws find it, and the others are asked then. A guess that they refuse has failed.
    fn settle(&self, guess: Found, open: &mut Open) -> Result<Option<Found>, PlanError> {
        if open.draws.is_empty() {
            open.draws = self.toughest(guess.limits)?;
        }
        let (tough, others) = open.draws.split_at(self.tough());
        // Of the setting accepted last.
        let failed = Cell::new(0);
        let accepts = |limits| {
            let failures = self.failures(Look::Simulator, limits, tough, 0)?;
            failures.inspect(|failures| failed.set(*failures));
            Ok(failures.is_some())
        };
        let mut least = guess;
        let mut holds = accepts(guess.limits)?;
        // 1%, 3%, 7% less: the lean replay may have asked for too much.
        let mut step = (guess.millicpus / PRECISION).max(1);
        while holds && open.failed.is_none() {
            match Found::at(guess.row, least.millicpus.saturating_sub(step)) {
                Some(less) if accepts(less.limits)? => least = less,
                _ => open.failed = Some(least.millicpus.saturating_sub(step)),
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

    /// The smallest quota that is accepted above one that is not, to 1%.
    fn halve(
        &self,
        accepted: Found,
        mut low: u64,
        accepts: &dyn Fn(BandwidthLimits) -> Result<bool, PlanError>,
    ) -> Result<Found, PlanError> {
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

    /// Looks for settings; returns those found, the cheapest first, by row.
    pub(crate) fn search(&self) -> Result<(Vec<Found>, Counts), PlanError> {
        let ladder = self.ladder();
        let rows = self.rows();
        let scouted = rows.par_iter().map(|row| self.scout(*row, &ladder));
        let scouted: Vec<Scouted> = scouted.collect::<Result<_, PlanError>>()?;
        let mut counts = Counts::default();
        for row in &scouted {
            counts.settings += row.settings;
            counts.simulated += row.simulated;
        }
        counts.pruned = counts.settings - counts.simulated;
        let closely: Vec<&Scouted> = self.promising(&scouted);
        let found = closely.par_iter().map(|scouted| self.refine(scouted));
        let found: Vec<Option<Found>> = found.collect::<Result<_, PlanError>>()?;
        let mut found: Vec<Found> = found.into_iter().flatten().collect();
        self.by_cost(&mut found);
        if self.sketch.is_some() {
            self.settle_shown(&mut found)?;
        }
        Ok((found, counts))
    }

    /// Settles what would be shown. A guess that fails grows by 2%, and another setting may be
    /// the cheapest then.
    fn settle_shown(&self, found: &mut Vec<Found>) -> Result<(), PlanError> {
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

    /// What is shown beside the recommended one of those found, each with what it changes: the
    /// cheapest of all first, where that may not be recommended.
    pub(crate) fn alternatives(&self, found: &[Found]) -> Vec<(Change, Found)> {
        let recommended = self.recommended(found);
        let cheapest = found.first().filter(|cheapest| !self.allowed.row(&cheapest.row));
        // Where the recommended setting is a change, it needs no second one.
        let taken = recommended.and_then(|found| self.change(&found.row));
        let best = |change| {
            let best = found.iter().find(|f| self.change(&f.row) == Some(change));
            best.map(|f| (change, *f))
        };
        let changes = CHANGES.into_iter().filter(|change| taken != Some(*change));
        let changes = changes.filter_map(best);
        let others = changes.filter(|(_, f)| cheapest.is_none_or(|cheapest| cheapest.row != f.row));
        cheapest.map(|f| (Change::Cheapest, *f)).into_iter().chain(others).collect()
    }

    /// The rows that need least, and for each change that a plan shows the best one.
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

    /// What a row changes, if it is one thing.
    pub(crate) fn change(&self, row: &Row) -> Option<Change> {
        let same_period = row.period_ns == self.from.period_ns;
        match row.burst {
            _ if *row == self.from => Some(Change::Quota),
            0 if row.period_ns > self.from.period_ns => Some(Change::LongerPeriod),
            1.. if same_period => Some(Change::Burst),
            _ => None,
        }
    }

    /// The cheapest first: what it reserves; where that is about the same, what it may use in
    /// a period at most, then how much it changes.
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

    /// p99 of a setting of the map: in the phase that is the median of three.
    pub(crate) fn map_cell(&self, row: Row, millicpus: u64) -> Result<Option<f64>, PlanError> {
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

/// Phases of the grid.
fn grid_phase(index: u32) -> Phase {
    Phase::of_grid(index, GRID_PHASES)
}

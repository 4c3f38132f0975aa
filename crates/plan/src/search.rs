//! Which settings reach the goals: a grid over period, burst and quota at a few phases, then
//! the smallest quota for the best periods and bursts, over draws of phase and recording.

use rayon::iter::{IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};
use reveille_policy::BandwidthLimits;
use reveille_usage::Usage;

use crate::limits::limits_of;
use crate::load::Load;
use crate::neighbours::worst_tardiness_ns;
use crate::plan::{Change, Counts, Figures};
use crate::replay::{Outcome, Phase, Stage};
use crate::replica::Replicas;
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
/// A goal missed by this factor is missed clearly: smaller quotas are left out.
const CLEARLY: f64 = 2.0;
/// Draws of phase and recording by which a setting is accepted.
pub(crate) const DRAWS: u32 = 40;
/// So many draws are looked at before it is asked whether more are needed.
const DRAWS_AT_ONCE: u32 = 8;
/// The quota is found to this part of itself.
const PRECISION: u64 = 100;
/// So many rows that looked best on the grid are looked at closely.
const CLOSELY: usize = 6;
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
    pub(crate) replicas: Replicas<'a>,
    /// The recording as it is.
    pub(crate) load: Load,
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
        let alone_draws: Result<_, PlanError> = runs(DRAWS, &Phase::of_draw);
        Ok(Search {
            load: all(usage),
            replicas: Replicas::new(usage),
            alone_grid: alone_grid?,
            alone_draws: alone_draws?,
            alone,
            stage,
            usage,
            neighbours,
            confidence: 0.95,
            from: Row { period_ns: 100 * MS, burst: 0 },
            most_millicpus: 0,
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
        if draw.is_multiple_of(2) {
            return Ok(self.figures(&self.load, limits, Phase::of_draw(draw), alone)?.0);
        }
        let seed = self.stage.seed.wrapping_add(u64::from(draw));
        let replica = self.replicas.draw(seed);
        let mut all = vec![&replica];
        all.extend(self.neighbours);
        let load = Load::new(&all);
        Ok(self.figures(&load, limits, Phase::of_draw(draw), alone)?.0)
    }

    /// Draws that may fail.
    fn may_fail(&self) -> usize {
        ((1.0 - self.confidence) * f64::from(DRAWS) + 1e-9).floor() as usize
    }

    /// Do the goals hold in as many draws as the confidence asks for?
    fn accepts(&self, limits: BandwidthLimits) -> Result<bool, PlanError> {
        let mut failed = 0;
        for first in (0..DRAWS).step_by(DRAWS_AT_ONCE as usize) {
            let draws = (first..first + DRAWS_AT_ONCE).into_par_iter();
            let held = draws.map(|draw| Ok(self.stage.hold(&self.draw(Some(limits), draw)?)));
            let held: Vec<bool> = held.collect::<Result<_, PlanError>>()?;
            failed += held.iter().filter(|held| !**held).count();
            if failed > self.may_fail() {
                return Ok(false);
            }
        }
        Ok(true)
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
            .flat_map(|period_ns| BURSTS.map(|burst| Row { period_ns, burst }))
            .chain([self.from])
            .collect();
        rows.sort_by_key(|row| (row.period_ns, row.burst));
        rows.dedup();
        rows
    }

    /// From the largest quota down to the smallest, or to where a goal is missed clearly.
    fn scout(&self, row: Row, ladder: &[u64]) -> Result<Scouted, PlanError> {
        let (mut holds, mut failed) = (None, false);
        let (mut settings, mut simulated) = (0, 0);
        let mut clearly = 0;
        for (rung, &millicpus) in ladder.iter().enumerate().rev() {
            let Some(limits) = row.at(millicpus) else { continue };
            settings += 1;
            if clearly >= 2 && !self.exhaustive {
                continue;
            }
            simulated += 1;
            let strain = self.strain(limits)?;
            failed |= strain > 1.0;
            clearly = if strain > CLEARLY { clearly + 1 } else { 0 };
            if !failed {
                let below = rung.checked_sub(1).map_or(0, |rung| ladder[rung]);
                holds = Some((millicpus, below));
            }
        }
        Ok(Scouted { row, holds, settings, simulated })
    }

    /// How much of its limit the worst goal needs, at the worst of a few phases; above 1 some
    /// goal fails.
    fn strain(&self, limits: BandwidthLimits) -> Result<f64, PlanError> {
        let mut worst = 0.0f64;
        for index in 0..GRID_PHASES {
            let alone = self.alone_grid.get(index as usize);
            let (figures, _) = self.figures(&self.load, Some(limits), grid_phase(index), alone)?;
            for (goal, figure) in self.stage.goals.iter().zip(&figures.goals) {
                let strain = goal.strain(*figure);
                let strain =
                    if goal.holds(*figure) { strain.min(1.0) } else { strain.max(1.0 + 1e-9) };
                worst = worst.max(strain);
            }
            if worst > CLEARLY && !self.exhaustive {
                break;
            }
        }
        Ok(worst)
    }

    /// The smallest quota of a row whose goals hold over the draws.
    fn refine(&self, scouted: &Scouted) -> Result<Option<Found>, PlanError> {
        let (row, Some((mut high, mut low))) = (scouted.row, scouted.holds) else {
            return Ok(None);
        };
        let accepts = |millicpus: u64| match row.at(millicpus) {
            Some(limits) => self.accepts(limits),
            None => Ok(false),
        };
        while !accepts(high)? {
            if high >= self.most_millicpus {
                return Ok(None);
            }
            low = high;
            high = (high + (high / 16).max(1)).min(self.most_millicpus);
        }
        while high - low > (high / PRECISION).max(1) {
            let middle = low + (high - low) / 2;
            if accepts(middle)? {
                high = middle;
            } else {
                low = middle;
            }
        }
        let limits = row.at(high).expect("it has just been simulated");
        Ok(Some(Found { row, millicpus: high, limits }))
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
        Ok((found, counts))
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
        let mut closely: Vec<&Scouted> = order.iter().take(CLOSELY).copied().collect();
        for change in [Change::Burst, Change::LongerPeriod, Change::Quota] {
            if let Some(best) = order.iter().find(|s| self.change(&s.row) == Some(change))
                && closely.iter().all(|s| s.row != best.row)
            {
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

    /// p99 of a setting of the map: the median over phases.
    pub(crate) fn map_cell(&self, row: Row, millicpus: u64) -> Result<Option<f64>, PlanError> {
        let Some(limits) = row.at(millicpus) else { return Ok(None) };
        const PHASES: u32 = 3;
        let mut p99: Vec<f64> = Vec::new();
        for index in 0..PHASES {
            let phase = Phase::of_grid(index, PHASES);
            let outcome = self.stage.replay(&self.load, Some(limits), phase)?;
            p99.push(self.stage.figures(&self.load, &outcome, 0.0).p99_ns);
        }
        p99.sort_by(f64::total_cmp);
        Ok(Some(p99[p99.len() / 2]))
    }
}

/// Phases of the grid.
fn grid_phase(index: u32) -> Phase {
    Phase::of_grid(index, GRID_PHASES)
}

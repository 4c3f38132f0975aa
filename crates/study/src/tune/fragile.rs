//! Which verdicts hang on the machines' constants? All constants are drawn at once from their
//! plausible ranges, several times, over many studies: what [`sensitivity`]
//! (crate::sensitivity()) looks at in depth for one study and one constant at a time, this
//! answers quickly enough for all of them. A load is run once per draw, over the shortest part
//! of the study's warm-up and duration that predicts the same verdicts, and ratios within 2%,
//! as the whole does.

use std::sync::atomic::AtomicBool;

use reveille_machine::{Machine, Tunable};
use reveille_measure::Random;
use serde::{Deserialize, Serialize};

use crate::judge::row::{Row, RowKind};
use crate::judge::verdict::Verdict;
use crate::model::error::Result;
use crate::model::published::Side;
use crate::model::study::Study;
use crate::tune::sweep::{Part, Pool, Sweep, Trial};

const DRAWS: usize = 12;
/// A verdict that another one replaces in this part of the draws or more is fragile.
const FRAGILE_SHARE: f64 = 0.25;
/// Parts of a run's length that are tried, the shortest first.
const SHORTER: [u64; 4] = [16, 8, 4, 2];
/// How far the logarithm of a ratio of a shorter run may lie from the whole one's.
const SETTLED: f64 = 0.02;

/// Which verdicts of several studies hang on the constants.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fragility {
    pub studies: Vec<String>,
    /// Constants that were drawn.
    pub constants: usize,
    pub draws: usize,
    pub runs: usize,
    /// The rows that count, in the order of the studies.
    pub rows: Vec<FragileRow>,
    /// True if the run was interrupted: there are no rows.
    pub partial: bool,
}

/// A row that counts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FragileRow {
    #[serde(flatten)]
    pub place: RowPlace,
    /// At the shipped values, with one repeat.
    pub verdict: Verdict,
    /// The part of the study's warm-up and duration that was run, from 0 to 1.
    pub length: f64,
    /// Draws with another verdict.
    pub turned: usize,
}

impl Fragility {
    /// Does a quarter of the draws or more turn the row's verdict?
    pub fn is_fragile(&self, row: &FragileRow) -> bool {
        row.turned as f64 >= FRAGILE_SHARE * self.draws as f64
    }
}

/// What tells a row from all others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowPlace {
    pub study: String,
    pub case: String,
    /// Load in the workload's own unit.
    pub load: u64,
    pub variant: String,
    pub metric: String,
    /// The side whose own figure was published; null of a change.
    pub side: Option<Side>,
}

impl RowPlace {
    /// Of a row of a study.
    pub fn of(study: &str, row: &Row) -> RowPlace {
        let side = match row.kind {
            RowKind::Change | RowKind::Std => None,
            _ if row.published_baseline.is_some() => Some(Side::Base),
            _ => Some(Side::Variant),
        };
        RowPlace {
            study: study.to_owned(),
            case: row.case.clone(),
            load: row.load,
            variant: row.variant.clone(),
            metric: row.metric.to_string(),
            side,
        }
    }
}

/// A load as it is run again and again, and its rows at the shipped values.
type Cell = (Part, Vec<Row>);

/// Draws the constants of the studies' machines; see the head of this file. The result does not
/// depend on `jobs`.
///
/// `progress` is told the number of finished runs and of all that may be needed, which
/// falls. Once `stop` is set, the result is partial.
pub fn fragility(
    studies: &[Study],
    jobs: usize,
    stop: &AtomicBool,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Fragility> {
    let sweep = Sweep::new(studies, |_, _| true);
    let pool = Pool { jobs, stop, progress };
    let (trials, constants) = draws(&sweep.machines());
    let mut result = Fragility {
        studies: studies.iter().map(|s| s.name.clone()).collect(),
        constants,
        draws: DRAWS,
        runs: 0,
        rows: Vec::new(),
        partial: true,
    };
    let Some(cells) = cells(&sweep, DRAWS * sweep.runs(), &pool)? else { return Ok(result) };
    let drawn = |trial| cells.iter().map(move |(part, _)| Part { trial, ..*part });
    let parts: Vec<Part> = (0..DRAWS).flat_map(drawn).collect();
    let outcomes: Option<Vec<Vec<Row>>> =
        sweep.run_parts(&parts, &trials, 0, &pool)?.into_iter().collect();
    let Some(outcomes) = outcomes else { return Ok(result) };
    result.partial = false;
    result.runs = sweep.finished();
    for (i, (part, shipped)) in cells.iter().enumerate() {
        let of_draws = || outcomes.iter().skip(i).step_by(cells.len());
        result.rows.extend(shipped.iter().enumerate().map(|(k, row)| FragileRow {
            place: RowPlace::of(&studies[part.study].name, row),
            verdict: row.verdict.unwrap_or(Verdict::Informative),
            length: 1.0 / part.shorter as f64,
            turned: of_draws().filter(|rows| rows[k].verdict != row.verdict).count(),
        }));
    }
    Ok(result)
}

/// The machines with all constants drawn, and how many constants there are. Each constant takes
/// each twelfth of its range once (Latin hypercube), half of them below the shipped value; one that
/// several machines have lies at the same place in each of their ranges.
fn draws(machines: &[&Machine]) -> (Vec<Trial>, usize) {
    let mut trials: Vec<Trial> =
        (0..DRAWS).map(|_| machines.iter().map(|m| (*m).clone()).collect()).collect();
    let mut random = Random::new(1);
    let mut drawn: Vec<(String, Vec<usize>)> = Vec::new();
    for (k, machine) in machines.iter().enumerate() {
        for t in machine.tunables().iter().filter(|t| t.low < t.high) {
            let order = match drawn.iter().position(|(key, _)| *key == t.key) {
                Some(known) => &drawn[known].1,
                None => {
                    let mut order: Vec<usize> = (0..DRAWS).collect();
                    for i in (1..DRAWS).rev() {
                        order.swap(i, random.below(i as u64 + 1) as usize);
                    }
                    drawn.push((t.key.clone(), order));
                    &drawn[drawn.len() - 1].1
                }
            };
            for (trial, stratum) in trials.iter_mut().zip(order) {
                let value = at_share(t, (*stratum as f64 + 0.5) / DRAWS as f64);
                trial[k].set(&t.key, value).expect("a value of the range");
            }
        }
    }
    (trials, drawn.len())
}

/// The value of a constant below which this share of the draws lies: by factors, since many ranges
/// span several; in even steps from 0.
fn at_share(t: &Tunable, share: f64) -> f64 {
    let (from, to, part) = if share < 0.5 {
        (t.low, t.value, 2.0 * share)
    } else {
        (t.value, t.high, 2.0 * share - 1.0)
    };
    let value = if from > 0.0 { from * (to / from).powf(part) } else { from + (to - from) * part };
    t.at((value - t.low) / (t.high - t.low))
}

/// Every load at the shortest length that will do; `None` if it was interrupted.
fn cells(sweep: &Sweep, later: usize, pool: &Pool<'_>) -> Result<Option<Vec<Cell>>> {
    let shipped = [Trial::new()];
    let parts: Vec<Part> = sweep.parts(0).collect();
    let whole: Option<Vec<Vec<Row>>> =
        sweep.run_parts(&parts, &shipped, later, pool)?.into_iter().collect();
    let Some(whole) = whole else { return Ok(None) };
    let mut cells: Vec<Cell> = parts.into_iter().zip(whole).collect();
    for shorter in SHORTER {
        let open: Vec<usize> = (0..cells.len()).filter(|i| cells[*i].0.shorter == 1).collect();
        let parts: Vec<Part> = open.iter().map(|i| Part { shorter, ..cells[*i].0 }).collect();
        let outcomes = sweep.run_parts(&parts, &shipped, later, pool)?;
        for ((i, part), rows) in open.into_iter().zip(parts).zip(outcomes) {
            match rows {
                None => return Ok(None),
                Some(rows) if settled(&rows, &cells[i].1) => cells[i] = (part, rows),
                Some(_) => {}
            }
        }
    }
    Ok(Some(cells))
}

/// Do shorter runs say what whole ones do?
fn settled(rows: &[Row], whole: &[Row]) -> bool {
    let near = |a: Option<f64>, b: Option<f64>| match (a, b) {
        (Some(a), Some(b)) => a == b || (a.ln() - b.ln()).abs() <= SETTLED,
        (a, b) => a == b,
    };
    rows.iter().zip(whole).all(|(a, b)| a.verdict == b.verdict && near(a.ratio, b.ratio))
}

//! Which verdicts does one constant decide? Every constant is moved to both ends of its
//! plausible range, one at a time, over many studies at once. What [`sensitivity`]
//! (crate::sensitivity()) looks at in depth for one study, this does quickly enough for
//! all of them, by leaving out what cannot show:
//!
//! - A load is run once, over the shortest part of the study's warm-up and duration that
//!   predicts the same verdicts, and ratios within 2%, as the whole does.
//! - A constant whose low end leaves all figures of a load as they were is not charged
//!   there; its high end is not run.
//! - A load whose rows have all turned is not run again, so that a row names the first
//!   constant that turns it, in the order of the machine's constants.

use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

use crate::judge::row::{Row, RowKind};
use crate::judge::verdict::Verdict;
use crate::model::error::StudyError;
use crate::model::published::Side;
use crate::model::study::Study;
use crate::tune::knob::Knob;
use crate::tune::sweep::{self, Part, Pool, Sweep, Trial};

/// Parts of a run's length that are tried, the shortest first.
const SHORTER: [u64; 4] = [16, 8, 4, 2];
/// How far the logarithm of a ratio of a shorter run may lie from the whole one's.
const SETTLED: f64 = 0.02;

/// Which verdicts of several studies one constant turns.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fragility {
    pub studies: Vec<String>,
    /// Constants that were moved.
    pub constants: usize,
    /// Simulated runs.
    pub runs: usize,
    /// The rows that count, in the order of the studies.
    pub rows: Vec<FragileRow>,
    /// True if the run was interrupted: rows without a turn may have one.
    pub partial: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FragileRow {
    #[serde(flatten)]
    pub place: RowPlace,
    /// At the shipped values, with one repeat.
    pub verdict: Verdict,
    /// The part of the study's warm-up and duration that was run, from 0 to 1.
    pub length: f64,
    /// What turns the verdict; null if no constant does alone.
    pub turn: Option<Turn>,
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

/// An end of a range at which a verdict is another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    pub constant: String,
    pub end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    Low,
    High,
}

impl RowPlace {
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

/// A load as it is run again and again.
struct Cell {
    part: Part,
    /// Its rows at the shipped values.
    shipped: Vec<Row>,
    /// By row.
    turns: Vec<Option<Turn>>,
}

/// Moves every constant of the studies' machines to both ends of its range; see the head
/// of this file. The result does not depend on `jobs`.
///
/// `progress` is told the number of finished runs and of all that may be needed, which
/// falls. Once `stop` is set, the result is partial.
///
/// # Errors
/// As [`run`](crate::run()).
pub fn fragility(
    studies: &[Study],
    jobs: usize,
    stop: &AtomicBool,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Fragility, StudyError> {
    let sweep = Sweep::new(studies, |_, _| true);
    let pool = Pool { jobs, stop, progress };
    let knobs = Knob::all(&sweep.machines());
    let cells = cells(&sweep, 2 * knobs.len() * sweep.runs(), &pool)?;
    let mut result = Fragility {
        studies: studies.iter().map(|s| s.name.clone()).collect(),
        constants: knobs.iter().filter(|k| k.values(0.0) != k.values(1.0)).count(),
        runs: 0,
        rows: Vec::new(),
        partial: true,
    };
    let Some(mut cells) = cells else { return Ok(result) };
    for (i, knob) in knobs.iter().enumerate() {
        let open = cells.iter().filter(|c| c.turns.contains(&None));
        let later =
            open.map(|c| sweep.part_runs(c.part)).sum::<usize>() * 2 * (knobs.len() - i - 1);
        let mut charged = vec![true; cells.len()];
        for end in [End::Low, End::High] {
            move_to(&sweep, knob, end, &mut cells, &mut charged, later, &pool)?;
        }
    }
    result.partial = stop.load(Ordering::Relaxed);
    result.runs = sweep.finished();
    for cell in cells {
        let study = &studies[cell.part.study].name;
        result.rows.extend(cell.shipped.iter().zip(cell.turns).map(|(row, turn)| FragileRow {
            place: RowPlace::of(study, row),
            verdict: row.verdict.unwrap_or(Verdict::Informative),
            length: 1.0 / cell.part.shorter as f64,
            turn,
        }));
    }
    Ok(result)
}

/// Every load at the shortest length that will do; `None` if it was interrupted.
fn cells(sweep: &Sweep, later: usize, pool: &Pool<'_>) -> Result<Option<Vec<Cell>>, StudyError> {
    let shipped = [Trial::new()];
    let parts: Vec<Part> = sweep.parts(0).collect();
    let whole: Option<Vec<Vec<Row>>> =
        sweep.run_parts(&parts, &shipped, later, pool)?.into_iter().collect();
    let Some(whole) = whole else { return Ok(None) };
    let cell = |(part, rows): (Part, Vec<Row>)| Cell {
        turns: vec![None; rows.len()],
        part,
        shipped: rows,
    };
    let mut cells: Vec<Cell> = parts.into_iter().zip(whole).map(cell).collect();
    for shorter in SHORTER {
        let open: Vec<usize> = (0..cells.len()).filter(|i| cells[*i].part.shorter == 1).collect();
        let parts: Vec<Part> = open.iter().map(|i| Part { shorter, ..cells[*i].part }).collect();
        let outcomes = sweep.run_parts(&parts, &shipped, later, pool)?;
        for ((i, part), rows) in open.into_iter().zip(parts).zip(outcomes) {
            match rows {
                None => return Ok(None),
                Some(rows) if settled(&rows, &cells[i].shipped) => cells[i] = cell((part, rows)),
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

/// Runs the loads that a constant may still turn with it at one end of its range.
/// `charged` tells at which loads it changes anything.
fn move_to(
    sweep: &Sweep,
    knob: &Knob,
    end: End,
    cells: &mut [Cell],
    charged: &mut [bool],
    later: usize,
    pool: &Pool<'_>,
) -> Result<(), StudyError> {
    let position = if end == End::Low { 0.0 } else { 1.0 };
    let moves = |cell: &Cell| {
        let machine = &sweep.machine(&cell.part).name;
        knob.machines.iter().any(|(m, t)| m.name == *machine && t.at(position) != t.value)
    };
    let open = |i: &usize| charged[*i] && cells[*i].turns.contains(&None) && moves(&cells[*i]);
    let open: Vec<usize> = (0..cells.len()).filter(open).collect();
    let parts: Vec<Part> = open.iter().map(|i| cells[*i].part).collect();
    let outcomes = sweep.run_parts(&parts, &[knob.trial(position)], later, pool)?;
    for (i, rows) in open.into_iter().zip(outcomes) {
        // Without rows the run was interrupted.
        let Some(rows) = rows else { continue };
        let cell = &mut cells[i];
        charged[i] = !sweep::same(&rows, &cell.shipped);
        for ((row, shipped), turn) in rows.iter().zip(&cell.shipped).zip(&mut cell.turns) {
            if turn.is_none() && row.verdict != shipped.verdict {
                *turn = Some(Turn { constant: knob.key.clone(), end });
            }
        }
    }
    Ok(())
}

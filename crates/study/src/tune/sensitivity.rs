//! How far do a study's predictions hang on the constants of its machines? Every
//! constant is moved over its plausible range, one at a time, and the study is run
//! again: a hit that needs one exact value is worth less than one that does not.

use std::sync::atomic::AtomicBool;

use reveille_place::Mistake;
use serde::Serialize;

use crate::judge::row::{Row, RowKind};
use crate::judge::score::{self, Score};
use crate::judge::skill::Skill;
use crate::judge::standing::{Standing, standing};
use crate::judge::verdict::Verdict;
use crate::model::error::{Result, StudyError};
use crate::model::study::{Case, Study};
use crate::tune::knob::{Knob, Seen, Swept};
use crate::tune::sweep::{Pool, Sweep};

pub const DEFAULT_POINTS: u32 = 5;
/// Most positions: finer steps than that are below what a range can say.
pub const MAX_POINTS: u32 = 101;

#[derive(Clone, Debug)]
pub struct SensitivityOptions {
    /// Constants to move, by the names of [`Machine::tunables`](reveille_machine::Machine::tunables); all if empty.
    pub constants: Vec<String>,
    /// Cases to look at, by name; all if empty.
    pub cases: Vec<String>,
    /// Positions across each range, both ends included; at least 2.
    pub points: u32,
}

/// What moving the constants of a study does to its predictions.
#[derive(Clone, Debug, Serialize)]
pub struct Sensitivity {
    pub study: String,
    pub machines: Vec<String>,
    pub points: u32,
    pub seed: u64,
    /// Runs of each load under each policy, the most of any case.
    pub repeats: u32,
    pub score: Score,
    pub skill: Skill,
    /// The rows that count, in the order of the study.
    pub rows: Vec<SensitiveRow>,
    /// The constants that change a row, the one that moves a prediction furthest first.
    pub constants: Vec<MovedConstant>,
    /// Constants at both ends of whose range every run is the same.
    pub without_influence: Vec<String>,
    /// Constants with a range of one value.
    pub without_range: Vec<String>,
    /// True if the run was interrupted and constants are missing.
    pub partial: bool,
}

/// A row that counts, at the shipped values.
#[derive(Clone, Debug, Serialize)]
pub struct SensitiveRow {
    pub case: String,
    pub machine: String,
    pub base: String,
    /// Load in the workload's own unit.
    pub load: u64,
    pub variant: String,
    pub metric: String,
    pub kind: RowKind,
    /// The published change in percent, + is better; null if another figure is published.
    pub published_change_pct: Option<f64>,
    /// The predicted change in percent, + is better; null if there is no such number.
    pub predicted_change_pct: Option<f64>,
    /// Predicted by published; null if there is no such number.
    pub ratio: Option<f64>,
    pub verdict: Verdict,
    /// How firm the verdict is, over all constants.
    pub standing: Standing,
    /// The constants that make it [`Standing::Fragile`] or [`Standing::Near`].
    pub because_of: Vec<String>,
}

/// A constant that changes at least one row.
#[derive(Clone, Debug, Serialize)]
pub struct MovedConstant {
    pub key: String,
    /// `ns`, `count` or `ratio`.
    pub unit: &'static str,
    /// On each machine that has it.
    pub machines: Vec<RangeOnMachine>,
    /// The largest change of the logarithm of a predicted ratio (or figure) from its
    /// shipped value, in any row that counts and at any position.
    pub reach: f64,
    pub reach_low: f64,
    pub reach_high: f64,
    /// The row that moves furthest, as an index into [`Sensitivity::rows`]; null if no
    /// ratio changes.
    pub reach_row: Option<usize>,
    /// What is predicted across the range, from its low end to its high end.
    pub samples: Vec<Sample>,
    /// Rows with different verdicts across the range, the shipped value included.
    pub changed: Vec<ChangedRow>,
}

#[derive(Clone, Debug, Serialize)]
pub struct RangeOnMachine {
    pub machine: String,
    pub value: f64,
    pub low: f64,
    pub high: f64,
    /// `cited`, `estimated` or `fitted`.
    pub origin: &'static str,
}

#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    /// In the range: 0 is its low end, 1 its high end.
    pub position: f64,
    /// The value on each machine of [`MovedConstant::machines`].
    pub values: Vec<f64>,
    pub hits: usize,
    pub verdicts: Vec<Verdict>,
    /// By row: predicted by published; null if there is no such number.
    pub ratios: Vec<Option<f64>>,
}

/// A row whose verdict a constant changes. Numbers are indices into
/// [`MovedConstant::samples`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChangedRow {
    /// Index into [`Sensitivity::rows`].
    pub row: usize,
    pub hit_at: Vec<usize>,
    pub miss_at: Vec<usize>,
    /// How firm the shipped verdict is on this constant.
    pub standing: Standing,
}

/// Moves the constants of a study's machines, one at a time, and runs the loads that
/// have a published figure that counts again at each position. A constant that several
/// machines have is moved on all of them together, each within its own range. First
/// both ends; what changes nothing there is not looked at further.
///
/// `progress` is told the number of finished runs and of all that are known to be
/// needed, which may fall. Once `stop` is set, the constants whose positions are all
/// finished are returned and the result says that it is partial.
///
/// # Errors
/// [`InputError::Option`](reveille_place::InputError::Option) for a constant or case that is not there, for fewer than 2 or
/// more than [`MAX_POINTS`] positions, and for a study in which nothing counts; else as
/// [`run`](crate::run).
pub fn sensitivity(
    study: &Study,
    options: &SensitivityOptions,
    jobs: usize,
    stop: &AtomicBool,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Sensitivity> {
    let points = check_points(options.points)?;
    let cases: Vec<&str> = study.cases.iter().map(|c| c.name.as_str()).collect();
    check_names("--case", "case", &options.cases, &cases)?;
    let keep = |_: &Study, c: &Case| options.cases.is_empty() || options.cases.contains(&c.name);
    let sweep = Sweep::new(std::slice::from_ref(study), keep);
    if sweep.is_empty() {
        let help = "`reveille studies` lists studies that have some";
        let problem = Mistake::new("no published figure of it counts", help);
        return Err(StudyError::option("STUDY", problem));
    }
    let machines = sweep.machines();
    let all = Knob::all(&machines);
    let keys: Vec<&str> = all.iter().map(|knob| knob.key.as_str()).collect();
    check_names("--constant", "constant", &options.constants, &keys)?;
    let asked = |k: &Knob| options.constants.is_empty() || options.constants.contains(&k.key);
    let (fixed, knobs): (Vec<Knob>, Vec<Knob>) =
        all.into_iter().filter(asked).partition(|k| k.values(0.0) == k.values(1.0));
    let pool = Pool { jobs, stop, progress };
    let swept = Swept::run(&sweep, &knobs, points, &pool)?;

    let mut result = Sensitivity {
        study: study.name.clone(),
        machines: machines.iter().map(|m| m.name.clone()).collect(),
        points,
        seed: study.seed,
        repeats: study.cases.iter().map(|c| c.repeats).max().unwrap_or(0),
        score: Score::default(),
        skill: Skill::default(),
        rows: Vec::new(),
        constants: Vec::new(),
        without_influence: Vec::new(),
        without_range: fixed.into_iter().map(|k| k.key).collect(),
        partial: swept.partial,
    };
    let Some(shipped) = swept.shipped else { return Ok(result) };
    for (knob, seen) in knobs.into_iter().zip(swept.knobs) {
        match seen {
            Seen::Nothing => result.without_influence.push(knob.key),
            Seen::Samples(samples) => result.constants.push(moved(knob, &shipped, samples)),
            Seen::Unfinished => {}
        }
    }
    result.constants.sort_by(|a, b| b.reach.total_cmp(&a.reach));
    result.score = score::score(&shipped);
    result.skill = Skill::of(&shipped);
    result.rows = shipped.iter().map(sensitive_row).collect();
    for constant in &result.constants {
        for changed in &constant.changed {
            let row = &mut result.rows[changed.row];
            if changed.standing != Standing::Firm {
                row.standing = changed.standing;
                row.because_of.push(constant.key.clone());
            }
        }
    }
    Ok(result)
}

fn check_points(points: u32) -> Result<u32> {
    if (2..=MAX_POINTS).contains(&points) {
        return Ok(points);
    }
    let text = format!("{points} points cannot show a range");
    let help = format!("use 2 (both ends) to {MAX_POINTS}; {DEFAULT_POINTS} are usual");
    Err(StudyError::option("--points", Mistake::new(text, help)))
}

fn check_names(option: &'static str, what: &str, asked: &[String], known: &[&str]) -> Result<()> {
    let unknown = |name: &String| Mistake::position(what, name, known).err();
    match asked.iter().find_map(unknown) {
        Some(mistake) => Err(StudyError::option(option, mistake)),
        None => Ok(()),
    }
}

/// What the rows at every position come to.
fn moved(knob: Knob, shipped: &[Row], samples: Vec<(f64, Vec<Row>)>) -> MovedConstant {
    let ln = |row: &Row| row.ratio.map_or(f64::NAN, f64::ln);
    // How far the rows at a position lie from the shipped ones, and which lies furthest.
    let reach = |rows: &[Row]| {
        let mut furthest = (0.0, None);
        for (i, (row, at)) in rows.iter().zip(shipped).enumerate() {
            let distance = (ln(row) - ln(at)).abs();
            if distance.is_finite() && distance > furthest.0 {
                furthest = (distance, Some(i));
            }
        }
        furthest
    };
    let reaches: Vec<(f64, Option<usize>)> = samples.iter().map(|(_, rows)| reach(rows)).collect();
    let furthest = reaches.iter().fold((0.0, None), |a, b| if b.0 > a.0 { *b } else { a });
    let samples = samples.into_iter().map(|(position, rows)| Sample {
        position,
        values: knob.values(position),
        hits: score::score(&rows).hits,
        verdicts: rows.iter().map(verdict_of).collect(),
        ratios: rows.iter().map(|r| r.ratio).collect(),
    });
    let samples: Vec<Sample> = samples.collect();
    let changed = (0..shipped.len()).filter_map(|row| changed(row, &shipped[row], &samples));
    MovedConstant {
        changed: changed.collect(),
        unit: knob.unit,
        reach: furthest.0,
        reach_low: reaches.first().map_or(0.0, |r| r.0),
        reach_high: reaches.last().map_or(0.0, |r| r.0),
        reach_row: furthest.1,
        samples,
        machines: knob
            .machines
            .into_iter()
            .map(|(machine, t)| RangeOnMachine {
                machine: machine.name,
                value: t.value,
                low: t.low,
                high: t.high,
                origin: t.origin.kind(),
            })
            .collect(),
        key: knob.key,
    }
}

fn changed(row: usize, shipped: &Row, samples: &[Sample]) -> Option<ChangedRow> {
    let verdict = verdict_of(shipped);
    let verdicts: Vec<Verdict> = samples.iter().map(|s| s.verdicts[row]).collect();
    if verdicts.iter().all(|v| *v == verdict) {
        return None;
    }
    let at = |verdict| (0..verdicts.len()).filter(|i| verdicts[*i] == verdict).collect();
    Some(ChangedRow {
        row,
        hit_at: at(Verdict::Hit),
        miss_at: at(Verdict::Miss),
        standing: standing(verdict, &verdicts),
    })
}

/// Of a row that counts.
fn verdict_of(row: &Row) -> Verdict {
    row.verdict.unwrap_or(Verdict::Informative)
}

fn sensitive_row(row: &Row) -> SensitiveRow {
    SensitiveRow {
        case: row.case.clone(),
        machine: row.machine.clone(),
        base: row.base.clone(),
        load: row.load,
        variant: row.variant.clone(),
        metric: row.metric.to_string(),
        kind: row.kind,
        published_change_pct: row.published_change_pct,
        predicted_change_pct: Some(row.change_pct).filter(|c| c.is_finite()),
        ratio: row.ratio,
        verdict: verdict_of(row),
        standing: Standing::Firm,
        because_of: Vec::new(),
    }
}

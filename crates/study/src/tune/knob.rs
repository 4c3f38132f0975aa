//! One constant on every machine that has it, and the runs that show what it does: the
//! part of a sensitivity analysis that knows in which order to run what.

use reveille_machine::{Machine, Tunable};

use crate::judge::row::Row;
use crate::model::error::Result;
use crate::tune::sweep::{self, Outcome, Pool, Sweep, Trial};

/// A constant with every machine that has it.
pub(crate) struct Knob {
    pub(crate) key: String,
    pub(crate) unit: &'static str,
    /// Where, and what it is there.
    pub(crate) machines: Vec<(Machine, Tunable)>,
}

impl Knob {
    /// Every constant of the machines, in the order of the first machine that has it.
    pub(crate) fn all(machines: &[&Machine]) -> Vec<Knob> {
        let mut knobs: Vec<Knob> = Vec::new();
        for machine in machines {
            for tunable in machine.tunables() {
                let on = ((*machine).clone(), tunable);
                match knobs.iter_mut().find(|k| k.key == on.1.key) {
                    Some(knob) => knob.machines.push(on),
                    None => {
                        let (key, unit) = (on.1.key.clone(), on.1.unit());
                        knobs.push(Knob { key, unit, machines: vec![on] });
                    }
                }
            }
        }
        knobs
    }

    pub(crate) fn values(&self, position: f64) -> Vec<f64> {
        self.machines.iter().map(|(_, t)| t.at(position)).collect()
    }

    /// Every machine with the constant at its place in that machine's range.
    pub(crate) fn trial(&self, position: f64) -> Trial {
        let moved = |(machine, t): &(Machine, Tunable)| {
            let mut machine = machine.clone();
            machine.set(&t.key, t.at(position)).expect("a position is within the range");
            machine
        };
        self.machines.iter().map(moved).collect()
    }

    /// Distinct positions, both ends included: a range of few whole numbers has fewer
    /// than asked for.
    fn positions(&self, points: u32) -> Vec<f64> {
        let all = (0..points).map(|i| f64::from(i) / f64::from(points - 1));
        let mut positions: Vec<f64> = Vec::new();
        for position in all {
            let values = self.values(position);
            match positions.last() {
                // The high end is kept as 1, not as a rounded position below it.
                Some(last) if self.values(*last) == values => {
                    if position == 1.0 {
                        *positions.last_mut().expect("there is one") = 1.0;
                    }
                }
                _ => positions.push(position),
            }
        }
        positions
    }
}

/// What the runs of one constant amount to.
pub(crate) enum Seen {
    /// Every run is the same at both ends.
    Nothing,
    /// The rows at each position.
    Samples(Vec<(f64, Vec<Row>)>),
    Unfinished,
}

pub(crate) struct Swept {
    /// Rows at the shipped values; `None` if that was interrupted.
    pub(crate) shipped: Option<Vec<Row>>,
    pub(crate) knobs: Vec<Seen>,
    pub(crate) partial: bool,
}

impl Swept {
    /// Runs the shipped values and both ends of every range, then what lies between the
    /// ends that differ.
    pub(crate) fn run(
        sweep: &Sweep,
        knobs: &[Knob],
        points: u32,
        pool: &Pool<'_>,
    ) -> Result<Swept> {
        let between: Vec<Vec<f64>> = knobs
            .iter()
            .map(|k| k.positions(points).into_iter().filter(|p| *p > 0.0 && *p < 1.0).collect())
            .collect();
        let mut ends = vec![Trial::new()];
        ends.extend(knobs.iter().flat_map(|k| [k.trial(0.0), k.trial(1.0)]));
        let later = between.iter().map(Vec::len).sum::<usize>() * sweep.runs();
        let rows = |o: Outcome| o.map(|by_study| by_study.concat());
        let mut outcomes = sweep.run(&ends, later, pool)?.into_iter().map(rows);
        let Some(shipped) = outcomes.next().flatten() else {
            let knobs = knobs.iter().map(|_| Seen::Unfinished).collect();
            return Ok(Swept { shipped: None, knobs, partial: true });
        };
        let outcomes: Vec<_> = outcomes.collect();
        let ends: Vec<_> =
            outcomes.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
        let same =
            |rows: &Option<Vec<Row>>| rows.as_ref().is_some_and(|r| sweep::same(r, &shipped));
        let moves = |i: &usize| {
            let (low, high) = &ends[*i];
            low.is_some() && high.is_some() && !(same(low) && same(high))
        };
        let moving: Vec<usize> = (0..knobs.len()).filter(moves).collect();
        let trials: Vec<Trial> = moving
            .iter()
            .flat_map(|&i| between[i].iter().map(move |p| knobs[i].trial(*p)))
            .collect();
        let mut inner = sweep.run(&trials, 0, pool)?.into_iter().map(rows);

        let mut partial = false;
        let seen = ends.iter().enumerate().map(|(i, (low, high))| {
            let middle: Option<Vec<(f64, Vec<Row>)>> = if moving.contains(&i) {
                let rows: Vec<_> = inner.by_ref().take(between[i].len()).collect();
                let at = between[i].iter().zip(rows);
                at.map(|(position, rows)| Some((*position, rows?))).collect()
            } else {
                Some(Vec::new())
            };
            match (low, high, middle) {
                (Some(_), Some(_), Some(_)) if !moving.contains(&i) => Seen::Nothing,
                (Some(low), Some(high), Some(middle)) => {
                    let mut samples = vec![(0.0, low.clone())];
                    samples.extend(middle);
                    samples.push((1.0, high.clone()));
                    Seen::Samples(samples)
                }
                _ => {
                    partial = true;
                    Seen::Unfinished
                }
            }
        });
        let seen = seen.collect();
        Ok(Swept { shipped: Some(shipped), knobs: seen, partial })
    }
}

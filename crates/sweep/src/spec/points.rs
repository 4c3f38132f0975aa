//! The points of a grid or of a sample, and the constants that vary.

use reveille_machine::{Machine, Tunable};
use reveille_place::Mistake;
use reveille_study::DEFAULT_SEED;
use toml::{Spanned, Value};

use super::{RawSample, Spec};
use crate::design::{Constant, MAX_CELLS, Point};
use crate::draw::{Method, draw};
use crate::error::SweepError;
use crate::run::Sweep;

/// A constant that varies: the machine's own range, or these values.
struct Levels<'a> {
    key: &'a Spanned<String>,
    values: Option<Vec<f64>>,
}

impl Spec {
    /// The points of a sample, or the values of a grid; and no more cells than can be held.
    pub(super) fn points(&self, sweep: &mut Sweep) -> Result<(), SweepError> {
        let levels = self.levels(&sweep.machines)?;
        let constant = |level: &Levels<'_>| Constant {
            key: level.key.get_ref().clone(),
            values: level.values.clone().unwrap_or_default(),
        };
        sweep.design.constants = levels.iter().map(constant).collect();
        let design = &sweep.design;
        let points = match &self.raw.sample {
            Some(sample) => {
                let n = sample.points.get_ref();
                usize::try_from(*n).ok().filter(|n| *n > 0).ok_or_else(|| {
                    let mistake =
                        Mistake::new(format!("{n} points are no sample"), "write 100 or so");
                    self.wrong(sample.points.span(), "points", mistake)
                })?
            }
            None => design.size(),
        };
        let cells = points.saturating_mul(design.edits.len());
        if cells > MAX_CELLS {
            let (key, span) = match &self.raw.sample {
                Some(sample) => ("points", sample.points.span()),
                None => ("machines", self.raw.machines.span()),
            };
            let problem = format!("{cells} cells are more than {MAX_CELLS}");
            let help = "leave some out, or draw a sample: [sample] with points = 1000";
            return Err(self.wrong(span, key, Mistake::new(problem, help)));
        }
        if let Some(sample) = &self.raw.sample {
            sweep.design.drawn = Some(self.drawn(sample, points, sweep, &levels)?);
        }
        Ok(())
    }

    fn drawn(
        &self,
        sample: &RawSample,
        points: usize,
        sweep: &Sweep,
        levels: &[Levels<'_>],
    ) -> Result<Vec<Point>, SweepError> {
        let method = match sample.method.as_ref().map(|m| (m, m.get_ref().as_str())) {
            None | Some((_, "low-discrepancy")) => Method::LowDiscrepancy,
            Some((_, "random")) => Method::Random,
            Some((place, other)) => {
                let mistake = Mistake::unknown("method", other, ["low-discrepancy", "random"]);
                return Err(self.wrong(place.span(), "method", mistake));
            }
        };
        let seed = match &sample.seed {
            None => DEFAULT_SEED,
            Some(seed) => u64::try_from(*seed.get_ref()).map_err(|_| {
                let problem = format!("{} is negative", seed.get_ref());
                let mistake = Mistake::new(problem, "use 0 or a positive number");
                self.wrong(seed.span(), "seed", mistake)
            })?,
        };
        let design = &sweep.design;
        let pick = |x: f64, n: usize| ((x * n as f64) as usize).min(n - 1);
        let point = |x: Vec<f64>| {
            let machine = pick(x[0], design.machines.len());
            let workload = pick(x[2], design.workloads.len());
            let value = |(level, x): (&Levels<'_>, &f64)| match &level.values {
                Some(values) => values[pick(*x, values.len())],
                None => {
                    let tunables = tunable(&sweep.machines[machine], level.key.get_ref());
                    tunables.map_or(f64::NAN, |t| t.at(*x))
                }
            };
            Point {
                machine,
                base: pick(x[1], design.bases.len()),
                workload,
                load: pick(x[3], design.workloads[workload].loads.len()),
                seed: pick(x[4], design.seeds.len()),
                constants: levels.iter().zip(&x[5..]).map(value).collect(),
            }
        };
        Ok(draw(method, seed, 5 + levels.len(), points).into_iter().map(point).collect())
    }

    /// The constants that vary, each possible on every machine.
    fn levels(&self, machines: &[Machine]) -> Result<Vec<Levels<'_>>, SweepError> {
        let mut levels = Vec::new();
        for (key, value) in &self.raw.constants {
            let (name, span) = (key.get_ref().as_str(), value.span());
            let wrong = |mistake| self.wrong(span.clone(), name, mistake);
            for machine in machines {
                if tunable(machine, name).is_none() {
                    let known: Vec<String> =
                        machine.tunables().into_iter().map(|t| t.key).collect();
                    let what = format!("constant of {}", machine.name);
                    let mistake = Mistake::unknown(&what, name, &known);
                    return Err(self.wrong(key.span(), name, mistake));
                }
            }
            let values = match value.get_ref() {
                Value::String(text) if text == "range" => {
                    if self.raw.sample.is_none() {
                        let help = "write values, such as [800, 1600], or add a [sample]";
                        return Err(wrong(Mistake::new("a grid has no values in a range", help)));
                    }
                    None
                }
                Value::Array(items) if !items.is_empty() => {
                    let mut values: Vec<f64> = Vec::new();
                    for item in items {
                        let number = item.as_float().or(item.as_integer().map(|i| i as f64));
                        let number = number.filter(|number| !values.contains(number));
                        values.push(number.ok_or_else(|| {
                            let problem = format!("{item} is no number, or is given twice");
                            wrong(Mistake::new(problem, "write numbers, each once"))
                        })?);
                    }
                    Some(values)
                }
                _ => {
                    let help = "write values, such as [800, 1600], or \"range\" in a sample";
                    return Err(wrong(Mistake::new("is no list of values", help)));
                }
            };
            for (machine, value) in
                machines.iter().flat_map(|m| values.iter().flatten().map(move |v| (m, *v)))
            {
                machine.clone().set(name, value).map_err(|error| {
                    let problem = format!("{error}, on {}", machine.name);
                    wrong(Mistake::new(problem, "`reveille machines NAME` shows the ranges"))
                })?;
            }
            levels.push(Levels { key, values });
        }
        Ok(levels)
    }
}

fn tunable(machine: &Machine, key: &str) -> Option<Tunable> {
    machine.tunables().into_iter().find(|tunable| tunable.key == key)
}

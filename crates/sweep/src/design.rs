//! What a sweep runs, as plain data: from it alone follow all cells, their ids and their shards.
//! It stands in every table, so that tables can be checked and merged without the spec's files.

use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_128;

/// Version of the model, which is part of every id: figures of another version are others.
pub const MODEL: &str = env!("REVEILLE_MODEL");

/// Most cells of a sweep, which are held in memory: some GB.
pub(crate) const MAX_CELLS: usize = 2_000_000;

/// The first 64 bits of a hash, as 16 hexadecimal digits.
pub(crate) fn digest(bytes: &[u8]) -> String {
    format!("{:016x}", (XxHash3_128::oneshot(bytes) >> 64) as u64)
}

fn digest_of(value: &impl Serialize) -> String {
    // Plain structs of texts and numbers have a JSON form.
    digest(serde_json::to_string(value).unwrap_or_default().as_bytes())
}

/// Id of a cell: a hash of all that its figures depend on.
pub type CellId = String;

/// A machine, a workload or a policy file, with a hash of what it says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachinePart {
    pub name: String,
    pub cpus: usize,
    /// Hash of topology, constants and idle states.
    pub digest: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// Edits separated by blanks: `+SIS_SHORT -TTWU_QUEUE`, `idea.c`; empty is the baseline.
    pub text: String,
    /// Hash of the policy file's text, if there is one.
    pub file: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadPart {
    /// Its name, and parameters and task groups behind it if it is given any.
    pub name: String,
    pub digest: String,
    /// `16`, or `50%` of the machine's CPUs.
    pub loads: Vec<String>,
    /// Name, unit and direction of each metric.
    pub metrics: Vec<MetricPart>,
    /// Virtual time before measuring starts.
    pub warmup_ns: u64,
    /// Virtual time measured.
    pub duration_ns: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetricPart {
    /// Without the unit.
    pub name: String,
    /// Empty for a bare number.
    pub unit: String,
    /// `higher`, `lower` or `neither` is better.
    pub direction: String,
}

/// A constant of the machines' cost model that varies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Constant {
    /// As machine files name it.
    pub key: String,
    /// The values of a grid; none where they are drawn from ranges.
    pub values: Vec<f64>,
}

/// Conditions that the baseline and all edits meet: indices into the lists of the design.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    pub machine: usize,
    pub base: usize,
    pub workload: usize,
    pub load: usize,
    pub seed: usize,
    /// Values, in the order of the constants.
    pub constants: Vec<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Design {
    /// [`MODEL`] of the command that ran it.
    pub model: String,
    /// As the spec names it.
    pub name: String,
    /// Machines; names differ.
    pub machines: Vec<MachinePart>,
    pub bases: Vec<String>,
    /// The baseline first, then the edits.
    pub edits: Vec<Edit>,
    /// Workloads; names differ.
    pub workloads: Vec<WorkloadPart>,
    /// Constants that vary, by key.
    pub constants: Vec<Constant>,
    pub seeds: Vec<u64>,
    pub repeats: u32,
    /// The points of a sample; those of the grid if there is none.
    pub drawn: Option<Vec<Point>>,
}

/// A point under one edit.
#[derive(Clone, Copy, Debug)]
pub struct Cell<'a> {
    pub point: &'a Point,
    pub edit: usize,
}

/// What the figures of a point depend on.
#[derive(Serialize)]
struct Content<'a> {
    model: &'a str,
    machine: &'a MachinePart,
    base: &'a str,
    workload: &'a str,
    digest: &'a str,
    load: u64,
    metrics: Vec<&'a str>,
    warmup_ns: u64,
    duration_ns: u64,
    constants: Vec<(&'a str, f64)>,
    seed: u64,
    repeats: u32,
}

impl Design {
    pub fn id(&self) -> String {
        digest_of(self)
    }

    /// Every point with its id, each once, by id.
    pub fn points(&self) -> Vec<(String, Point)> {
        let all = self.drawn.clone().unwrap_or_else(|| self.grid());
        let mut points: Vec<(String, Point)> =
            all.into_iter().map(|point| (self.point_id(&point), point)).collect();
        points.sort_by(|a, b| a.0.cmp(&b.0));
        // `16` and `50%` are the same load of 32 CPUs; the first of them names it.
        points.dedup_by(|later, first| later.0 == first.0);
        points
    }

    pub(crate) fn size(&self) -> usize {
        if let Some(drawn) = &self.drawn {
            return drawn.len();
        }
        let loads = self.workloads.iter().map(|w| w.loads.len()).sum();
        let sizes = [self.machines.len(), self.bases.len(), loads, self.seeds.len()];
        let values = self.constants.iter().map(|c| c.values.len());
        sizes.into_iter().chain(values).fold(1, usize::saturating_mul)
    }

    /// Can its cells be listed? One that was read may have been changed.
    pub(crate) fn is_sound(&self) -> bool {
        let within = |point: &Point| {
            point.machine < self.machines.len()
                && point.base < self.bases.len()
                && self.workloads.get(point.workload).is_some_and(|w| point.load < w.loads.len())
                && point.seed < self.seeds.len()
                && point.constants.len() == self.constants.len()
        };
        let few = self.size().saturating_mul(self.edits.len()) <= MAX_CELLS;
        few && !self.edits.is_empty() && self.drawn.iter().flatten().all(within)
    }

    fn grid(&self) -> Vec<Point> {
        let mut points = Vec::new();
        for machine in 0..self.machines.len() {
            for base in 0..self.bases.len() {
                for (workload, part) in self.workloads.iter().enumerate() {
                    for load in 0..part.loads.len() {
                        for seed in 0..self.seeds.len() {
                            let constants = Vec::new();
                            points.push(Point { machine, base, workload, load, seed, constants });
                        }
                    }
                }
            }
        }
        for constant in &self.constants {
            let with = |point: Point| {
                constant.values.iter().map(move |value| {
                    let mut point = point.clone();
                    point.constants.push(*value);
                    point
                })
            };
            points = points.into_iter().flat_map(with).collect();
        }
        points
    }

    /// The load of a point, in the workload's unit.
    pub fn load(&self, point: &Point) -> u64 {
        amount(&self.workloads[point.workload].loads[point.load], self.machines[point.machine].cpus)
    }

    pub fn point_id(&self, point: &Point) -> String {
        let workload = &self.workloads[point.workload];
        let mut metrics: Vec<&str> = workload.metrics.iter().map(|m| m.name.as_str()).collect();
        metrics.sort_unstable();
        let keys = self.constants.iter().map(|c| c.key.as_str());
        let mut constants: Vec<_> = keys.zip(point.constants.iter().copied()).collect();
        constants.sort_by_key(|(key, _)| *key);
        digest_of(&Content {
            model: &self.model,
            machine: &self.machines[point.machine],
            base: &self.bases[point.base],
            workload: &workload.name,
            digest: &workload.digest,
            load: self.load(point),
            metrics,
            warmup_ns: workload.warmup_ns,
            duration_ns: workload.duration_ns,
            constants,
            seed: self.seeds[point.seed],
            repeats: self.repeats,
        })
    }

    /// Id of the cell of a point, given by its id, under an edit.
    pub fn cell_id(&self, point: &str, edit: usize) -> CellId {
        digest_of(&(point, &self.edits[edit]))
    }

    /// A cell in words.
    pub fn words(&self, Cell { point, edit }: Cell<'_>) -> String {
        let edits = &self.edits[edit].text;
        let edits = if edits.is_empty() { "the baseline" } else { edits };
        let (machine, base) = (&self.machines[point.machine].name, &self.bases[point.base]);
        let (workload, load) = (&self.workloads[point.workload].name, self.load(point));
        format!("{edits} on {base}, {machine}, {workload} {load}")
    }
}

/// The load that `16`, or `50%` of so many CPUs, is: 1 at least.
pub(crate) fn amount(text: &str, cpus: usize) -> u64 {
    match text.strip_suffix('%').map(str::parse::<u64>) {
        Some(Ok(percent)) => {
            ((cpus as u64).saturating_mul(percent).saturating_add(50) / 100).max(1)
        }
        _ => text.parse().unwrap_or(0),
    }
}

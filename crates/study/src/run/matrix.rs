//! The runs of a study: every case × load × side × repeat, with the seed of each, and
//! what they leave behind. The simulator and the host fill the same matrix.
//!
//! What a run leaves is either kept by index or summed in whole numbers, so that the
//! order in which runs end does not show.

use std::sync::{Mutex, OnceLock};

use reveille_measure::{CpuTime, Explain, Latency, Ns, RunResult, RunSpec};

use crate::judge::rows::Finished;
use crate::model::measure::Measure;
use crate::model::study::{Case, Point, Study};

pub(crate) struct Run {
    /// Index into the matrix.
    pub(crate) slot: usize,
    /// From 0.
    pub(crate) repeat: usize,
    /// 0 is the baseline; variant i is i + 1.
    pub(crate) side: usize,
}

/// One load of one case, and what its runs have left behind so far.
pub(crate) struct Slot<'a> {
    pub(crate) study_index: usize,
    pub(crate) study: &'a Study,
    pub(crate) case_index: usize,
    pub(crate) case: &'a Case,
    pub(crate) point: &'a Point,
    sides: Vec<SideRuns>,
}

struct SideRuns {
    /// By repeat.
    runs: Vec<OnceLock<Ran>>,
    /// The rest of all repeats together.
    pooled: Mutex<Pooled>,
}

/// What one repeat leaves.
struct Ran {
    /// By metric: its figure, and a time long enough if too few samples are behind it.
    metrics: Vec<(f64, Option<Ns>)>,
    explain: Explain,
}

/// Sums over repeats; whole numbers, so the order does not show.
#[derive(Default)]
struct Pooled {
    wakeup_latency: Latency,
    cpus: Vec<CpuTime>,
}

/// Every load of every case, in the order of the study.
pub(crate) fn matrix(study_index: usize, study: &Study) -> Vec<Slot<'_>> {
    let mut slots = Vec::new();
    for (case_index, case) in study.cases.iter().enumerate() {
        for point in &case.points {
            let sides = (0..=case.variants.len()).map(|_| SideRuns::new(case)).collect();
            slots.push(Slot { study_index, study, case_index, case, point, sides });
        }
    }
    slots
}

/// The seed of a run. The side has no part in it: a pair of runs differs in its
/// policy and in nothing else.
pub(crate) fn seed(study_seed: u64, case: usize, load: u64, repeat: usize) -> u64 {
    [case as u64, load, repeat as u64].into_iter().fold(mix(study_seed), |s, x| mix(s ^ mix(x)))
}

/// One step of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl Slot<'_> {
    /// The runs of this slot, which is the matrix's `slot`.
    pub(crate) fn runs(&self, slot: usize) -> impl Iterator<Item = Run> + use<> {
        let sides = self.sides.len();
        let repeats = self.case.repeats as usize;
        (0..repeats).flat_map(move |repeat| (0..sides).map(move |side| Run { slot, repeat, side }))
    }

    pub(crate) fn n_runs(&self) -> usize {
        self.sides.len() * self.case.repeats as usize
    }

    /// Falls as a run of this slot takes longer: real time grows with virtual time and
    /// with the number of tasks.
    pub(crate) fn shortness(&self) -> u64 {
        let virtual_us = (self.case.warmup_ns + self.case.duration_ns) / 1000;
        u64::MAX - virtual_us.saturating_mul(self.point.program.tasks.len() as u64)
    }

    pub(crate) fn spec(&self, run: &Run) -> RunSpec {
        RunSpec {
            seed: seed(self.study.seed, self.case_index, self.point.load, run.repeat),
            warmup_ns: self.case.warmup_ns,
            duration_ns: self.case.duration_ns,
        }
    }

    pub(crate) fn add(&self, run: &Run, result: &RunResult) {
        self.sides[run.side].add(run.repeat, self.case, result);
    }

    /// Number of sides: the baseline and every variant.
    pub(crate) fn sides(&self) -> usize {
        self.sides.len()
    }

    /// Repeats that every side has finished, from the first on.
    pub(crate) fn repeats_done(&self) -> usize {
        let done = |side: &SideRuns| side.runs.iter().take_while(|r| r.get().is_some()).count();
        self.sides.iter().map(done).min().unwrap_or(0)
    }

    /// What the first `repeats` of a side amount to, once they are finished.
    pub(crate) fn finished(&self, side: usize, repeats: usize) -> Option<Finished> {
        self.sides[side].finished(self.case, repeats)
    }
}

impl SideRuns {
    fn new(case: &Case) -> SideRuns {
        SideRuns {
            runs: (0..case.repeats).map(|_| OnceLock::new()).collect(),
            pooled: Mutex::default(),
        }
    }

    fn add(&self, repeat: usize, case: &Case, result: &RunResult) {
        let mut pooled = self.pooled.lock().expect("no other run panics while it adds");
        pooled.wakeup_latency.merge(&result.wakeup_latency);
        pooled.cpus.resize(result.cpus.len(), CpuTime::default());
        for (sum, cpu) in pooled.cpus.iter_mut().zip(&result.cpus) {
            sum.busy_ns += cpu.busy_ns;
            sum.idle_ns += cpu.idle_ns;
            sum.cost_ns += cpu.cost_ns;
        }
        let explain = result.explain();
        let metric = |m: &Measure| (m.sample(result, &explain), m.enough_ns(result));
        let metrics = case.metrics.iter().map(metric).collect();
        let ran = Ran { metrics, explain };
        assert!(self.runs[repeat].set(ran).is_ok(), "each repeat is run once");
    }

    fn finished(&self, case: &Case, repeats: usize) -> Option<Finished> {
        if repeats == 0 {
            return None;
        }
        let runs: Option<Vec<_>> = self.runs[..repeats].iter().map(OnceLock::get).collect();
        let runs = runs?;
        let metrics = 0..case.metrics.len();
        let samples = |m: usize| runs.iter().map(|run| run.metrics[m].0).collect();
        let enough_ns = |m: usize| runs.iter().filter_map(|run| run.metrics[m].1).max();
        let explained: Vec<Explain> = runs.iter().map(|run| run.explain.clone()).collect();
        let pooled = self.pooled.lock().expect("all runs are over");
        Some(Finished {
            samples: metrics.clone().map(samples).collect(),
            enough_ns: metrics.map(enough_ns).collect(),
            explain: Explain::mean(&explained),
            latency_cdf: pooled.wakeup_latency.cdf(),
            cpus: pooled.cpus.clone(),
        })
    }
}

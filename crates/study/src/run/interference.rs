//! Runs cases of groups that share CPUs, all in one pool of threads.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::iter::{ParallelBridge, ParallelIterator};
use reveille_fluid::joint;

use crate::judge::interference;
use crate::judge::row::Row;
use crate::model::interference::InterferenceCase;
use crate::model::study::Study;
use crate::run::matrix::seed;

/// The joint simulations of several studies, and what they have left so far.
pub(crate) struct JointRuns<'a> {
    slots: Vec<JointSlot<'a>>,
}

/// All runs of one load of one case under one side.
struct JointSlot<'a> {
    study: usize,
    study_seed: u64,
    /// Position of the case behind those with workloads, on which seeds depend.
    case_index: usize,
    case: &'a InterferenceCase,
    load: u64,
    side: usize,
    /// By repeat and metric.
    samples: Vec<OnceLock<Vec<f64>>>,
}

impl<'a> JointRuns<'a> {
    pub(crate) fn new(studies: &[&'a Study]) -> JointRuns<'a> {
        let mut slots = Vec::new();
        for (i, study) in studies.iter().enumerate() {
            for (c, case) in study.interference.iter().enumerate() {
                let sides = case.loads.iter().flat_map(|l| (0..case.sides()).map(move |s| (*l, s)));
                slots.extend(sides.map(|(load, side)| JointSlot {
                    study: i,
                    study_seed: study.seed,
                    case_index: study.cases.len() + c,
                    case,
                    load,
                    side,
                    samples: (0..case.repeats).map(|_| OnceLock::new()).collect(),
                }));
            }
        }
        JointRuns { slots }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.iter().map(|s| s.samples.len()).sum()
    }

    /// Runs all in the current pool of threads, until `stop` is set; tells every end.
    pub(crate) fn run(&self, stop: &AtomicBool, ended: &(dyn Fn() + Sync)) {
        let runs = self.slots.iter().flat_map(|s| (0..s.samples.len()).map(move |r| (s, r)));
        runs.par_bridge().for_each(|(slot, repeat)| {
            if !stop.load(Ordering::Relaxed) {
                slot.run(repeat);
                ended();
            }
        });
    }

    /// The rows of a study, and whether some are missing.
    pub(crate) fn rows(&self, study: usize) -> (Vec<Row>, bool) {
        let slots: Vec<&JointSlot<'_>> = self.slots.iter().filter(|s| s.study == study).collect();
        let (mut rows, mut partial) = (Vec::new(), false);
        let mut rest = slots.as_slice();
        while let Some(first) = rest.first() {
            let (sides, others) = rest.split_at(first.case.sides());
            rest = others;
            if sides.iter().any(|s| s.samples.iter().any(|r| r.get().is_none())) {
                partial = true;
                continue;
            }
            for variant in 0..first.case.variants.len() {
                let row = |m| {
                    let samples = [sides[0].of_metric(m), sides[variant + 1].of_metric(m)];
                    interference::row(first.case, first.load, variant, m, samples)
                };
                rows.extend((0..first.case.metrics.len()).map(row));
            }
        }
        (rows, partial)
    }
}

impl JointSlot<'_> {
    fn run(&self, repeat: usize) {
        let case = self.case;
        let groups = case.groups_at(self.load, self.side);
        // All sides meet the same demands.
        let seed = seed(self.study_seed, self.case_index, self.load, repeat);
        let result = joint(&groups, case.cpus, case.periods, seed).expect("loads were checked");
        let samples = case.metrics.iter().map(|m| m.sample(&result)).collect();
        self.samples[repeat].set(samples).expect("each repeat is run once");
    }

    fn of_metric(&self, m: usize) -> Vec<f64> {
        self.samples.iter().filter_map(|s| Some(s.get()?[m])).collect()
    }
}

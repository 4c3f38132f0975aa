//! Runs a study: every case × load × policy × repeat, spread over threads, and
//! folds the runs into rows.
//!
//! The result does not depend on how many threads there are: each run's seed
//! comes from its place in the study, and what a run leaves behind is either kept
//! by index or summed in whole numbers.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use rayon::iter::{ParallelBridge, ParallelIterator};
use reveille_measure::{CpuTime, Explain, Latency, RunResult};
use reveille_policy::Policy;
use reveille_sim::{Groups, RunSpec, SimError};
use reveille_workload::MetricKind;

use crate::{
    Case, Claim, Comparison, Detail, Explanation, Peak, Point, Row, SideDetail, Study, StudyError,
    statistics, verdict,
};

/// Runs a study on `jobs` threads (at least one).
///
/// `progress` is called from any thread with the number of finished runs and the
/// number of all runs. Once `stop` is set, no run is begun and those under way
/// end; the comparison then holds the rows whose runs are all finished and says
/// that it is partial.
///
/// Both sides of a row use the same seeds, run by run.
///
/// # Errors
/// [`StudyError::Run`] if the simulator cannot finish a run, which is the
/// workload's fault; [`StudyError::Threads`] if the system refuses threads.
pub fn run(
    study: &Study,
    jobs: usize,
    stop: &AtomicBool,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Comparison, StudyError> {
    let points = matrix(study);
    let runs: Vec<Run> = points.iter().enumerate().flat_map(|(i, p)| p.runs(i)).collect();
    let jobs = jobs.clamp(1, runs.len().max(1));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build();
    let pool = pool.map_err(|e| StudyError::Threads { jobs, reason: e.to_string() })?;
    let failures = Failures::default();
    let done = AtomicUsize::new(0);
    progress(0, runs.len());
    // A bridge hands out runs in order, one by one: after an interruption the
    // first rows are whole.
    let queue = runs.iter().enumerate().par_bridge();
    pool.install(|| {
        queue.for_each(|(i, run)| {
            if stop.load(Ordering::Relaxed) || failures.before(i) {
                return;
            }
            match points[run.point].simulate(study, run, stop) {
                Ok(()) => progress(1 + done.fetch_add(1, Ordering::Relaxed), runs.len()),
                Err(SimError::Interrupted) => {}
                Err(error) => failures.add(i, error),
            }
        });
    });
    if let Some((i, error)) = failures.first() {
        let run = &runs[i];
        let point = &points[run.point];
        return Err(StudyError::Run {
            case: point.case.name.clone(),
            load: point.point.load,
            policy: policy_name(policy(study, run.side)),
            error,
        });
    }
    Ok(fold(study, points))
}

/// One run of the matrix.
struct Run {
    /// Index into the matrix.
    point: usize,
    /// From 0.
    repeat: usize,
    /// 0 is the baseline; variant i is i + 1.
    side: usize,
}

/// One load of one case, and what its runs have left behind so far.
struct Slot<'a> {
    case_index: usize,
    case: &'a Case,
    point: &'a Point,
    sides: Vec<Side>,
}

/// All repeats under one policy.
struct Side {
    /// Metric and explanation, by repeat.
    runs: Vec<OnceLock<(f64, Explain)>>,
    /// The rest of all repeats together.
    pooled: Mutex<Pooled>,
}

/// Sums over repeats; whole numbers, so the order does not show.
#[derive(Default)]
struct Pooled {
    wakeup_latency: Latency,
    cpus: Vec<CpuTime>,
}

/// Every load of every case, in the order of the study.
fn matrix(study: &Study) -> Vec<Slot<'_>> {
    let sides = 1 + study.variants.len();
    let slot = |case_index, case, point| Slot {
        case_index,
        case,
        point,
        sides: (0..sides).map(|_| Side::new(case)).collect(),
    };
    let cases = study.cases.iter().enumerate();
    cases.flat_map(|(i, case)| case.points.iter().map(move |p| slot(i, case, p))).collect()
}

fn policy(study: &Study, side: usize) -> &Policy {
    if side == 0 { &study.base } else { &study.variants[side - 1] }
}

fn policy_name(policy: &Policy) -> String {
    if policy.edits.is_empty() { policy.base.clone() } else { policy.edits.clone() }
}

/// The seed of a run. The side has no part in it: a pair of runs differs in its
/// policy and in nothing else.
fn seed(study_seed: u64, case: usize, load: u64, repeat: usize) -> u64 {
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
    /// The runs of this slot, which is the matrix's `point`.
    fn runs(&self, point: usize) -> impl Iterator<Item = Run> + use<> {
        let sides = self.sides.len();
        let repeats = self.case.repeats as usize;
        (0..repeats).flat_map(move |repeat| (0..sides).map(move |side| Run { point, repeat, side }))
    }

    fn simulate(&self, study: &Study, run: &Run, stop: &AtomicBool) -> Result<(), SimError> {
        let spec = RunSpec {
            seed: seed(study.seed, self.case_index, self.point.load, run.repeat),
            warmup_ns: self.case.warmup_ns,
            duration_ns: self.case.duration_ns,
        };
        let policy = policy(study, run.side);
        let result = reveille_sim::run(
            &study.machine,
            &self.point.program,
            policy,
            &Groups::default(),
            &spec,
            stop,
        )?;
        self.sides[run.side].add(run.repeat, self.case.metric.kind, &result);
        Ok(())
    }
}

impl Side {
    fn new(case: &Case) -> Side {
        Side {
            runs: (0..case.repeats).map(|_| OnceLock::new()).collect(),
            pooled: Mutex::default(),
        }
    }

    fn add(&self, repeat: usize, metric: MetricKind, result: &RunResult) {
        let mut pooled = self.pooled.lock().expect("no other run panics while it adds");
        pooled.wakeup_latency.merge(&result.wakeup_latency);
        pooled.cpus.resize(result.cpus.len(), CpuTime::default());
        for (sum, cpu) in pooled.cpus.iter_mut().zip(&result.cpus) {
            sum.busy_ns += cpu.busy_ns;
            sum.idle_ns += cpu.idle_ns;
            sum.cost_ns += cpu.cost_ns;
        }
        let run = (sample(metric, result), result.explain());
        self.runs[repeat].set(run).expect("each repeat is run once");
    }

    /// Metric and explanation of every repeat, once all are finished.
    fn finished(&self) -> Option<(Vec<f64>, Explain)> {
        let runs: Option<Vec<_>> = self.runs.iter().map(OnceLock::get).collect();
        let runs = runs?;
        let explained: Vec<Explain> = runs.iter().map(|(_, e)| e.clone()).collect();
        Some((runs.iter().map(|(x, _)| *x).collect(), Explain::mean(&explained)))
    }

    fn detail(&self, samples: Vec<f64>) -> SideDetail {
        let pooled = self.pooled.lock().expect("all runs are over");
        let latency_cdf = pooled.wakeup_latency.cdf();
        SideDetail { samples, latency_cdf, cpus: pooled.cpus.clone() }
    }
}

/// The metric of one run; NaN if the run was too short to record anything.
fn sample(metric: MetricKind, result: &RunResult) -> f64 {
    match metric {
        MetricKind::Throughput => result.throughput(),
        MetricKind::RecordedLatency { record, quantile } => {
            match result.recorded_latency.get(usize::from(record)) {
                Some(latency) if latency.count() > 0 => latency.quantile(quantile) as f64,
                _ => f64::NAN,
            }
        }
    }
}

/// The failed run that stands first in the study, whichever thread met it.
#[derive(Default)]
struct Failures(Mutex<Option<(usize, SimError)>>);

impl Failures {
    fn first(self) -> Option<(usize, SimError)> {
        self.0.into_inner().expect("all runs are over")
    }

    /// Has an earlier run than `i` failed?
    fn before(&self, i: usize) -> bool {
        let first = self.0.lock().expect("nothing panics under this lock");
        first.as_ref().is_some_and(|(f, _)| *f < i)
    }

    fn add(&self, i: usize, error: SimError) {
        let mut first = self.0.lock().expect("nothing panics under this lock");
        if first.as_ref().is_none_or(|(f, _)| i < *f) {
            *first = Some((i, error));
        }
    }
}

/// What the finished runs amount to.
fn fold(study: &Study, slots: Vec<Slot<'_>>) -> Comparison {
    let peaks = study.peaks.iter().filter_map(|peak| claim(study, peak, &slots)).collect();
    let mut rows = Vec::new();
    for slot in &slots {
        for (i, variant) in study.variants.iter().enumerate() {
            rows.extend(row(slot, i, variant));
        }
    }
    let expected = slots.len() * study.variants.len();
    Comparison {
        study: study.name.clone(),
        machine: study.machine.name.clone(),
        topology: study.machine.topology.describe(),
        cost_model: study.machine.cost_model.clone(),
        base: study.base.base.clone(),
        score: verdict::score(&rows),
        partial: rows.len() < expected,
        rows,
        claims: peaks,
    }
}

/// The row of one variant, if all its runs and all of the baseline's are finished.
fn row(slot: &Slot<'_>, index: usize, variant: &Policy) -> Option<Row> {
    let (base, candidate) = (&slot.sides[0], &slot.sides[index + 1]);
    let (base_samples, base_explain) = base.finished()?;
    let (candidate_samples, candidate_explain) = candidate.finished()?;
    let metric = &slot.case.metric;
    let baseline = statistics::figure(&base_samples);
    let figure = statistics::figure(&candidate_samples);
    let change_pct =
        statistics::change_pct(metric.kind.higher_is_better(), baseline.mean, figure.mean);
    let p_value = statistics::welch_p(&base_samples, &candidate_samples);
    let published = slot.point.published.iter().find(|p| p.variant == index);
    Some(Row {
        case: slot.case.name.clone(),
        load: slot.point.load,
        variant: variant.edits.clone(),
        metric: metric.name.clone(),
        baseline,
        candidate: figure,
        change_pct,
        p_value,
        significant: p_value.is_some_and(|p| p < 0.05),
        published_change_pct: published.map(|p| p.change_pct),
        published_source: published.map(|p| p.source.clone()),
        verdict: published.map(|p| verdict::judge(p, change_pct)),
        explain: Explanation { baseline: base_explain, candidate: candidate_explain },
        detail: Detail {
            baseline: base.detail(base_samples),
            candidate: candidate.detail(candidate_samples),
        },
    })
}

/// The claim, if the baseline's whole curve has run.
fn claim(study: &Study, peak: &Peak, slots: &[Slot<'_>]) -> Option<Claim> {
    let case = &study.cases[peak.case];
    let mut best: Option<(u64, f64)> = None;
    for slot in slots.iter().filter(|s| s.case_index == peak.case) {
        let (samples, _) = slot.sides[0].finished()?;
        let mean = statistics::figure(&samples).mean;
        if best.is_none_or(|(_, highest)| mean > highest) {
            best = Some((slot.point.load, mean));
        }
    }
    let (published, predicted) = (peak.load as f64, best?.0 as f64);
    Some(Claim {
        claim: format!(
            "{}: load of highest {} under {}",
            case.name, case.metric.name, study.base.base
        ),
        published,
        predicted,
        verdict: verdict::judge_peak(published, predicted),
        source: peak.source.clone(),
    })
}

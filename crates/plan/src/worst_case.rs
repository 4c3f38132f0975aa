//! How long the longest request can take if it runs alone and arrives when the bank is empty.

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use reveille_measure::{RunSpec, UNANSWERED};
use reveille_policy::BandwidthLimits;
use reveille_usage::{Demand, Usage};

use crate::facts::longest_ns;
use crate::load::Load;
use crate::plan::WorstCase;
use crate::replay::{Phase, Stage};
use crate::{Ns, PlanError};

/// Phases of the period, and as many amounts of work that empty the bank.
const PHASES: u32 = 8;
const DRAINS: u64 = 8;
/// Runtime that a CPU keeps when its last task sleeps (min_cfs_rq_runtime).
const KEPT_NS: Ns = 1_000_000;

/// Worst latency of the longest request; `None` if there is no work.
pub(crate) fn worst_case(
    stage: &Stage<'_>,
    usage: &Usage,
    limits: BandwidthLimits,
) -> Result<Option<WorstCase>, PlanError> {
    let work_ns = longest_ns(usage);
    if work_ns == 0 {
        return Ok(None);
    }
    let Some(quota_ns) = limits.quota_ns else {
        let simulated_ns = work_ns as f64;
        return Ok(Some(WorstCase { work_ns, simulated_ns, bound_ns: None }));
    };
    let bound_ns = worst_case_bound_ns(stage, usage, limits);
    let empty = Usage { demands: Vec::new(), samples: Vec::new(), ..usage.clone() };
    let threads = threads(stage, usage);
    let runs: Vec<(u32, u64)> =
        (0..PHASES).flat_map(|phase| (0..DRAINS).map(move |drain| (phase, drain))).collect();
    let took = runs.into_par_iter().map(|(phase, drain)| {
        let phase = Phase { own: (f64::from(phase) + 0.9) / f64::from(PHASES), others: 0.5 };
        // From one quota to less than two.
        let each_ns = (quota_ns + quota_ns * drain / DRAINS) / u64::from(threads);
        let empty_at = replay(stage, &empty, limits, phase, (threads, each_ns), None, bound_ns)?;
        let Some(at_ns) = empty_at else { return Ok(f64::INFINITY) };
        let piece = Some((at_ns, work_ns));
        let took = replay(stage, &empty, limits, phase, (threads, each_ns), piece, bound_ns)?;
        Ok(took.map_or(f64::INFINITY, |ns| ns as f64))
    });
    let took: Vec<f64> = took.collect::<Result<_, PlanError>>()?;
    let simulated_ns = took.into_iter().fold(0.0, f64::max);
    Ok(Some(WorstCase { work_ns, simulated_ns, bound_ns: Some(bound_ns) }))
}

/// Threads of the group that can run at once.
fn threads(stage: &Stage<'_>, usage: &Usage) -> u32 {
    usage.threads.min(stage.machine.topology.n_cpus() as u32).max(1)
}

/// Upper bound on the longest request's latency; its CPU time without a quota.
pub(crate) fn worst_case_bound_ns(stage: &Stage<'_>, usage: &Usage, limits: BandwidthLimits) -> Ns {
    let work_ns = longest_ns(usage);
    let Some(quota_ns) = limits.quota_ns else { return work_ns };
    let debt_ns = u64::from(threads(stage, usage)) * (stage.tick_ns() + KEPT_NS);
    bound_ns(work_ns + debt_ns, quota_ns, limits.period_ns)
}

/// All threads empty the bank, then the request arrives on the first. Returns the request's latency
/// or, without a request, when all threads were done.
fn replay(
    stage: &Stage<'_>,
    usage: &Usage,
    limits: BandwidthLimits,
    phase: Phase,
    (threads, each_ns): (u32, Ns),
    piece: Option<(Ns, Ns)>,
    bound_ns: Ns,
) -> Result<Option<Ns>, PlanError> {
    // After the tasks have been forked.
    const BEGIN_NS: Ns = 1_000_000;
    let drain = |thread| Demand { at_ns: BEGIN_NS, cpu_ns: each_ns, thread, done_ns: None };
    let mut demands: Vec<Demand> = (0..threads).map(drain).collect();
    let mut span_ns = BEGIN_NS + 8 * limits.period_ns + 4 * u64::from(threads) * each_ns;
    if let Some((at_ns, cpu_ns)) = piece {
        demands.push(Demand { at_ns, cpu_ns, thread: 0, done_ns: None });
        span_ns = span_ns.max(at_ns) + 2 * bound_ns;
    }
    let alone = Usage { demands, threads, span_ns, ..usage.clone() };
    let load = Load::new(&[&alone]);
    let spec = RunSpec { seed: stage.seed, warmup_ns: 0, duration_ns: span_ns };
    let outcome = stage.run(&load, &stage.groups(&load, Some(limits), phase), &spec)?;
    let took = outcome.latencies(&load, 0);
    // Answers of the first thread: the drain, then the request.
    let took = match piece {
        Some(_) => took[1],
        None => took.iter().copied().max().unwrap_or(UNANSWERED),
    };
    let begin_ns = if piece.is_some() { 0 } else { BEGIN_NS };
    Ok((took != UNANSWERED).then(|| begin_ns + took))
}

/// Closed form: refills pay for the request and the group's debt; the first refill is a period
/// away, and after the last one the request runs to its end.
fn bound_ns(owed_ns: Ns, quota_ns: Ns, period_ns: Ns) -> Ns {
    // One thread uses at most a period's length per period.
    let each_ns = quota_ns.min(period_ns);
    let refills = owed_ns.div_ceil(each_ns);
    refills * period_ns + owed_ns - (refills - 1) * each_ns
}

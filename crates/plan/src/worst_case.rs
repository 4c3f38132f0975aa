//! How long the longest request can take if it runs alone and arrives when the bank is empty.

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use reveille_measure::{RunSpec, UNANSWERED};
use reveille_policy::BandwidthLimits;
use reveille_usage::{Demand, Usage};

use crate::facts::longest_ns;
use crate::load::Load;
use crate::plan::WorstCase;
use crate::replay::{Phase, Stage};
use crate::{Ns, Result};

/// Phases of the period; by how much less work is tried than what just empties the bank; steps of each
/// thread in which that is looked for, over so many periods at most, and then halved so often.
const PHASES: u32 = 8;
const LESS_NS: [Ns; 4] = [0, 100_000, 1_000_000, 4_000_000];
const STEPS: u32 = 64;
const MOST_PERIODS: u64 = 64;
const HALVINGS: u32 = 10;
/// Runtime that a CPU keeps when its last task sleeps (min_cfs_rq_runtime).
const KEPT_NS: Ns = 1_000_000;

/// Worst latency of the longest request; `None` if there is no work.
pub(crate) fn worst_case(
    stage: &Stage<'_>,
    usage: &Usage,
    limits: BandwidthLimits,
) -> Result<Option<WorstCase>> {
    let work_ns = longest_ns(usage);
    if work_ns == 0 {
        return Ok(None);
    }
    let Some(quota_ns) = limits.quota_ns else {
        let simulated_ns = work_ns as f64;
        return Ok(Some(WorstCase { work_ns, simulated_ns, bound_ns: None }));
    };
    let bound_ns = worst_case_bound_ns(stage, usage, limits);
    // All threads empty the bank soonest; the fewest that can leave the least of it in their slices.
    let all = threads(stage, usage);
    let few = all.min(u32::try_from(quota_ns / limits.period_ns + 1).unwrap_or(all));
    let empty = Usage { demands: Vec::new(), samples: Vec::new(), ..usage.clone() };
    let mut runs: Vec<(u32, u32)> =
        (0..PHASES).flat_map(|phase| [(phase, few), (phase, all)]).collect();
    runs.dedup();
    let took = runs.into_par_iter().map(|(phase, threads)| {
        let own = (f64::from(phase) + 0.9) / f64::from(PHASES);
        let phase = Phase { own, others: 0.5, tick: 0.0 };
        let run = Run { stage, usage: &empty, limits, phase, threads, work_ns };
        let Some(emptied_ns) = run.emptying()? else {
            return Ok(run.piece(0, BEGIN_NS)?.map_or(f64::INFINITY, |ns| ns as f64));
        };
        let mut most = 0.0f64;
        for less_ns in LESS_NS {
            let each_ns = emptied_ns.saturating_sub(less_ns).max(1);
            let Some(at_ns) = run.drained(each_ns)? else { return Ok(f64::INFINITY) };
            most = most.max(run.piece(each_ns, at_ns)?.map_or(f64::INFINITY, |ns| ns as f64));
        }
        Ok(most)
    });
    let took: Vec<f64> = took.collect::<Result<_>>()?;
    let simulated_ns = took.into_iter().fold(0.0, f64::max);
    Ok(Some(WorstCase { work_ns, simulated_ns, bound_ns }))
}

/// Threads of the group that can run at once.
fn threads(stage: &Stage<'_>, usage: &Usage) -> u32 {
    usage.threads.min(stage.machine.topology.n_cpus() as u32).max(1)
}

/// Upper bound on the longest request's latency; its CPU time without a quota. There is none within
/// another group's limits.
pub(crate) fn worst_case_bound_ns(
    stage: &Stage<'_>,
    usage: &Usage,
    limits: BandwidthLimits,
) -> Option<Ns> {
    let work_ns = longest_ns(usage);
    match limits.quota_ns {
        _ if stage.within.is_some() => None,
        None => Some(work_ns),
        Some(_) => Some(bound_alone_ns(stage, threads(stage, usage), work_ns, limits)),
    }
}

/// The bound of a group that only its own limits throttle.
fn bound_alone_ns(stage: &Stage<'_>, threads: u32, work_ns: Ns, limits: BandwidthLimits) -> Ns {
    let Some(quota_ns) = limits.quota_ns else { return work_ns };
    let debt_ns = u64::from(threads) * (stage.tick_ns() + KEPT_NS);
    bound_ns(work_ns + debt_ns, quota_ns, limits.period_ns)
}

/// After the tasks have been forked.
const BEGIN_NS: Ns = 1_000_000;

/// All threads empty the bank, then the request arrives on the first.
struct Run<'a> {
    stage: &'a Stage<'a>,
    usage: &'a Usage,
    limits: BandwidthLimits,
    phase: Phase,
    threads: u32,
    work_ns: Ns,
}

impl Run<'_> {
    /// The most work of each thread that ends just before the group waits longest for a refill; `None` if
    /// the group never waits.
    fn emptying(&self) -> Result<Option<Ns>> {
        let quota_ns = self.limits.quota_ns.unwrap_or(Ns::MAX);
        let period_ns = self.limits.period_ns;
        let threads = u64::from(self.threads);
        let Some(drained_ns) = (threads * period_ns).checked_sub(quota_ns).filter(|ns| *ns > 0)
        else {
            return Ok(None);
        };
        // Until the bank is empty, and one more.
        let periods = (quota_ns + self.limits.burst_ns) / drained_ns + 2;
        let step_ns = (periods.min(MOST_PERIODS) * period_ns).div_ceil(STEPS.into());
        let step = |thread| Demand { at_ns: BEGIN_NS, cpu_ns: step_ns, thread, done_ns: None };
        let demands = (0..self.threads).flat_map(|thread| (0..STEPS).map(move |_| step(thread)));
        let took = self.answers(demands.collect(), u64::from(STEPS) * step_ns)?;
        // Those of the first thread come first.
        let took = &took[..STEPS as usize];
        let waits = took.windows(2).zip(1u64..).filter(|(pair, _)| pair[1] != UNANSWERED);
        let waits = waits.map(|(pair, steps)| ((pair[1] - pair[0]).saturating_sub(step_ns), steps));
        let longest = waits.max().filter(|(wait_ns, _)| *wait_ns > self.stage.tick_ns());
        let Some((wait_ns, steps)) = longest else { return Ok(None) };
        let (mut free_ns, mut waits_ns) = (steps * step_ns, (steps + 1) * step_ns);
        let Some(free_at) = self.drained(free_ns)? else { return Ok(None) };
        let begun_ns = free_at.saturating_sub(free_ns);
        for _ in 0..HALVINGS {
            let middle_ns = free_ns.midpoint(waits_ns);
            match self.drained(middle_ns)? {
                Some(at_ns) if at_ns < begun_ns + middle_ns + wait_ns / 2 => free_ns = middle_ns,
                _ => waits_ns = middle_ns,
            }
        }
        Ok(Some(free_ns))
    }

    /// When all threads have done this work.
    fn drained(&self, each_ns: Ns) -> Result<Option<Ns>> {
        let took = self.answers(self.drain(each_ns), each_ns)?;
        let last = took.iter().copied().max().unwrap_or(UNANSWERED);
        Ok((last != UNANSWERED).then(|| BEGIN_NS + last))
    }

    /// Latency of the request after this work.
    fn piece(&self, each_ns: Ns, at_ns: Ns) -> Result<Option<Ns>> {
        let mut demands = self.drain(each_ns);
        let before = usize::from(!demands.is_empty());
        demands.push(Demand { at_ns, cpu_ns: self.work_ns, thread: 0, done_ns: None });
        let took = self.answers(demands, each_ns)?[before];
        Ok((took != UNANSWERED).then_some(took))
    }

    fn drain(&self, each_ns: Ns) -> Vec<Demand> {
        let drain = |thread| Demand { at_ns: BEGIN_NS, cpu_ns: each_ns, thread, done_ns: None };
        (0..self.threads).filter(|_| each_ns > 0).map(drain).collect()
    }

    /// Latencies of these requests, grouped by thread. Beside the request no thread has more work than
    /// `each_ns`.
    fn answers(&self, demands: Vec<Demand>, each_ns: Ns) -> Result<Vec<Ns>> {
        let (stage, limits) = (self.stage, self.limits);
        let longest_ns = |work_ns| -> Ns {
            let around = std::iter::once(limits).chain(stage.within);
            around.map(|limits| bound_alone_ns(stage, self.threads, work_ns, limits)).sum()
        };
        let drained_ns = longest_ns(u64::from(self.threads) * each_ns);
        let span_ns = BEGIN_NS + 8 * limits.period_ns + drained_ns + 2 * longest_ns(self.work_ns);
        let alone = Usage { demands, threads: self.threads, span_ns, ..self.usage.clone() };
        let load = Load::new(&[&alone]);
        let spec = RunSpec { seed: stage.seed, warmup_ns: 0, duration_ns: span_ns };
        let groups = stage.groups(&load, Some(limits), self.phase);
        let outcome = stage.run(&load.program, &groups, &spec)?;
        Ok(outcome.latencies(&load, 0).to_vec())
    }
}

/// Closed form: refills pay for the request and the group's debt; the first refill is a period
/// away, and after the last one the request runs to its end.
fn bound_ns(owed_ns: Ns, quota_ns: Ns, period_ns: Ns) -> Ns {
    // One thread uses at most a period's length per period.
    let each_ns = quota_ns.min(period_ns);
    let refills = owed_ns.div_ceil(each_ns);
    refills * period_ns + owed_ns - (refills - 1) * each_ns
}

//! Statements on a plan's input, its model, and what it cannot know.

use reveille_measure::enough_for;
use reveille_usage::{Origin, Usage};

use crate::Ns;
use crate::counters::REPLAYED_NS;
use crate::goal::{Subject, quantile_name};
use crate::grid::{DRAWS, MOST_USED};
use crate::plan::{Model, NeighbourGiven, Plan, Recording};
use crate::replay::Stage;
use crate::request::Request;
use crate::short::pieces;

/// Quantiles of the table and of goals for which the recording has too few requests.
pub(crate) fn too_few(request: &Request<'_>) -> Vec<String> {
    let goals = request.goals.iter().filter_map(|goal| match goal.subject {
        Subject::Latency(quantile) => Some(quantile),
        _ => None,
    });
    let mut quantiles: Vec<f64> = [0.5, 0.9, 0.99, 0.999].into_iter().chain(goals).collect();
    quantiles.sort_by(f64::total_cmp);
    quantiles.dedup();
    quantiles.retain(|&quantile| !enough_for(pieces(request.usage), quantile));
    quantiles.into_iter().map(quantile_name).collect()
}

pub(crate) fn threads(usage: &Usage) -> u32 {
    let mut seen = vec![false; usage.threads as usize];
    for demand in usage.demands.iter().filter(|demand| demand.cpu_ns > 0) {
        seen[demand.thread as usize] = true;
    }
    seen.into_iter().filter(|seen| *seen).count() as u32
}

/// CPU time of the longest request.
pub(crate) fn longest_ns(usage: &Usage) -> Ns {
    usage.demands.iter().map(|demand| demand.cpu_ns).max().unwrap_or(0)
}

pub(crate) fn recording(usage: &Usage) -> Recording {
    Recording {
        name: usage.name.clone(),
        origin: usage.origin,
        span_ns: usage.span_ns,
        threads: threads(usage),
        demands: usage.demands.len(),
        mean_cpus: usage.mean_cpus(),
        longest_ns: longest_ns(usage),
        limits: usage.limits,
        held_back: usage.held_back(),
    }
}

pub(crate) fn given(request: &Request<'_>, stage: &Stage<'_>) -> Vec<NeighbourGiven> {
    let neighbours = request.neighbours.iter().zip(&stage.neighbours);
    neighbours
        .map(|(n, limits)| NeighbourGiven { recording: recording(&n.usage), limits: *limits })
        .collect()
}

pub(crate) fn model(request: &Request<'_>, stage: &Stage<'_>) -> Model {
    Model {
        machine: request.machine.name.clone(),
        cpus: request.cpus,
        hz: stage.machine.hz,
        base: request.policy.base.clone(),
        slice_ns: request.slice_ns,
        within: request.within,
        quota_sum_cpus: request.quota_sum_cpus,
        confidence: request.confidence,
        headroom: request.headroom,
        growth: request.growth,
        most_used: MOST_USED,
        allowed: request.allowed,
        draws: DRAWS,
        seed: request.seed,
    }
}

pub(crate) fn warnings(request: &Request<'_>, plan: &Plan) -> Vec<String> {
    let usage = request.usage;
    let mut warnings = usage.warnings.clone();
    warnings.extend(usage.crowding());
    let machine = request.machine;
    warnings.extend(machine.warnings.iter().map(|what| format!("{}: {what}.", machine.name)));
    for goal in &request.goals {
        if let Subject::Latency(quantile) = goal.subject {
            if quantile < 1.0 {
                let short = usage.enough_for(quantile).err();
                let counters = request.inferred.and_then(|inferred| inferred.recorded_ns());
                warnings.extend(short.map(|why| match counters {
                    None => format!("{}: {why}", goal.text),
                    Some(recorded_ns) => format!(
                        "{}: about {} requests are inferred for the {:.0} s that are replayed, of \
                         {:.0} s recorded: too few for {}. More counters change nothing; record \
                         requests.",
                        goal.text,
                        usage.demands.len(),
                        usage.span_ns as f64 / 1e9,
                        recorded_ns as f64 / 1e9,
                        quantile_name(quantile)
                    ),
                }));
            }
            if let Origin::Sampled { resolution_ns } = usage.origin
                && goal.limit < 3.0 * resolution_ns as f64
            {
                warnings.push(format!(
                    "`{}` is hardly more than the {:.1} ms between two samples of the \
                         recording: work that came and went between them was not seen.",
                    goal.text,
                    resolution_ns as f64 / 1e6
                ));
            }
        }
    }
    if matches!(usage.origin, Origin::Averaged { .. }) {
        warnings.push(
            "The recording holds averages: bursts within a step are spread out, and throttling \
             is less than it will be."
                .into(),
        );
    }
    warnings.extend(uncounted(request));
    if let Some(ns) = request.inferred.and_then(|inferred| inferred.too_short()) {
        warnings.push(format!(
            "The counters cover {:.0} s only, which shows nothing of other times: the limit in force is \
             the least that is advised from less than {:.0} s.",
            ns as f64 / 1e9,
            REPLAYED_NS as f64 / 1e9
        ));
    }
    for neighbour in &request.neighbours {
        if let Some(throttling) = neighbour.usage.throttling() {
            warnings.push(format!(
                "The neighbour {} was throttled {throttling} while it was recorded: without its \
                 limit it asks for more than is simulated.",
                neighbour.usage.name
            ));
        }
        let crowding = neighbour.usage.crowding();
        warnings
            .extend(crowding.map(|why| format!("The neighbour {}: {why}", neighbour.usage.name)));
    }
    match &plan.recommended {
        None if plan.obstacle.is_some() => {}
        None => warnings.push(
            "No setting that may be recommended holds with this confidence; an easier goal, less \
             head-room (--headroom), more CPUs, or another --for, --period or --max-worst-case may \
             help."
                .into(),
        ),
        Some(shown) if !shown.meets_goals => {
            warnings.push("The recommended setting holds in fewer draws than asked for.".into());
        }
        Some(_) => {}
    }
    warnings
}

/// Averages under a quota without a counter of what the quota did.
fn uncounted(request: &Request<'_>) -> Option<String> {
    let usage = request.usage;
    let counted = usage.samples.last().is_some_and(|last| last.nr_periods > 0);
    let limits = request.today.or(usage.limits).filter(|limits| limits.quota_ns.is_some());
    let averages = matches!(usage.origin, Origin::Averaged { .. });
    (averages && limits.is_some() && !counted && usage.throttling().is_none()).then(|| {
        "Throttling was not counted, so what today's limit does is simulated, not measured: it may \
         throttle the group all the time. Query container_cpu_cfs_periods_total and \
         container_cpu_cfs_throttled_periods_total too."
            .into()
    })
}

/// Goals fail in some draws without any limit too.
pub(crate) fn unmet_anyway(fail: usize, request: &Request<'_>) -> String {
    let with = match (request.headroom, request.growth) {
        (0.0, 0.0) => "",
        _ => " with that much more work",
    };
    format!(
        "In {:.0}% of the draws a goal fails{with} even without a limit: these do not count \
         against a setting. A longer recording or an easier goal makes the answer more certain.",
        100.0 * fail as f64 / f64::from(DRAWS)
    )
}

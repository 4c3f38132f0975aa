//! Requests that are refused before the search, with the reason: recordings without information,
//! goals that no setting meets, and reservations beyond the bound.

use reveille_place::Mistake;
use reveille_usage::Usage;

use crate::facts::threads;
use crate::goal::Subject;
use crate::grid::{DRAWS, MOST_USED};
use crate::inferred::HOW_TO_KNOW;
use crate::replay::{Phase, Stage, fits};
use crate::request::Request;
use crate::search::Search;
use crate::{PlanError, Result};

/// Is there work to plan for, and can it judge the goals?
pub(crate) fn check(request: &Request<'_>) -> Result<()> {
    for usage in request.neighbours.iter().map(|n| &n.usage).chain([request.usage]) {
        let refuse =
            |problem: &str, help: &str| Err(Mistake::new(problem, help).in_file(&usage.name));
        if let Some(mistake) = usage.beyond_its_limit() {
            return Err(mistake.in_file(&usage.name));
        }
        if usage.mean_cpus() == 0.0 {
            let help = "record it while it works; a group that only sleeps needs no quota";
            return refuse("asks for no CPU time at all", help);
        }
        if !fits(usage.span_ns) {
            return refuse("is longer than 19 hours", "take a shorter part of the recording");
        }
    }
    debug_assert!(request.usage.throttling().is_none(), "its demand is recovered first");
    if request.goals.is_empty() {
        let help = "set a goal, such as --goal p99=20ms or --goal 'throttled<0.1%'";
        return Err(PlanError::option("--goal", Mistake::new("no goal is given", help)));
    }
    // What a single request takes is not known from counters.
    let mut goals = request.goals.iter().filter(|goal| !request.is_estimated(goal));
    goals.try_for_each(|goal| goal.check(request.usage, !request.neighbours.is_empty()))
}

/// The error for goals that fail without any limit in most of the loads that fit the counters.
pub(crate) fn untold(request: &Request<'_>, failed: usize) -> PlanError {
    let goals: Vec<String> = request.goals.iter().map(|goal| format!("`{}`", goal.text)).collect();
    let problem = format!(
        "its counters cannot tell whether {} can be met: {:.0}% of the loads that fit them miss {} \
         even without a limit, and counters do not show how long a request runs",
        goals.join(" and "),
        100.0 * failed as f64 / f64::from(DRAWS),
        if goals.len() == 1 { "it" } else { "them" },
    );
    Mistake::new(problem, HOW_TO_KNOW).in_file(&request.usage.name)
}

/// The largest reservation to search, in thousandths of a CPU.
pub(crate) fn most_millicpus(
    request: &Request<'_>,
    usage: &Usage,
    stage: &Stage<'_>,
) -> Result<u64> {
    let mean = usage.mean_cpus();
    let (cpus, others): (f64, f64) =
        (f64::from(request.cpus), request.neighbours.iter().map(|n| n.usage.mean_cpus()).sum());
    let impossible = |problem, help| Err(request.goals[0].impossible(problem, help));
    if mean + others >= cpus {
        let with = if others > 0.0 { " and its neighbours ask" } else { " asks" };
        let total = mean + others;
        let there = request.cpus;
        let problem =
            format!("the group{with} for {total:.2} CPUs on average, and there are {there}");
        let help = "give more CPUs: --cpus; if it does not use that many, check the units of the \
                    recording's times";
        return impossible(problem + &beyond(request), help);
    }
    let overloaded = request.usage.overloaded();
    if overloaded > 0 {
        let problem = format!(
            "{overloaded} of {} threads would need longer for their work than it took to record, and \
             fall further behind under any limit",
            request.usage.threads
        );
        let help = "check the units of the recording's times, and its thread column";
        return impossible(problem, help);
    }
    // A quota for as many CPUs as the group's threads use at once never throttles it. With
    // neighbours, threads that would not overlap may run at the same time.
    let alone = request.neighbours.is_empty();
    let threads = |usage: &Usage| if alone { usage.max_parallel() } else { threads(usage) };
    // Of loads that fit counters, the first is one of many.
    let others = request.as_likely.iter().filter(|_| request.estimates()).map(threads);
    let threads = others.fold(threads(usage), u32::max);
    let threads = f64::from(threads).min(cpus);
    // Slices left on other CPUs are lost to a period; a quarter more covers that.
    let mut most = threads * 1.25;
    let sum = request.quota_sum_cpus.or((!request.neighbours.is_empty()).then_some(cpus));
    if let Some(sum) = sum {
        let reserved = stage.neighbours.iter().flatten().filter_map(|limits| limits.cpus());
        let reserved: f64 = reserved.sum();
        most = most.min(sum - reserved);
        if most < mean / MOST_USED {
            let problem = format!(
                "the group asks for {mean:.2} CPUs on average, and of {sum:.2} CPUs its \
                 neighbours' quotas leave {:.2}, of which it may use {:.0}%",
                (sum - reserved).max(0.0),
                100.0 * MOST_USED
            );
            let problem = problem + &beyond(request);
            return impossible(problem, "allow more: --quota-sum CPUS");
        }
    }
    Ok((most * 1000.0).floor() as u64)
}

/// The demand's growth beyond the recording, as the end of a sentence.
pub(crate) fn beyond(request: &Request<'_>) -> String {
    let percent = |share: f64| (1000.0 * share).round() / 10.0;
    match (request.headroom, request.growth) {
        (0.0, 0.0) => String::new(),
        (work, 0.0) => format!(", with {}% head-room", percent(work)),
        (work, more) => {
            format!(", with {}% head-room and {}% more requests", percent(work), percent(more))
        }
    }
}

/// Checks that the goals hold without a limit, or else no quota meets them; `grown` is the demand
/// with head-room. Returns the CPUs used.
pub(crate) fn reachable(request: &Request<'_>, search: &Search<'_>, grown: bool) -> Result<f64> {
    let phase = Phase::of_grid(0, 1);
    let (figures, _) = search.figures(&search.load, None, phase, None)?;
    for (goal, figure) in request.goals.iter().zip(&figures.goals) {
        let told = goal.subject != Subject::Tardiness && !request.is_estimated(goal);
        if told && !goal.holds(*figure) {
            let (ms, cpus) = (figure / 1e6, request.cpus);
            let place = match request.within {
                Some(around) => {
                    format!("{cpus} CPUs within the parent group's limit of {around} (--within)")
                }
                None => format!("{cpus} CPUs"),
            };
            let problem = match ms.is_finite() {
                true => format!("without any limit it is {ms:.3} ms on {place} already"),
                false => format!("without any limit of its own the load never ends on {place}"),
            };
            let (with, help) = match grown {
                true => (beyond(request), "ask for a longer time, or for less --headroom"),
                false => (String::new(), "ask for a longer time, or give more CPUs: --cpus"),
            };
            let help = match request.within {
                Some(_) => format!(
                    "raise the parent group's limit (--within quota=max plans without it); or {help}"
                ),
                None => help.to_owned(),
            };
            return Err(goal.impossible(problem + &with, &help));
        }
    }
    Ok(figures.cpus_used)
}

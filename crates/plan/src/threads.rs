//! How many threads should run at once (GOMAXPROCS, the JVM's processors, a worker pool)? With
//! many, all work starts at once and exhausts the quota early in a period; with few, work queues.
//! The recorded threads' work is shared among those that may run, as on fewer CPUs.

use std::sync::atomic::AtomicBool;

use reveille_place::Mistake;
use reveille_usage::Origin;

use crate::make::plan;
use crate::plan::{Brief, OfThreads, Plan, Shown};
use crate::request::Request;
use crate::{PlanError, Result};

impl Brief {
    fn of(shown: &Shown) -> Brief {
        Brief {
            limits: shown.limits,
            p99_ns: shown.effect.p99_ns.median,
            throttled_share: shown.effect.throttled_share.median,
            holds_share: shown.holds_share,
        }
    }
}

/// Plans for each number of threads. Returns the plan with the smallest reservation (with the
/// fewest threads among equals), with all results in [`Plan::threads`].
///
/// # Errors
/// As [`plan()`], if no number of threads meets the goals.
pub fn plan_threads(
    request: &Request<'_>,
    numbers: &[u32],
    jobs: usize,
    stop: &AtomicBool,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Plan> {
    if matches!(request.usage.origin, Origin::Averaged { .. }) {
        let problem = "averages do not tell which threads work at once";
        let help = "leave it out, or record the group: `reveille record --cgroup NAME -o FILE`";
        return Err(PlanError::option("--threads", Mistake::new(problem, help)));
    }
    let mut all = Vec::new();
    let mut best: Option<Plan> = None;
    let mut last = None;
    let mut unlimited: Option<OfThreads> = None;
    for (number, &threads) in numbers.iter().enumerate() {
        // More threads than CPUs change nothing.
        if let Some(same) = unlimited.clone().filter(|_| threads >= request.cpus) {
            all.push(OfThreads { threads, ..same });
            continue;
        }
        let fewer = Request { cpus: threads.min(request.cpus), ..request.clone() };
        let tell = |done: usize, total: usize| {
            progress(number * total + done, numbers.len() * total);
        };
        let (made, problem) = match plan(&fewer, jobs, stop, &tell) {
            Ok(made) => (Some(made), None),
            Err(error @ PlanError::Impossible { .. }) => {
                let problem = error.to_string();
                last = Some(error);
                (None, Some(problem))
            }
            Err(error) => return Err(error),
        };
        let brief = |shown: Option<&Shown>| shown.map(Brief::of);
        let of_threads = OfThreads {
            threads,
            today: brief(made.as_ref().and_then(|plan| plan.today.as_ref())),
            recommended: brief(made.as_ref().and_then(|plan| plan.recommended.as_ref())),
            problem,
        };
        if threads >= request.cpus {
            unlimited = Some(of_threads.clone());
        }
        all.push(of_threads);
        if let Some(made) = made
            && best.as_ref().is_none_or(|best| cost(&made) < cost(best))
        {
            best = Some(made);
        }
    }
    match (best, last) {
        (Some(best), _) => Ok(Plan { threads: all, ..best }),
        (None, Some(error)) => Err(error),
        (None, None) => {
            let mistake = Mistake::new("no number is given", "give some, such as 1..8");
            Err(PlanError::option("--threads", mistake))
        }
    }
}

/// CPUs reserved; infinite without a recommended limit.
fn cost(plan: &Plan) -> f64 {
    let recommended = plan.recommended.as_ref().filter(|shown| shown.meets_goals);
    recommended.and_then(|shown| shown.reserved_cpus).unwrap_or(f64::INFINITY)
}

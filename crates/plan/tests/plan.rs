//! Plans for recordings whose answers are known.

mod common;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use common::request;
use reveille_machine::Machine;
use reveille_plan::{Allowed, Goal, Neighbour, Plan, PlanError, Request, parse_limits, plan};
use reveille_policy::BandwidthLimits;
use reveille_usage::{Demand, Origin, Sample, Usage};

const MS: u64 = 1_000_000;

fn usage(name: &str, span_ms: u64, demands: Vec<Demand>) -> Usage {
    let threads = 1 + demands.iter().map(|demand| demand.thread).max().unwrap_or(0);
    Usage { span_ns: span_ms * MS, threads, demands, ..Usage::idle(name) }
}

/// Every `every_ms` one piece of `cpu_us` for each thread, `rounds` times.
fn regular(name: &str, threads: u32, every_ms: u64, cpu_us: u64, rounds: u64) -> Usage {
    let piece = |round: u64, thread: u32| Demand {
        at_ns: round * every_ms * MS,
        cpu_ns: cpu_us * 1000,
        thread,
        done_ns: None,
    };
    let demands = (0..rounds).flat_map(|r| (0..threads).map(move |t| piece(r, t))).collect();
    usage(name, every_ms * rounds, demands)
}

fn machine() -> Machine {
    reveille_machine::load("skx-2s20c").unwrap()
}

fn made(request: &Request<'_>, jobs: usize) -> Result<Plan, PlanError> {
    plan(request, jobs, &AtomicBool::new(false), &|_, _| {})
}

fn limits(text: &str) -> BandwidthLimits {
    parse_limits("--today", text).unwrap()
}

/// The burst mail's load: two threads of 80 ms every 200 ms, quota and period 100 ms.
#[test]
fn the_burst_mails_load_is_throttled_today_and_meets_its_goal_as_recommended() {
    let (machine, usage) = (machine(), regular("mail", 2, 200, 80_000, 20));
    let mut request = request(&machine, &usage, &["max=82ms"]);
    request.today = Some(limits("quota=100ms,period=100ms"));
    let plan = made(&request, 2).unwrap();
    let today = plan.today.as_ref().unwrap();
    // Between 0 and 50 ms late, by phase: the closed form of the experiment.
    assert!(today.effect.max_ns.min < 81e6, "{:?}", today.effect.max_ns);
    assert!((122e6..132e6).contains(&today.effect.max_ns.max), "{:?}", today.effect.max_ns);
    assert!(today.effect.throttled_share.median > 0.3);
    assert!(!today.meets_goals && today.holds_share < 0.9, "{}", today.holds_share);
    let recommended = plan.recommended.as_ref().unwrap();
    assert!(recommended.meets_goals && recommended.holds_share >= 0.95);
    assert!(recommended.effect.max_ns.max <= 82e6, "{:?}", recommended.effect.max_ns);
    let cpus = recommended.reserved_cpus.unwrap();
    // A bank of a quota carries 160 ms over two periods at little above the mean of 0.8.
    assert!((0.8..1.1).contains(&cpus), "{cpus}");
    for alternative in &plan.alternatives {
        assert!(alternative.shown.meets_goals, "{alternative:?}");
        assert!(alternative.shown.reserved_cpus.unwrap() * 1.021 >= cpus);
    }
    let worst = recommended.worst_case.unwrap();
    assert!(worst.simulated_ns >= worst.work_ns as f64);
    assert!(worst.simulated_ns <= worst.bound_ns.unwrap() as f64, "{worst:?}");
    assert_eq!(plan.counts.settings, plan.counts.simulated + plan.counts.pruned);
    assert!(plan.counts.settings >= 900, "{:?}", plan.counts);
    // 40 pieces of work tell nothing of p99.
    assert!(today.effect.p99_ns.max.is_nan() && plan.map.is_none());
    assert_eq!(plan.too_few, ["p90", "p99", "p99.9"]);
}

/// Work by the clock needs hardly more than its mean, and the same work takes more CPU time at
/// another hour: goals alone would let a quota that such an hour overwhelms.
#[test]
fn a_load_by_the_clock_leaves_a_tenth_of_its_quota_unused() {
    let (machine, clock) = (machine(), regular("clock", 1, 10, 2_500, 1000));
    let mut request = request(&machine, &clock, &["p99=20ms"]);
    (request.headroom, request.allowed) = (0.15, Allowed::default());
    let plan = made(&request, 2).unwrap();
    let recommended = plan.recommended.as_ref().unwrap();
    let cpus = recommended.reserved_cpus.unwrap();
    // 0.25 CPUs, 15% more, 90% used; in whole thousandths.
    assert!((0.3194..0.3205).contains(&cpus), "{cpus}");
    assert_eq!((recommended.set_by_use, plan.model.most_used), (Some(true), 0.9));
    assert!(recommended.growth.unwrap() > 0.25, "{recommended:?}");
    for alternative in &plan.alternatives {
        assert!(alternative.shown.reserved_cpus.unwrap() > 0.3193, "{alternative:?}");
    }
    // 80 ms at once need a quota for the goal's sake.
    let batches = regular("batches", 1, 400, 80_000, 50);
    request.usage = &batches;
    request.goals = vec![Goal::parse("max=200ms").unwrap()];
    let plan = made(&request, 2).unwrap();
    let recommended = plan.recommended.as_ref().unwrap();
    assert!(recommended.reserved_cpus.unwrap() > 0.3, "{recommended:?}");
    assert_eq!(recommended.set_by_use, Some(false));
}

#[test]
fn what_cannot_be_reached_says_why() {
    let (machine, busy) = (machine(), regular("busy", 3, 50, 35_000, 20));
    let refused = |request: &Request<'_>, what: &str| {
        let error = made(request, 2).unwrap_err();
        assert!(error.is_input(), "{error:?}");
        let text = error.to_string();
        assert!(text.contains(what), "{text:?} does not say {what:?}");
    };
    refused(&request(&machine, &busy, &["p99=50ms"]), "asks for 2.10 CPUs on average");
    let usage = regular("app", 1, 100, 35_000, 20);
    refused(&request(&machine, &usage, &["p99<35ms"]), "takes 35.000 ms of CPU time");
    // What a recording shows as one piece of work may be a batch; a table of requests is certain.
    let sampled = Origin::Sampled { resolution_ns: MS };
    for (origin, batches) in [(Origin::Traced, true), (sampled, true), (Origin::Requests, false)] {
        let usage = Usage { origin, ..usage.clone() };
        let error = made(&request(&machine, &usage, &["p99<35ms"]), 2).unwrap_err();
        let PlanError::Impossible { mistake, .. } = error else { panic!("{error:?}") };
        assert_eq!(mistake.help.contains("`reveille import`"), batches, "{mistake:?}");
    }
    refused(&request(&machine, &usage, &["tardiness<5ms"]), "no neighbours");
    refused(&request(&machine, &usage, &[]), "no goal");
    let averaged = Usage { origin: Origin::Averaged { step_ns: 15_000 * MS }, ..usage.clone() };
    refused(&request(&machine, &averaged, &["p99<50ms"]), "averages over 15s");
    let impossible = Usage {
        samples: vec![Sample { runtime_ns: 3 * usage.span_ns, ..Sample::default() }],
        limits: Some(limits("quota=100ms")),
        ..averaged
    };
    refused(
        &request(&machine, &impossible, &["p99<50ms"]),
        "3.000 CPUs on average under a limit of 1 CPU",
    );
    let mut crowded = request(&machine, &usage, &["p99<50ms"]);
    let limits = Some(limits("quota=190ms"));
    crowded.neighbours = vec![Neighbour { usage: regular("other", 1, 100, 20_000, 20), limits }];
    refused(&crowded, "leave 0.10");
    let idle = regular("idle", 1, 100, 0, 20);
    refused(&request(&machine, &idle, &["p99<50ms"]), "no CPU time");
}

#[test]
fn a_stop_ends_it() {
    let (machine, usage) = (machine(), regular("few", 2, 50, 10_000, 20));
    let (stop, runs) = (AtomicBool::new(false), AtomicUsize::new(0));
    let progress = |done: usize, total: usize| {
        assert!(done <= total);
        runs.fetch_max(done, Ordering::Relaxed);
        stop.store(done >= 20, Ordering::Relaxed);
    };
    let outcome = plan(&request(&machine, &usage, &["p99=20ms"]), 2, &stop, &progress);
    assert!(matches!(outcome, Err(PlanError::Interrupted)), "{outcome:?}");
    assert!(runs.load(Ordering::Relaxed) < 30);
}

#[test]
fn a_neighbour_pays_for_a_burst_and_a_goal_protects_it() {
    // The neighbour's 30 ms every 50 ms fill most of one CPU; bursts of the group wait there.
    let machine = machine();
    let usage = regular("app", 2, 400, 60_000, 6);
    let neighbour =
        |threads| Neighbour { usage: regular("other", threads, 50, 20_000, 48), limits: None };
    let mut request = request(&machine, &usage, &["p99<200ms"]);
    request.neighbours = vec![neighbour(2)];
    request.phases = 4;
    request.today = Some(limits("quota=60ms,period=100ms,burst=60ms"));
    let plan = made(&request, 2).unwrap();
    let today = plan.today.as_ref().unwrap();
    let effect = &today.neighbours[0];
    assert!(effect.missed_share.median > 0.05, "{effect:?}");
    assert!(effect.worst_tardiness_ns.max > 4e6, "{effect:?}");
    assert!(effect.mean_tardiness_ns.max <= effect.worst_tardiness_ns.max);
    assert!(effect.p99_ns.median.is_nan(), "of 96 pieces of work");
    let closed = today.closed_form.as_ref().unwrap();
    assert!((closed.mean_cpus - 1.1).abs() < 0.01, "{closed:?}");
    assert_eq!(closed.tardiness_bound_ns, None, "the neighbour has no quota");
}

/// Numbers between 0 and 1, the same for a seed.
fn chances(mut state: u64) -> impl FnMut() -> f64 {
    move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as f64 + 0.5) / (1u64 << 31) as f64
    }
}

/// Recordings of a few kinds, each with goals.
fn kinds() -> Vec<(Usage, Vec<&'static str>)> {
    let mut random = chances(11);
    let mut made =
        |name: &str, threads: u32, every_ms: f64, wave: f64, work: &dyn Fn(f64) -> f64| {
            let mut demands = Vec::new();
            for thread in 0..threads {
                let mut at = 0.0;
                while at < 4e3 {
                    let rate = if (at / 500.0) as u64 % 4 == 1 { wave } else { 1.0 };
                    let (at_ns, cpu_ns) = ((at * 1e6) as u64, (work(random()) * 1e6) as u64 + 1);
                    demands.push(Demand { at_ns, cpu_ns, thread, done_ns: None });
                    at -= f64::ln(random()) * every_ms / rate;
                }
            }
            demands.sort_by_key(|demand| demand.at_ns);
            usage(name, 4000, demands)
        };
    let exponential = |mean: f64| move |chance: f64| -f64::ln(chance) * mean;
    vec![
        (regular("regular", 1, 40, 9_000, 100), vec!["max<30ms"]),
        (regular("together", 3, 100, 20_000, 40), vec!["p90<45ms", "throttled<30%"]),
        (made("poisson", 1, 20.0, 1.0, &exponential(6.0)), vec!["p90=40ms"]),
        (made("threads", 4, 30.0, 1.0, &exponential(5.0)), vec!["p90=40ms", "throttled<5%"]),
        (made("bursty", 2, 40.0, 5.0, &exponential(5.0)), vec!["p95=60ms", "lost<10%"]),
        (made("tail", 2, 40.0, 1.0, &|c| 2.0 * c.powf(-0.6)), vec!["p90=40ms", "p95=120ms"]),
        (made("crowded", 6, 20.0, 1.0, &exponential(3.0)), vec!["p90=15ms", "p99=60ms"]),
    ]
}

#[test]
fn what_is_shown_holds_in_the_simulator_and_costs_hardly_more_than_an_exhaustive_search_finds() {
    let machine = machine();
    for (usage, goals) in kinds() {
        let mut request = request(&machine, &usage, &goals);
        let plan = made(&request, 2).unwrap();
        let recommended = plan.recommended.as_ref().unwrap();
        let alternatives = plan.alternatives.iter().map(|alternative| &alternative.shown);
        for shown in alternatives.chain([recommended]) {
            // All 40 draws were simulated.
            assert!(shown.holds_share >= 0.95, "{}: {}", usage.name, shown.holds_share);
        }
        request.exhaustive = true;
        let exhaustive = made(&request, 2).unwrap();
        let counts = (plan.counts, exhaustive.counts);
        assert!(counts.1.simulated == counts.1.settings && counts.0.runs < counts.1.runs / 2);
        let cpus = |plan: &Plan| plan.recommended.as_ref().unwrap().reserved_cpus.unwrap();
        assert!(cpus(&plan) <= 1.03 * cpus(&exhaustive), "{}", usage.name);
    }
}

/// A setting that is not accepted has no room, even if its goals hold for the recording as it is.
#[test]
fn goals_that_are_not_met_leave_no_room_to_grow() {
    let (machine, usage) = (machine(), server(8));
    let mut request = request(&machine, &usage, &["p99=20ms"]);
    request.today = Some(limits("quota=690ms,period=1s,burst=510ms"));
    let plan = made(&request, 2).unwrap();
    let today = plan.today.as_ref().unwrap();
    assert!(!today.meets_goals && today.holds_share > 0.3, "{}", today.holds_share);
    assert_eq!(today.growth, Some(0.0));
    assert!(plan.recommended.unwrap().growth.unwrap() > 0.0);
}

/// Work of a small server: three threads, some 300 pieces a second, in waves.
fn server(seconds: u64) -> Usage {
    let mut random = chances(7);
    let mut demands = Vec::new();
    for thread in 0..3 {
        let mut at = 0.0;
        loop {
            // Four times as much in one third of a second in five.
            let wave = if ((at * 3.0) as u64).is_multiple_of(15) { 2.5 } else { 0.9 };
            at += -f64::ln(random()) / (100.0 * wave);
            if at >= seconds as f64 {
                break;
            }
            // Mean 2 ms, with a tail.
            let cpu_ms = 0.4 - 1.6 * f64::ln(random());
            let (at_ns, cpu_ns) = ((at * 1e9) as u64, (cpu_ms * 1e6) as u64);
            demands.push(Demand { at_ns, cpu_ns, thread, done_ns: None });
        }
    }
    demands.sort_by_key(|demand| demand.at_ns);
    usage("server", seconds * 1000, demands)
}

/// `cargo test --profile quick -p reveille-plan -- --ignored --nocapture`
#[test]
#[ignore = "of a minute of usage, for optimised builds"]
fn a_thousand_settings_of_a_minute_take_less_than_a_minute_on_two_threads() {
    let (machine, usage) = (machine(), server(60));
    let mut request = request(&machine, &usage, &["p99=20ms"]);
    request.exhaustive = true;
    request.today = Some(limits("quota=90ms,period=100ms"));
    let begun = std::time::Instant::now();
    let plan = made(&request, 2).unwrap();
    let took = begun.elapsed();
    println!("{:?} {took:?}", plan.counts);
    for shown in [&plan.today, &plan.recommended].into_iter().flatten() {
        println!("{} {} {:?}", shown.limits, shown.holds_share, shown.effect.p99_ns);
    }
    for alternative in &plan.alternatives {
        let shown = &alternative.shown;
        println!("{:?} {} {:?}", alternative.change, shown.limits, shown.effect.p99_ns);
    }
    let map = plan.map.as_ref().unwrap();
    assert_eq!((map.p99_ns.len(), map.p99_ns[0].len()), (8, 5));
    assert!(plan.counts.simulated >= 1000);
    assert!(took.as_secs() < 60, "{took:?}");
}

//! What is computed from recordings: use per period, and the arrivals that replay them.

use proptest::prelude::*;
use reveille_usage::{Demand, Origin, Usage};

fn recording(span_ns: u64, threads: u32, mut demands: Vec<Demand>) -> Usage {
    demands.sort_by_key(|demand| demand.at_ns);
    Usage { origin: Origin::Traced, span_ns, threads, demands, ..Usage::idle("app") }
}

prop_compose! {
    fn usage()(span_ns in 1..2_000u64, threads in 1..5u32)(
        span_ns in Just(span_ns),
        threads in Just(threads),
        rows in prop::collection::vec((0..span_ns, 0..500u64, 0..threads), 0..60),
    ) -> Usage {
        let demand = |(at_ns, cpu_ns, thread)| Demand { at_ns, cpu_ns, thread, done_ns: None };
        recording(span_ns, threads, rows.into_iter().map(demand).collect())
    }
}

/// Use in each nanosecond, counted one by one.
fn course(usage: &Usage) -> Vec<u64> {
    let mut course = vec![0; usage.span_ns as usize];
    let mut free_at = vec![0; usage.threads as usize];
    for demand in &usage.demands {
        let free = &mut free_at[demand.thread as usize];
        for ns in 0..demand.cpu_ns {
            course[((demand.at_ns.max(*free) + ns) % usage.span_ns) as usize] += 1;
        }
        *free = demand.at_ns.max(*free) + demand.cpu_ns;
    }
    course
}

proptest! {
    #[test]
    fn periods_hold_what_is_used_in_them(
        usage in usage(), period_ns in 1..3_000u64, phase_ns in 0..5_000u64
    ) {
        let course = course(&usage);
        let n = course.len();
        let expected: Vec<u64> = (0..usage.span_ns / period_ns)
            .map(|period| (0..period_ns)
                .map(|ns| course[((phase_ns + period * period_ns + ns) as usize) % n]).sum())
            .collect();
        prop_assert_eq!(usage.per_period(period_ns, phase_ns), expected);
        let total: u64 = course.iter().sum();
        prop_assert!((usage.mean_cpus() - total as f64 / n as f64).abs() < 1e-9);
    }

    #[test]
    fn a_replay_repeats_every_demand(usage in usage(), until_ns in 1..4_000u64) {
        let of_thread = usage.arrivals(until_ns);
        prop_assert_eq!(of_thread.len(), usage.threads as usize);
        let mut replayed: Vec<(u64, u64, u32)> = Vec::new();
        for (thread, own) in (0..).zip(of_thread) {
            prop_assert!(own.windows(2).all(|pair| pair[0].at_ns <= pair[1].at_ns));
            replayed.extend(own.iter().map(|arrival| (arrival.at_ns, arrival.work_ns, thread)));
        }
        let mut expected: Vec<(u64, u64, u32)> = (0..until_ns.div_ceil(usage.span_ns))
            .flat_map(|round| usage.demands.iter()
                .map(move |d| (round * usage.span_ns + d.at_ns, d.cpu_ns, d.thread)))
            .filter(|arrival| arrival.0 < until_ns)
            .collect();
        replayed.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(replayed, expected);
    }
}

#[test]
fn threads_that_overlap_are_counted() {
    let demand = |at_ns, cpu_ns, thread| Demand { at_ns, cpu_ns, thread, done_ns: None };
    let rows = vec![demand(0, 10, 0), demand(5, 10, 0), demand(9, 0, 1), demand(20, 5, 1)];
    assert_eq!(recording(100, 3, rows.clone()).max_parallel(), 1);
    let more = rows.into_iter().chain([demand(19, 1, 2), demand(19, 2, 0)]).collect();
    assert_eq!(recording(100, 3, more).max_parallel(), 2);
    assert_eq!(recording(100, 0, Vec::new()).max_parallel(), 0);
}

#[test]
fn a_quantile_needs_ten_demands_beyond_it() {
    let demand = |at_ns| Demand { at_ns, cpu_ns: 1, thread: 0, done_ns: None };
    let of = |n: u64| recording(10_000_000_000, 1, (0..n).map(demand).collect());
    assert_eq!(of(1_000).enough_for(0.99), Ok(()));
    let reason = of(500).enough_for(0.99).unwrap_err();
    assert!(reason.contains("too short for p99: 500 demands"), "{reason}");
    assert!(reason.contains("1000 are needed") && reason.contains("about 20 s"), "{reason}");
    assert!(of(0).enough_for(0.999).unwrap_err().contains("p99.9 needs 10000"));
    assert!(of(9_999).enough_for(1.0).is_err());
}

#[test]
fn work_without_end_is_summed_in_no_time() {
    let demand = Demand { at_ns: 0, cpu_ns: reveille_usage::MAX_SPAN_NS, thread: 0, done_ns: None };
    let usage = recording(1_000, 1, vec![demand; 3]);
    let each = 3 * (reveille_usage::MAX_SPAN_NS / 1_000) * 500;
    assert_eq!(usage.per_period(500, 3), [each, each]);
    assert!(usage.check().iter().any(|warning| warning.contains("more work than time")));
}

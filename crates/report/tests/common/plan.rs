//! Plans with made-up figures of realistic size: a web service that is throttled today, alone
//! or with neighbours.

#![allow(dead_code, reason = "each test file uses its own part")]

use reveille_plan::{
    Allowed, Alternative, CdfPoint, Change, ClosedForm, Counts, Figures, Goal, Interval, Map,
    Model, NeighbourEffect, NeighbourGiven, Pair, Plan, Range, Recording, Shown, WorstCase,
};
use reveille_policy::BandwidthLimits;
use reveille_usage::Origin;

const MS: u64 = 1_000_000;

/// Limits in milliseconds; a quota of 0 stands for none.
pub fn limits(quota: u64, period: u64, burst: u64) -> BandwidthLimits {
    let quota_ns = (quota > 0).then_some(quota * MS);
    BandwidthLimits { quota_ns, period_ns: period * MS, burst_ns: burst * MS }
}

fn range(median: f64, spread: f64) -> Range {
    Range { min: median * (1.0 - spread / 2.0), median, max: median * (1.0 + spread) }
}

fn figures<T>(p99_ms: f64, throttled: f64, of: impl Fn(f64, f64) -> T) -> Figures<T> {
    let ns = |ms: f64| ms * 1e6;
    Figures {
        p50_ns: of(ns(6.4), 0.02),
        p90_ns: of(ns(11.0), 0.1),
        p99_ns: of(ns(p99_ms), 0.3),
        p999_ns: of(ns(p99_ms * 1.4), 0.3),
        max_ns: of(ns(p99_ms * 2.1), 0.4),
        throttled_share: of(throttled, 0.2),
        lost_share: of(throttled / 3.0, 0.2),
        cpus_used: of(0.412, 0.0),
        goals: vec![of(ns(p99_ms), 0.3), of(throttled, 0.2)],
    }
}

/// What is shown of a setting with this p99 and share of throttled periods.
pub fn shown(limits: BandwidthLimits, p99_ms: f64, throttled: f64, holds_share: f64) -> Shown {
    let interval = |median: f64, spread: f64| Interval {
        low: median * (1.0 - spread / 1.5),
        high: median * (1.0 + 1.4 * spread),
    };
    let last = p99_ms * 2.1 * 1e6;
    let latency = |i: u32| {
        let share = f64::from(i) / 100.0;
        let tail = if share > 0.9 { (p99_ms * 1e6) * ((share - 0.9) / 0.09).powi(2) } else { 0.0 };
        CdfPoint { latency_ns: 4e6 + 6e6 * share + tail.min(last), share }
    };
    let mut points: Vec<CdfPoint> = (0..=99).map(latency).collect();
    points.push(CdfPoint { latency_ns: last.max(12e6), share: 1.0 });
    let bound_ns = limits.quota_ns.map(|_| 210 * MS);
    Shown {
        limits,
        set_by_use: None,
        growth: Some(0.18),
        reserved_cpus: limits.cpus(),
        effect: figures(p99_ms, throttled, range),
        phases: 20,
        intervals: figures(p99_ms, throttled, interval),
        holds_share,
        meets_goals: holds_share >= 0.95,
        worst_case: Some(WorstCase { work_ns: 38_200_000, simulated_ns: 95.4e6, bound_ns }),
        latency: points,
        neighbours: Vec::new(),
        closed_form: None,
    }
}

fn recording(name: &str) -> Recording {
    Recording {
        name: name.into(),
        origin: Origin::Requests,
        span_ns: 59_900 * MS,
        threads: 4,
        demands: 3012,
        mean_cpus: 0.412,
        longest_ns: 38_200_000,
        held_back: None,
        limits: Some(limits(50, 100, 0)),
    }
}

/// A service that needs a burst.
pub fn service() -> Plan {
    let cell = |period: u64, burst: f64| {
        (period <= 500 || burst < 1.0).then(|| 1e9 / (period as f64).sqrt() / (1.0 + 4.0 * burst))
    };
    let (periods, bursts) = ([5u64, 10, 20, 50, 100, 200, 500, 1000], [0.0, 0.25, 0.5, 0.75, 1.0]);
    Plan {
        recording: recording("checkout"),
        inferred: None,
        goals: ["p99=20ms", "throttled<0.1%"].map(|text| Goal::parse(text).unwrap()).into(),
        neighbours: Vec::new(),
        model: Model {
            machine: "quad-1s4c".into(),
            cpus: 4,
            hz: 250,
            base: "v6.12".into(),
            slice_ns: 5 * MS,
            within: None,
            quota_sum_cpus: None,
            confidence: 0.95,
            headroom: 0.15,
            growth: 0.0,
            most_used: 0.9,
            allowed: Allowed::ANY,
            draws: 40,
            seed: 1,
        },
        observed: None,
        threads: Vec::new(),
        today: Some(shown(limits(50, 100, 0), 85.3, 0.123, 0.0)),
        recommended: Some(shown(limits(60, 100, 45), 17.2, 0.0004, 0.975)),
        obstacle: None,
        too_few: vec!["p99.9".into()],
        too_short: Vec::new(),
        alternatives: vec![
            Alternative {
                change: Change::LongerPeriod,
                shown: shown(limits(330, 500, 0), 18.8, 0.0007, 0.95),
            },
            Alternative {
                change: Change::Quota,
                shown: shown(limits(124, 100, 0), 19.1, 0.0, 1.0),
            },
        ],
        map: Some(Map {
            cpus: 0.6,
            periods_ns: periods.map(|period| period * MS).to_vec(),
            burst_shares: bursts.to_vec(),
            p99_ns: periods.map(|period| bursts.map(|burst| cell(period, burst)).to_vec()).to_vec(),
        }),
        counts: Counts {
            settings: 1025,
            simulated: 640,
            pruned: 385,
            runs: 2874,
            simulated_ns: 172_440_000 * MS,
        },
        warnings: vec![
            "The recording is too short for p99: it has 312 pieces of work, of which 3.1 are \
             beyond it; record at least 193 s."
                .into(),
        ],
    }
}

/// The plan with this many neighbours.
pub fn with_neighbours(names: &[&str]) -> Plan {
    let mut plan = service();
    plan.neighbours = names
        .iter()
        .map(|name| NeighbourGiven { recording: recording(name), limits: Some(limits(50, 100, 0)) })
        .collect();
    let effect = |name: &&str, burst: bool| {
        let zero = Range::default();
        let by_burst = |median| if burst { range(median, 0.5) } else { zero };
        NeighbourEffect {
            name: (*name).into(),
            missed_share: range(0.021, 0.5),
            missed_by_burst_share: by_burst(0.004),
            mean_tardiness_ns: range(0.31e6, 0.5),
            worst_tardiness_ns: range(22.4e6, 0.5),
            worst_tardiness_by_burst_ns: by_burst(8.2e6),
            p99_without_ns: range(14.1e6, 0.1),
            p99_ns: range(15.9e6, 0.2),
        }
    };
    let all: Vec<&str> = std::iter::once("checkout").chain(names.iter().copied()).collect();
    let alternatives = plan.alternatives.iter_mut().map(|a| &mut a.shown);
    let settings = plan.today.iter_mut().chain(plan.recommended.iter_mut()).chain(alternatives);
    for shown in settings {
        let burst_ns = shown.limits.burst_ns;
        shown.neighbours = names.iter().map(|name| effect(name, burst_ns > 0)).collect();
        let mut pairs = Vec::new();
        for (number, a) in all.iter().enumerate() {
            for b in &all[number + 1..] {
                pairs.push(Pair {
                    groups: [(*a).into(), (*b).into()],
                    within: [0.95, 0.95],
                    both_within: 0.9025,
                    both_within_seen: 0.911,
                    both_beyond: 0.0025,
                    both_beyond_seen: 0.0071,
                });
            }
        }
        let reserved_cpus = shown.reserved_cpus.unwrap_or_default() + 0.5 * names.len() as f64;
        let stable = shown.reserved_cpus.is_some() && reserved_cpus <= 4.0;
        shown.closed_form = Some(ClosedForm {
            period_ns: shown.limits.period_ns.max(100 * MS),
            overcommitted_share: 0.0003,
            worst_owed_ns: burst_ns / 3,
            reserved_cpus,
            mean_cpus: 0.412 * all.len() as f64,
            stable,
            tardiness_bound_ns: stable.then_some(burst_ns),
            pairs,
        });
    }
    plan
}

/// Nothing was found, and nothing is known of today.
pub fn nothing() -> Plan {
    let warning = "No setting was found whose goals hold with this confidence; a goal a little \
                   easier, or more CPUs, may help.";
    Plan {
        today: None,
        recommended: None,
        alternatives: Vec::new(),
        map: None,
        warnings: vec![warning.into()],
        ..service()
    }
}

/// Today's setting lets some work never end, and only no quota at all helps.
pub fn without_quota() -> Plan {
    let mut plan = service();
    let today = plan.today.as_mut().unwrap();
    today.effect.p99_ns.max = f64::INFINITY;
    today.effect.max_ns = Range { min: 2e9, median: f64::INFINITY, max: f64::INFINITY };
    today.intervals.max_ns = Interval { low: 1.9e9, high: f64::INFINITY };
    today.worst_case.as_mut().unwrap().simulated_ns = f64::INFINITY;
    let share = today.latency.len() as f64;
    for point in today.latency.iter_mut().skip((share * 0.97) as usize) {
        point.latency_ns = f64::INFINITY;
    }
    plan.recommended = Some(shown(limits(0, 100, 0), 14.0, 0.0, 1.0));
    plan.alternatives.clear();
    plan
}

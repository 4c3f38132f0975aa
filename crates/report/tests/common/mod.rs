//! A comparison such as a study of a large machine gives: two cases, eight
//! loads, 224 CPUs, published figures for one of the cases. The values are made
//! up, but of realistic size and shape.

#![allow(dead_code, reason = "each test file uses its own part")]

use reveille_measure::{CpuTime, Explain, Ns};
use reveille_study::{
    Claim, Comparison, Detail, Direction, Explanation, Figure, MachineUsed, Metric, Row, RowKind,
    Score, SideDetail, Skill, Unpredicted, Verdict,
};

/// CPUs of the sample machine.
pub const CPUS: usize = 224;

/// A small reproducible source of noise in 0..1.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 40) as f64 / (1u64 << 24) as f64
    }
}

pub fn sample() -> Comparison {
    let mut noise = Noise(7);
    let mut rows = Vec::new();
    for case in ["netperf TCP_RR", "schbench"] {
        for load in (1..=8).map(|i| i * 56) {
            for variant in ["+SIS_SHORT", "+SIS_SHORT+SIS_AGE"] {
                rows.extend(rows_of(case, load, variant, &mut noise));
            }
        }
    }
    let hits = rows.iter().filter(|r| r.verdict == Some(Verdict::Hit)).count();
    let skill = Skill::of(&rows);
    let counted = hits + rows.iter().filter(|r| r.verdict == Some(Verdict::Miss)).count();
    Comparison {
        study: "sis-short-spr".into(),
        mechanism: Some("SIS_SHORT".into()),
        machine: "spr-2s".into(),
        topology: "2 sockets × 56 cores × 2 SMT = 224 CPUs, one 105 MB LLC per socket".into(),
        cost_model: "spr".into(),
        machines: vec![MachineUsed {
            name: "spr-2s".into(),
            topology: "2 sockets × 56 cores × 2 SMT = 224 CPUs, one 105 MB LLC per socket".into(),
            cost_model: "spr".into(),
            warnings: Vec::new(),
        }],
        base: "v6.2".into(),
        seed: 1,
        rows,
        not_judged: None,
        claims: vec![
            Claim {
                kind: "peak",
                low: Some(190.4),
                high: Some(257.6),
                claim: "load at which the throughput of netperf TCP_RR peaks".into(),
                published: Some(224.0),
                predicted: Some(224.0),
                verdict: Verdict::Hit,
                source: "cover letter of version 8, table 2".into(),
            },
            Claim {
                kind: "fall",
                low: Some(46.0),
                high: None,
                claim: "largest gain of context_switch1 in percent, whatever the load".into(),
                published: Some(46.0),
                predicted: Some(31.5),
                verdict: Verdict::Miss,
                source: "cover letter of version 8, section \"Benchmark\"".into(),
            },
        ],
        claim_score: Score { hits: 1, counted: 2 },
        unpredicted: vec![Unpredicted {
            what: "kernel compile".into(),
            figures: "no change".into(),
            reason: "what it does between wakeups is not known".into(),
            source: "cover letter of version 8".into(),
        }],
        score: Score { hits, counted },
        skill,
        partial: false,
        host: None,
    }
}

fn rows_of(case: &str, load: u64, variant: &str, noise: &mut Noise) -> Vec<Row> {
    let full = load as f64 / CPUS as f64;
    let better = if variant.contains("AGE") { 1.3 } else { 1.0 };
    let gain =
        better * 22.0 * (full - 0.2).max(0.0).min(1.4 - 0.5 * full) + 3.0 * noise.next() - 2.0;
    let explain = Explanation {
        baseline: explained(full, 1.0),
        candidate: explained(full, 1.0 - gain / 60.0),
    };
    let detail = Detail {
        baseline: side(full, 1.0, &mut Noise(load)),
        candidate: side(full, 1.0 - gain / 40.0, noise),
    };
    let netperf = case.starts_with("netperf");
    let (metric, mean) = if netperf {
        ("throughput (operations/s)", 61e3 * CPUS as f64 * full.min(1.0).powf(0.8))
    } else {
        ("p99 (ns)", 9e3 * (1.0 + 60.0 * (full - 0.9).max(0.0).powi(2)))
    };
    // Lower latency is better: the same gain has the other sign in the mean.
    let factor = if netperf { 1.0 + gain / 100.0 } else { 1.0 - gain / 100.0 };
    let published =
        (netperf && variant == "+SIS_SHORT").then(|| gain + 12.0 * (noise.next() - 0.4));
    let verdict = published.map(|p| match (p - gain).abs() {
        d if load == 56 || d.is_nan() => Verdict::Informative,
        d if d < 3.5 => Verdict::Hit,
        _ => Verdict::Miss,
    });
    let row = Row {
        case: case.into(),
        machine: "spr-2s".into(),
        base: "v6.2".into(),
        load,
        variant: variant.into(),
        repeats: 5,
        metric: Metric::read(metric, if netperf { Direction::Higher } else { Direction::Lower }),
        kind: RowKind::Change,
        baseline: Figure { mean, rel_std: 0.002 + 0.03 * Noise(load).next() },
        candidate: Figure { mean: mean * factor, rel_std: 0.002 + 0.03 * noise.next() },
        change_pct: gain,
        uncorrected_change_pct: gain,
        modes: None,
        p_value: Some(if gain.abs() > 2.0 { 0.0004 } else { 0.31 }),
        significant: gain.abs() > 2.0,
        identical: false,
        too_few: false,
        enough_ns: None,
        track_record: None,
        half_width: 0.05,
        ratios: Vec::new(),
        published_change_pct: published,
        published_baseline: None,
        published_candidate: None,
        published_unit: None,
        published_of: None,
        ratio: published.map(|p| (100.0 + gain) / (100.0 + p)),
        noise: None,
        published_source: published.map(|_| "cover letter of version 8, table 2".into()),
        verdict,
        explain,
        detail,
    };
    if netperf {
        return vec![row];
    }
    let mut p50 = row.clone();
    p50.metric = Metric::new("p50", "ns", Direction::Lower);
    p50.baseline.mean /= 4.0;
    p50.candidate.mean /= 4.0;
    vec![row, p50]
}

fn explained(full: f64, waste: f64) -> Explain {
    let wakeups = 1.9e6 * full;
    Explain {
        idle_pct: (100.0 - 70.0 * full).max(1.2),
        idle_task_pct: (102.0 - 70.0 * full).max(2.2),
        cost_pct: 18.0 * waste * full.min(1.0),
        ttwu_count_per_s: wakeups,
        ttwu_local_per_s: wakeups * (1.0 - 0.7 * waste),
        ttwu_wake_remote_per_s: wakeups * 0.7 * waste,
        wakeups_same_cpu_per_s: wakeups * (1.0 - 0.7 * waste),
        wakeups_sibling_per_s: wakeups * 0.04,
        wakeups_same_llc_per_s: wakeups * 0.56 * waste,
        wakeups_remote_per_s: wakeups * (0.14 * waste - 0.04).max(0.0),
        idle_searches_per_s: wakeups * 0.9,
        cpus_per_search: 3.0 + 20.0 * full * waste,
        search_efficiency_pct: 100.0 / (1.0 + 9.0 * full),
        domain_efficiency_pct: 100.0 / (3.0 + 20.0 * full * waste),
        fast_path_pct: (100.0 - 70.0 * full).max(1.0),
        search_success_pct: (100.0 - 40.0 * full).max(2.0),
        stacked_wakeups_per_s: 15e3 * full * waste,
        lb_gained_newidle_per_s: 8e3 * full * waste,
        migrations_per_s: 0.6 * wakeups * waste,
        ipis_per_s: 0.5 * wakeups * waste,
        context_switches_per_s: wakeups * 2.1,
        lock_wait_pct: 2.4 * full * waste,
        hot_line_wait_pct: 5.1 * full * waste,
        wakeup_p50_ns: 1900.0 * (1.0 + full),
        wakeup_p99_ns: 14_500.0 * (1.0 + full) * waste,
        wakeup_max_ns: 1.31e6 * waste,
        latencies: Some(100_000),
        ..Explain::default()
    }
}

fn side(full: f64, slow: f64, noise: &mut Noise) -> SideDetail {
    let steps = 900;
    let latency_cdf = (1..=steps)
        .map(|i| {
            let share = i as f64 / steps as f64;
            // A logistic distribution of the logarithm, with a tail past p99.
            let odds = (share / (1.0 - share + 2e-4)).ln();
            let ns = 2_400.0 * slow * (1.0 + full) * (0.55 * odds).exp();
            (ns as Ns + i as Ns, share)
        })
        .collect();
    let cpus = (0..CPUS)
        .map(|_| {
            let busy = (0.75 * full.min(1.2) * (0.85 + 0.3 * noise.next())).min(0.97);
            let cost = (0.12 * slow * (0.6 + 0.8 * noise.next())).min(1.0 - busy);
            let part = |share: f64| (share * 1e9) as Ns;
            CpuTime { busy_ns: part(busy), cost_ns: part(cost), idle_ns: part(1.0 - busy - cost) }
        })
        .collect();
    SideDetail { samples: vec![1.0, 2.0, 3.0], latency_cdf, cpus }
}

/// The sample's first three rows, with one figure of each kind that is no change:
/// of one side, of both as printed, of their spread and of a number of runs.
pub fn kinds() -> Comparison {
    let mut c = sample();
    c.rows.truncate(5);
    let [pair, side, std, runs, plain] = &mut c.rows[..] else { unreachable!("five rows") };
    pair.published_baseline = Some(34.757);
    pair.published_candidate = Some(30.7527);
    pair.published_unit = Some("s".into());
    pair.published_change_pct = Some(13.02);
    pair.verdict = Some(Verdict::Hit);
    side.kind = RowKind::Side;
    side.published_change_pct = None;
    side.published_candidate = Some(83.39);
    side.published_unit = Some("%".into());
    side.ratio = Some(2.345);
    side.verdict = Some(Verdict::Miss);
    std.kind = RowKind::Std;
    std.metric = Metric::new("std of p99", "ns", Direction::Lower);
    std.published_baseline = Some(0.78);
    std.published_candidate = Some(0.097);
    std.verdict = Some(Verdict::Informative);
    runs.kind = RowKind::Runs;
    runs.metric = Metric::new("runs with p99 above 10ms", "runs", Direction::Lower);
    runs.baseline.mean = 2.0;
    runs.published_baseline = Some(6.0);
    runs.published_of = Some(10);
    runs.published_change_pct = None;
    runs.verdict = Some(Verdict::Hit);
    plain.machine = "small".into();
    plain.base = "v5.13".into();
    plain.case = "elsewhere".into();
    plain.verdict = None;
    plain.published_change_pct = None;
    plain.published_source = None;
    c.machines.push(MachineUsed {
        name: "small".into(),
        topology: "one socket".into(),
        cost_model: "tiny".into(),
        warnings: Vec::new(),
    });
    c
}

/// The sample with text in every name that must not reach a page as markup.
pub fn hostile() -> Comparison {
    const EVIL: &str = "</script><img src=x onerror=alert(1)>\"'&{{body}}";
    let mut c = sample();
    c.rows.truncate(3);
    c.study = EVIL.into();
    c.machine = EVIL.into();
    c.topology = EVIL.into();
    c.cost_model = EVIL.into();
    c.base = EVIL.into();
    for row in &mut c.rows {
        row.case = EVIL.into();
        row.machine = EVIL.into();
        row.base = EVIL.into();
        row.published_baseline = Some(1.5);
        row.published_unit = Some(EVIL.into());
        row.variant = EVIL.into();
        row.metric = Metric::new(EVIL, "operations/s", row.metric.direction);
        row.published_source = Some(EVIL.into());
    }
    c.machines.push(MachineUsed {
        name: EVIL.into(),
        topology: EVIL.into(),
        cost_model: EVIL.into(),
        warnings: Vec::new(),
    });
    c.mechanism = Some(EVIL.into());
    for u in &mut c.unpredicted {
        u.what = EVIL.into();
        u.figures = EVIL.into();
        u.reason = EVIL.into();
    }
    for claim in &mut c.claims {
        claim.claim = EVIL.into();
        claim.source = EVIL.into();
    }
    c
}

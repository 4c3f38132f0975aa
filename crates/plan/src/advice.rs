//! Does advice from half a minute of a known load keep its goal, and at what cost?

use std::sync::atomic::AtomicBool;

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use reveille_machine::Machine;
use reveille_measure::Random;
use reveille_policy::{BandwidthLimits, Policy};
use reveille_usage::{Demand, Origin, Sample, Usage};

use crate::goal::quantile_of;
use crate::lean::{Lean, LeanLoad, LeanSpan};
use crate::recover::recovered;
use crate::replay::as_f64;
use crate::{Goal, Ns, Request, plan};

const MS: Ns = 1_000_000;
const SPAN_NS: Ns = 30_000 * MS;
const PERIOD_NS: Ns = 100 * MS;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Clock,
    Batches,
    Random,
    Day,
    Together,
}

/// Arrivals, threads, requests/s and ms of work of each, goal for p99 in ms, and whether it is
/// recorded under twice its use.
type Kinds = (Kind, u32, f64, f64, u64, bool);

/// The loads of scripts/live-limits.py.
const LOADS: [Kinds; 12] = [
    (Kind::Clock, 1, 100.0, 2.5, 20, false),
    (Kind::Clock, 1, 50.0, 6.0, 50, false),
    (Kind::Clock, 1, 60.0, 4.0, 60, false),
    (Kind::Batches, 1, 48.0, 4.0, 120, false),
    (Kind::Random, 1, 40.0, 6.0, 80, false),
    (Kind::Random, 1, 50.0, 5.0, 100, true),
    (Kind::Day, 1, 60.0, 4.0, 80, true),
    (Kind::Day, 1, 50.0, 4.0, 60, false),
    (Kind::Day, 2, 40.0, 3.0, 100, true),
    (Kind::Together, 4, 15.0, 4.0, 50, false),
    (Kind::Random, 3, 25.0, 4.0, 60, false),
    (Kind::Random, 2, 30.0, 5.0, 80, true),
];

fn drawn((kind, threads, rate, work_ms, ..): Kinds, seed: u64) -> Vec<Demand> {
    let mut random = Random::new(seed);
    let mut demands = Vec::new();
    let streams = if kind == Kind::Together { 1 } else { threads };
    for stream in 0..streams {
        let mut at = 0.0;
        loop {
            let mut size = 1;
            at += match kind {
                Kind::Clock => (0.8 + 0.4 * random.uniform()) / rate,
                Kind::Batches => {
                    size += (random.uniform().ln() / 0.75f64.ln()) as u32;
                    random.exponential(4.0 / rate)
                }
                Kind::Day => random.exponential(1.0 / (1.8 * rate)),
                Kind::Random | Kind::Together => random.exponential(1.0 / rate),
            };
            let now = (1.0 + 0.8 * (at * std::f64::consts::TAU / 10.0).sin()) / 1.8;
            if kind == Kind::Day && random.uniform() > now {
                continue;
            }
            let at_ns = (at * 1e9) as Ns;
            if at_ns >= SPAN_NS {
                break;
            }
            let all = if kind == Kind::Together { 0..threads } else { stream..stream + 1 };
            for thread in (0..size).flat_map(|_| all.clone()) {
                let size = match kind {
                    Kind::Clock => 0.8 + 0.4 * random.uniform(),
                    _ => random.exponential(1.0),
                };
                let cpu_ns = (work_ms * size * MS as f64) as Ns + 1;
                demands.push(Demand { at_ns, cpu_ns, thread, done_ns: None });
            }
        }
    }
    demands.sort_by_key(|demand| demand.at_ns);
    demands
}

/// What a tracer would have seen: pieces of work from wakeup to sleep.
fn traced(load: &[Demand], threads: u32, cpus: u32, quota_ns: Option<Ns>) -> Usage {
    const STEP_NS: Ns = MS / 10;
    let limits = quota_ns.map(|quota_ns| BandwidthLimits {
        quota_ns: Some(quota_ns),
        period_ns: PERIOD_NS,
        burst_ns: 0,
    });
    let mut left_ns = 0;
    let mut next = 0;
    let mut of_thread: Vec<(Ns, Option<usize>)> = vec![(0, None); threads as usize];
    let mut turn = 0;
    let (mut pieces, mut samples) = (Vec::<Demand>::new(), Vec::new());
    let (mut now, mut read) = (Sample::default(), Sample::default());
    let mut throttled = false;
    for at_ns in (0..SPAN_NS).step_by(STEP_NS as usize) {
        if at_ns.is_multiple_of(PERIOD_NS) {
            now.nr_periods += u64::from(quota_ns.is_some());
            (left_ns, throttled) = (quota_ns.unwrap_or(Ns::MAX), false);
            read = now;
        }
        while let Some(demand) = load.get(next).filter(|demand| demand.at_ns <= at_ns) {
            let (ready_ns, piece) = &mut of_thread[demand.thread as usize];
            if piece.is_none() {
                *piece = Some(pieces.len());
                pieces.push(Demand { cpu_ns: 0, ..*demand });
            }
            *ready_ns += demand.cpu_ns;
            next += 1;
        }
        let busy = of_thread.iter().any(|(ready_ns, _)| *ready_ns > 0);
        if busy && left_ns < STEP_NS {
            now.nr_throttled += u64::from(!throttled);
            throttled = true;
            now.throttled_ns += STEP_NS;
        } else if busy {
            turn += usize::from(at_ns.is_multiple_of(MS));
            let turns = (0..of_thread.len()).map(|more| (turn + more) % of_thread.len());
            let ready = { turns }.filter(|&thread| of_thread[thread].0 > 0);
            for thread in ready.take(cpus as usize).collect::<Vec<_>>() {
                let (ready_ns, piece) = &mut of_thread[thread];
                let ran_ns = STEP_NS.min(*ready_ns).min(left_ns);
                (*ready_ns, left_ns) = (*ready_ns - ran_ns, left_ns - ran_ns);
                now.runtime_ns += ran_ns;
                let of = &mut pieces[piece.unwrap()];
                of.cpu_ns += ran_ns;
                if *ready_ns == 0 {
                    (of.done_ns, *piece) = (Some(at_ns + ran_ns), None);
                }
            }
        }
        if (at_ns + STEP_NS).is_multiple_of(MS) {
            let runnable = of_thread.iter().filter(|(ready_ns, _)| *ready_ns > 0).count() as u32;
            samples.push(Sample {
                at_ns: at_ns + STEP_NS,
                runtime_ns: now.runtime_ns,
                runnable: Some(runnable),
                ..read
            });
            now.runtime_ns = 0;
        }
    }
    pieces.retain(|piece| piece.cpu_ns > 0);
    let origin = Origin::Traced;
    Usage {
        origin,
        demands: pieces,
        samples,
        span_ns: SPAN_NS,
        threads,
        limits,
        ..Usage::idle("traced")
    }
}

/// Share of phases in which p99 of the load stays within the goal.
fn kept(
    load: &[Demand],
    (threads, cpus): (u32, u32),
    work: f64,
    quota_ns: Ns,
    goal_ns: f64,
) -> f64 {
    let grown: Vec<Demand> =
        load.iter().map(|d| Demand { cpu_ns: (d.cpu_ns as f64 * work) as Ns, ..*d }).collect();
    let limits = BandwidthLimits { quota_ns: Some(quota_ns), period_ns: PERIOD_NS, burst_ns: 0 };
    let load = LeanLoad::of(&grown, threads, SPAN_NS);
    let holds = (0..8).filter(|phase| {
        let phase_ns = (2 * phase + 1) * PERIOD_NS / 16;
        let span = LeanSpan { begin_ns: 0, end_ns: SPAN_NS + 2000 * MS, phase_ns, from_ns: 0 };
        let lean = Lean { cpus: cpus as usize, slice_ns: 5 * MS, tick_ns: 4 * MS, more_ns: 0 };
        let mut ran = lean.replay(&load, &limits, span).unwrap();
        as_f64(quantile_of(&mut ran.latencies, 0.99)) <= goal_ns
    });
    holds.count() as f64 / 8.0
}

/// Advice for a load held against its requests: the share of phases in which the goal is kept as
/// recorded, with 10% more work, and with a new draw of the requests; and the advice divided by the cheapest
/// quota that keeps the goal with 15% more work.
fn held(number: usize, seed: u64, machine: &Machine) -> Result<[f64; 4], String> {
    let kinds = LOADS[number];
    let (_, threads, .., goal_ms, limited) = kinds;
    let cpus = if number < 8 { 1 } else { 2 };
    let load = drawn(kinds, seed);
    let used_ns: Ns = load.iter().map(|d| d.cpu_ns).sum();
    let mean_ns = used_ns / (SPAN_NS / PERIOD_NS);
    let usage = traced(&load, threads, cpus, limited.then_some(2 * mean_ns));
    let mut request = Request {
        goals: vec![Goal::parse(&format!("p99={goal_ms}ms")).unwrap()],
        cpus,
        phases: 2,
        ..Request::new(&usage, machine, Policy::baseline("v6.18").unwrap())
    };
    let stop = AtomicBool::new(false);
    let recovered = recovered(&request, 1, &stop).map_err(|e| e.to_string())?;
    if let Some(recovered) = &recovered {
        recovered.replaces(&mut request);
    }
    let plan = plan(&request, 1, &stop, &|_, _| {}).map_err(|e| e.to_string())?;
    let advice_ns = plan.recommended.ok_or("no setting")?.limits.quota_ns.unwrap();
    let keeps = |load: &[Demand], work, quota_ns| {
        kept(load, (threads, cpus), work, quota_ns, (goal_ms * MS) as f64)
    };
    let (mut low, mut high) = (mean_ns, u64::from(cpus) * 125 * MS);
    while high - low > MS / 10 {
        let middle = (low + high) / 2;
        match keeps(&load, 1.15, middle) >= 0.5 {
            true => high = middle,
            false => low = middle,
        }
    }
    Ok([
        keeps(&load, 1.0, advice_ns),
        keeps(&load, 1.1, advice_ns),
        keeps(&drawn(kinds, seed + 77), 1.0, advice_ns),
        advice_ns as f64 / high as f64,
    ])
}

/// The figures of docs/plan.md: `cargo test --release -p reveille-plan --lib advice -- --ignored
/// --nocapture`.
#[test]
#[ignore = "takes a minute of two CPUs in release builds"]
fn advice_keeps_goals() {
    let machine = reveille_machine::load("skx-2s20c").unwrap();
    let mut all = Vec::new();
    for (number, kinds) in LOADS.iter().enumerate() {
        let rows = (1..=8u64)
            .into_par_iter()
            .map(|seed| held(number, 100 * seed + number as u64, &machine));
        let rows: Vec<Result<[f64; 4], String>> = rows.collect();
        let told: Vec<[f64; 4]> = rows.iter().filter_map(|row| row.clone().ok()).collect();
        let mean = |n: usize| told.iter().map(|row| row[n]).sum::<f64>() / told.len() as f64;
        eprintln!(
            "{:2} {kinds:?}: {} of 8 advised, kept {:.2}, with 10% more {:.2}, anew {:.2}; advice / cheapest {:.2}",
            number + 1,
            told.len(),
            mean(0),
            mean(1),
            mean(2),
            mean(3),
        );
        if let Some(Err(why)) = rows.iter().find(|row| row.is_err()) {
            eprintln!("   {why}");
        }
        all.extend(told);
    }
    let mean = |n: usize| all.iter().map(|row| row[n]).sum::<f64>() / all.len() as f64;
    let dear = all.iter().filter(|row| row[3] > 1.5).count();
    eprintln!("{} advised, {:?}, {dear} over 1.5 times", all.len(), [0, 1, 2, 3].map(mean));
    assert!(all.len() >= 72 && mean(0) > 0.99 && mean(1) > 0.95 && mean(2) > 0.95);
    assert!(dear * 10 < all.len() && mean(3) < 1.25);
}

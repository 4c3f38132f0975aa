//! What holds for any setting: the bound of the worst case, and that more quota does not hurt.

use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use reveille_measure::Random;
use reveille_policy::Policy;
use reveille_usage::{Demand, Origin, Usage};

use crate::Ns;
use crate::figures::Range;
use crate::goal::quantile_of;
use crate::lean::{Lean, LeanLoad, LeanOutcome, LeanSpan};
use crate::limits::limits_of;
use crate::load::Load;
use crate::replay::{Phase, Stage, cpus_like};
use crate::sketch::Sketch;
use crate::worst_case::worst_case;

const MS: Ns = 1_000_000;

fn stage(stop: &AtomicBool) -> Stage<'_> {
    let machine = cpus_like(&reveille_machine::load("skx-2s20c").unwrap(), 2).unwrap();
    Stage::new(machine, Policy::baseline("v6.12").unwrap(), (5 * MS, 1), stop, &|| {})
}

fn usage(span_ns: Ns, pieces: &[(Ns, Ns, u32)]) -> Usage {
    let piece =
        |&(at_ns, cpu_ns, thread): &(Ns, Ns, u32)| Demand { at_ns, cpu_ns, thread, done_ns: None };
    let mut demands: Vec<Demand> = pieces.iter().map(piece).collect();
    demands.sort_by_key(|demand| demand.at_ns);
    Usage { origin: Origin::Traced, span_ns, threads: 3, demands, ..Usage::idle("any") }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_worst_case_stays_within_its_bound(
        work_us in 100u64..200_000,
        period_ms in 5u64..200,
        share in 20u64..250,
        burst in 0u64..=100,
    ) {
        let stop = AtomicBool::new(false);
        let Some(limits) = limits_of(share * 10, period_ms * MS, burst) else { return Ok(()) };
        let usage = usage(1000 * MS, &[(0, work_us * 1000, 0)]);
        let worst = worst_case(&stage(&stop), &usage, limits).unwrap().unwrap();
        prop_assert!(worst.simulated_ns >= worst.work_ns as f64, "{limits}: {worst:?}");
        let bound_ns = worst.bound_ns.unwrap() as f64;
        prop_assert!(worst.simulated_ns <= bound_ns, "{limits}: {worst:?}");
    }

    /// A group that three threads can throttle waits for a refill, from the end of a period's quota on.
    #[test]
    fn the_worst_case_waits_for_a_refill(share in 50u64..150, burst in 0u64..=100) {
        let stop = AtomicBool::new(false);
        let Some(limits) = limits_of(share * 10, 1000 * MS, burst) else { return Ok(()) };
        let usage = usage(1000 * MS, &[(0, 15 * MS, 0)]);
        let worst = worst_case(&stage(&stop), &usage, limits).unwrap().unwrap();
        let quota_ns = limits.quota_ns.unwrap_or(0) as f64;
        let least_ns = 0.8 * (1000.0 * MS as f64 - quota_ns / 2.0);
        prop_assert!(worst.simulated_ns >= least_ns.max(15.0 * MS as f64), "{limits}: {worst:?}");
    }

    /// The median over phases, that is: by as much as phases differ it may be otherwise.
    #[test]
    fn more_quota_does_not_hurt(
        pieces in prop::collection::vec((0u64..3900, 1u64..30, 0u32..3), 20..120),
        period_ms in 10u64..200,
        burst in 0u64..=100,
    ) {
        let stop = AtomicBool::new(false);
        let stage = stage(&stop);
        let pieces: Vec<_> = pieces.iter().map(|&(at, cpu, t)| (at * MS, cpu * MS, t)).collect();
        let usage = usage(4000 * MS, &pieces);
        let load = Load::new(&[&usage]);
        let least = (usage.mean_cpus() * 1000.0) as u64;
        let mut before: Option<Range> = None;
        for millicpus in [least * 5 / 4 + 20, least * 2 + 20, least * 4 + 20] {
            let Some(limits) = limits_of(millicpus, period_ms * MS, burst) else { continue };
            let p99: Vec<f64> = (0..8)
                .map(|index| {
                    let phase = Phase::of_grid(index, 8);
                    let outcome = stage.replay(&load, Some(limits), phase).unwrap();
                    stage.figures(&load, &outcome, 0.0).p99_ns
                })
                .collect();
            let p99 = Range::over(&p99);
            if let Some(before) = before.filter(|before| before.max.is_finite()) {
                let noise = before.max - before.min + stage.tick_ns() as f64;
                prop_assert!(p99.median <= before.median + noise, "{limits}: {p99:?} {before:?}");
            }
            before = Some(p99);
        }
    }
}

/// Averages of three threads over steps of 15 s, some of them high.
fn averages() -> Usage {
    let step = |n: u64| 15_000 * MS * n..15_000 * MS * (n + 1);
    let high = |n: u64| if n % 13 == 5 { 4 } else { 1 + n % 2 };
    let slots = |n: u64| step(n).step_by(10 * MS as usize).map(move |at| (at, high(n)));
    let pieces = (0..60).flat_map(slots).flat_map(|(at, high)| {
        (0..3).map(move |thread| (at + thread * 3 * MS, high * 2 * MS, thread as u32))
    });
    let usage = usage(900_000 * MS, &pieces.collect::<Vec<_>>());
    Usage { origin: Origin::Averaged { step_ns: 15_000 * MS }, ..usage }
}

#[test]
fn parts_of_averages_say_what_the_whole_does() {
    let stop = AtomicBool::new(false);
    let machine = cpus_like(&reveille_machine::load("skx-2s20c").unwrap(), 4).unwrap();
    let stage = Stage { machine, ..stage(&stop) };
    let load = Load::new(&[&averages()]);
    let sketch = Sketch::new(&stage, &load, true, 0.0).unwrap();
    for (millicpus, period_ms, burst) in
        [(2300, 100, 0), (2300, 500, 100), (2100, 200, 50), (2350, 20, 0)]
    {
        let (limits, phase) =
            (limits_of(millicpus, period_ms * MS, burst).unwrap(), Phase::of_grid(3, 20));
        let whole = stage.replay(&load, Some(limits), phase).unwrap();
        let whole = stage.figures(&load, &whole, 0.0);
        let (parts, outcome) = sketch.simulate(&stage, &load, limits, phase).unwrap().unwrap();
        assert!(2 * parts.span_ns() < load.span_ns(), "{}", parts.span_ns());
        let figures = stage.figures(&parts, &outcome, 0.0);
        let near = |a: f64, b: f64| (a - b).abs() <= 0.01 * b + 1e-4;
        assert!(
            near(figures.throttled_share, whole.throttled_share),
            "{limits}: {figures:?}, {whole:?}"
        );
        assert!(near(figures.lost_share, whole.lost_share), "{limits}: {figures:?}, {whole:?}");
        assert!(near(figures.cpus_used, whole.cpus_used), "{limits}: {figures:?}, {whole:?}");
    }
}

/// Of one to six threads on one to four CPUs: regular, Poisson with a tail, or in waves.
fn random_load(seed: u64) -> (Usage, u32) {
    let mut random = Random::new(seed);
    let mut uniform = move || random.below(1 << 30) as f64 / f64::from(1 << 30);
    let threads = 1 + (uniform() * 6.0) as u32;
    let cpus = 1 + (uniform() * 4.0) as u32;
    let work_ns = 3e5 * 30f64.powf(uniform());
    let used = f64::from(cpus.min(threads)) * (0.1 + 0.5 * uniform());
    let every_ns = work_ns * f64::from(threads) / used;
    let mut pieces = Vec::new();
    for thread in 0..threads {
        let mut at = uniform() * every_ns;
        while at < 6e9 {
            let normal = uniform() + uniform() + uniform() + uniform() - 2.0;
            let tail = 0.5 * f64::exp(2.0 * normal);
            let exponential = -f64::ln(1.0 - uniform());
            let (work, wait) = match seed % 3 {
                0 => (1.0, 1.0),
                1 => (tail, exponential),
                _ if ((at / 0.5e9) as u64).is_multiple_of(5) => (tail, exponential / 2.5),
                _ => (tail, exponential / 0.7),
            };
            pieces.push((at as Ns, (work * work_ns) as Ns + 1000, thread));
            at += wait * every_ns;
        }
    }
    (Usage { threads, ..usage(6000 * MS, &pieces) }, cpus)
}

/// Measured with 300 loads of 10 s: p99 is off by 1.0% in the middle and by less than 5.1% in nine
/// of ten, throttled periods by 0.0 and 0.4 points, and at worst by 3.9. p99 at worst by 49%: of
/// five threads on one CPU without throttling, where their order decides.
#[test]
fn the_lean_replay_is_near_the_simulator() {
    let stop = AtomicBool::new(false);
    let (mut p99_off, mut share_off) = (Vec::new(), Vec::new());
    let median =
        |of: &dyn Fn(u32) -> f64| Range::over(&(0..4).map(of).collect::<Vec<f64>>()).median;
    for seed in 0..120 {
        let (usage, cpus) = random_load(seed);
        let machine = cpus_like(&reveille_machine::load("skx-2s20c").unwrap(), cpus).unwrap();
        let stage = Stage { machine, ..stage(&stop) };
        let mut random = Random::new(1000 + seed);
        let millicpus = (usage.mean_cpus() * (1100 + random.below(1500)) as f64) as u64;
        let period_ns = [5, 10, 20, 50, 100, 200][random.below(6) as usize] * MS;
        let burst = random.below(5) * 25;
        let Some(limits) = limits_of(millicpus, period_ns, burst) else { continue };
        let load = Load::new(&[&usage]);
        let figures = (0..4).map(|index| {
            let outcome = stage.replay(&load, Some(limits), Phase::of_grid(index, 4)).unwrap();
            stage.figures(&load, &outcome, 0.0)
        });
        let figures: Vec<_> = figures.collect();
        let (cpus, tick_ns) = (cpus as usize, stage.tick_ns());
        let lean = Lean { cpus, slice_ns: stage.slice_ns, tick_ns, more_ns: 0 };
        let lean_load = LeanLoad::new(&load.program.arrivals.of_task, load.span_ns());
        let outcomes: Vec<LeanOutcome> = (0..4)
            .map(|index| {
                let phase = Phase::of_grid(index, 4);
                let (phase_ns, from_ns) = (phase.of_period(period_ns), stage.begin_ns(phase));
                let span = LeanSpan { begin_ns: 2000 * MS, end_ns: 9000 * MS, phase_ns, from_ns };
                lean.replay(&lean_load, &limits, span).unwrap()
            })
            .collect();
        let p99 = median(&|index| figures[index as usize].p99_ns);
        let lean_p99 = median(&|index| {
            quantile_of(&mut outcomes[index as usize].latencies.clone(), 0.99) as f64
        });
        p99_off.push((lean_p99 / p99 - 1.0).abs());
        let share = median(&|index| figures[index as usize].throttled_share);
        let lean_share = median(&|index| {
            let LeanOutcome { nr_throttled, nr_periods, .. } = outcomes[index as usize];
            nr_throttled as f64 / nr_periods.max(1) as f64
        });
        share_off.push((lean_share - share).abs());
    }
    let at = |off: &mut Vec<f64>, share: f64| {
        off.sort_by(f64::total_cmp);
        off[(off.len() as f64 * share) as usize]
    };
    assert!(p99_off.len() > 90);
    assert!(at(&mut p99_off, 0.5) < 0.02 && at(&mut p99_off, 0.9) < 0.15, "{p99_off:?}");
    assert!(at(&mut share_off, 0.5) < 0.002 && at(&mut share_off, 0.9) < 0.01, "{share_off:?}");
    assert!(at(&mut share_off, 0.999) < 0.1, "{share_off:?}");
}

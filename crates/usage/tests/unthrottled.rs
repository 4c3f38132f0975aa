//! A known load under a limit, recorded as it looks then: is the load found again?

mod limited;

use limited::{MS, load, recorded};
use reveille_measure::Random;
use reveille_usage::{Demand, Ns, Origin, Usage};

fn quantile(usage: &[Demand], quantile: f64) -> f64 {
    let mut times: Vec<Ns> = usage.iter().map(|demand| demand.cpu_ns).collect();
    times.sort_unstable();
    times[(quantile * times.len() as f64) as usize] as f64
}

#[test]
fn requests_that_queued_while_throttled_are_told_apart() {
    for (seed, every_ms, mean_ms, quota_ms) in
        [(1, 50.0, 8.0, 35), (2, 50.0, 8.0, 32), (3, 20.0, 3.0, 28), (4, 200.0, 30.0, 80)]
    {
        let load = load(seed, every_ms, mean_ms);
        let (traced, sampled) = recorded(&load, quota_ms * MS, 100 * MS);
        for recording in [traced, sampled] {
            let share = recording.throttling().unwrap().share().unwrap();
            assert!((0.02..0.7).contains(&share), "{share}");
            let found = recording.unthrottled(seed, true).unwrap();
            let what = format!(
                "{} {seed}: {} of {} pieces taken for {}, {} requests found of {}; p99 {:.1} ms \
                 ({:.1} recorded) of {:.1}",
                recording.name,
                found.held,
                found.pieces,
                found.parts,
                found.usage.demands.len(),
                load.len(),
                quantile(&found.usage.demands, 0.99) / 1e6,
                quantile(&recording.demands, 0.99) / 1e6,
                quantile(&load, 0.99) / 1e6,
            );
            eprintln!("{what}");
            // All CPU time stays, to the nanosecond.
            let sum = |usage: &Usage| usage.demands.iter().map(|d| d.cpu_ns).sum::<Ns>();
            assert_eq!(sum(&found.usage), sum(&recording), "{what}");
            found.usage.validate().unwrap();
            let times = found.usage.demands.len() as f64 / load.len() as f64;
            let before = recording.demands.len() as f64 / load.len() as f64;
            assert!((0.9..1.1).contains(&times) && times > before, "{what}");
            let p99 = quantile(&found.usage.demands, 0.99) / quantile(&load, 0.99);
            assert!((0.8..1.25).contains(&p99), "{what}");
        }
    }
}

/// p99 of the latency of one thread's demands without a limit.
fn latency(demands: &[Demand]) -> f64 {
    let mut free_ns = 0;
    let took = demands.iter().map(|demand| {
        free_ns = free_ns.max(demand.at_ns) + demand.cpu_ns;
        Demand { cpu_ns: free_ns - demand.at_ns, ..*demand }
    });
    quantile(&took.collect::<Vec<Demand>>(), 0.99)
}

/// A minute of requests of one thread, `size` being multiples of their mean work, and their pieces.
fn queues(
    seed: u64,
    (every_ms, mean_ms): (f64, f64),
    rate: fn(f64) -> f64,
    size: fn(&mut Random) -> f64,
) -> (Vec<Demand>, Usage) {
    let mut random = Random::new(seed);
    let (mut requests, mut pieces) = (Vec::new(), Vec::<Demand>::new());
    let (mut at_ms, mut free_ns) = (0.0, 0);
    loop {
        at_ms += random.exponential(every_ms) / rate(at_ms);
        let at_ns = (at_ms * MS as f64) as Ns;
        if at_ms >= 60_000.0 {
            break;
        }
        let cpu_ns = (mean_ms * size(&mut random) * MS as f64) as Ns + 1;
        let request = Demand { at_ns, cpu_ns, thread: 0, done_ns: None };
        match pieces.last_mut() {
            Some(piece) if at_ns <= free_ns => piece.cpu_ns += cpu_ns,
            _ => pieces.push(request),
        }
        free_ns = free_ns.max(at_ns) + cpu_ns;
        requests.push(request);
    }
    let origin = Origin::Traced;
    let span_ns = 60_000 * MS;
    (requests, Usage { origin, demands: pieces, span_ns, threads: 1, ..Usage::idle("queues") })
}

/// The table of docs/plan.md.
#[test]
fn requests_that_queued_behind_each_other_are_told_apart() {
    let steady = |_| 1.0;
    let day = |at_ms: f64| 1.0 + 0.8 * (at_ms * std::f64::consts::TAU / 10_000.0).sin();
    let exponential = |random: &mut Random| random.exponential(1.0);
    let lognormal = |random: &mut Random| {
        let angle = std::f64::consts::TAU * random.uniform();
        let normal = (-2.0 * random.uniform().ln()).sqrt() * angle.cos();
        (1.2 * normal - 0.72).exp()
    };
    let two_sizes = |random: &mut Random| if random.uniform() < 0.05 { 50.0 } else { 1.0 };
    type Kind = (&'static str, (f64, f64), fn(f64) -> f64, fn(&mut Random) -> f64);
    let kinds: [Kind; 5] = [
        ("exponential", (20.0, 5.0), steady, exponential),
        ("exponential by day", (20.0, 5.0), day, exponential),
        ("equal", (20.0, 5.0), steady, |_| 1.0),
        ("lognormal", (20.0, 4.0), steady, lognormal),
        ("two sizes", (25.0, 1.0), steady, two_sizes),
    ];
    for (kind, times, rate, size) in kinds {
        let (load, recorded) = queues(1, times, rate, size);
        let found = recorded.queued(1);
        found.validate().unwrap();
        let n = |usage: &[Demand]| usage.len() as f64 / load.len() as f64;
        let p99 = |usage: &[Demand]| quantile(usage, 0.99) / 1e6;
        let what = format!(
            "{kind}: {} requests, {} pieces, {} found; p99 of their work {:.1} ms, {:.1}, {:.1}",
            load.len(),
            recorded.demands.len(),
            found.demands.len(),
            p99(&load),
            p99(&recorded.demands),
            p99(&found.demands)
        );
        eprintln!("{what}");
        let [true_ms, found_ms, piece_ms] =
            [&load, &found.demands, &recorded.demands].map(|demands| latency(demands) / 1e6);
        eprintln!("  p99 of latency {true_ms:.1} ms, pieces {piece_ms:.1}, found {found_ms:.1}");
        // The family's tails are light; goals hold for the pieces as well.
        assert!((0.65..1.25).contains(&(found_ms / true_ms)), "{what}");
        assert!(found_ms.max(piece_ms) > 0.75 * true_ms, "{what}");
        assert!((0.95..1.05).contains(&n(&found.demands)), "{what}");
        assert!((0.75..1.35).contains(&(p99(&found.demands) / p99(&load))), "{what}");
    }
    // By the clock, each of the same size: nothing queued.
    let clock = |n: Ns| Demand { at_ns: 10 * MS * n, cpu_ns: 3 * MS, thread: 0, done_ns: None };
    let demands: Vec<Demand> = (0..2000).map(clock).collect();
    let usage = Usage { demands, span_ns: 20_000 * MS, threads: 1, ..Usage::idle("clock") };
    assert_eq!(usage.queued(1).demands.len(), 2000);
}

#[test]
fn another_seed_is_another_recording() {
    let (traced, _) = recorded(&load(1, 50.0, 8.0), 35 * MS, 100 * MS);
    assert_eq!(traced.unthrottled(1, false), traced.unthrottled(1, false));
    assert_ne!(traced.unthrottled(1, false), traced.unthrottled(2, false));
}

#[test]
fn what_cannot_be_inferred_is_refused() {
    // More than the quota is asked for.
    let (traced, sampled) = recorded(&load(1, 50.0, 8.0), 14 * MS, 100 * MS);
    for recording in [traced, sampled] {
        let why = recording.unthrottled(1, false).unwrap_err();
        assert!(why.contains("of its quota"), "{why}");
    }
    // Throttled at every request.
    let (traced, _) = recorded(&load(1, 1000.0, 200.0), 30 * MS, 100 * MS);
    let why = traced.unthrottled(1, false).unwrap_err();
    assert!(why.contains("untouched"), "{why}");
    // Half of the time.
    let (_, sampled) = recorded(&load(2, 50.0, 8.0), 20 * MS, 100 * MS);
    let why = sampled.unthrottled(1, false).unwrap_err();
    assert!(why.contains("of its CPU time"), "{why}");
}

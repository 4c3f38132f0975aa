//! A known load under a limit, recorded as it looks then: is the load found again?

mod limited;

use limited::{MS, load, recorded};
use reveille_usage::{Demand, Ns, Usage};

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
            let found = recording.unthrottled(seed).unwrap();
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
            assert!((0.75..1.15).contains(&times) && times > before, "{what}");
            let p99 = quantile(&found.usage.demands, 0.99) / quantile(&load, 0.99);
            assert!((0.75..1.45).contains(&p99), "{what}");
        }
    }
}

#[test]
fn another_seed_is_another_recording() {
    let (traced, _) = recorded(&load(1, 50.0, 8.0), 35 * MS, 100 * MS);
    assert_eq!(traced.unthrottled(1), traced.unthrottled(1));
    assert_ne!(traced.unthrottled(1), traced.unthrottled(2));
}

#[test]
fn what_cannot_be_inferred_is_refused() {
    // More than the quota is asked for.
    let (traced, sampled) = recorded(&load(1, 50.0, 8.0), 14 * MS, 100 * MS);
    for recording in [traced, sampled] {
        let why = recording.unthrottled(1).unwrap_err();
        assert!(why.contains("of its quota"), "{why}");
    }
    // Throttled at every request.
    let (traced, _) = recorded(&load(1, 1000.0, 200.0), 30 * MS, 100 * MS);
    let why = traced.unthrottled(1).unwrap_err();
    assert!(why.contains("untouched"), "{why}");
    // Half of the time.
    let (_, sampled) = recorded(&load(2, 50.0, 8.0), 20 * MS, 100 * MS);
    let why = sampled.unthrottled(1).unwrap_err();
    assert!(why.contains("of its CPU time"), "{why}");
}

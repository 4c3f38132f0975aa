//! A known load, and its recording under a limit.

use reveille_measure::Random;
use reveille_policy::BandwidthLimits;
use reveille_usage::{Charging, Demand, Ns, Origin, Sample, Usage};

pub const MS: Ns = 1_000_000;
pub const SPAN_NS: Ns = 120_000 * MS;

/// Poisson arrivals and exponential CPU times of one thread.
pub fn load(seed: u64, every_ms: f64, mean_ms: f64) -> Vec<Demand> {
    let mut random = Random::new(seed);
    let mut demands = Vec::new();
    let mut at_ms = 0.0;
    loop {
        at_ms += random.exponential(every_ms);
        let cpu_ns = (random.exponential(mean_ms) * MS as f64) as Ns + 1;
        let at_ns = (at_ms * MS as f64) as Ns;
        if at_ns >= SPAN_NS {
            return demands;
        }
        demands.push(Demand { at_ns, cpu_ns, thread: 0, done_ns: None });
    }
}

/// The load under a limit, as a thread that never sleeps while requests wait shows it: in order
/// of wakeups, or as samples of 1 ms.
pub fn recorded(load: &[Demand], quota_ns: Ns, period_ns: Ns) -> (Usage, Usage) {
    const STEP_NS: Ns = MS / 10;
    let (mut left_ns, mut ready_ns, mut next) = (quota_ns, 0, 0);
    let mut pieces: Vec<Demand> = Vec::new();
    let mut samples: Vec<Sample> = Vec::new();
    let mut could_run: Vec<u32> = Vec::new();
    let mut now = Sample::default();
    let (mut busy, mut throttled) = (false, false);
    for at_ns in (0..SPAN_NS).step_by(STEP_NS as usize) {
        if at_ns.is_multiple_of(period_ns) {
            now.nr_periods += 1;
            left_ns = quota_ns;
            throttled = false;
        }
        while load.get(next).is_some_and(|demand| demand.at_ns <= at_ns) {
            if !busy {
                let piece = Demand { at_ns: load[next].at_ns, cpu_ns: 0, thread: 0, done_ns: None };
                pieces.push(piece);
                busy = true;
            }
            ready_ns += load[next].cpu_ns;
            next += 1;
        }
        if ready_ns > 0 && left_ns < STEP_NS {
            now.nr_throttled += u64::from(!throttled);
            throttled = true;
            now.throttled_ns += STEP_NS;
        } else if ready_ns > 0 {
            let ran_ns = ready_ns.min(STEP_NS);
            (ready_ns, left_ns) = (ready_ns - ran_ns, left_ns - ran_ns);
            now.runtime_ns += ran_ns;
            let piece = pieces.last_mut().expect("it is busy");
            piece.cpu_ns += ran_ns;
            if ready_ns == 0 {
                (busy, piece.done_ns) = (false, Some(at_ns + ran_ns));
            }
        }
        if (at_ns + STEP_NS).is_multiple_of(MS) {
            samples.push(Sample { at_ns: at_ns + STEP_NS, ..now });
            could_run.push(u32::from(busy));
            now.runtime_ns = 0;
        }
    }
    let limits = Some(BandwidthLimits { quota_ns: Some(quota_ns), period_ns, burst_ns: 0 });
    let sampled = Usage::from_samples("sampled", samples, limits, Charging::default()).unwrap();
    // A tracer counts who could run, and reads the counters of throttling every 100 ms.
    let mut samples = sampled.samples.clone();
    let mut read = Sample::default();
    for (number, sample) in samples.iter_mut().enumerate() {
        if (number + 1).is_multiple_of(100) {
            read = *sample;
        }
        let counters = Sample { at_ns: sample.at_ns, runtime_ns: sample.runtime_ns, ..read };
        *sample = Sample { runnable: Some(could_run[number]), ..counters };
    }
    let traced = Usage {
        name: "traced".into(),
        origin: Origin::Traced,
        demands: pieces,
        samples,
        ..sampled.clone()
    };
    (traced, sampled)
}

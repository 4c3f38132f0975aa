//! Turns periodically read counters into demands: an uninterrupted busy stretch is one demand.

use reveille_place::Mistake;
use reveille_policy::BandwidthLimits;

use crate::valid::MAX_THREADS;
use crate::{Charging, Demand, InputError, Ns, Origin, Sample, Usage};

impl Usage {
    /// A recording from samples of a group, whose counters start at 0.
    ///
    /// The kernel charges CPU time after its use, in lumps, so a sample can hold more than was used
    /// in it. What fits no thread there is moved to the samples before.
    ///
    /// A counter of CPU time does not distinguish threads, so the time is laid out in layers:
    /// thread k is busy in a sample of length dt for min(dt, max(0, runtime - k·dt)). Consecutive
    /// samples in which a layer is busy form one demand, even across throttling, which is a gap of
    /// which throttled time covers at least half. A demand begins as late as its first sample
    /// allows if it continues in the next, else with its sample; its completion is unknown.
    ///
    /// # Errors
    /// [`InputError::File`], by the recording's name, if there are no samples or they break the
    /// rules of [`Usage::validate`].
    pub fn from_samples(
        name: &str,
        samples: Vec<Sample>,
        limits: Option<BandwidthLimits>,
        charging: Charging,
    ) -> Result<Usage, InputError> {
        let span_ns = samples.last().map_or(0, |sample| sample.at_ns);
        let resolution_ns = resolution(&samples).max(charging.step_ns);
        let mut usage = Usage {
            origin: Origin::Sampled { resolution_ns },
            span_ns,
            threads: 0,
            samples,
            limits,
            ..Usage::idle(name)
        };
        let mut mistake = if span_ns == 0 {
            Some(Mistake::new("has no samples", "record for longer"))
        } else {
            usage.first_mistake().or_else(|| too_parallel(&usage.samples))
        };
        let mut before_ns = 0;
        if mistake.is_none() {
            before_ns = settle(&mut usage.samples, charging);
            mistake = usage.first_mistake();
        }
        if let Some(mistake) = mistake {
            return Err(mistake.in_file(name));
        }
        let mut bridged = 0;
        for layer in 0.. {
            let demands = layer_of(&usage.samples, layer, before_ns, &mut bridged);
            if demands.is_empty() {
                break;
            }
            usage.threads = layer + 1;
            usage.demands.extend(demands);
        }
        usage.demands.sort_by_key(|demand| demand.at_ns);
        let last = usage.samples.last();
        let throttled = last.map_or(0, |sample| sample.nr_throttled);
        if throttled > 0 {
            usage.warnings.push(format!(
                "It was throttled in {throttled} of {} periods: work that came meanwhile is seen \
                 late or as part of other work ({bridged} pieces were put together), so latencies \
                 without the limit are uncertain. Record without a limit if you can.",
                last.map_or(0, |sample| sample.nr_periods)
            ));
        }
        Ok(usage)
    }
}

/// Median time between two samples.
fn resolution(samples: &[Sample]) -> Ns {
    let begins = [0].into_iter().chain(samples.iter().map(|sample| sample.at_ns));
    let mut steps: Vec<Ns> =
        samples.iter().zip(begins).map(|(s, begin)| s.at_ns.saturating_sub(begin)).collect();
    steps.sort_unstable();
    steps.get(steps.len() / 2).map_or(1, |&step| step.max(1))
}

fn too_parallel(samples: &[Sample]) -> Option<Mistake> {
    let begins = [0].into_iter().chain(samples.iter().map(|sample| sample.at_ns));
    let most = u128::from(MAX_THREADS);
    let too_much = |&(number, (sample, begin)): &(usize, (&Sample, Ns))| {
        u128::from(sample.runtime_ns) > most * u128::from(sample.at_ns - begin)
            && (number > 0 || sample.runtime_ns > 0)
    };
    let (number, (sample, _)) = samples.iter().zip(begins).enumerate().find(too_much)?;
    let problem = format!(
        "sample {number} has {} ns of CPU time, more than {most} CPUs can give",
        sample.runtime_ns
    );
    Some(Mistake::new(problem, "correct what wrote it: run times count from the sample before"))
}

/// Moves charged time to where it can have been used. In a sample of length dt, n threads use at
/// most n·dt and are charged at most n·(dt + step), so the least such n are taken to run, and what
/// is beyond n·dt was used before. Returns by how much the first sample is to be taken for longer:
/// what its threads used before the start is charged in it.
fn settle(samples: &mut [Sample], charging: Charging) -> Ns {
    let most = most_running(samples, charging);
    let mut owed_ns: Ns = 0;
    for index in (0..samples.len()).rev() {
        let length = length(samples, index);
        let sample = &mut samples[index];
        let total = sample.runtime_ns.saturating_add(owed_ns);
        let running = total.div_ceil(length.saturating_add(charging.step_ns)).clamp(1, most);
        if index == 0 {
            sample.runtime_ns = total;
            return total.div_ceil(running).saturating_sub(length);
        }
        sample.runtime_ns = total.min(length.saturating_mul(running));
        owed_ns = total - sample.runtime_ns;
    }
    0
}

/// The least number of threads, of those that can run at once, that no sequence of samples is beyond.
fn most_running(samples: &[Sample], charging: Charging) -> Ns {
    let suffice = |n: Ns| {
        let mut owed_ns: Ns = 0;
        (0..samples.len()).rev().all(|index| {
            let used = length(samples, index).saturating_mul(n);
            owed_ns = owed_ns.saturating_add(samples[index].runtime_ns).saturating_sub(used);
            owed_ns <= charging.step_ns.saturating_mul(n)
        })
    };
    let (mut least, mut most) = (1, charging.cpus.unwrap_or(MAX_THREADS).max(1).into());
    while least < most {
        let middle = Ns::midpoint(least, most);
        if suffice(middle) { most = middle } else { least = middle + 1 }
    }
    most
}

/// Length of a sample; samples are in order.
fn length(samples: &[Sample], index: usize) -> Ns {
    let begin = index.checked_sub(1).map_or(0, |before| samples[before].at_ns);
    (samples[index].at_ns - begin).max(1)
}

/// The demands of one layer, for a first sample that is longer by `before_ns`; `bridged` counts gaps
/// joined across throttling.
fn layer_of(samples: &[Sample], layer: u32, before_ns: Ns, bridged: &mut usize) -> Vec<Demand> {
    let mut demands: Vec<Demand> = Vec::new();
    // End of the last busy sample, and the throttled time up to then.
    let mut busy_until: Option<(Ns, Ns)> = None;
    let mut begin = 0;
    for (index, sample) in samples.iter().enumerate() {
        let length = sample.at_ns - begin + if index == 0 { before_ns } else { 0 };
        let below = length.saturating_mul(Ns::from(layer));
        let busy = sample.runtime_ns.saturating_sub(below).min(length);
        if busy > 0 {
            let goes_on = busy_until.is_some_and(|(until, throttled)| {
                let (idle, waited) = (begin - until, sample.throttled_ns - throttled);
                let parted = idle > 0 && waited > 0 && waited >= idle / 2;
                *bridged += usize::from(parted);
                idle == 0 || parted
            });
            match demands.last_mut() {
                Some(demand) if goes_on => demand.cpu_ns += busy,
                _ => {
                    let next = samples.get(index + 1);
                    let next_length = next.map_or(0, |next| next.at_ns - sample.at_ns);
                    let below = next_length.saturating_mul(Ns::from(layer));
                    let into_next = next.is_some_and(|next| next.runtime_ns > below);
                    let at_ns = if into_next { sample.at_ns.saturating_sub(busy) } else { begin };
                    demands.push(Demand { at_ns, cpu_ns: busy, thread: layer, done_ns: None });
                }
            }
            busy_until = Some((sample.at_ns, sample.throttled_ns));
        }
        begin = sample.at_ns;
    }
    demands
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: Ns = 1_000_000;

    fn samples(rows: &[(Ns, Ns, Ns)]) -> Vec<Sample> {
        let sample = |&(at_ms, runtime_us, throttled_ms): &(Ns, Ns, Ns)| Sample {
            at_ns: at_ms * MS,
            runtime_ns: runtime_us * 1_000,
            runnable: None,
            nr_periods: at_ms / 100,
            nr_throttled: u64::from(throttled_ms > 0),
            throttled_ns: throttled_ms * MS,
        };
        rows.iter().map(sample).collect()
    }

    fn demand(at_us: Ns, cpu_us: Ns, thread: u32) -> Demand {
        Demand { at_ns: at_us * 1_000, cpu_ns: cpu_us * 1_000, thread, done_ns: None }
    }

    #[test]
    fn layers_are_threads_and_breaks_part_their_work() {
        let rows =
            samples(&[(1, 0, 0), (2, 400, 0), (3, 1000, 0), (4, 2300, 0), (5, 0, 0), (6, 100, 0)]);
        let usage = Usage::from_samples("app", rows, None, Charging::default()).unwrap();
        assert_eq!(usage.origin, Origin::Sampled { resolution_ns: MS });
        assert_eq!((usage.threads, usage.span_ns), (3, 6 * MS));
        assert_eq!(
            usage.demands,
            [
                // Busy for the end of the second ms, and all of the next two.
                demand(1600, 2400, 0),
                demand(3000, 1000, 1),
                demand(3000, 300, 2),
                demand(5000, 100, 0),
            ]
        );
        assert!(usage.warnings.is_empty());
    }

    #[test]
    fn a_break_that_is_throttling_parts_nothing() {
        let rows =
            samples(&[(50, 50_000, 0), (100, 0, 0), (101, 1000, 49), (160, 0, 49), (161, 9, 49)]);
        let usage = Usage::from_samples("app", rows, None, Charging::default()).unwrap();
        assert_eq!(usage.demands, [demand(0, 51_000, 0), demand(160_000, 9, 0)]);
        assert!(usage.warnings[0].contains("throttled in 1 of 1"), "{:?}", usage.warnings);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let error = |rows: &[(Ns, Ns, Ns)]| {
            Usage::from_samples("app", samples(rows), None, Charging::default())
                .unwrap_err()
                .to_string()
        };
        assert_eq!(error(&[]), "app: has no samples");
        assert!(error(&[(2, 0, 0), (2, 0, 0)]).contains("not after"));
        assert!(error(&[(1, 0, 5), (2, 0, 4)]).contains("below that"));
        assert!(error(&[(1, 66_000_000, 0)]).contains("more than 65536 CPUs"));
    }

    /// What a counter shows of threads that are busy during `busy`, each charged every `step` and at
    /// the end of its work, read at `reads`; all in µs.
    fn charged(threads: &[(u64, Vec<(u64, u64)>)], step: u64, reads: &[u64]) -> Vec<Sample> {
        let shown = |read: u64| -> u64 {
            let one = |(phase, busy): &(u64, Vec<(u64, u64)>)| {
                let tick = read.checked_sub(*phase).map_or(0, |since| since / step * step + phase);
                let seen = |&(from, to): &(u64, u64)| {
                    if to <= read { to - from } else { tick.clamp(from, to) - from }
                };
                busy.iter().map(seen).sum::<u64>()
            };
            threads.iter().map(one).sum()
        };
        let mut before = 0;
        let sample = |&at: &u64| {
            let (now, last) = (shown(at), before);
            before = now;
            Sample { at_ns: at * 1000, runtime_ns: (now - last) * 1000, ..Sample::default() }
        };
        reads.iter().map(sample).collect()
    }

    proptest! {
        #[test]
        fn threads_that_are_charged_in_ticks_are_no_more_than_they_are(
            steps in prop::collection::vec(50..9_000u64, 20..200),
            phases in prop::collection::vec(0..4_000u64, 1..4),
            stretches in prop::collection::vec((0..40_000u64, 1..60_000u64), 1..20),
            cpus in 1..4u32,
        ) {
            let mut at = 0;
            let reads: Vec<u64> = steps.iter().map(|step| { at += step; at }).collect();
            let mut at = 0;
            let busy: Vec<(u64, u64)> = stretches.iter().map(|(idle, busy)| {
                let from = at + idle;
                at = from + busy;
                (from, at)
            }).collect();
            let threads: Vec<_> = phases.iter().map(|&phase| (phase, busy.clone())).collect();
            let samples = charged(&threads, 4_000, &reads);
            let total: Ns = samples.iter().map(|sample| sample.runtime_ns).sum();
            for cap in [None, Some(cpus)] {
                let charging = Charging { step_ns: 4 * MS, cpus: cap };
                let usage = Usage::from_samples("app", samples.clone(), None, charging).unwrap();
                usage.validate().unwrap();
                prop_assert_eq!(usage.demands.iter().map(|d| d.cpu_ns).sum::<Ns>(), total);
                prop_assert_eq!(usage.samples.iter().map(|s| s.runtime_ns).sum::<Ns>(), total);
                let most = cap.map_or(threads.len(), |cap| threads.len().min(cap as usize));
                prop_assert!(usage.threads as usize <= most, "{} of {most}", usage.threads);
            }
        }

        #[test]
        fn no_time_is_lost(rows in prop::collection::vec((1..5u64, 0..20_000u64, 0..3u64), 1..80)) {
            let (mut at_ms, mut throttled) = (0, 0);
            let rows: Vec<_> = rows.into_iter().map(|(step, runtime_us, more)| {
                at_ms += step;
                throttled += more;
                (at_ms, runtime_us, throttled)
            }).collect();
            let used: Ns = rows.iter().map(|row| row.1 * 1_000).sum();
            let usage = Usage::from_samples("app", samples(&rows), None, Charging::default()).unwrap();
            usage.validate().unwrap();
            prop_assert_eq!(usage.demands.iter().map(|d| d.cpu_ns).sum::<Ns>(), used);
        }
    }
}

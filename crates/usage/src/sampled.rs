//! Turns periodically read counters into demands: an uninterrupted busy stretch is one demand.

use reveille_place::Mistake;
use reveille_policy::BandwidthLimits;

use crate::{Demand, InputError, Ns, Origin, Sample, Usage};

impl Usage {
    /// A recording from samples of a group, whose counters start at 0.
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
    ) -> Result<Usage, InputError> {
        let span_ns = samples.last().map_or(0, |sample| sample.at_ns);
        let mut usage = Usage {
            origin: Origin::Sampled { resolution_ns: resolution(&samples) },
            span_ns,
            threads: 0,
            samples,
            limits,
            ..Usage::idle(name)
        };
        let mistake = if span_ns == 0 {
            Some(Mistake::new("has no samples", "record for longer"))
        } else {
            usage.first_mistake().or_else(|| too_parallel(&usage.samples))
        };
        if let Some(mistake) = mistake {
            return Err(mistake.in_file(name));
        }
        let mut bridged = 0;
        for layer in 0.. {
            let demands = layer_of(&usage.samples, layer, &mut bridged);
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
    let most = u128::from(crate::MAX_THREADS);
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

/// The demands of one layer; `bridged` counts gaps joined across throttling.
fn layer_of(samples: &[Sample], layer: u32, bridged: &mut usize) -> Vec<Demand> {
    let mut demands: Vec<Demand> = Vec::new();
    // End of the last busy sample, and the throttled time up to then.
    let mut busy_until: Option<(Ns, Ns)> = None;
    let mut begin = 0;
    for (index, sample) in samples.iter().enumerate() {
        let length = sample.at_ns - begin;
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
                    let at_ns = if into_next { sample.at_ns - busy } else { begin };
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
        let usage = Usage::from_samples("app", rows, None).unwrap();
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
        let usage = Usage::from_samples("app", rows, None).unwrap();
        assert_eq!(usage.demands, [demand(0, 51_000, 0), demand(160_000, 9, 0)]);
        assert!(usage.warnings[0].contains("throttled in 1 of 1"), "{:?}", usage.warnings);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let error = |rows: &[(Ns, Ns, Ns)]| {
            Usage::from_samples("app", samples(rows), None).unwrap_err().to_string()
        };
        assert_eq!(error(&[]), "app: has no samples");
        assert!(error(&[(2, 0, 0), (2, 0, 0)]).contains("not after"));
        assert!(error(&[(1, 0, 5), (2, 0, 4)]).contains("below that"));
        assert!(error(&[(1, 66_000_000, 0)]).contains("more than 65536 CPUs"));
    }

    proptest! {
        #[test]
        fn no_time_is_lost(rows in prop::collection::vec((1..5u64, 0..20_000u64, 0..3u64), 1..80)) {
            let (mut at_ms, mut throttled) = (0, 0);
            let rows: Vec<_> = rows.into_iter().map(|(step, runtime_us, more)| {
                at_ms += step;
                throttled += more;
                (at_ms, runtime_us, throttled)
            }).collect();
            let used: Ns = rows.iter().map(|row| row.1 * 1_000).sum();
            let usage = Usage::from_samples("app", samples(&rows), None).unwrap();
            usage.validate().unwrap();
            prop_assert_eq!(usage.demands.iter().map(|d| d.cpu_ns).sum::<Ns>(), used);
        }
    }
}

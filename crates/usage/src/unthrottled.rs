//! Takes stretches of work apart into the requests that queued in them.
//!
//! A thread that finds the next request when it has finished one does not sleep in between, so a
//! recording shows both as one piece of work. In a p99 over pieces, a queue of many requests counts as
//! one, and rare queues disappear. The same happens while a group is throttled: requests that arrive
//! meanwhile are served back to back afterwards.
//!
//! The number of requests in a piece with CPU time `c` that took, with waits, the time `l` follows
//! from sizes and rates:
//!
//! - Sizes are gamma-distributed with the mean and variance of all pieces; arrivals are Poisson
//!   with each thread's rate, more where more CPU time is used in the seconds around. All are
//!   re-estimated from the inferred requests until they converge ([`ROUNDS`]).
//! - The number of requests n is drawn with weights Poisson(n − 1; rate · l) / n · Gamma(c; n ·
//!   shape, scale), so a single long request stays one where that is likelier. 1 / n is the share
//!   of orders of arrival in which the queue never empties before the last (Takács' ballot theorem,
//!   exact for a busy period without waits).
//! - Sizes of the requests are drawn from all pieces and scaled to sum to `c`, which was counted
//!   exactly.
//! - The first request arrives when the piece began, the others at random within it, such that each
//!   is there when the one before is done. When that was, the samples tell: while throttled nothing
//!   ran, so what ran before and after had to be there.

use reveille_measure::Random;
use statrs::function::gamma::ln_gamma;

use crate::{Demand, Ns, Origin, Sample, Usage};

/// Iterations of the estimate; fewer of more pieces than [`PIECES`].
const ROUNDS: usize = 30;
const PIECES: usize = 600_000;
/// The rate in a second is at most so many times the mean, and as small a part of it.
const LOCALLY: f64 = 4.0;
const SECOND_NS: Ns = 1_000_000_000;
/// With fewer unaffected pieces, their sizes say too little.
const FEWEST: usize = 50;
/// Measured on real groups: with a tenth to a third of the CPU time affected by throttling, the
/// quota for a p99 goal came out within 11%; with half or more, a quarter to a third too low.
const MOST_HELD: f64 = 0.45;
/// Above this share of its quota, a group's demand is unbounded: the recording cannot tell.
const SATURATED: f64 = 0.9;
/// Numbers of requests with a log-likelihood so far below the largest are left out.
const NEGLIGIBLE: f64 = 20.0;
/// Draws of arrivals that leave the thread idle within the piece are repeated so often at most.
const TRIES: usize = 64;
/// Maximum number of requests in a piece.
const MOST_PARTS: usize = 256;

/// A recording as it might have been without its limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Unthrottled {
    /// The recording, without samples; `limits` are those that were in force.
    pub usage: Usage,
    /// Pieces of work that throttling affected.
    pub held: usize,
    /// Requests inferred from those pieces.
    pub parts: usize,
    /// Number of pieces before.
    pub pieces: usize,
    /// Share of CPU time in affected pieces.
    pub held_share: f64,
}

/// A stretch of the recording.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Interval {
    begin_ns: Ns,
    end_ns: Ns,
}

/// A piece of work that throttling affected.
#[derive(Clone, Copy, Debug)]
struct Held {
    demand: Demand,
    /// From the earliest possible arrival of any part to the end of its execution.
    during: Interval,
}

impl Usage {
    /// The recording with its pieces taken apart into the requests that may have queued in them, by
    /// the rules above. Each seed gives another, equally likely one.
    pub fn queued(&self, seed: u64) -> Usage {
        let during = |d: &Demand| Interval { begin_ns: d.at_ns, end_ns: d.at_ns + d.cpu_ns.max(1) };
        let held = |d: &Demand| Held { demand: *d, during: during(d) };
        let held: Vec<Held> = self.demands.iter().map(held).collect();
        let mut demands = self.requests(&[], &held, seed).concat();
        demands.sort_by_key(|demand| demand.at_ns);
        Usage { demands, ..self.clone() }
    }

    /// The recording as it might have been without throttling, by the rules above. Each seed gives
    /// another, equally likely one. `queued`: requests may also have queued in pieces that throttling
    /// did not affect.
    ///
    /// # Errors
    /// The reason, to follow "the recording cannot tell what it would have used:".
    pub fn unthrottled(&self, seed: u64, queued: bool) -> Result<Unthrottled, String> {
        if let Origin::Averaged { .. } = self.origin {
            return Err("averages hold no single piece of work".into());
        }
        let quota_cpus = self.limits.and_then(|limits| limits.cpus());
        if let Some(cpus) = quota_cpus
            && self.mean_cpus() > SATURATED * cpus
        {
            return Err(format!(
                "it used {:.0}% of its quota, and may have asked for any amount more",
                100.0 * self.mean_cpus() / cpus
            ));
        }
        let throttled = throttled(&self.samples);
        let (mut free, mut held) = self.told_apart(&throttled);
        if free.len() < FEWEST {
            return Err(format!(
                "throttling touched all but {} of its {} pieces of work, and {FEWEST} untouched \
                 ones are needed",
                free.len(),
                self.demands.len()
            ));
        }
        let held_ns: u128 = held.iter().map(|held| u128::from(held.demand.cpu_ns)).sum();
        let held_share = held_ns as f64 / (self.mean_cpus() * self.span_ns as f64).max(1.0);
        if held_share > MOST_HELD {
            return Err(format!(
                "throttling touched pieces with {:.0}% of its CPU time, and no more than {:.0}% can \
                 be inferred",
                100.0 * held_share,
                100.0 * MOST_HELD
            ));
        }
        let n_held = held.len();
        if queued {
            held.extend(free.drain(..).map(|demand| {
                let end_ns = demand.at_ns + demand.cpu_ns.max(1);
                Held { demand, during: Interval { begin_ns: demand.at_ns, end_ns } }
            }));
        }
        let requests = self.requests(&free, &held, seed);
        let parts = requests[..n_held].iter().map(Vec::len).sum();
        let mut demands = free;
        demands.extend(requests.into_iter().flatten());
        demands.sort_by_key(|demand| demand.at_ns);
        let usage = Usage { demands, samples: Vec::new(), ..self.clone() };
        Ok(Unthrottled { usage, held: n_held, parts, pieces: self.demands.len(), held_share })
    }

    /// The requests of each held piece; the free ones are single requests.
    fn requests(&self, free: &[Demand], held: &[Held], seed: u64) -> Vec<Vec<Demand>> {
        let mut random = Random::new(seed);
        let locally = self.use_around();
        let progress = Progress::of(&self.samples);
        let mut parts: Vec<Vec<Demand>> = held.iter().map(|held| vec![held.demand]).collect();
        for _ in 0..(PIECES / held.len().max(1)).clamp(3, ROUNDS) {
            let law = Law::of(self, free.iter().chain(parts.iter().flatten()));
            let split =
                |held| law.split(held, self.rate_around(&locally, held), &progress, &mut random);
            parts = held.iter().map(split).collect();
        }
        parts
    }

    /// CPU time of the demands that arrived in each second.
    fn use_around(&self) -> Vec<f64> {
        let mut used = vec![0.0; (self.span_ns / SECOND_NS) as usize + 1];
        for demand in &self.demands {
            used[(demand.at_ns / SECOND_NS) as usize] += demand.cpu_ns as f64;
        }
        used
    }

    /// Use in the three seconds around a piece, without itself, relative to the mean.
    fn rate_around(&self, used: &[f64], held: &Held) -> f64 {
        let second = (held.demand.at_ns / SECOND_NS) as usize;
        let around = &used[second.saturating_sub(1)..(second + 2).min(used.len())];
        let own_ns = held.demand.cpu_ns as f64;
        let length_ns = (SECOND_NS as f64 * around.len() as f64).min(self.span_ns as f64);
        let others = (around.iter().sum::<f64>() - own_ns) / (length_ns - own_ns).max(1.0);
        (others / self.mean_cpus()).clamp(1.0 / LOCALLY, LOCALLY)
    }

    /// Splits the pieces into those that throttling did not affect and those it did.
    fn told_apart(&self, throttled: &[Interval]) -> (Vec<Demand>, Vec<Held>) {
        let sampled_ns = match self.origin {
            Origin::Sampled { resolution_ns } => Some(resolution_ns),
            _ => None,
        };
        // CPU time of each sample already taken by pieces of earlier layers.
        let mut taken = vec![0; self.samples.len()];
        let mut order: Vec<&Demand> = self.demands.iter().collect();
        order.sort_by_key(|demand| (demand.thread, demand.at_ns));
        let (mut free, mut held) = (Vec::new(), Vec::new());
        for demand in order {
            let end_ns = match (sampled_ns, demand.done_ns) {
                (None, Some(done_ns)) => done_ns,
                (None, None) => demand.at_ns + demand.cpu_ns,
                (Some(_), _) => ran_until(&self.samples, &mut taken, demand),
            };
            let first = throttled.partition_point(|t| {
                // A sample shows work after the wait in which it arrived.
                t.end_ns + sampled_ns.unwrap_or(0) * 3 / 2 < demand.at_ns.max(1)
            });
            match throttled.get(first) {
                Some(wait) if wait.begin_ns < end_ns => {
                    let late = sampled_ns.is_some() && wait.end_ns <= demand.at_ns;
                    let begin_ns = if late { wait.begin_ns } else { demand.at_ns };
                    let during = Interval { begin_ns, end_ns: end_ns.max(begin_ns + 1) };
                    held.push(Held { demand: *demand, during });
                }
                _ => free.push(*demand),
            }
        }
        (free, held)
    }
}

/// Maximum age of the throttling counters in a traced recording.
const COUNTED_EVERY_NS: Ns = 100_000_000;

/// Throttled stretches, as joined samples. If waiting threads were counted: samples with waiting
/// threads and at least half of the time unused, near an increase of throttled time. Otherwise:
/// samples of which at least half was throttled time.
fn throttled(samples: &[Sample]) -> Vec<Interval> {
    let mut all: Vec<Interval> = Vec::new();
    let (mut begin_ns, mut before_ns) = (0, 0);
    let mut ahead = samples.iter().peekable();
    let mut counted_ns = 0;
    for sample in samples {
        let length_ns = (sample.at_ns - begin_ns).max(1);
        let waited = match sample.runnable {
            None => 2 * (sample.throttled_ns - before_ns) >= length_ns,
            Some(runnable) => {
                while let Some(later) =
                    ahead.next_if(|s| s.at_ns <= sample.at_ns + COUNTED_EVERY_NS)
                {
                    counted_ns = later.throttled_ns;
                }
                runnable > 0 && 2 * sample.runtime_ns <= length_ns && counted_ns > before_ns
            }
        };
        if waited {
            match all.last_mut() {
                Some(last) if last.end_ns == begin_ns => last.end_ns = sample.at_ns,
                _ => all.push(Interval { begin_ns, end_ns: sample.at_ns }),
            }
        }
        (begin_ns, before_ns) = (sample.at_ns, sample.throttled_ns);
    }
    all
}

/// Completion of a piece in a sampled recording: when the samples since its arrival hold its CPU
/// time, not counting time taken by other pieces.
fn ran_until(samples: &[Sample], taken: &mut [Ns], demand: &Demand) -> Ns {
    let first = samples.partition_point(|sample| sample.at_ns <= demand.at_ns);
    let mut left_ns = demand.cpu_ns;
    let mut begin_ns = first.checked_sub(1).map_or(0, |before| samples[before].at_ns);
    for (sample, taken) in samples[first..].iter().zip(&mut taken[first..]) {
        let most_ns = (sample.at_ns - begin_ns).min(sample.runtime_ns.saturating_sub(*taken));
        let own_ns = left_ns.min(most_ns);
        begin_ns = sample.at_ns;
        *taken += own_ns;
        left_ns -= own_ns;
        if left_ns == 0 {
            return sample.at_ns;
        }
    }
    samples.last().map_or(demand.at_ns, |last| last.at_ns)
}

/// CPU time that the group had used up to the end of each sample.
struct Progress {
    at_ns: Vec<Ns>,
    used_ns: Vec<Ns>,
}

impl Progress {
    fn of(samples: &[Sample]) -> Progress {
        let mut used_ns = 0;
        let used = samples.iter().map(|sample| {
            used_ns += sample.runtime_ns;
            used_ns
        });
        let (mut at, mut all) = (vec![0], vec![0]);
        all.extend(used);
        at.extend(samples.iter().map(|sample| sample.at_ns));
        Progress { at_ns: at, used_ns: all }
    }

    /// When this share of what the group used during a stretch was used; evenly without samples.
    fn when(&self, during: Interval, share: f64) -> Ns {
        let Interval { begin_ns, end_ns } = during;
        let even = begin_ns + (share * (end_ns - begin_ns) as f64) as Ns;
        let place = |ns: Ns| self.at_ns.partition_point(|&at| at < ns).min(self.at_ns.len() - 1);
        let (first, last) = (place(begin_ns).saturating_sub(1), place(end_ns));
        let (from_ns, to_ns) = (self.used_ns[first], self.used_ns[last]);
        if to_ns <= from_ns {
            return even;
        }
        let wanted = from_ns + (share * (to_ns - from_ns) as f64) as Ns;
        let next = self.used_ns.partition_point(|&used| used < wanted).min(last);
        self.at_ns[next].clamp(begin_ns, end_ns)
    }
}

/// The estimated distribution of requests.
struct Law {
    shape: f64,
    scale_ns: f64,
    /// Arrivals per nanosecond, by thread.
    rates: Vec<f64>,
    /// CPU times of all pieces.
    sizes: Vec<Ns>,
}

impl Law {
    fn of<'a>(usage: &Usage, pieces: impl Iterator<Item = &'a Demand>) -> Law {
        let mut rates = vec![0.0; usage.threads as usize];
        let mut sizes = Vec::new();
        for piece in pieces.filter(|piece| piece.cpu_ns > 0) {
            rates[piece.thread as usize] += 1.0 / usage.span_ns as f64;
            sizes.push(piece.cpu_ns);
        }
        if let Origin::Sampled { .. } = usage.origin {
            // Layers are not threads: an arrival for another thread goes to the next layer.
            let each = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
            rates.fill(each);
        }
        let n = sizes.len().max(1) as f64;
        let mean = sizes.iter().map(|&ns| ns as f64).sum::<f64>() / n;
        let variance = sizes.iter().map(|&ns| (ns as f64 - mean).powi(2)).sum::<f64>() / n;
        // Avoid a zero variance if all sizes are equal.
        let variance = variance.max((0.05 * mean).powi(2));
        Law { shape: mean * mean / variance, scale_ns: variance / mean, rates, sizes }
    }

    /// Log-likelihood that a piece consists of `n` requests, up to a constant.
    fn likelihood(&self, n: usize, cpu_ns: f64, expected: f64) -> f64 {
        let more = n as f64 - 1.0;
        let shape = n as f64 * self.shape;
        let arrived = more * expected.ln() - ln_gamma(more + 2.0);
        let x = cpu_ns / self.scale_ns;
        let size = (shape - 1.0) * x.ln() - x - ln_gamma(shape);
        arrived + size
    }

    /// Draws the requests that a piece may consist of, at so many times the mean rate.
    fn split(
        &self,
        held: &Held,
        times: f64,
        progress: &Progress,
        random: &mut Random,
    ) -> Vec<Demand> {
        let Held { demand, during } = *held;
        let length_ns = (during.end_ns - during.begin_ns).max(1);
        let expected = self.rates[demand.thread as usize] * times * length_ns as f64;
        let parts = match demand.cpu_ns {
            0 => 1,
            cpu_ns => self.number(cpu_ns as f64, expected.max(1e-9), random),
        };
        let drawn: Vec<f64> = (0..parts).map(|_| self.size(random)).collect();
        let all: f64 = drawn.iter().sum();
        let late = during.begin_ns < demand.at_ns;
        // Work before each request, exact in sum: the latest that it can have arrived is when that
        // work, without waits in between, leaves time for the rest.
        let mut before = vec![0];
        let mut up_to = 0.0;
        for size in &drawn[..parts - 1] {
            up_to += size;
            let least = before.last().copied().unwrap_or(0);
            let until = ((up_to / all * demand.cpu_ns as f64) as Ns).clamp(least, demand.cpu_ns);
            before.push(until);
        }
        let latest: Vec<Ns> = before[1..]
            .iter()
            .map(|&given| match late {
                true => during.end_ns.saturating_sub(demand.cpu_ns - given).max(during.begin_ns),
                // It ran without a wait.
                false if length_ns <= demand.cpu_ns => during.begin_ns + given,
                false => progress.when(during, given as f64 / demand.cpu_ns as f64),
            })
            .collect();
        let mut arrivals = Vec::with_capacity(parts);
        for _ in 0..TRIES {
            arrivals.clear();
            arrivals.extend((1..parts).map(|_| during.begin_ns + random.below(length_ns)));
            arrivals.sort_unstable();
            if arrivals.iter().zip(&latest).all(|(at, latest)| at <= latest) {
                break;
            }
        }
        // Too few are there in time: the next comes at random before it is too late.
        for (number, &latest) in latest.iter().enumerate() {
            if arrivals[number] > latest {
                arrivals[number] = during.begin_ns + random.below(latest - during.begin_ns + 1);
                arrivals[..=number].sort_unstable();
            }
        }
        let first = match late {
            true => during.begin_ns + random.below(demand.at_ns - during.begin_ns + 1),
            false => demand.at_ns,
        };
        let arrivals = [first].into_iter().chain(arrivals);
        let ends = before[1..].iter().copied().chain([demand.cpu_ns]);
        let request = |((at_ns, given), until): ((Ns, &Ns), Ns)| Demand {
            at_ns,
            cpu_ns: until - given,
            thread: demand.thread,
            done_ns: None,
        };
        arrivals.zip(&before).zip(ends).map(request).collect()
    }

    fn number(&self, cpu_ns: f64, expected: f64, random: &mut Random) -> usize {
        let (mut logs, mut most) = (Vec::new(), f64::NEG_INFINITY);
        for n in 1..=MOST_PARTS {
            let log = self.likelihood(n, cpu_ns, expected);
            most = most.max(log);
            logs.push(log);
            if log < most - NEGLIGIBLE {
                break;
            }
        }
        let weights: Vec<f64> = logs.iter().map(|log| (log - most).exp()).collect();
        let mut left = random.uniform() * weights.iter().sum::<f64>();
        let drawn = weights.iter().position(|weight| {
            left -= weight;
            left <= 0.0
        });
        1 + drawn.unwrap_or(0)
    }

    fn size(&self, random: &mut Random) -> f64 {
        self.sizes[random.below(self.sizes.len() as u64) as usize] as f64
    }
}

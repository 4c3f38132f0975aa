//! Infers requests from counters of averages. A group that used 0.3 CPUs under a quota of 0.5 and
//! was throttled in a fifth of its periods has burstier demand than one that was never throttled:
//! at a known quota, the count of throttled periods, the throttled time and the count of active
//! periods constrain how its work arrives. Laws of arrival are drawn at random, replayed under the
//! recorded limits, and kept if they reproduce the recorded counters (approximate Bayesian
//! computation). A plan then holds over all laws kept. They are chosen by steps that reach from the
//! least to the most use; what is planned with has all steps, each for its share of the time.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::iter::{
    IndexedParallelIterator, IntoParallelIterator, IntoParallelRefIterator, ParallelIterator,
};
use reveille_measure::Random;
use reveille_policy::BandwidthLimits;
use reveille_usage::{Demand, Origin, Usage};

use crate::Ns;
use crate::lean::{Lean, LeanLoad, LeanSpan};

/// Laws drawn from the whole prior in the first round, and near those that fit in the second.
const FIRST: u32 = 1000;
const THEN: u32 = 500;
/// Laws kept after each round.
pub(crate) const KEPT: usize = 50;
/// Time to replay, as a number of steps within these bounds. To judge laws, a longer recording gives
/// that many of its steps, chosen by their use; the loads to plan with have each step, shortened.
pub(crate) const REPLAYED_NS: Ns = 180_000_000_000;
const STEPS: RangeInclusive<usize> = 4..=12;
/// Bounds of the mean CPU time of one thread's part of a burst.
const BURST_NS: (f64, f64) = (0.3e6, 2e9);
/// Number of threads that a burst wakes.
const WIDTHS: [u32; 6] = [1, 1, 2, 3, 4, 8];
/// Which threads run a burst: one set for all, the first idle of eight sets (a pool), or any of
/// four sets (connections with threads of their own).
const SETS: [Sets; 3] =
    [Sets { count: 1, pool: true }, Sets { count: 8, pool: true }, Sets { count: 4, pool: false }];
/// Times between bursts.
const SPACINGS: [Spacing; 4] = [Spacing::Random, Spacing::Random, Spacing::Random, Spacing::Clock];
/// Duty cycles: share of the cycle in which bursts arrive.
const DUTIES: [f64; 4] = [1.0, 1.0, 0.5, 0.2];
const CYCLES_NS: (f64, f64) = (0.3e9, 5e9);
/// Accepted root mean square of the counters' errors, in standard errors.
const WELL: f64 = 2.0;
/// A law is rejected early if a counter of the busiest step, or all in the root mean square, is off by
/// more standard errors.
const HOPELESS: f64 = 5.0;
/// Above this share of throttled periods the demand is unbounded: the counters cannot tell.
const SATURATED: f64 = 0.9;
/// Fewer throttled periods carry no information on request sizes.
const FEWEST: u64 = 20;

/// True p99 divided by the inferred one: the least in tenths with which the median is not below the
/// truth for half of the first 24 loads of `counters_tell_of_48_loads`. The other 24 do not choose it.
pub(crate) const TOO_LOW: f64 = 1.4;

/// One step of a recording of averages.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    length_ns: Ns,
    used_ns: Ns,
    counters: Counters,
}

/// Bandwidth counters, as in `cpu.stat`.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    nr_periods: f64,
    nr_throttled: f64,
    throttled_ns: f64,
}

/// A law of arrival: how requests arrive and how large they are.
#[derive(Clone, Copy, Debug)]
struct Law {
    /// Mean CPU time of one thread's part of a burst.
    burst_ns: f64,
    spread: Spread,
    width: u32,
    sets: Sets,
    spacing: Spacing,
    duty: f64,
    cycle_ns: f64,
}

/// When the next burst arrives.
#[derive(Clone, Copy, Debug)]
enum Spacing {
    /// After an exponentially distributed time, as independent callers make it.
    Random,
    /// After the same time again. For the same counters such requests are larger than random ones.
    Clock,
}

/// Sets of threads; each has as many threads as a burst wakes.
#[derive(Clone, Copy, Debug)]
struct Sets {
    count: u32,
    /// The first idle set takes the next burst (a pool).
    pool: bool,
}

/// Distribution of sizes.
#[derive(Clone, Copy, Debug)]
enum Spread {
    /// Uniform within ±50%.
    Little,
    /// Exponentially, with a coefficient of variation of 1.
    Exponential,
    /// Two exponential distributions that do half of the work each: many small sizes, and this
    /// share of large ones.
    Mixed(f64),
}

/// What a burst is, which counters do not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// A request on each of its threads.
    Parts,
    /// One request on one thread.
    Whole,
}

/// A load that a law draws.
struct Drawn {
    demands: Vec<Demand>,
    threads: u32,
    span_ns: Ns,
}

/// A law, the seed of its draws, and its error against the recorded counters.
#[derive(Clone, Copy, Debug)]
struct Tried {
    law: Law,
    seed: u64,
    off: f64,
}

/// Recordings of requests whose counters match those of `usage`, the likeliest first, to run on
/// `lean`'s CPUs; each is as long as the steps that represent the recording.
///
/// # Errors
/// The reason, to follow "the recording cannot tell what it would have used:".
pub(crate) fn requests(
    usage: &Usage,
    lean: Lean,
    seed: u64,
    stop: &AtomicBool,
) -> Result<Vec<Usage>, String> {
    let limits = usage.limits.filter(|limits| limits.quota_ns.is_some());
    let limits = limits.ok_or("its limits are not in it")?;
    let all = steps(usage)?;
    let steps = chosen(&all);
    let last = usage.samples.last().copied().unwrap_or_default();
    if last.nr_throttled as f64 > SATURATED * last.nr_periods as f64 {
        return Err(format!(
            "it was throttled in over {:.0}% of its periods, and may have asked for any amount more",
            100.0 * SATURATED
        ));
    }
    if last.nr_throttled < FEWEST {
        return Err(format!(
            "{} throttled periods tell too little about the size of its requests; {FEWEST} are \
             needed",
            last.nr_throttled
        ));
    }
    // Fit two halves by use: how throttling grows with use tells more than the sum.
    let (low, high) = steps.split_at(steps.len() / 2);
    let halves = [low, high];
    let fit = Fit { halves, lean, limits, stop };
    let mut tried = fit.best((0..FIRST).map(|n| (n, None)).collect(), seed);
    let near: Vec<Law> = tried.iter().map(|tried| tried.law).collect();
    if !near.is_empty() {
        let then = (0..THEN).map(|n| (FIRST + n, Some(near[n as usize % near.len()]))).collect();
        tried.extend(fit.best(then, seed));
    }
    tried.sort_by(|a, b| a.off.total_cmp(&b.off));
    let middle = tried.get(KEPT / 2).map_or(f64::INFINITY, |tried| tried.off);
    if middle > WELL || middle.is_nan() {
        return Err(format!(
            "none of {} loads that were tried gives its counters, which rare long jobs or other \
             programs on its CPUs may be the reason for",
            FIRST + THEN
        ));
    }
    // Of steps that are judged, busy ones are more than their share: where there are others, all
    // of them decide between the laws that fit.
    let some = all.len() > steps.len();
    let well = if some { tried.partition_point(|tried| tried.off <= WELL) } else { KEPT };
    tried.truncate(well.max(KEPT));
    let (layout, ends) = shortened(&all);
    let blocks: Vec<&[Step]> = ends.windows(2).map(|ends| &layout[ends[0]..ends[1]]).collect();
    let drawn = |(number, tried): (usize, &Tried)| {
        // In every other load a burst is one request, where that gives the counters too.
        let whole = number % 2 == 1 && fit.off(&tried.law, tried.seed, Reading::Whole) <= WELL;
        let reading = if whole { Reading::Whole } else { Reading::Parts };
        tried.law.draw(&blocks, tried.seed, reading)
    };
    let mut drawn: Vec<Drawn> = tried.par_iter().enumerate().map(drawn).collect();
    if drawn.len() > KEPT {
        let share =
            all.iter().fold(Counters::default(), |sum, step| sum.and(step.counters)).share();
        let far = |(load, tried): (&Drawn, &Tried)| {
            let ran = fit.ran(load, tried.seed).unwrap_or_default();
            (ran.share() - share).abs()
        };
        let far: Vec<f64> = drawn.par_iter().zip(&tried).map(far).collect();
        let mut sorted = far.clone();
        sorted.sort_by(f64::total_cmp);
        let near = drawn.into_iter().zip(far).filter(|(_, far)| *far <= sorted[KEPT - 1]);
        drawn = near.map(|(load, _)| load).take(KEPT).collect();
    }
    let origin = Origin::Requests;
    let like = Usage { origin, demands: Vec::new(), samples: Vec::new(), ..usage.clone() };
    let recording =
        |Drawn { demands, threads, span_ns }| Usage { demands, threads, span_ns, ..like.clone() };
    Ok(drawn.into_iter().map(recording).collect())
}

/// The steps of a recording, by ascending use.
fn steps(usage: &Usage) -> Result<Vec<Step>, String> {
    let mut before = reveille_usage::Sample::default();
    let step = |sample: &reveille_usage::Sample| {
        let counters = Counters {
            nr_periods: (sample.nr_periods - before.nr_periods) as f64,
            nr_throttled: (sample.nr_throttled - before.nr_throttled) as f64,
            throttled_ns: (sample.throttled_ns - before.throttled_ns) as f64,
        };
        let length_ns = sample.at_ns - before.at_ns;
        before = *sample;
        Step { length_ns, used_ns: sample.runtime_ns, counters }
    };
    let mut steps: Vec<Step> = usage.samples.iter().map(step).collect();
    if steps.iter().all(|step| step.counters.nr_periods == 0.0) {
        return Err("its periods were not counted".into());
    }
    // Work without a period: of a step with a restart there are no counts.
    steps.retain(|s| s.length_ns > 0 && (s.used_ns == 0 || s.counters.nr_periods > 0.0));
    if steps.len() < 2 {
        return Err("it has a single step".into());
    }
    steps.sort_by(|a, b| {
        let rate = |step: &Step| step.used_ns as f64 / step.length_ns as f64;
        rate(a).total_cmp(&rate(b))
    });
    Ok(steps)
}

/// How many steps of this recording are replayed, and their mean length.
fn replayed(steps: &[Step]) -> (usize, Ns) {
    let mean_ns = steps.iter().map(|step| step.length_ns).sum::<Ns>() / steps.len() as Ns;
    let most = ((REPLAYED_NS / mean_ns) as usize).clamp(*STEPS.start(), *STEPS.end());
    (most.min(steps.len()), mean_ns)
}

/// The steps by which laws are judged, of all that are sorted by use: evenly spaced in rank, both
/// ends included. Busy steps, where throttling tells most, have more than their share.
fn chosen(sorted: &[Step]) -> Vec<Step> {
    let (most, _) = replayed(sorted);
    (0..most).map(|n| sorted[n * (sorted.len() - 1) / (most - 1)]).collect()
}

/// All steps, each as much shorter as the time to replay is than the recording, so that use and the
/// share of throttled periods are the recording's; and where blocks of them end, one for each step
/// that is replayed, so that a block is as long as a step was and has room for a large burst.
fn shortened(sorted: &[Step]) -> (Vec<Step>, Vec<usize>) {
    let (most, mean_ns) = replayed(sorted);
    let total_ns: Ns = sorted.iter().map(|step| step.length_ns).sum();
    let to_ns = if most == sorted.len() { total_ns } else { most as Ns * mean_ns };
    let scaled = |ns: Ns| (u128::from(ns) * u128::from(to_ns) / u128::from(total_ns)) as Ns;
    let short = |step: &Step| Step {
        length_ns: scaled(step.length_ns).max(1),
        used_ns: scaled(step.used_ns),
        ..*step
    };
    let ends = (0..=most).map(|n| n * sorted.len() / most).collect();
    (sorted.iter().map(short).collect(), ends)
}

/// A recording of averages, and where its replays run.
struct Fit<'a> {
    halves: [&'a [Step]; 2],
    lean: Lean,
    limits: BandwidthLimits,
    stop: &'a AtomicBool,
}

impl Fit<'_> {
    /// The best of some laws: fresh draws, or draws near a given law.
    fn best(&self, numbers: Vec<(u32, Option<Law>)>, seed: u64) -> Vec<Tried> {
        let tried = numbers.into_par_iter().map(|(number, near)| {
            let seed = seed.wrapping_mul(1_000_003).wrapping_add(u64::from(number));
            let mut random = Random::new(seed);
            let law = match near {
                None => Law::any(&mut random),
                Some(law) => law.near(&mut random),
            };
            Tried { law, seed, off: self.off(&law, seed, Reading::Parts) }
        });
        let mut tried: Vec<Tried> = tried.filter(|tried| tried.off.is_finite()).collect();
        tried.sort_by(|a, b| a.off.total_cmp(&b.off));
        tried.truncate(KEPT);
        tried
    }

    /// Root mean square of the errors of the counters, in standard errors; infinite if it or the
    /// busiest step is far off.
    fn off(&self, law: &Law, seed: u64, reading: Reading) -> f64 {
        let [low, high] = self.halves;
        let busiest = &high[high.len().saturating_sub(1)..];
        if self
            .differences(law, busiest, seed, reading)
            .is_none_or(|off| off.iter().any(|o| o.abs() > HOPELESS))
        {
            return f64::INFINITY;
        }
        let mut squares = 0.0;
        for (number, steps) in [low, high].into_iter().enumerate() {
            match self.differences(law, steps, seed.wrapping_add(number as u64), reading) {
                Some(off) => squares += off.iter().map(|off| off * off).sum::<f64>() / 6.0,
                None => return f64::INFINITY,
            }
            if squares > HOPELESS * HOPELESS {
                return f64::INFINITY;
            }
        }
        squares.sqrt()
    }

    /// Errors of these steps' counters, in standard errors; `None` if the replay fails.
    fn differences(
        &self,
        law: &Law,
        steps: &[Step],
        seed: u64,
        reading: Reading,
    ) -> Option<[f64; 3]> {
        if self.stop.load(Ordering::Relaxed) {
            return None;
        }
        let blocks: Vec<&[Step]> = steps.chunks(1).collect();
        let load = law.draw(&blocks, seed, reading);
        let seen = steps.iter().fold(Counters::default(), |sum, step| sum.and(step.counters));
        let periods = load.span_ns as f64 / self.limits.period_ns as f64;
        Some(self.ran(&load, seed)?.off(&seen, periods))
    }

    /// The load's counters under the recorded limits; `None` if the replay fails.
    fn ran(&self, drawn: &Drawn, seed: u64) -> Option<Counters> {
        if drawn.demands.is_empty() {
            return Some(Counters::default());
        }
        let load = LeanLoad::of(&drawn.demands, drawn.threads, drawn.span_ns);
        // A random phase: the kernel's is unknown.
        let phase_ns = seed.wrapping_mul(0x9e37_79b9) % self.limits.period_ns;
        let span = LeanSpan { begin_ns: 0, end_ns: drawn.span_ns, phase_ns, from_ns: 0 };
        let replayed = self.lean.replay(&load, &self.limits, span).ok()?;
        Some(Counters {
            nr_periods: replayed.nr_periods as f64,
            nr_throttled: replayed.nr_throttled as f64,
            throttled_ns: replayed.throttled_ns as f64,
        })
    }
}

impl Counters {
    fn and(self, other: Counters) -> Counters {
        Counters {
            nr_periods: self.nr_periods + other.nr_periods,
            nr_throttled: self.nr_throttled + other.nr_throttled,
            throttled_ns: self.throttled_ns + other.throttled_ns,
        }
    }

    /// Share of throttled periods.
    fn share(&self) -> f64 {
        self.nr_throttled / self.nr_periods.max(1.0)
    }

    /// Differences in standard errors. Counts scatter like those of clustered events, and no model
    /// matches a kernel to better than a few percent.
    fn off(&self, seen: &Counters, periods: f64) -> [f64; 3] {
        let error = |n: f64| (2.0 * n + 4.0 + (0.05 * n).powi(2)).sqrt();
        let throttled = (self.nr_throttled - seen.nr_throttled) / error(seen.nr_throttled);
        let idle = periods - seen.nr_periods;
        let active =
            (self.nr_periods - seen.nr_periods) / error(idle.min(seen.nr_periods).max(0.0));
        let wait = |counters: &Counters| counters.throttled_ns / counters.nr_throttled;
        let n = self.nr_throttled.min(seen.nr_throttled);
        let lasted = if n < 1.0 || seen.throttled_ns == 0.0 {
            0.0
        } else {
            // The mean of n waits, each with a standard deviation about equal to its mean.
            (wait(self) / wait(seen)).ln() / (1.0 / n + 0.3f64.powi(2)).sqrt()
        };
        [throttled, active, lasted]
    }
}

fn one_of<T: Copy>(all: &[T], random: &mut Random) -> T {
    all[random.below(all.len() as u64) as usize]
}

fn between((low, high): (f64, f64), random: &mut Random) -> f64 {
    low * (high / low).powf(random.uniform())
}

/// The mixtures have coefficients of variation of 2 and 4.
const SPREADS: [Spread; 4] =
    [Spread::Little, Spread::Exponential, Spread::Mixed(0.113), Spread::Mixed(0.03)];

impl Law {
    /// A draw from the prior.
    fn any(random: &mut Random) -> Law {
        Law {
            burst_ns: between(BURST_NS, random),
            spread: one_of(&SPREADS, random),
            width: one_of(&WIDTHS, random),
            sets: one_of(&SETS, random),
            spacing: one_of(&SPACINGS, random),
            duty: one_of(&DUTIES, random),
            cycle_ns: between(CYCLES_NS, random),
        }
    }

    /// A draw near this law.
    fn near(self, random: &mut Random) -> Law {
        let other = Law::any(random);
        let mut keep = |of: u64| random.below(of) > 0;
        let mut law = Law {
            spread: if keep(3) { self.spread } else { other.spread },
            width: if keep(3) { self.width } else { other.width },
            sets: if keep(3) { self.sets } else { other.sets },
            spacing: if keep(3) { self.spacing } else { other.spacing },
            duty: if keep(3) { self.duty } else { other.duty },
            cycle_ns: if keep(3) { self.cycle_ns } else { other.cycle_ns },
            ..self
        };
        let (low, high) = BURST_NS;
        let times = between((0.5, 2.0), random);
        law.burst_ns = (law.burst_ns * times).clamp(low, high);
        law
    }

    /// Requests that add up to each block's use, their number of threads, and the total time. Within
    /// a block they come as its steps' use does.
    fn draw(&self, blocks: &[&[Step]], seed: u64, reading: Reading) -> Drawn {
        let mut random = Random::second(seed);
        let at_once = match reading {
            Reading::Parts => self.width,
            Reading::Whole => 1,
        };
        let threads = at_once * self.sets.count;
        let mut free_at = vec![0; self.sets.count as usize];
        let used_ns: Ns = blocks.iter().copied().flatten().map(|step| step.used_ns).sum();
        let mut demands = Vec::with_capacity((1.1 * used_ns as f64 / self.burst_ns) as usize);
        let mut begin_ns = 0;
        for steps in blocks {
            let block = Block::of(steps);
            if block.used_ns == 0 {
                begin_ns += block.length_ns;
                continue;
            }
            let each_ns = self.burst_ns * f64::from(self.width);
            let expected = block.used_ns as f64 / each_ns;
            let mut times: Vec<Ns> = Vec::with_capacity((1.1 * expected) as usize);
            let mut at = self.spacing.first(&mut random);
            while at < expected {
                times.push(self.when(block.after(at / expected)));
                at += self.spacing.next(&mut random);
            }
            if times.is_empty() {
                times.push(random.below(block.length_ns));
            }
            let parts = times.len() * self.width as usize;
            let sizes: Vec<f64> = (0..parts).map(|_| self.spread.draw(&mut random)).collect();
            let scale = block.used_ns as f64 / sizes.iter().sum::<f64>();
            for (burst, &at_ns) in times.iter().enumerate() {
                let at_ns = begin_ns + at_ns.min(block.length_ns - 1);
                let parts = &sizes[burst * self.width as usize..][..self.width as usize];
                let set = match self.sets.pool {
                    true => (0..free_at.len()).min_by_key(|&set| free_at[set]).unwrap_or(0),
                    false => random.below(u64::from(self.sets.count)) as usize,
                };
                let whole = [parts.iter().sum()];
                let parts = if reading == Reading::Whole { &whole[..] } else { parts };
                let longest = parts.iter().fold(0.0f64, |most, &size| most.max(size * scale));
                free_at[set] = at_ns.max(free_at[set]) + longest as Ns;
                demands.extend(parts.iter().enumerate().map(|(part, &size)| Demand {
                    at_ns,
                    cpu_ns: (size * scale) as Ns,
                    thread: set as u32 * at_once + part as u32,
                    done_ns: None,
                }));
            }
            begin_ns += block.length_ns;
        }
        demands.sort_by_key(|demand| demand.at_ns);
        Drawn { demands, threads, span_ns: begin_ns }
    }

    /// Maps time within the duty cycles' active parts to time in the step.
    fn when(&self, at: f64) -> Ns {
        let on_ns = self.cycle_ns * self.duty;
        let within = at * self.duty;
        let cycle = (within / on_ns).floor();
        (cycle * self.cycle_ns + within - cycle * on_ns) as Ns
    }
}

/// Steps that are drawn together.
struct Block<'a> {
    steps: &'a [Step],
    length_ns: Ns,
    used_ns: Ns,
}

impl Block<'_> {
    fn of(steps: &[Step]) -> Block<'_> {
        let sum = |of: fn(&Step) -> Ns| steps.iter().map(of).sum();
        Block { steps, length_ns: sum(|step| step.length_ns), used_ns: sum(|step| step.used_ns) }
    }

    /// The time after which this share of its CPU time is used.
    fn after(&self, share: f64) -> f64 {
        let (mut from, mut begin_ns) = (0.0, 0.0);
        for step in self.steps {
            let part = step.used_ns as f64 / self.used_ns as f64;
            let length_ns = step.length_ns as f64;
            if share < from + part {
                return begin_ns + (share - from) / part * length_ns;
            }
            (from, begin_ns) = (from + part, begin_ns + length_ns);
        }
        begin_ns
    }
}

impl Spacing {
    /// The time until the first burst, in mean times between two.
    fn first(self, random: &mut Random) -> f64 {
        match self {
            Spacing::Random => self.next(random),
            Spacing::Clock => random.uniform(),
        }
    }

    /// The time until the next one.
    fn next(self, random: &mut Random) -> f64 {
        match self {
            Spacing::Random => random.exponential(1.0),
            Spacing::Clock => 1.0,
        }
    }
}

impl Spread {
    /// A size with mean 1.
    fn draw(self, random: &mut Random) -> f64 {
        match self {
            Spread::Little => 0.5 + random.uniform(),
            Spread::Exponential => random.exponential(1.0),
            Spread::Mixed(large) => match random.uniform() < large {
                true => random.exponential(0.5 / large),
                false => random.exponential(0.5 / (1.0 - large)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goal::quantile_of;
    use crate::replay::as_f64;
    use reveille_usage::Sample;
    use reveille_workload::Arrival;

    const MS: Ns = 1_000_000;
    const STEP_NS: Ns = 15_000 * MS;

    /// A load outside all laws: lognormal sizes of two kinds of request, each on its own threads,
    /// with a rate that varies by step.
    fn hidden(number: u64, steps: u64) -> Vec<Vec<Arrival>> {
        let mut random = Random::new(number);
        let normal = |random: &mut Random| {
            let angle = std::f64::consts::TAU * random.uniform();
            (-2.0 * random.uniform().ln()).sqrt() * angle.cos()
        };
        let threads = 1 + number % 4;
        let cpus = 0.08 + 0.25 * random.uniform();
        let mean_ns = between((1e6, 60e6), &mut random);
        let sigma = 0.3 + 0.9 * random.uniform();
        let together = number.is_multiple_of(3);
        let levels: Vec<f64> = (0..steps).map(|_| 0.5 + random.uniform()).collect();
        let mut all = vec![Vec::new(); threads as usize];
        let every_ns = mean_ns * threads as f64 / cpus;
        for thread in 0..threads as usize {
            let mut at = 0.0;
            loop {
                let level = levels.get((at / STEP_NS as f64) as usize).copied().unwrap_or(1.0);
                at += random.exponential(every_ns / level);
                if at >= (steps * STEP_NS) as f64 {
                    break;
                }
                let mut add = |thread: usize, random: &mut Random| {
                    let size = (sigma * normal(random) - sigma * sigma / 2.0).exp() * mean_ns;
                    all[thread].push(Arrival { at_ns: at as Ns, work_ns: size as Ns + 1 });
                };
                match together {
                    true => (0..threads as usize).for_each(|thread| add(thread, &mut random)),
                    false => add(thread, &mut random),
                }
            }
            if together {
                break;
            }
        }
        all
    }

    fn run(
        lean: Lean,
        of_thread: &[Vec<Arrival>],
        limits: &BandwidthLimits,
        end_ns: Ns,
        phase_ns: Ns,
    ) -> crate::lean::LeanOutcome {
        let own: Vec<Vec<Arrival>> =
            of_thread.iter().filter(|own| !own.is_empty()).cloned().collect();
        let load = LeanLoad::new(&own, end_ns);
        lean.replay(&load, limits, LeanSpan { begin_ns: 0, end_ns, phase_ns, from_ns: 0 }).unwrap()
    }

    /// The counters of a hidden load.
    fn recorded(
        lean: Lean,
        hidden: &[Vec<Arrival>],
        limits: &BandwidthLimits,
        steps: u64,
    ) -> Usage {
        let mut samples: Vec<Sample> = Vec::new();
        let mut before = 0;
        for step in 1..=steps {
            let ran = run(lean, hidden, limits, step * STEP_NS, 30 * MS);
            samples.push(Sample {
                at_ns: step * STEP_NS,
                runtime_ns: ran.used_ns - before,
                runnable: None,
                nr_periods: ran.nr_periods,
                nr_throttled: ran.nr_throttled,
                throttled_ns: ran.throttled_ns,
            });
            before = ran.used_ns;
        }
        Usage {
            origin: Origin::Averaged { step_ns: STEP_NS },
            span_ns: steps * STEP_NS,
            threads: 1,
            samples,
            limits: Some(*limits),
            ..Usage::idle("hidden")
        }
    }

    /// For how many of these hidden loads the inferred 90% ranges contain the true p99 and the true
    /// share of throttled periods.
    fn inside(numbers: std::ops::RangeInclusive<u64>) -> ([usize; 2], usize) {
        let lean = Lean { cpus: 4, slice_ns: 5 * MS, tick_ns: 4 * MS, more_ns: 0 };
        let steps = 20;
        let (mut inside, mut all, mut refused) = ([0; 2], 0, 0);
        for number in numbers {
            let hidden = hidden(number, steps);
            let used: Ns = hidden.iter().flatten().map(|a| a.work_ns).sum();
            let cpus = used as f64 / (steps * STEP_NS) as f64;
            let share = [1.3, 1.7, 2.5][number as usize % 3];
            let quota = |share: f64| BandwidthLimits {
                quota_ns: Some((cpus * share * 1e8) as Ns / 1000 * 1000),
                period_ns: 100 * MS,
                burst_ns: 0,
            };
            let limits = quota(share);
            let usage = recorded(lean, &hidden, &limits, steps);
            let last = *usage.samples.last().unwrap();
            let found = match requests(&usage, lean, number, &AtomicBool::new(false)) {
                Ok(found) => found,
                Err(why) => {
                    eprintln!("{number}: {why}");
                    refused += 1;
                    continue;
                }
            };
            for other in [share, 1.3 * share, 2.0 * share] {
                let limits = quota(other);
                let figures = |of_thread: &[Vec<Arrival>], span_ns: Ns, phase: Ns| {
                    let mut ran = run(lean, of_thread, &limits, span_ns, phase);
                    let p99 = as_f64(quantile_of(&mut ran.latencies, 0.99)) / 1e6;
                    let periods = span_ns as f64 / 1e8;
                    [p99, 100.0 * ran.nr_throttled as f64 / ran.nr_periods.max(1) as f64, periods]
                };
                let truth = figures(&hidden, steps * STEP_NS, 70 * MS);
                let guess: Vec<[f64; 3]> = found
                    .iter()
                    .enumerate()
                    .map(|(n, usage)| {
                        let of_thread = usage.arrivals(usage.span_ns);
                        let [p99, throttled, periods] =
                            figures(&of_thread, usage.span_ns, n as Ns * 2 * MS);
                        [TOO_LOW * p99, throttled, periods]
                    })
                    .collect();
                let range = |which: usize| {
                    let mut all: Vec<f64> = guess.iter().map(|g| g[which]).collect();
                    all.sort_by(f64::total_cmp);
                    [all[all.len() / 20], all[all.len() / 2], all[all.len() - 1 - all.len() / 20]]
                };
                let (p99, throttled) = (range(0), range(1));
                all += 1;
                let in_p99 = truth[0] >= p99[0] && truth[0] <= p99[2];
                let in_thr = truth[1] >= throttled[0] - 0.5 && truth[1] <= throttled[2] + 0.5;
                inside[0] += usize::from(in_p99);
                inside[1] += usize::from(in_thr);
                eprintln!(
                    "{number:2} at {other:.2}: p99 {:7.1} in {:7.1?} {}  throttled {:5.2} in {:5.2?} {}  [{} of {}]",
                    truth[0],
                    p99,
                    if in_p99 { ' ' } else { '!' },
                    truth[1],
                    throttled,
                    if in_thr { ' ' } else { '!' },
                    last.nr_throttled,
                    last.nr_periods
                );
            }
        }
        eprintln!("p99 {} throttled {} of {all}, {refused} refused", inside[0], inside[1]);
        (inside, all)
    }

    #[test]
    fn a_load_of_demands_is_that_of_its_threads() {
        let mut random = Random::new(1);
        let step = Step { length_ns: STEP_NS, used_ns: STEP_NS / 5, ..Step::default() };
        for seed in 0..20 {
            let Drawn { demands, threads, span_ns } =
                Law::any(&mut random).draw(&[&[step], &[step]], seed, Reading::Parts);
            let mut own = vec![Vec::new(); threads as usize];
            for demand in &demands {
                let arrival = Arrival { at_ns: demand.at_ns, work_ns: demand.cpu_ns };
                own[demand.thread as usize].push(arrival);
            }
            own.retain(|own| !own.is_empty());
            let text = |load: LeanLoad| format!("{load:?}");
            assert_eq!(
                text(LeanLoad::of(&demands, threads, span_ns)),
                text(LeanLoad::new(&own, span_ns))
            );
        }
    }

    /// One step in ten is ten times as busy: two of the twelve by which laws are judged. What is
    /// planned with uses as much as was recorded, and is throttled as often.
    #[test]
    fn busy_steps_count_for_their_share_of_the_time() {
        let lean = Lean { cpus: 4, slice_ns: 5 * MS, tick_ns: 4 * MS, more_ns: 0 };
        let steps = 60;
        let mut random = Random::new(4);
        let (mut own, mut at_ns) = (Vec::new(), 0.0);
        while at_ns < (steps * STEP_NS) as f64 {
            own.push(Arrival { at_ns: at_ns as Ns, work_ns: random.exponential(8e6) as Ns + 1 });
            let busy = (at_ns as Ns / STEP_NS).is_multiple_of(10);
            at_ns += random.exponential(if busy { 20e6 } else { 200e6 });
        }
        let limits = BandwidthLimits { quota_ns: Some(60 * MS), period_ns: 100 * MS, burst_ns: 0 };
        let usage = recorded(lean, &[own], &limits, steps);
        let last = *usage.samples.last().unwrap();
        let counted = last.nr_throttled as f64 / last.nr_periods as f64;
        let used_ns: Ns = usage.samples.iter().map(|sample| sample.runtime_ns).sum();
        let cpus = used_ns as f64 / usage.span_ns as f64;
        let found = requests(&usage, lean, 1, &AtomicBool::new(false)).unwrap();
        let mut shares = Vec::new();
        for (n, load) in found.iter().enumerate() {
            let used = load.mean_cpus() / cpus;
            assert!((used - 1.0).abs() < 1e-3, "{used} times the recorded use");
            let of_thread = load.arrivals(load.span_ns);
            let ran = run(lean, &of_thread, &limits, load.span_ns, n as Ns * 2 * MS);
            shares.push(ran.nr_throttled as f64 / ran.nr_periods as f64);
        }
        shares.sort_by(f64::total_cmp);
        let median = shares[shares.len() / 2];
        assert!((median / counted - 1.0).abs() < 0.3, "{median} for {counted}: {shares:?}");
    }

    #[test]
    fn counters_tell_of_requests() {
        let (inside, all) = inside(9..=12);
        assert!(all >= 9, "{all}");
        assert!(inside[0] * 10 >= all * 7 && inside[1] * 10 >= all * 8, "{inside:?} of {all}");
    }

    /// The table of docs/plan.md: `cargo test -p reveille-plan --lib counters -- --ignored
    /// --nocapture`.
    #[test]
    #[ignore = "takes four minutes"]
    fn counters_tell_of_48_loads() {
        let (inside, all) = inside(1..=48);
        assert!(inside[0] * 100 >= all * 93 && inside[1] * 100 >= all * 90, "{inside:?} of {all}");
    }
}

//! Ranks many containers: which ones their limit throttles, what that does to latency, and how much
//! of the limit they don't use. Each row is an estimate from the lean replay; before you change a
//! limit, run [`plan`](crate::plan()) on the container.

use std::sync::atomic::{AtomicBool, Ordering};

use rayon::iter::{IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};
use reveille_measure::{Shard, enough_for};
use reveille_place::{InputError, Mistake};
use reveille_policy::BandwidthLimits;
use reveille_usage::{HeldBack, Origin, Sample, Usage};
use serde::{Deserialize, Serialize};

use crate::growth::grown;
use crate::load::Load;
use crate::recover::recover;
use crate::replay::{Phase, Stage};
use crate::request::{Request, pool};
use crate::search::least_millicpus;
use crate::short::{at_least, too_short};
use crate::sketch::Sketch;
use crate::{Ns, PlanError};

/// Throttling is reported for the worst stretch of this length.
const HOUR_NS: Ns = 3_600_000_000_000;
/// Phases at which a recording is replayed, unless its demand was inferred.
const PHASES: u32 = 20;
/// Resolution of the search for quotas, relative.
const STEP: f64 = 0.01;

/// One container's row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Container {
    /// Its recording's name, such as `shop/web-6d5f-x7k2p/app`.
    pub name: String,
    /// Its limits while it was recorded, if known.
    pub limits: Option<BandwidthLimits>,
    /// Length of the recording.
    pub span_ns: Ns,
    /// [`Usage::unseen_ns`].
    #[serde(default)]
    pub unseen_ns: Option<Ns>,
    /// Was it gone when others were last seen? Then it has no CPUs to spare.
    #[serde(default)]
    pub gone: bool,
    pub mean_cpus: f64,
    /// CPUs used in the busiest second or, in a recording of averages, step.
    pub peak_cpus: f64,
    /// Throttled periods divided by periods with runnable tasks; `None` if not recorded.
    pub throttled_share: Option<f64>,
    /// `throttled_share` in the worst hour.
    pub worst_hour_share: Option<f64>,
    /// p99 of latency under these limits, in ns; `None` if the recording cannot tell.
    pub p99_ns: Option<Likely>,
    /// Share of the inferred recordings, or of phases, in which these limits miss a goal.
    pub risk: Option<f64>,
    /// Quota that meets the goals with head-room, in CPUs.
    pub needed_cpus: Option<f64>,
    /// CPUs that the limit could give up. An upper bound: averages hide bursts. `None` if a latency
    /// goal is answered from counters, if the recording is too short for the goals, or if it is of
    /// averages and throttling was not counted.
    pub spare_cpus: Option<f64>,
    /// What is unknown, and why.
    pub note: Option<String>,
}

impl Container {
    /// May its limit have throttled it without a counter of that in the recording?
    pub fn throttling_unknown(&self) -> bool {
        let limited = self.limits.is_none_or(|limits| limits.quota_ns.is_some());
        limited && self.throttled_share.is_none()
    }
}

/// Prometheus considers a series ended after so long without a sample.
const STALE_NS: Ns = 300_000_000_000;

/// A figure with its 90% range. A latency is infinite (null in JSON) if the work does not complete
/// in the simulated time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Likely {
    /// 5% quantile.
    #[serde(deserialize_with = "or_endless")]
    pub low: f64,
    #[serde(deserialize_with = "or_endless")]
    pub median: f64,
    /// 95% quantile.
    #[serde(deserialize_with = "or_endless")]
    pub high: f64,
}

fn or_endless<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::INFINITY))
}

/// A container that could not be evaluated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// Its recording.
    pub name: String,
    /// What is wrong, and the fix.
    #[serde(flatten)]
    pub mistake: Mistake,
}

/// A file of a directory that was not taken for a recording.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Skipped {
    /// Its path in the directory.
    pub name: String,
    pub why: String,
}

/// Is the recording of this name in the shard? Depends on the name alone.
pub fn in_shard(shard: Shard, name: &str) -> bool {
    // FNV-1a, 64 bits.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    shard.has(hash as usize)
}

/// Containers ranked by risk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fleet {
    /// The goals as the user wrote them.
    pub goals: Vec<String>,
    /// Head-room in [`Container::needed_cpus`], as a share of work.
    pub headroom: f64,
    pub shards: Vec<Shard>,
    /// By descending risk.
    pub containers: Vec<Container>,
    /// Recordings that could not be evaluated.
    pub failed: Vec<Failed>,
    /// Files of the directories that hold no recording.
    #[serde(default)]
    pub skipped: Vec<Skipped>,
    /// Number of recordings that an interruption left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing: usize,
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

impl Fleet {
    /// Sorts by missed goals, then by throttling, then by CPUs to spare; those that are gone last.
    pub fn ranked(mut self) -> Fleet {
        // A server may lack the last hours of all containers.
        let least_ns = self.containers.iter().filter_map(|c| c.unseen_ns).min().unwrap_or(0);
        for container in &mut self.containers {
            container.gone = container.unseen_ns.is_some_and(|ns| ns - least_ns > STALE_NS);
            container.spare_cpus = container.spare_cpus.filter(|_| !container.gone);
        }
        let keys = |c: &Container| [c.risk, c.worst_hour_share, c.spare_cpus];
        self.containers.sort_by(|a, b| {
            let worse = keys(b)
                .into_iter()
                .zip(keys(a))
                .map(|(b, a)| b.unwrap_or(-1.0).total_cmp(&a.unwrap_or(-1.0)));
            worse.fold(a.gone.cmp(&b.gone), std::cmp::Ordering::then).then(a.name.cmp(&b.name))
        });
        self.failed.sort_by(|a, b| a.name.cmp(&b.name));
        self.skipped.sort();
        self
    }

    /// Merges shards of one fleet.
    ///
    /// # Errors
    /// Shards with different options, duplicate shards, or missing shards.
    pub fn merged(parts: Vec<Fleet>) -> Result<Fleet, Mistake> {
        let mut parts = parts.into_iter();
        let mut all = parts.next().ok_or_else(|| Mistake::new("no part is given", "name files"))?;
        for part in parts {
            if part.goals != all.goals || part.headroom != all.headroom {
                let problem = "the parts have different goals or head-room";
                return Err(Mistake::new(problem, "make all parts with the same options"));
            }
            all.shards.extend(part.shards);
            all.containers.extend(part.containers);
            all.failed.extend(part.failed);
            all.skipped.extend(part.skipped);
            all.missing += part.missing;
        }
        all.shards.sort_unstable();
        let of = all.shards.first().map_or(1, |shard| shard.of);
        let wanted: Vec<Shard> = (1..=of).map(|index| Shard { index, of }).collect();
        if all.shards != wanted {
            let has = all.shards.iter().map(Shard::to_string).collect::<Vec<_>>().join(", ");
            let problem = format!("the parts are {has}, and not each of {of} parts once");
            return Err(Mistake::new(problem, "give every part once"));
        }
        all.shards = vec![Shard::WHOLE];
        Ok(all.ranked())
    }
}

/// Evaluates many recordings on `jobs` threads; the result does not depend on their number. `usage`
/// reads a recording, `cpus` gives its node's CPUs, and `like` supplies all other options. `told`
/// is called after each recording, on any thread. Once `stop` is set, those that are not finished
/// are left out.
///
/// # Errors
/// [`PlanError::Threads`]. A recording that cannot be evaluated goes to [`Fleet::failed`].
pub fn fleet<T: Sync>(
    items: &[T],
    like: &Request<'_>,
    jobs: usize,
    stop: &AtomicBool,
    usage: impl Fn(&T) -> Result<Usage, Failed> + Sync,
    cpus: impl Fn(&Usage) -> u32 + Sync,
    told: impl Fn() + Sync,
) -> Result<(Vec<Container>, Vec<Failed>), PlanError> {
    let one = |item: &T| {
        if stop.load(Ordering::Relaxed) {
            return None;
        }
        let found = usage(item).and_then(|usage| {
            let request = Request { usage: &usage, cpus: cpus(&usage), ..like.clone() };
            match container(&request, stop) {
                Err(PlanError::Interrupted) => Ok(None),
                found => found.map(Some).map_err(|error| {
                    let mistake = Mistake::of(&error, "see `reveille show`");
                    Failed { name: usage.name.clone(), mistake }
                }),
            }
        });
        told();
        found.transpose()
    };
    let all: Vec<Result<Container, Failed>> =
        pool(jobs)?.install(|| items.par_iter().filter_map(one).collect());
    let mut found = (Vec::new(), Vec::new());
    for one in all {
        match one {
            Ok(container) => found.0.push(container),
            Err(failed) => found.1.push(failed),
        }
    }
    Ok(found)
}

fn container(request: &Request<'_>, stop: &AtomicBool) -> Result<Container, PlanError> {
    let usage = request.usage;
    let limits = request.today.or(usage.limits);
    let quota = limits.and_then(|limits| limits.cpus());
    let last = usage.samples.last().copied().unwrap_or_default();
    let averages = matches!(usage.origin, Origin::Averaged { .. });
    let mut container = Container {
        name: usage.name.clone(),
        limits,
        span_ns: usage.span_ns,
        unseen_ns: usage.unseen_ns,
        mean_cpus: usage.mean_cpus(),
        peak_cpus: peak_cpus(usage),
        throttled_share: share(last.nr_throttled, last.nr_periods),
        worst_hour_share: worst_hour(&usage.samples),
        ..Container::default()
    };
    if let Some(mistake) = usage.beyond_its_limit() {
        container.note = Some(mistake.problem);
        return Ok(container);
    }
    if let Some(held_back) = usage.held_back() {
        let why = match held_back {
            HeldBack::Programs => {
                "other programs kept CPU time from it: record when the host has idle time"
            }
            HeldBack::LimitAround => {
                "a group around it was throttled: lift that limit and record again"
            }
        };
        container.note = Some(why.into());
        return Ok(container);
    }
    if averages && usage.throttling().is_none() {
        // Averages show the peak only if the limit never throttled the group, and only counters of
        // throttling tell that.
        if last.nr_periods > 0 {
            container.spare_cpus = quota.map(|cpus| (cpus - container.peak_cpus).max(0.0));
        }
        let why = match (quota, last.nr_periods) {
            (None, _) if limits.is_none() => "its limit is not known",
            (None, _) => "no limit",
            (Some(_), 0) => "throttling was not counted",
            (Some(_), _) => "never throttled: averages hide how much less would do",
        };
        container.note = Some(why.into());
        return Ok(container);
    }
    let recovered = match recover(request, stop) {
        Err(PlanError::Input(InputError::File(error))) => {
            container.note = Some(format!("{}; {}", error.problem, error.help));
            return Ok(container);
        }
        other => other?,
    };
    let inferred: Vec<&Usage> = recovered.iter().flat_map(|recovered| &recovered.usages).collect();
    let usages = if inferred.is_empty() { vec![usage] } else { inferred };
    let mut known = request.clone();
    if let Some(recovered) = &recovered {
        recovered.replaces(&mut known);
    }
    let request = &known;
    let tell = || ();
    let stage = request.stage(stop, &tell)?;
    let estimate = Estimate { stage: &stage, sketch: Sketch::bare(&stage) };
    let recorded = loads(&usages);
    if let Some(limits) = limits {
        if enough_for(usages[0].demands.len() as u64, 0.99) {
            container.p99_ns = Some(estimate.p99(&recorded, limits)?);
        } else {
            container.note = Some("too few pieces of work for a p99".into());
        }
    }
    if request.goals.is_empty() {
        return Ok(container);
    }
    if let Some(limits) = limits {
        container.risk = Some(1.0 - estimate.holds(&recorded, limits)?);
    }
    let more: Vec<Usage> =
        usages.iter().map(|usage| grown(usage, request.headroom, request.growth)).collect();
    let more: Vec<&Usage> = more.iter().collect();
    let today_ns = limits.map_or(BandwidthLimits::default().period_ns, |limits| limits.period_ns);
    let period_ns = request.allowed.period().unwrap_or(today_ns);
    container.needed_cpus = estimate.needed(&more, period_ns, request)?;
    let floor = request.floor().and_then(|limits| limits.cpus());
    if floor.is_some() || request.estimates() {
        // Below the limit in force nothing is known, and a rare long job is not seen.
        container.needed_cpus =
            container.needed_cpus.zip(floor).map(|(needed, floor)| needed.max(floor));
        let why = match container.needed_cpus {
            None => "counters cannot tell which quota meets the goals: record requests",
            Some(_) if request.estimates() => {
                "latency is estimated from counters: record requests before lowering the limit"
            }
            Some(_) => "so few minutes of counters lower no limit: take more of them",
        };
        container.note = Some(why.into());
        return Ok(container);
    }
    let recommended = BandwidthLimits { period_ns, ..BandwidthLimits::default() };
    if let Some(short) = too_short(request, recommended).first() {
        let enough = short.enough_ns.map_or("longer".into(), at_least);
        container.note = Some(format!("{short}. Record for {enough}"));
        return Ok(container);
    }
    match container.needed_cpus {
        None => {
            container.note = Some("no quota up to all CPUs meets the goals with head-room".into())
        }
        Some(needed) => container.spare_cpus = quota.map(|cpus| (cpus - needed).max(0.0)),
    }
    Ok(container)
}

/// The lean replay of equally likely recordings.
struct Estimate<'a> {
    stage: &'a Stage<'a>,
    sketch: Sketch,
}

impl Estimate<'_> {
    /// One figure for each recording, each at its own phase; a single recording at many phases.
    fn each(
        &self,
        loads: &[Load],
        figure: impl Fn(&Load, Phase) -> Result<f64, PlanError> + Sync,
    ) -> Result<Vec<f64>, PlanError> {
        let runs = loads.len().max(PHASES as usize);
        let run = |number: usize| {
            figure(&loads[number % loads.len()], Phase::of_grid(number as u32, runs as u32))
        };
        (0..runs).into_par_iter().map(run).collect()
    }

    fn p99(&self, loads: &[Load], limits: BandwidthLimits) -> Result<Likely, PlanError> {
        let p99 = |load: &Load, phase| self.sketch.p99_ns(self.stage, load, limits, phase);
        let mut all = self.each(loads, p99)?;
        all.sort_by(f64::total_cmp);
        let (last, outside) = (all.len() - 1, all.len() / 20);
        Ok(Likely { low: all[outside], median: all[last / 2], high: all[last - outside] })
    }

    /// Share of runs in which all goals hold.
    fn holds(&self, loads: &[Load], limits: BandwidthLimits) -> Result<f64, PlanError> {
        let strain = |load: &Load, phase| self.sketch.strain(self.stage, load, limits, phase);
        let all = self.each(loads, strain)?;
        Ok(all.iter().filter(|strain| **strain <= 1.0).count() as f64 / all.len() as f64)
    }

    /// The smallest quota of up to all CPUs that holds with the request's confidence.
    fn needed(
        &self,
        usages: &[&Usage],
        period_ns: Ns,
        request: &Request<'_>,
    ) -> Result<Option<f64>, PlanError> {
        let loads = loads(usages);
        let holds = |cpus: f64| {
            let quota_ns = Some((cpus * period_ns as f64).round() as Ns);
            let limits = BandwidthLimits { quota_ns, period_ns, burst_ns: 0 };
            if limits.check().is_err() {
                return Ok(false);
            }
            Ok::<_, PlanError>(self.holds(&loads, limits)? >= request.confidence)
        };
        let most = |of: fn(&Usage) -> f64| usages.iter().map(|usage| of(usage)).fold(0.0, f64::max);
        let parallel = most(|usage| f64::from(usage.max_parallel()));
        let mut high = 1.25 * parallel.min(f64::from(request.cpus));
        let mut low = (least_millicpus(usages.iter().copied()) as f64 / 1000.0).min(high);
        if !holds(high)? {
            return Ok(None);
        }
        while high - low > STEP * high {
            let middle = (low + high) / 2.0;
            match holds(middle)? {
                true => high = middle,
                false => low = middle,
            }
        }
        let millicpus = request.allowed.rounded_up((1000.0 * high).ceil() as u64);
        Ok(request.fits(millicpus).then_some(millicpus as f64 / 1000.0))
    }
}

fn loads(usages: &[&Usage]) -> Vec<Load> {
    usages.iter().map(|usage| Load::new(&[usage])).collect()
}

fn share(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}

const SECOND_NS: Ns = 1_000_000_000;

/// CPUs used in the busiest second, or in the busiest sample where samples are longer. Seconds
/// follow one another from the start; a table of requests tells them without a limit.
fn peak_cpus(usage: &Usage) -> f64 {
    let mut most = usage.mean_cpus();
    if usage.samples.is_empty() {
        return most.max(busiest_second(usage));
    }
    let (mut from_ns, mut used_ns) = (0, 0);
    for sample in &usage.samples {
        used_ns += sample.runtime_ns;
        let length_ns = sample.at_ns - from_ns;
        if length_ns >= SECOND_NS {
            most = most.max(used_ns as f64 / length_ns as f64);
            (from_ns, used_ns) = (sample.at_ns, 0);
        }
    }
    most
}

/// CPUs that the demands use in their busiest second on as many CPUs as threads: each thread runs
/// its demands one after the other, from their arrival.
fn busiest_second(usage: &Usage) -> f64 {
    let seconds = usage.span_ns / SECOND_NS;
    let mut used_ns = vec![0; seconds as usize];
    let mut free_ns = vec![0; usage.threads as usize];
    for demand in &usage.demands {
        let free_ns: &mut Ns = &mut free_ns[demand.thread as usize];
        let mut from_ns = demand.at_ns.max(*free_ns);
        *free_ns = from_ns.saturating_add(demand.cpu_ns);
        while from_ns < *free_ns && from_ns / SECOND_NS < seconds {
            let second = from_ns / SECOND_NS;
            let until_ns = (*free_ns).min((second + 1) * SECOND_NS);
            used_ns[second as usize] += until_ns - from_ns;
            from_ns = until_ns;
        }
    }
    used_ns.into_iter().max().unwrap_or(0) as f64 / SECOND_NS as f64
}

/// Share of throttled periods in the worst hour; over everything if the recording is shorter.
fn worst_hour(samples: &[Sample]) -> Option<f64> {
    let whole_ns = samples.last()?.at_ns;
    let start = Sample::default();
    // The sample ahead of a number.
    let ahead = |number: usize| number.checked_sub(1).map_or(&start, |n| &samples[n]);
    let mut from = 0;
    let mut worst: Option<f64> = None;
    for until in samples {
        while until.at_ns - samples[from].at_ns >= HOUR_NS {
            from += 1;
        }
        let since = ahead(from);
        if until.at_ns - since.at_ns < HOUR_NS.min(whole_ns) {
            continue;
        }
        let periods = until.nr_periods - since.nr_periods;
        let here = share(until.nr_throttled - since.nr_throttled, periods);
        worst = [worst, here].into_iter().flatten().reduce(f64::max);
    }
    worst
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE_NS: Ns = 60_000_000_000;

    #[test]
    fn the_worst_hour_is_told() {
        // Three hours; in the second one 30 of 600 periods a minute are throttled.
        let sample = |n: u64| Sample {
            at_ns: n * MINUTE_NS,
            nr_periods: 600 * n,
            nr_throttled: 30 * n.clamp(60, 120) - 1800,
            ..Sample::default()
        };
        let samples: Vec<Sample> = (1..=180).map(sample).collect();
        assert_eq!(worst_hour(&samples), Some(0.05));
        assert_eq!(worst_hour(&samples[..90]), Some(0.025));
        assert_eq!(worst_hour(&samples[..30]), Some(0.0));
        assert_eq!(worst_hour(&[]), None);
    }

    /// Where the server lacks the last two hours, and beside a live recording, too.
    #[test]
    fn a_container_is_gone_if_others_were_seen_later() {
        let of = |(name, minutes): (&str, Option<Ns>)| Container {
            name: name.into(),
            unseen_ns: minutes.map(|minutes| minutes * MINUTE_NS),
            spare_cpus: Some(1.0),
            ..Container::default()
        };
        let all = [("a gone", Some(126)), ("b", Some(120)), ("c live", None), ("d", Some(125))];
        let fleet = Fleet {
            goals: Vec::new(),
            headroom: 0.15,
            shards: vec![Shard::WHOLE],
            containers: all.map(of).into(),
            failed: Vec::new(),
            skipped: Vec::new(),
            missing: 0,
        };
        let ranked = fleet.ranked();
        let found = ranked.containers.iter().map(|c| (c.name.as_str(), c.spare_cpus.is_some()));
        let expected = [("b", true), ("c live", true), ("d", true), ("a gone", false)];
        assert_eq!(found.collect::<Vec<_>>(), expected);
        assert_eq!(ranked.clone().ranked(), ranked);
    }

    #[test]
    fn requests_have_a_busiest_second() {
        const MS: Ns = 1_000_000;
        let demand = |at_ms: Ns, cpu_ms: Ns, thread: u32| reveille_usage::Demand {
            at_ns: at_ms * MS,
            cpu_ns: cpu_ms * MS,
            thread,
            done_ns: None,
        };
        let peak = |threads: u32, demands: &[reveille_usage::Demand]| {
            let (span_ns, demands) = (10_500 * MS, demands.to_vec());
            peak_cpus(&Usage { span_ns, threads, demands, ..Usage::idle("requests") })
        };
        assert_eq!(peak(1, &[demand(100, 10, 0), demand(3000, 200, 0), demand(3900, 100, 0)]), 0.3);
        // It runs on into the next second, and a thread is one CPU at most.
        assert_eq!(peak(1, &[demand(3900, 200, 0), demand(4000, 300, 0)]), 0.4);
        assert_eq!(peak(1, &[demand(500, 2000, 0), demand(600, 700, 0)]), 1.0);
        assert_eq!(peak(2, &[demand(500, 2000, 0), demand(600, 700, 1)]), 1.3);
        // Less than a second is left at the end.
        assert_eq!(peak(1, &[demand(10_000, 105, 0)]), 0.01);
        assert_eq!(peak(0, &[]), 0.0);
    }

    #[test]
    fn every_name_is_in_one_part() {
        let parts: Vec<Shard> = (1..=4).map(|n| format!("{n}/4").parse().unwrap()).collect();
        for name in (0..100).map(|n| format!("shop/web-{n}/app")) {
            assert_eq!(parts.iter().filter(|part| in_shard(**part, &name)).count(), 1);
        }
        for wrong in ["0/4", "5/4", "1/0", "4", "a/b", "-1/4"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn parts_make_a_whole_once() {
        let part = |index| Fleet {
            goals: Vec::new(),
            headroom: 0.15,
            shards: vec![Shard { index, of: 2 }],
            containers: Vec::new(),
            failed: Vec::new(),
            skipped: Vec::new(),
            missing: 0,
        };
        assert_eq!(Fleet::merged(vec![part(2), part(1)]).unwrap().shards, [Shard::WHOLE]);
        for parts in
            [vec![], vec![part(1)], vec![part(1), part(1)], vec![part(1), part(2), part(2)]]
        {
            assert!(Fleet::merged(parts).is_err());
        }
        let other = Fleet { headroom: 0.2, ..part(2) };
        assert!(Fleet::merged(vec![part(1), other]).unwrap_err().problem.contains("head-room"));
    }
}

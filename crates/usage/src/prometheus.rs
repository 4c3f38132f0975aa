//! Imports a container's counters from Prometheus' answers to range queries. They give the CPU time
//! of each step, but not when it was used within the step.

mod answer;
mod containers;
mod flat;
mod series;

use std::collections::BTreeSet;

use reveille_place::Mistake;
use reveille_policy::BandwidthLimits;

use crate::averaged::spread;
use crate::{InputError, Ns, Origin, Sample, Usage};
use answer::points;
use containers::{joined, of_containers, of_one, summed};
use series::{Counter, NAMES, PERIOD, PERIODS, Picked, QUOTA, Series, THROTTLED, USAGE};

/// A label and value that select one of several series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Select {
    /// Such as `pod`.
    pub label: String,
    pub value: String,
}

impl std::str::FromStr for Select {
    type Err = String;

    fn from_str(text: &str) -> Result<Select, String> {
        match text.split_once('=') {
            Some((label, value)) if !label.is_empty() => {
                Ok(Select { label: label.into(), value: value.trim_matches('"').into() })
            }
            _ => Err(format!("`{text}` is not LABEL=VALUE, such as pod=web-0")),
        }
    }
}

impl Usage {
    /// Reads Prometheus' answers to range queries for a container's counters, from files given by
    /// name and content; each holds one answer or an array of them.
    /// `container_cpu_usage_seconds_total` is required, series on limits and throttling are
    /// optional.
    ///
    /// # Errors
    /// [`InputError::File`]; if several series match, it lists them.
    pub fn from_prometheus(
        name: &str,
        files: &[(String, Vec<u8>)],
        select: &[Select],
    ) -> Result<Usage, InputError> {
        let mut all = Vec::new();
        for (file, bytes) in files {
            all.extend(points(bytes).map_err(|mistake| mistake.in_file::<InputError>(file))?);
        }
        let files: Vec<&str> = files.iter().map(|(file, _)| file.as_str()).collect();
        let usage = picked(all, select).and_then(|picked| recording(name, picked)?.checked());
        usage.map_err(|mistake| mistake.in_file(files.join(", ")))
    }

    /// Do Prometheus' answers show the CPU time used less than twice, so that they are no recording?
    pub fn seen_once(files: &[(String, Vec<u8>)]) -> bool {
        let all: Result<Vec<_>, _> = files.iter().map(|(_, bytes)| points(bytes)).collect();
        all.is_ok_and(|all| {
            let usage = all.into_iter().flatten().filter(|series| series.name == USAGE);
            usage.flat_map(|usage| usage.points).map(|p| p.0).collect::<BTreeSet<Ns>>().len() < 2
        })
    }
}

fn picked(all: Vec<Series>, select: &[Select]) -> Result<Picked, Mistake> {
    for Select { label, value } in select {
        let mut seen: Vec<&str> =
            all.iter().filter_map(|s| s.labels.get(label)).map(String::as_str).collect();
        if !seen.contains(&value.as_str()) {
            seen.sort_unstable();
            seen.dedup();
            let fix = match seen.len() {
                0 => format!("no series has a label `{label}`; leave it out"),
                _ => format!("`{label}` is one of {}", seen.join(", ")),
            };
            return Err(Mistake::new(format!("no series has {label}={value}"), fix));
        }
    }
    if let Some(part) = select.iter().find(|s| s.label == "cpu" && s.value != "total") {
        let problem = format!("cpu={} is a part of what the container uses", part.value);
        return Err(Mistake::new(problem, "leave it out: the series of CPUs are added up"));
    }
    // A series without the label matches any value.
    let fits = |series: &Series| {
        let other = |s: &Select| series.labels.get(&s.label).is_some_and(|v| *v != s.value);
        !select.iter().any(other)
    };
    let mut picked: Picked = Default::default();
    for (slot, name) in picked.iter_mut().zip(NAMES) {
        let mut fitting: Vec<Series> = Vec::new();
        let named = all.iter().filter(|s| s.name == name && fits(s)).cloned().collect();
        for series in of_containers(named) {
            match fitting.iter_mut().find(|known| known.labels == series.labels) {
                // A long range that was queried in parts.
                Some(known) => known.points.extend(series.points),
                None => fitting.push(series),
            }
        }
        fitting = summed(joined(fitting));
        if fitting.len() > 1 {
            return Err(several(name, &fitting));
        }
        *slot = fitting.pop();
    }
    if picked[0].is_none() {
        let mut seen: Vec<&str> = all.iter().map(|s| s.name.as_str()).collect();
        seen.sort_unstable();
        seen.dedup();
        let here = match seen.as_slice() {
            [] => {
                let fix = "check the labels in the query, and its range of time";
                return Err(Mistake::new("the answer holds no series", fix));
            }
            [""] => "series without a name, as rate() leaves them".to_owned(),
            names => names.join(", "),
        };
        let fix = format!("query {USAGE} itself over a range, without rate() or sum()");
        return Err(Mistake::new(format!("no {USAGE} here, but {here}"), fix));
    }
    of_one(&picked)?;
    Ok(picked)
}

fn several(name: &str, series: &[Series]) -> Mistake {
    let first = &series[0].labels;
    let same = |label: &String| series.iter().all(|s| s.labels.get(label) == first.get(label));
    let mut lines = Vec::new();
    for one in series.iter().take(20) {
        let labels = one.labels.iter().filter(|(label, _)| !same(label));
        let labels: Vec<String> = labels.map(|(label, value)| format!("{label}={value}")).collect();
        lines.push(if labels.is_empty() { "(no more labels)".into() } else { labels.join(" ") });
    }
    if series.len() > lines.len() {
        lines.push(format!("and {} more", series.len() - lines.len()));
    }
    let problem = format!("{} series of {name}: {}", series.len(), lines.join("; "));
    Mistake::new(problem, "choose one by --select LABEL=VALUE, which may be given several times")
}

fn recording(name: &str, picked: Picked) -> Result<Usage, Mistake> {
    let [usage, periods, throttled, throttled_time, quota, period] = picked;
    let mut usage = usage.expect("`picked` refuses answers without it");
    let [mut periods, mut throttled, mut throttled_time] = [periods, throttled, throttled_time];
    let changes = [&quota, &period].into_iter().flatten().filter_map(Series::last_change);
    // Neither a limit nor a counter of its periods until it was set.
    let set = [&quota, &periods].map(|series| series.as_ref()?.begins_after(&usage));
    let set = set[0].zip(set[1]).map(|(a, b)| (a.max(b), "its limit's counters began"));
    let change = changes.map(|at_ns| (at_ns, "its limit changed")).chain(set).max();
    if let Some((changed_ns, what)) = change {
        let counters = [&mut periods, &mut throttled, &mut throttled_time];
        usage.forget_before(changed_ns);
        counters.into_iter().flatten().for_each(|series| series.forget_before(changed_ns));
        if usage.points.len() < 2 {
            let at_s = changed_ns as f64 / 1e9;
            let problem = format!("{what} at {at_s} s, and hardly anything follows");
            let fix = "query a range that begins after that, or one that ends before it";
            return Err(Mistake::new(problem, fix));
        }
    }
    let usage = usage.counter()?;
    let counter = |series: Option<Series>| series.map(Series::counter).transpose();
    let (first_ns, last_ns) = usage.range();
    let step_ns = usage.step_ns();
    let mut warnings = vec![format!(
        "These are averages over {}, which show neither bursts nor latency. A plan infers them from \
         the counters of a throttled container, with wide ranges; elsewhere it takes demand as even, \
         and the limits that follow are too low. `reveille record` sees both.",
        seconds(step_ns)
    )];
    if let Some((_, what)) = change {
        let used = seconds(last_ns - first_ns);
        warnings.push(format!("Of this range, only the {used} since {what} are used."));
    }
    warnings.extend(usage.warnings(step_ns));
    let (periods, throttled, throttled_time) =
        (counter(periods)?, counter(throttled)?, counter(throttled_time)?);
    if periods.is_some() && throttled.is_none() {
        let problem = format!("{PERIODS} is here without {THROTTLED}: throttling is unknown");
        return Err(Mistake::new(problem, "query both over the same range, or leave both out"));
    }
    for counter in [&periods, &throttled, &throttled_time].into_iter().flatten() {
        counter.covers([first_ns, last_ns], step_ns)?;
        // One gap of all counters is told once.
        warnings.extend(counter.gaps(step_ns).filter(|gaps| !warnings.contains(gaps)));
    }
    let since = |counter: &Option<Counter>, at_ns, unit: f64| {
        let counter = counter.as_ref();
        counter.map_or(0, |c| ((c.at(at_ns) - c.at(first_ns)) * unit).round() as u64)
    };
    let samples = usage.steps().map(|(_, until_ns, used_s)| Sample {
        at_ns: until_ns - first_ns,
        runtime_ns: (used_s * 1e9).round() as Ns,
        runnable: None,
        nr_periods: since(&periods, until_ns, 1.0),
        nr_throttled: since(&throttled, until_ns, 1.0),
        throttled_ns: since(&throttled_time, until_ns, 1e9),
    });
    let samples: Vec<Sample> = samples.collect();
    if since(&throttled, last_ns, 1.0) > 0 {
        warnings.push(
            "It was throttled while it was watched: what it would have used without a limit is \
             more than what is recorded."
                .into(),
        );
    }
    let told_us = period.as_ref().and_then(|period| period.points.last()).map(|point| point.1);
    let limits = limits(quota, period)?;
    if let Some(last) = samples.last().filter(|_| periods.is_some()) {
        let span_us = (last_ns - first_ns + 2 * step_ns) as f64 / 1e3;
        let most = told_us.map(|us| (1.05 * span_us / us) as u64 + 1);
        possible(last.nr_periods, last.nr_throttled, most)?;
        if last.nr_throttled > 0 && limits.is_some_and(|limits| limits.quota_ns.is_none()) {
            let throttled = last.nr_throttled;
            let problem = format!(
                "{QUOTA} says that there is no limit, and {throttled} periods were throttled"
            );
            let fix = "query the quota of the same container over the same range; with the limit \
                       just lifted, query a range that begins after that";
            return Err(Mistake::new(problem, fix));
        }
    }
    if periods.is_none() && throttled.is_none() && throttled_time.is_none() {
        warnings.extend(flat::warning(&usage, limits));
    }
    let spread = spread(&samples)?;
    if spread.is_coarse() {
        let slot_ms = spread.slot_ns / 1_000_000;
        warnings.push(format!("To stay small, it has one demand in {slot_ms} ms."));
    }
    let usage = Usage {
        origin: Origin::Averaged { step_ns },
        span_ns: last_ns - first_ns,
        threads: spread.threads,
        demands: spread.demands,
        samples,
        limits,
        began_unix_ns: Some(first_ns),
        warnings,
        ..Usage::idle(name)
    };
    usage.beyond_its_limit().map_or(Ok(usage), Err)
}

fn seconds(ns: Ns) -> String {
    format!("{} s", ns as f64 / 1e9)
}

/// Refuses counts that no range holds: it has `most` periods, if their length is known.
fn possible(periods: u64, throttled: u64, most: Option<u64>) -> Result<(), Mistake> {
    let fix = "query the counters of one container, all over the same range";
    if throttled > periods {
        let problem = format!("{throttled} periods are throttled, of {periods}");
        return Err(Mistake::new(problem, fix));
    }
    if let Some(most) = most.filter(|most| periods > *most) {
        let problem = format!("{periods} periods are counted, and no more than {most} fit");
        return Err(Mistake::new(problem, fix));
    }
    Ok(())
}

/// The limits at the end of the range.
fn limits(
    quota: Option<Series>,
    period: Option<Series>,
) -> Result<Option<BandwidthLimits>, Mistake> {
    let last = |series: Option<Series>| series?.points.last().map(|point| point.1);
    let (quota_us, period_us) = (last(quota), last(period));
    let default = BandwidthLimits::default();
    let period_ns = period_us.map_or(default.period_ns, |us| (us * 1e3).max(0.0) as Ns);
    let limits = match quota_us {
        None => return Ok(None),
        Some(us) if us <= 0.0 => BandwidthLimits { quota_ns: None, period_ns, burst_ns: 0 },
        Some(us) => BandwidthLimits { quota_ns: Some((us * 1e3) as Ns), period_ns, burst_ns: 0 },
    };
    limits.check().map_err(|error| {
        let told = |name: &str, us: Option<f64>| us.map(|us| format!("{name} is {us}"));
        let told = [told(QUOTA, quota_us), told(PERIOD, period_us)].into_iter().flatten();
        let told = told.collect::<Vec<_>>().join(", ");
        let fix = "both are in microseconds, 60000 per 100000 for 0.6 CPUs; leave them out if they \
                   are wrong";
        Mistake::new(format!("impossible limits: {told}: {error}"), fix)
    })?;
    Ok(Some(limits))
}

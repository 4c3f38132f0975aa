//! What a run is judged by: a metric of its workload, one of the numbers that
//! explain a result, or what bandwidth control did to a task group.

use reveille_measure::{
    Direction, Explain, ExplainFigure, GroupStats, Metric, Ns, RunResult, enough_for, needed_for,
    unit_ns,
};
use reveille_place::Mistake;
use reveille_policy::Groups;
use reveille_workload::{MetricKind, Workload};

#[derive(Clone, Debug)]
pub struct Measure {
    pub metric: Metric,
    pub from: MeasureFrom,
}

#[derive(Clone, Debug)]
pub enum MeasureFrom {
    /// The workload's own metric.
    Workload(MetricKind),
    Explain(&'static ExplainFigure),
    /// A counter of a task group.
    Group {
        /// Index into the groups of the case.
        group: usize,
        figure: &'static GroupFigure,
    },
}

#[derive(Debug)]
pub struct GroupFigure {
    pub name: &'static str,
    pub unit: &'static str,
    /// Which way is better.
    pub direction: Direction,
    value: fn(&GroupStats) -> f64,
}

/// What a task group can be judged by. Names follow `cpu.stat`.
pub const GROUP_FIGURES: [GroupFigure; 7] = [
    figure("throttled_pct", "%", Direction::Lower, |g| share(g.nr_throttled, g.nr_periods)),
    figure("nr_periods", "periods", Direction::Neither, |g| g.nr_periods as f64),
    figure("nr_throttled", "periods", Direction::Lower, |g| g.nr_throttled as f64),
    figure("throttled_time", "ns", Direction::Lower, |g| g.throttled_ns as f64),
    figure("nr_bursts", "periods", Direction::Neither, |g| g.nr_bursts as f64),
    figure("burst_time", "ns", Direction::Neither, |g| g.burst_ns as f64),
    figure("usage", "ns", Direction::Neither, |g| g.usage_ns as f64),
];

const fn figure(
    name: &'static str,
    unit: &'static str,
    direction: Direction,
    value: fn(&GroupStats) -> f64,
) -> GroupFigure {
    GroupFigure { name, unit, direction, value }
}

/// Throttled periods in percent of periods; 0 of none is 0.
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

impl Measure {
    /// The figure of one run; NaN if the run was too short to record anything.
    pub(crate) fn sample(&self, result: &RunResult, explain: &Explain) -> f64 {
        match &self.from {
            MeasureFrom::Workload(kind) => workload_sample(*kind, result),
            MeasureFrom::Explain(figure) => (figure.value)(explain),
            MeasureFrom::Group { group, figure } => {
                result.groups.get(*group).map_or(f64::NAN, figure.value)
            }
        }
    }

    /// Is it a quantile of a latency?
    pub(crate) fn is_percentile(&self) -> bool {
        match &self.from {
            MeasureFrom::Workload(kind) => matches!(kind, MetricKind::RecordedLatency { .. }),
            MeasureFrom::Explain(figure) => figure.quantile.is_some(),
            MeasureFrom::Group { .. } => false,
        }
    }

    /// If it is a quantile that this run has too few samples for: how long a run has enough, at its
    /// rate.
    pub(crate) fn enough_ns(&self, result: &RunResult) -> Option<Ns> {
        let (latency, quantile) = match &self.from {
            MeasureFrom::Workload(MetricKind::RecordedLatency { record, quantile }) => {
                (result.recorded_latency.get(usize::from(*record)), *quantile)
            }
            MeasureFrom::Explain(ExplainFigure { quantile: Some(quantile), .. }) => {
                (Some(&result.wakeup_latency), *quantile)
            }
            _ => return None,
        };
        let count = latency?.count();
        let share = needed_for(quantile) as f64 / count.max(1) as f64;
        (!enough_for(count, quantile)).then_some((result.elapsed_ns as f64 * share) as Ns)
    }

    /// Refuses a `unit` in which the measure cannot be printed. With `times` a factor turns the unit
    /// into the measure's own; without, the ratio of both sides is judged, so that a throughput may
    /// be any rate, or the time that a given amount of work took.
    pub(crate) fn printed_in(&self, unit: &str, times: bool) -> Result<(), Mistake> {
        let own = &*self.metric.unit;
        match self.from {
            MeasureFrom::Workload(MetricKind::Throughput) if unit != own => {
                if is_rate(unit) || !times && unit_ns(unit).is_some() {
                    return Ok(());
                }
                let help = match times {
                    true => "write a rate, such as `MB/s`",
                    false => {
                        "write a rate, such as `MB/s`, or ns, us, ms or s for the time of some work"
                    }
                };
                Err(Mistake::new(format!("`{unit}` is no unit of a throughput"), help))
            }
            _ if times && is_rate(unit) == is_rate(own) => Ok(()),
            _ => self.per_unit(Some(unit)).map(drop),
        }
    }

    /// How much one `unit` is in the measure's own.
    pub(crate) fn per_unit(&self, unit: Option<&str>) -> Result<f64, Mistake> {
        let Some(unit) = unit.filter(|u| *u != self.metric.unit) else { return Ok(1.0) };
        match (unit_ns(&self.metric.unit), unit_ns(unit)) {
            (Some(own), Some(given)) => Ok(given as f64 / own as f64),
            _ => {
                let text = format!("`{unit}` cannot be turned into `{}`", self.metric.unit);
                let help = if unit_ns(&self.metric.unit).is_some() {
                    "use ns, us, ms or s".to_owned()
                } else {
                    "give the figure in the metric's own unit and leave `unit` out".to_owned()
                };
                Err(Mistake::new(text, help))
            }
        }
    }
}

/// Is a figure in this unit one per second, such as `MB/s` or `transactions/s each`?
fn is_rate(unit: &str) -> bool {
    let per = unit.split_once('/').and_then(|(_, per)| per.split(' ').next());
    per == Some("s")
}

fn workload_sample(kind: MetricKind, result: &RunResult) -> f64 {
    match kind {
        MetricKind::Throughput => result.throughput(),
        MetricKind::RecordedLatency { record, quantile } => {
            match result.recorded_latency.get(usize::from(record)) {
                Some(latency) if latency.count() > 0 => latency.quantile(quantile) as f64,
                // The run was too short to record anything.
                _ => f64::NAN,
            }
        }
    }
}

/// Everything that a case can be judged by: the workload's metrics first.
fn all(workload: &Workload, groups: &Groups) -> Vec<Measure> {
    let own = workload.metrics.iter().map(|m| Measure {
        metric: Metric::read(
            &m.name,
            if m.kind.higher_is_better() { Direction::Higher } else { Direction::Lower },
        ),
        from: MeasureFrom::Workload(m.kind),
    });
    let mut all: Vec<Measure> = own.collect();
    all.extend(Explain::FIGURES.iter().map(|figure| Measure {
        metric: Metric::new(figure.name, figure.unit, figure.direction),
        from: MeasureFrom::Explain(figure),
    }));
    for (index, group) in groups.groups.iter().enumerate() {
        all.extend(GROUP_FIGURES.iter().map(|figure| Measure {
            metric: Metric::new(
                match groups.groups.len() {
                    1 => figure.name.to_owned(),
                    _ => format!("{}.{}", group.name, figure.name),
                },
                figure.unit,
                figure.direction,
            ),
            from: MeasureFrom::Group { group: index, figure },
        }));
    }
    all
}

/// The measure that `name` stands for: its full name, or the start of exactly one
/// that ends at a blank (`p99` for `p99 wakeup latency (ns)`). Without a name, the
/// workload's first metric.
pub(crate) fn find(
    workload: &Workload,
    groups: &Groups,
    name: Option<&str>,
) -> Result<Measure, Mistake> {
    let all = all(workload, groups);
    match name {
        Some(name) => {
            let what = format!("metric of {}", workload.name);
            pick(&all, &what, name).map(|i| all[i].clone())
        }
        None if workload.metrics.is_empty() => {
            let text = format!("{} has no metric", workload.name);
            Err(Mistake::new(text, "give the workload one"))
        }
        None => Ok(all[0].clone()),
    }
}

/// The position among `measures` of the one that `name` stands for.
pub(crate) fn pick(measures: &[Measure], what: &str, name: &str) -> Result<usize, Mistake> {
    let known: Vec<String> = measures.iter().map(|m| m.metric.to_string()).collect();
    if let Some(same) = known.iter().position(|known| known == name) {
        return Ok(same);
    }
    let starts = |i: &usize| known[*i].strip_prefix(name).is_some_and(|rest| rest.starts_with(' '));
    let mut found = (0..measures.len()).filter(starts);
    match (found.next(), found.next()) {
        (Some(one), None) if !name.trim().is_empty() => Ok(one),
        (Some(one), Some(other)) => {
            let text = format!("`{name}` could be `{}` or `{}`", known[one], known[other]);
            Err(Mistake::new(text, "write the whole name"))
        }
        _ => Err(Mistake::unknown(what, name, &known)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schbench() -> Vec<Measure> {
        all(&reveille_workload::load("schbench").unwrap(), &Groups::default())
    }

    #[test]
    fn every_explaining_number_can_be_asked_for_by_its_name() {
        let measures = schbench();
        for (name, _) in Explain::default().figures() {
            let found = &measures[pick(&measures, "metric", name).unwrap()];
            assert_eq!(found.metric.name, name);
        }
    }

    #[test]
    fn times_are_turned_into_the_unit_of_the_metric() {
        let measures = schbench();
        let p99 = &measures[pick(&measures, "metric", "p99").unwrap()];
        assert_eq!(p99.per_unit(Some("us")).unwrap(), 1e3);
        assert_eq!(p99.per_unit(Some("s")).unwrap(), 1e9);
        assert_eq!(p99.per_unit(None).unwrap(), 1.0);
        assert!(p99.per_unit(Some("%")).is_err());
        let lock = &measures[pick(&measures, "metric", "lock_wait_pct").unwrap()];
        assert_eq!(lock.per_unit(Some("%")).unwrap(), 1.0);
        assert!(lock.per_unit(Some("ms")).is_err());
    }
}

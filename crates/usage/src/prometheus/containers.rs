//! Selects the series of one container. A kubelet also exports series of the pod and of its pause
//! container, and a new series after each restart.

use reveille_place::Mistake;

use super::series::{PERIOD, Picked, QUOTA, Series};
use crate::Ns;

/// Labels that change when a container restarts.
const CHANGED_BY_RESTART: [&str; 3] = ["id", "image", "name"];
/// Labels that name a container on whichever node it starts, where `id` tells its starts apart.
const NAMING: [&str; 5] = ["cluster", "namespace", "pod", "container", "cpu"];
/// The kubelet's name for the pause container.
const PAUSE: &str = "POD";

/// Keeps series of containers; all of them if none names a container.
pub(super) fn of_containers(series: Vec<Series>) -> Vec<Series> {
    let named = |one: &Series| {
        one.labels.get("container").is_some_and(|name| !name.is_empty() && name != PAUSE)
    };
    if series.iter().any(named) { series.into_iter().filter(named).collect() } else { series }
}

/// Joins the series of a container that restarted, perhaps on another node, or whose labels changed;
/// returns the input if they are not of one container.
pub(super) fn joined(mut series: Vec<Series>) -> Vec<Series> {
    series.iter_mut().for_each(|one| one.points.sort_by_key(|point| point.0));
    series.sort_by_key(|one| one.points[0].0);
    let container = |one: &Series| {
        let mut labels = one.labels.clone();
        match ["id", "namespace", "pod", "container"].iter().all(|l| labels.contains_key(*l)) {
            true => labels.retain(|label, _| NAMING.contains(&label.as_str())),
            false => labels.retain(|label, _| !CHANGED_BY_RESTART.contains(&label.as_str())),
        }
        labels
    };
    let follows = |pair: &[Series]| {
        let begin_ns = pair[1].points[0].0;
        container(&pair[0]) == container(&pair[1])
            && pair[0].points[0].0 < begin_ns
            && ended(&pair[0], begin_ns)
    };
    if series.len() < 2 || !series.windows(2).all(follows) {
        return series;
    }
    // With the same id it is the same counter.
    series.dedup_by(|later, earlier| {
        let id = |one: &Series| one.labels.get("id").cloned();
        let same = id(earlier).is_some() && id(earlier) == id(later);
        if same {
            earlier.forget_from(later.points[0].0);
            earlier.points.append(&mut later.points);
        }
        same
    });
    series.into_iter().reduce(then).into_iter().collect()
}

/// The counter of a container from those of its CPUs, which differ in the label `cpu` alone; returns the
/// input if they do not.
pub(super) fn summed(mut series: Vec<Series>) -> Vec<Series> {
    let cpu = |one: &Series| one.labels.get("cpu").cloned();
    if series.iter().any(|one| cpu(one).as_deref() == Some("total")) {
        series.retain(|one| matches!(cpu(one).as_deref(), None | Some("total")));
        return series;
    }
    let container = |one: &Series| {
        let mut labels = one.labels.clone();
        labels.remove("cpu");
        let times: Vec<Ns> = one.points.iter().map(|point| point.0).collect();
        (labels, times)
    };
    let one = |pair: &[Series]| container(&pair[0]) == container(&pair[1]);
    if series.len() < 2 || series.iter().any(|s| cpu(s).is_none()) || !series.windows(2).all(one) {
        return series;
    }
    let mut all = series.into_iter();
    let mut sum = all.next().expect("there are two at least");
    sum.resets += sum.without_resets();
    for mut one in all {
        sum.resets = sum.resets.max(one.without_resets());
        sum.points.iter_mut().zip(&one.points).for_each(|(sum, one)| sum.1 += one.1);
    }
    vec![sum]
}

/// Refuses series of several containers.
pub(super) fn of_one(picked: &Picked) -> Result<(), Mistake> {
    let mut there = picked.iter().flatten();
    let Some(first) = there.next() else { return Ok(()) };
    for other in there {
        for label in ["namespace", "pod", "container"] {
            let [a, b] = [first, other].map(|one| one.labels.get(label));
            if let (Some(a), Some(b)) = (a, b)
                && a != b
            {
                let (name, other) = (&first.name, &other.name);
                let problem = format!("{name} is of {label}={a}, and {other} of {label}={b}");
                let fix =
                    format!("choose one by --select {label}=VALUE, and query all series of it");
                return Err(Mistake::new(problem, fix));
            }
        }
    }
    Ok(())
}

/// Is the counter constant from this time on? A kubelet reports a container for a while after its
/// end.
fn ended(series: &Series, from_ns: Ns) -> bool {
    let after = series.points.partition_point(|point| point.0 <= from_ns);
    let rest = &series.points[after.saturating_sub(1)..];
    rest.windows(2).all(|pair| pair[0].1 == pair[1].1)
}

/// The earlier series until the later one begins, with the counter continued.
fn then(mut earlier: Series, mut later: Series) -> Series {
    let begin_ns = later.points[0].0;
    earlier.forget_from(begin_ns);
    let counter = earlier.name != QUOTA && earlier.name != PERIOD;
    if counter {
        earlier.resets += 1 + earlier.without_resets() + later.without_resets();
        let last = earlier.points.last().map_or(0.0, |point| point.1);
        later.points.iter_mut().for_each(|point| point.1 += last);
    }
    earlier.points.extend(later.points);
    earlier
}

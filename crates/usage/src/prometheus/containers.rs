//! Selects the series of one container. A kubelet also exports series of the pod and of its pause
//! container, and a new series after each restart.

use super::series::Series;
use super::{PERIOD, QUOTA};
use crate::Ns;

/// Labels that change when a container restarts.
const CHANGED_BY_RESTART: [&str; 3] = ["id", "image", "name"];
/// The kubelet's name for the pause container.
const PAUSE: &str = "POD";

/// Keeps series of containers; all of them if none names a container.
pub(super) fn of_containers(series: Vec<Series>) -> Vec<Series> {
    let named = |one: &Series| {
        one.labels.get("container").is_some_and(|name| !name.is_empty() && name != PAUSE)
    };
    if series.iter().any(named) { series.into_iter().filter(named).collect() } else { series }
}

/// Joins the series of a restarted container; returns the input if they are not of one container.
pub(super) fn joined(mut series: Vec<Series>) -> Vec<Series> {
    series.iter_mut().for_each(|one| one.points.sort_by_key(|point| point.0));
    series.sort_by_key(|one| one.points[0].0);
    let container = |one: &Series| {
        let mut labels = one.labels.clone();
        CHANGED_BY_RESTART.iter().for_each(|label| _ = labels.remove(*label));
        labels
    };
    let follows = |pair: &[Series]| {
        container(&pair[0]) == container(&pair[1]) && ended(&pair[0], pair[1].points[0].0)
    };
    if series.len() < 2 || !series.windows(2).all(follows) {
        return series;
    }
    let mut all = series.into_iter();
    let first = all.next().expect("there are two at least");
    vec![all.fold(first, then)]
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
    earlier.points.retain(|point| point.0 < begin_ns);
    let counter = earlier.name != QUOTA && earlier.name != PERIOD;
    if counter {
        earlier.resets += 1 + earlier.without_resets() + later.without_resets();
        let last = earlier.points.last().map_or(0.0, |point| point.1);
        later.points.iter_mut().for_each(|point| point.1 += last);
    }
    earlier.points.extend(later.points);
    earlier
}

//! Many short batches instead of one long one: other load hits some of them, and the median ignores
//! those. A host's speed also shifts for seconds at a time, so everything is measured in several
//! rounds whose samples are pooled.

use reveille_measure::Ns;
use reveille_measure::statistics::{interpolated, sorted};
use serde::{Deserialize, Serialize};

use crate::sys::{clock, usage};

/// Name of the fixed loop among measurements, which tells how quiet the host is.
pub(super) const SPIN: &str = "spin";

/// Minimum number of samples for a median.
const FEWEST: u64 = 10;
/// Fixed loops that differ by no more than this share ran at the same speed.
const SAME_SPEED: f64 = 0.15;
/// Order statistics kept of a round's samples.
const POINTS: usize = 64;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measurement {
    /// Name, as in docs/calibrate.md: `pipe_hop_same`.
    pub name: String,
    pub about: String,
    /// `ns`, `Hz` or `ratio`.
    pub unit: String,
    pub median: f64,
    pub p10: f64,
    pub p90: f64,
    /// Number of batches or single events.
    pub samples: u64,
    /// Batches discarded because another task ran in them.
    pub discarded: u64,
}

/// One round's result for one measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sketch {
    name: String,
    about: String,
    unit: String,
    /// Order statistics at equal distances, ascending; all samples if there are few.
    points: Vec<f64>,
    samples: u64,
    discarded: u64,
    /// A value that was read rather than sampled: one suffices.
    reading: bool,
    /// Duration of a fixed loop just before and after, in ns.
    speed: [Ns; 2],
}

impl Sketch {
    /// Adds the fixed loop's durations before and after.
    pub(crate) fn at_speed(self, speed: [Ns; 2]) -> Sketch {
        Sketch { speed, ..self }
    }

    /// A value that the system reports, or that all samples of a round yield together.
    pub(crate) fn reading(unit: &str, name: &str, about: &str, value: f64) -> Sketch {
        let (name, about, unit) = (name.to_owned(), about.to_owned(), unit.to_owned());
        Sketch {
            name,
            about,
            unit,
            points: vec![value],
            samples: 1,
            discarded: 0,
            reading: true,
            speed: [0; 2],
        }
    }
}

/// Pools the rounds, in order of first appearance. Drops measurements with too few samples in all
/// rounds.
///
/// A host that shares cores with others alternates between two speeds, and differences between
/// times measured at different speeds are meaningless. So only rounds at the usual speed count,
/// unless a measurement has none.
pub(crate) fn pool(rounds: Vec<Sketch>) -> Vec<Measurement> {
    let mut speeds: Vec<Ns> = rounds.iter().flat_map(|s| s.speed).collect();
    speeds.sort_unstable();
    let usual_ns = speeds.get(speeds.len() / 2).copied().unwrap_or(0) as f64;
    let usual = |s: &Sketch| {
        s.speed.iter().all(|&ns| (ns as f64 - usual_ns).abs() <= SAME_SPEED * usual_ns)
    };
    let mut groups: Vec<Vec<Sketch>> = Vec::new();
    for sketch in rounds {
        match groups.iter_mut().find(|g| g[0].name == sketch.name) {
            Some(group) => group.push(sketch),
            None => groups.push(vec![sketch]),
        }
    }
    let pool = |group: Vec<Sketch>| {
        // The fixed loop itself shows that there are two speeds.
        let (at_usual, others): (Vec<_>, Vec<_>) =
            group.into_iter().partition(|s| s.name == SPIN || usual(s));
        let left_out: u64 = others.iter().map(|s| s.samples).sum();
        match pooled(&at_usual) {
            Some(m) => Some(Measurement { discarded: m.discarded + left_out, ..m }),
            None => pooled(&[at_usual, others].concat()),
        }
    };
    groups.into_iter().filter_map(pool).collect()
}

fn pooled(rounds: &[Sketch]) -> Option<Measurement> {
    let first = rounds.first()?;
    let samples = rounds.iter().map(|s| s.samples).sum();
    if samples == 0 || (samples < FEWEST && !first.reading) {
        return None;
    }
    let mut weighed: Vec<(f64, f64)> = Vec::new();
    for round in rounds {
        let weight = round.samples as f64 / round.points.len().max(1) as f64;
        weighed.extend(round.points.iter().map(|&point| (point, weight)));
    }
    weighed.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let at = |share: f64| {
        let mut left = share * samples as f64;
        let reached = weighed.iter().find(|(_, weight)| {
            left -= weight;
            left <= 0.0
        });
        reached.or(weighed.last()).map_or(0.0, |(point, _)| *point)
    };
    Some(Measurement {
        name: first.name.clone(),
        about: first.about.clone(),
        unit: first.unit.clone(),
        median: at(0.5),
        p10: at(0.1),
        p90: at(0.9),
        samples,
        discarded: rounds.iter().map(|s| s.discarded).sum(),
    })
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Samples {
    kept: Vec<f64>,
    discarded: u64,
}

impl Samples {
    pub fn push(&mut self, value: f64) {
        self.kept.push(value);
    }

    pub fn discard(&mut self) {
        self.discarded += 1;
    }

    /// The result, in ns.
    pub fn sketch(self, name: &str, about: &str) -> Sketch {
        self.sketch_in("ns", name, about)
    }

    pub fn sketch_in(mut self, unit: &str, name: &str, about: &str) -> Sketch {
        self.kept.sort_unstable_by(f64::total_cmp);
        let n = self.kept.len();
        let points = if n <= POINTS {
            self.kept.clone()
        } else {
            // Midpoints of equal parts.
            (0..POINTS).map(|i| self.kept[(2 * i + 1) * n / (2 * POINTS)]).collect()
        };
        Sketch {
            name: name.to_owned(),
            about: about.to_owned(),
            unit: unit.to_owned(),
            points,
            samples: n as u64,
            discarded: self.discarded,
            reading: false,
            speed: [0; 2],
        }
    }

    /// The quantile at `share`; 0 without samples.
    pub fn quantile(&self, share: f64) -> f64 {
        interpolated(&sorted(&self.kept), share).max(0.0)
    }
}

/// Repeats `batch` of `operations` each until `time` is over: ns per operation. Drops the first two
/// batches (warm-up), and those in which this thread was switched out.
pub(crate) fn alone(time: Ns, operations: u32, mut batch: impl FnMut()) -> Samples {
    batch();
    batch();
    let mut samples = Samples::default();
    let end = clock::now() + time;
    loop {
        let before = usage::switches();
        let start = clock::now();
        batch();
        let stop = clock::now();
        if usage::switches() == before {
            samples.push((stop - start) as f64 / f64::from(operations));
        } else {
            samples.discard();
        }
        if stop >= end {
            return samples;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sketch(name: &str, values: impl Iterator<Item = u32>) -> Sketch {
        let mut samples = Samples::default();
        values.for_each(|v| samples.push(f64::from(v)));
        samples.sketch(name, "a test")
    }

    #[test]
    fn quantiles_are_those_of_all_rounds_together() {
        let mut slow = sketch("a", 9001..=10_000);
        slow.discarded = 3;
        let pooled = pool(vec![sketch("a", (1..=1000).rev()), slow, sketch("b", 1..=20)]);
        assert_eq!(pooled.len(), 2);
        let a = &pooled[0];
        assert_eq!((a.name.as_str(), a.samples, a.discarded), ("a", 2000, 3));
        assert!((a.p10 - 200.0).abs() <= 16.0, "{a:?}");
        assert!((a.p90 - 9800.0).abs() <= 16.0, "{a:?}");
        assert_eq!((pooled[1].p10, pooled[1].median, pooled[1].p90), (2.0, 10.0, 18.0));
    }

    #[test]
    fn rounds_weigh_what_they_have_samples() {
        let a = &pool(vec![sketch("a", (0..900).map(|_| 1)), sketch("a", (0..100).map(|_| 5))])[0];
        assert_eq!((a.median, a.p90), (1.0, 1.0));
        let a = &pool(vec![sketch("a", (0..100).map(|_| 1)), sketch("a", (0..900).map(|_| 5))])[0];
        assert_eq!((a.p10, a.median), (1.0, 5.0));
    }

    #[test]
    fn rounds_at_another_speed_are_left_out_unless_there_is_no_other() {
        let fast = |name: &str| sketch(name, 100..120).at_speed([1000, 1050]);
        let slow = |name: &str| sketch(name, 200..220).at_speed([2000, 2000]);
        let mixed = |name: &str| sketch(name, 150..170).at_speed([1000, 2000]);
        let found = pool(vec![
            fast("a"),
            slow("a"),
            mixed("a"),
            fast("b"),
            fast("b"),
            slow("c"),
            slow(SPIN),
            fast(SPIN),
        ]);
        let of = |name: &str| found.iter().find(|m| m.name == name).unwrap();
        assert_eq!((of("a").p90 < 120.0, of("a").samples, of("a").discarded), (true, 20, 40));
        assert_eq!((of("b").samples, of("b").discarded), (40, 0));
        assert_eq!((of("c").p10 > 199.0, of("c").samples), (true, 20));
        assert_eq!(of(SPIN).samples, 40);
    }

    #[test]
    fn few_samples_are_no_result_but_one_reading_is() {
        assert!(pool(vec![sketch("a", 0..5), sketch("a", 0..4)]).is_empty());
        assert_eq!(pool(vec![sketch("a", 0..5), sketch("a", 0..5)])[0].samples, 10);
        assert!(pool(vec![sketch("a", 0..0)]).is_empty());
        let read = pool(vec![Sketch::reading("ns", "a", "b", 50_000.0)]);
        assert_eq!((read[0].median, read[0].p10, read[0].samples), (50_000.0, 50_000.0, 1));
    }

    #[test]
    fn a_batch_in_which_the_thread_slept_is_left_out() {
        let mut turn = 0;
        let samples = alone(30_000_000, 10, || {
            turn += 1;
            if turn % 2 == 0 {
                std::thread::sleep(std::time::Duration::from_micros(100));
            } else {
                clock::spin_until(clock::now() + 100_000);
            }
        });
        assert!(samples.discarded >= 10, "{} discarded", samples.discarded);
        assert!(samples.kept.iter().all(|&ns| ns >= 10_000.0), "10 operations take 100 us");
    }
}

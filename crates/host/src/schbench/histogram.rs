//! The histogram of schbench's percentile lines, which it has from fio: 19 groups of 256
//! buckets over whole microseconds, exact up to 511, then with an error of at most 0.2%.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use reveille_measure::Ns;
use serde::{Deserialize, Serialize};

/// Bits of a value that are kept; a group has 2 to this power buckets.
const BITS: u32 = 8;
pub(super) const BUCKETS: usize = 19 << BITS;

/// The bucket of a value: the value itself below 512; above, its leading bit says the
/// group and the eight bits after that the bucket. What lies beyond counts in the last.
#[inline]
pub(super) fn bucket_of(value: u32) -> usize {
    let leading = u32::BITS - 1 - (value | 1).leading_zeros();
    if leading <= BITS {
        return value as usize;
    }
    let dropped = leading - BITS;
    let in_group = (value >> dropped) & ((1 << BITS) - 1);
    ((((dropped + 1) << BITS) + in_group) as usize).min(BUCKETS - 1)
}

/// The value that stands for a bucket: the middle of those that fall into it.
pub(super) fn value_of(bucket: usize) -> u32 {
    if bucket < 2 << BITS {
        return bucket as u32;
    }
    let dropped = (bucket >> BITS) as u32 - 1;
    let leading = 1 << (dropped + BITS);
    let in_group = bucket as u32 & ((1 << BITS) - 1);
    leading + (in_group << dropped) + (1 << dropped) / 2
}

/// A latency in whole microseconds, rounded to the nearest. Schbench subtracts times that
/// are cut to microseconds each, which is right on average; cutting the difference would
/// be half a microsecond too little.
#[inline]
fn whole_us(ns: Ns) -> u32 {
    u32::try_from((ns + 500) / 1000).unwrap_or(u32::MAX)
}

/// A histogram that one thread writes and others read: no locked instruction, and no
/// allocation after its start.
#[derive(Debug)]
pub(super) struct Recorder {
    counts: Box<[AtomicU64]>,
    min: AtomicU32,
    max: AtomicU32,
}

impl Default for Recorder {
    fn default() -> Recorder {
        let counts = (0..BUCKETS).map(|_| AtomicU64::new(0)).collect();
        Recorder { counts, min: AtomicU32::new(u32::MAX), max: AtomicU32::new(0) }
    }
}

impl Recorder {
    /// Counts a latency and returns it in microseconds. Its only writer may call this.
    #[inline]
    pub fn record(&self, latency: Ns) -> u32 {
        let us = whole_us(latency);
        if us < self.min.load(Ordering::Relaxed) {
            self.min.store(us, Ordering::Relaxed);
        }
        if us > self.max.load(Ordering::Relaxed) {
            self.max.store(us, Ordering::Relaxed);
        }
        add_one(&self.counts[bucket_of(us)]);
        us
    }

    /// Forgets everything. Its only writer may call this.
    pub fn clear(&self) {
        self.min.store(u32::MAX, Ordering::Relaxed);
        self.max.store(0, Ordering::Relaxed);
        for count in &self.counts {
            count.store(0, Ordering::Relaxed);
        }
    }
}

/// Adds to a counter that only this thread writes.
#[inline]
pub(super) fn add_one(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// Counts of several recorders, or of values that come one by one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Counts {
    counts: Vec<u64>,
    min: u32,
    max: u32,
}

impl Default for Counts {
    fn default() -> Counts {
        Counts { counts: vec![0; BUCKETS], min: u32::MAX, max: 0 }
    }
}

impl Counts {
    /// Adds what a recorder holds now.
    pub fn add(&mut self, recorder: &Recorder) {
        for (sum, count) in self.counts.iter_mut().zip(&recorder.counts) {
            *sum += count.load(Ordering::Relaxed);
        }
        self.min = self.min.min(recorder.min.load(Ordering::Relaxed));
        self.max = self.max.max(recorder.max.load(Ordering::Relaxed));
    }

    pub fn record(&mut self, value: u32) {
        self.counts[bucket_of(value)] += 1;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Percentiles, extremes and the number of samples. A percentile is the first bucket
    /// at which that share of all samples is reached.
    pub fn summary(&self, percents: &[f64]) -> Summary {
        let samples: u64 = self.counts.iter().sum();
        if samples == 0 {
            let percentiles =
                percents.iter().map(|&percent| Percentile { percent, value: 0, band: 0 });
            return Summary { samples, min: 0, max: 0, percentiles: percentiles.collect() };
        }
        let mut percentiles = Vec::with_capacity(percents.len());
        let (mut bucket, mut sum, mut before) = (0, self.counts[0], 0);
        for &percent in percents {
            while (sum as f64) < percent / 100.0 * samples as f64 {
                bucket += 1;
                sum += self.counts[bucket];
            }
            let value = value_of(bucket);
            percentiles.push(Percentile { percent, value, band: sum - before });
            before = sum;
        }
        Summary { samples, min: self.min, max: self.max, percentiles }
    }
}

/// What is printed of a histogram.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// How many values were recorded.
    pub samples: u64,
    /// The smallest, exactly; 0 without samples.
    pub min: u32,
    /// The largest, exactly. Percentiles are middles of buckets and can be larger.
    pub max: u32,
    /// In rising order.
    pub percentiles: Vec<Percentile>,
}

impl Summary {
    /// The value of a percentile; 0 if it is not among those asked for.
    pub fn at(&self, percent: f64) -> u32 {
        self.percentiles.iter().find(|p| p.percent == percent).map_or(0, |p| p.value)
    }
}

/// One line of a percentile table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Percentile {
    pub percent: f64,
    /// The middle of its bucket.
    pub value: u32,
    /// Samples between the percentile before and this one.
    pub band: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The rule again, by arithmetic instead of bits: a value keeps nine binary digits.
    /// Returns the first value of its bucket and how many values the bucket has.
    fn range_by_division(value: u64) -> (u64, u64) {
        let mut width = 1;
        while value / width >= 512 {
            width *= 2;
        }
        (value / width * width, width)
    }

    /// Beyond this everything counts in the last bucket.
    const LAST: u64 = 511 << 17;

    proptest! {
        #[test]
        fn a_bucket_has_the_values_that_share_nine_digits(value: u32, shift in 0u32..32) {
            let value = value >> shift;
            let bucket = bucket_of(value);
            let (first, width) = range_by_division(u64::from(value).min(LAST));
            prop_assert_eq!(u64::from(value_of(bucket)), first + width / 2);
            prop_assert_eq!(bucket_of(first as u32), bucket);
            prop_assert_eq!(bucket_of((first + width - 1) as u32), bucket);
            prop_assert!(first == 0 || bucket_of(first as u32 - 1) == bucket - 1);
        }

        #[test]
        fn percentiles_are_those_of_the_sorted_values(
            values in proptest::collection::vec(0u32..200_000_000, 0..300),
        ) {
            let mut counts = Counts::default();
            values.iter().for_each(|&v| counts.record(v));
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let percents = [20.0, 50.0, 90.0, 99.0, 99.9];
            let summary = counts.summary(&percents);
            prop_assert_eq!(summary.samples, values.len() as u64);
            prop_assert_eq!(summary.min, sorted.first().copied().unwrap_or(0));
            prop_assert_eq!(summary.max, sorted.last().copied().unwrap_or(0));
            let mut below = 0;
            for (percent, line) in percents.iter().zip(&summary.percentiles) {
                // The smallest value at which that many samples are reached.
                let needed = percent / 100.0 * sorted.len() as f64;
                let reached = (1..=sorted.len()).find(|&n| n as f64 >= needed);
                let expected = reached.map_or(0, |n| value_of(bucket_of(sorted[n - 1])));
                prop_assert_eq!(line.value, expected, "{}", percent);
                // Bands add up to what lies in buckets up to this one.
                below += line.band;
                let upto = sorted.iter().filter(|&&v| bucket_of(v) <= bucket_of(expected));
                prop_assert_eq!(below as usize, upto.count());
            }
        }

        #[test]
        fn recorders_add_up(
            a in proptest::collection::vec(0u64..10_000_000_000, 0..50),
            b in proptest::collection::vec(0u64..10_000_000_000, 0..50),
        ) {
            let (first, second) = (Recorder::default(), Recorder::default());
            a.iter().for_each(|&ns| { first.record(ns); });
            b.iter().for_each(|&ns| { second.record(ns); });
            let mut sum = Counts::default();
            sum.add(&first);
            sum.add(&second);
            let mut one_by_one = Counts::default();
            for &ns in a.iter().chain(&b) {
                one_by_one.record((ns as f64 / 1000.0).round() as u32);
            }
            prop_assert_eq!(sum, one_by_one);
        }
    }

    #[test]
    fn no_time_at_all_is_a_sample_and_the_smallest() {
        let recorder = Recorder::default();
        recorder.record(7_000);
        recorder.record(0);
        let mut counts = Counts::default();
        counts.add(&recorder);
        let summary = counts.summary(&[50.0, 99.0]);
        assert_eq!((summary.samples, summary.min, summary.max), (2, 0, 7));
        assert_eq!((summary.at(50.0), summary.at(99.0)), (0, 7));
    }

    #[test]
    fn cleared_it_is_as_new() {
        let recorder = Recorder::default();
        recorder.record(3_000_000);
        recorder.clear();
        let mut counts = Counts::default();
        counts.add(&recorder);
        assert_eq!(counts, Counts::default());
        assert_eq!(counts.summary(&[99.0]).at(99.0), 0);
    }

    #[test]
    fn a_latency_beyond_the_clock_is_the_longest() {
        let recorder = Recorder::default();
        assert_eq!(recorder.record(u64::MAX - 500), u32::MAX);
        assert_eq!(bucket_of(u32::MAX), BUCKETS - 1);
    }
}

//! Resampled recordings: a block bootstrap that joins blocks where the group was idle, so that
//! requests of two blocks do not overlap artificially.

use reveille_measure::Random;
use reveille_usage::{Demand, Usage};

use crate::Ns;

/// Number of blocks in a recording, within bounds. The correlation time belongs to the load, so all
/// settings use the same.
const BLOCKS: Ns = 20;
const BLOCK_NS: (Ns, Ns) = (1_000_000_000, 10_000_000_000);
/// With fewer idle moments per block, blocks may join at any arrival.
const SEAMS_PER_BLOCK: usize = 3;

/// Resamples a recording.
pub(crate) struct Replicas<'a> {
    usage: &'a Usage,
    block_ns: Ns,
    /// Indices of demands at which a block may begin, including the first.
    begins: Vec<usize>,
    /// Does every moment begin a block as often, rather than every place in `begins`? Busy times
    /// have more of these than their share.
    by_time: bool,
}

impl<'a> Replicas<'a> {
    pub(crate) fn new(usage: &'a Usage, by_time: bool) -> Replicas<'a> {
        let block_ns = (usage.span_ns / BLOCKS).clamp(BLOCK_NS.0, BLOCK_NS.1);
        let mut begins = after_idle(usage);
        let blocks = (usage.span_ns / block_ns) as usize;
        if begins.len() < SEAMS_PER_BLOCK * blocks {
            begins = (0..usage.demands.len()).collect();
        }
        Replicas { usage, block_ns, begins, by_time }
    }

    /// Blocks until the span is filled, drawn from as many blocks from anywhere in the recording,
    /// which wraps around; the last one is cut off. Drawn twice: the recording differs from the law
    /// of the load by chance, and so does the next one. A single draw has half of that variance.
    pub(crate) fn draw(&self, seed: u64) -> Usage {
        let mut random = Random::new(seed);
        let (demands, span_ns) = (&self.usage.demands, self.usage.span_ns);
        let mut drawn: Vec<Demand> = Vec::with_capacity(demands.len());
        let mut to_ns = 0;
        let mut one_of = |n: usize| random.below(n as u64) as usize;
        let blocks = if self.begins.is_empty() { 0 } else { span_ns.div_ceil(self.block_ns) };
        let mut anywhere = || match self.by_time {
            true => self.from(one_of(span_ns as usize) as Ns),
            false => one_of(self.begins.len()),
        };
        let law: Vec<usize> = (0..blocks).map(|_| anywhere()).collect();
        while to_ns < span_ns && !law.is_empty() {
            let place = law[one_of(law.len())];
            let from_ns = demands[self.begins[place]].at_ns;
            let length_ns = self.length_ns(place).min(span_ns - to_ns);
            let first = self.begins[place];
            let straight = demands[first..].iter().map(|demand| (demand.at_ns - from_ns, demand));
            let around =
                demands[..first].iter().map(|demand| (demand.at_ns + span_ns - from_ns, demand));
            let inside = straight.chain(around).take_while(|(after_ns, _)| *after_ns < length_ns);
            drawn.extend(inside.map(|(after_ns, demand)| Demand {
                at_ns: to_ns + after_ns,
                done_ns: None,
                ..*demand
            }));
            to_ns += length_ns;
        }
        Usage { demands: drawn, samples: Vec::new(), ..self.usage.clone() }
    }

    /// The first beginning from this time on, wrapping around.
    fn from(&self, at_ns: Ns) -> usize {
        let demands = &self.usage.demands;
        let next = self.begins.partition_point(|&begin| demands[begin].at_ns < at_ns);
        if next == self.begins.len() { 0 } else { next }
    }

    /// Length of the block from one beginning to the first that is a block away, wrapping around.
    fn length_ns(&self, place: usize) -> Ns {
        let at_ns = |number: usize| self.usage.demands[number].at_ns;
        let (from_ns, span_ns) = (at_ns(self.begins[place]), self.usage.span_ns);
        let end_ns = from_ns + self.block_ns;
        let next = self.begins.partition_point(|&begin| at_ns(begin) < end_ns);
        match self.begins.get(next) {
            Some(&begin) => at_ns(begin) - from_ns,
            None => {
                let end_ns = end_ns.saturating_sub(span_ns);
                let next = self.begins.partition_point(|&begin| at_ns(begin) < end_ns);
                let next = next.min(place);
                (at_ns(self.begins[next]) + span_ns - from_ns).max(1)
            }
        }
    }
}

/// Demands that arrive when all earlier work would be complete, given a CPU for each thread.
fn after_idle(usage: &Usage) -> Vec<usize> {
    let mut free_at = vec![0; usage.threads as usize];
    let mut all_free_at = 0;
    let mut begins = Vec::new();
    let mut last_ns = None;
    for (number, demand) in usage.demands.iter().enumerate() {
        let free = &mut free_at[demand.thread as usize];
        // Of simultaneous arrivals the first begins the block.
        if all_free_at <= demand.at_ns && last_ns != Some(demand.at_ns) {
            begins.push(number);
        }
        last_ns = Some(demand.at_ns);
        *free = demand.at_ns.max(*free).saturating_add(demand.cpu_ns);
        all_free_at = all_free_at.max(*free);
    }
    begins
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use reveille_usage::Origin;

    const MS: Ns = 1_000_000;

    /// A tenth of the time has ten times as many requests. By time a resampled recording has no more
    /// work than the recording in the mean.
    #[test]
    fn busy_times_begin_no_more_blocks_than_their_share() {
        let calm = (0..900).map(|n| piece(n * 100 * MS, 2 * MS, 0));
        let busy = (0..1000).map(|n| piece(90_000 * MS + n * 10 * MS, 2 * MS, 0));
        let usage = usage(100_000 * MS, calm.chain(busy).collect());
        let times = |by_time| {
            let replicas = Replicas::new(&usage, by_time);
            let drawn = (0..400).map(|seed| replicas.draw(seed).demands.len()).sum::<usize>();
            drawn as f64 / 400.0 / usage.demands.len() as f64
        };
        let (by_time, by_place) = (times(true), times(false));
        assert!((0.9..1.15).contains(&by_time) && by_place > 2.0, "{by_time} {by_place}");
    }

    fn usage(span_ns: Ns, demands: Vec<Demand>) -> Usage {
        Usage { origin: Origin::Traced, span_ns, threads: 2, demands, ..Usage::idle("r") }
    }

    fn piece(at_ns: Ns, cpu_ns: Ns, thread: u32) -> Demand {
        Demand { at_ns, cpu_ns, thread, done_ns: None }
    }

    #[test]
    fn a_regular_load_stays_regular() {
        let pieces = (0..300).map(|n| piece(n / 2 * 200 * MS, 80 * MS, (n % 2) as u32));
        let usage = usage(30_000 * MS, pieces.collect());
        let replicas = Replicas::new(&usage, false);
        for seed in 0..20 {
            assert_eq!(replicas.draw(seed).demands, usage.demands);
        }
    }

    proptest! {
        #[test]
        fn any_recording_gives_another_that_is_valid(
            pieces in prop::collection::vec((0..40_000u64, 1..3000u64, 0..2u32), 1..300),
            seed: u64,
        ) {
            let mut demands: Vec<Demand> =
                pieces.iter().map(|&(at, cpu, thread)| piece(at * MS, cpu * MS / 10, thread)).collect();
            demands.sort_by_key(|demand| demand.at_ns);
            let usage = usage(40_000 * MS, demands);
            let replicas = Replicas::new(&usage, false);
            let drawn = replicas.draw(seed);
            prop_assert!(drawn.validate().is_ok(), "{:?}", drawn.validate());
            prop_assert!(!drawn.demands.is_empty());
            prop_assert_eq!(&drawn, &replicas.draw(seed));
            for demand in &drawn.demands {
                let is = |d: &Demand| (d.cpu_ns, d.thread) == (demand.cpu_ns, demand.thread);
                prop_assert!(usage.demands.iter().any(is));
            }
        }
    }
}

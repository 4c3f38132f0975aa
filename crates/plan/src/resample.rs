//! Block bootstrap: what the recording might have been as well.

use reveille_usage::{Demand, Usage};

use crate::Ns;

/// Blocks of so much time, taken from anywhere in the recording, the end followed by the
/// beginning, one after the other until it is full. Work keeps its thread.
pub(crate) fn resampled(usage: &Usage, block_ns: Ns, seed: u64) -> Usage {
    let span_ns = usage.span_ns;
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d;
    let mut random = move || {
        // splitmix64
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let mut demands: Vec<Demand> = Vec::with_capacity(usage.demands.len());
    let mut to_ns = 0;
    while to_ns < span_ns {
        let length = block_ns.min(span_ns - to_ns);
        let from_ns = ((u128::from(random()) * u128::from(span_ns)) >> 64) as Ns;
        let first = usage.demands.partition_point(|demand| demand.at_ns < from_ns);
        let straight = usage.demands[first..].iter().map(|d| (d.at_ns - from_ns, d));
        let around = usage.demands[..first].iter().map(|d| (d.at_ns + span_ns - from_ns, d));
        for (after, demand) in straight.chain(around).take_while(|(after, _)| *after < length) {
            demands.push(Demand { at_ns: to_ns + after, done_ns: None, ..*demand });
        }
        to_ns += length;
    }
    Usage { demands, samples: Vec::new(), ..usage.clone() }
}

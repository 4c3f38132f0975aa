//! A histogram in shared memory with [`Latency`]'s buckets; one task writes, the coordinator reads.

use std::sync::atomic::{AtomicU32, Ordering};

use reveille_measure::{Latency, Ns};

/// Buckets per power of two, for two significant digits.
const STEPS: u64 = 128;
/// Bits of the largest latency with a bucket of its own: 18 minutes.
const BITS: u32 = 40;
/// Buckets of one histogram.
pub(super) const CELLS: usize = (BITS as usize - 6) * STEPS as usize;
/// Buckets per page.
const PAGE: usize = 4096 / size_of::<AtomicU32>();

/// Counts one latency. Only one task may write to a histogram.
#[inline]
pub(super) fn record(cells: &[AtomicU32], ns: Ns) {
    let cell = &cells[cell_of(ns)];
    cell.store(cell.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}

/// Pre-faults all pages.
pub(super) fn touch(cells: &[AtomicU32]) {
    for cell in cells.iter().step_by(PAGE).chain(cells.last()) {
        cell.store(0, Ordering::Relaxed);
    }
}

pub(super) fn add_to(cells: &[AtomicU32], latency: &mut Latency) {
    for (index, cell) in cells.iter().enumerate() {
        let n = cell.load(Ordering::Relaxed);
        if n > 0 {
            latency.record_n(least_of(index), n.into());
        }
    }
}

/// The bucket of a latency.
#[inline]
fn cell_of(ns: Ns) -> usize {
    let ns = ns.min((1 << BITS) - 1);
    // Exact below 2 * STEPS; above, the leading eight bits decide.
    let shift = (Ns::BITS - (ns | (2 * STEPS - 1)).leading_zeros()) - 8;
    ((u64::from(shift)) * STEPS + (ns >> shift)) as usize
}

/// The smallest latency in a bucket.
fn least_of(cell: usize) -> Ns {
    let cell = cell as u64;
    if cell < 2 * STEPS {
        return cell;
    }
    let shift = cell / STEPS - 1;
    (cell - shift * STEPS) << shift
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn counts_as_the_histogram_of_results_does(
            bits in prop::collection::vec((0..39u32, any::<u64>()), 1..200)
        ) {
            let cells: Vec<AtomicU32> = (0..CELLS).map(|_| AtomicU32::new(0)).collect();
            touch(&cells);
            let (mut shared, mut direct) = (Latency::default(), Latency::default());
            for (bits, random) in bits {
                let ns = random & ((2 << bits) - 1);
                record(&cells, ns);
                direct.record(ns);
            }
            add_to(&cells, &mut shared);
            prop_assert_eq!(shared.cdf(), direct.cdf());
            prop_assert_eq!(shared.max(), direct.max());
        }
    }

    #[test]
    fn every_latency_has_a_cell() {
        assert_eq!((cell_of(0), cell_of(255), cell_of(256)), (0, 255, 256));
        assert_eq!(cell_of(Ns::MAX), CELLS - 1);
        for cell in 0..CELLS {
            assert_eq!(cell_of(least_of(cell)), cell);
        }
    }
}

//! Think time of the current schbench: naive products of square matrices of 64-bit
//! numbers, which work through as much cache as asked for.

use std::collections::TryReserveError;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

/// Edge of the matrices so that three of them fill `footprint_kb`, cut to whole numbers
/// where schbench cuts (`cache_footprint_kb * 1024 / 3 / sizeof(unsigned long)`).
pub(super) fn edge_of(footprint_kb: u64) -> usize {
    (footprint_kb.saturating_mul(1024) / 3 / 8).isqrt() as usize
}

/// Two factors and their product, which several threads may share.
#[derive(Debug)]
pub(super) struct Matrices {
    edge: usize,
    /// Never written, so that all of it is the kernel's one page of zeros, as with the
    /// original: only the product takes up cache of its own.
    factors: Vec<u64>,
    product: Vec<AtomicU64>,
}

impl Matrices {
    /// Three matrices of `edge` × `edge`, all zero.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub fn new(edge: usize) -> Result<Matrices, TryReserveError> {
        let square = edge.saturating_mul(edge);
        // Zeroed memory that is asked for at once ends the process if there is none.
        Vec::<u64>::new().try_reserve_exact(square.saturating_mul(3))?;
        let factors = vec![0; 2 * square];
        let product = (0..square).map(|_| AtomicU64::new(0)).collect();
        Ok(Matrices { edge, factors, product })
    }

    /// Bytes of three matrices.
    pub fn bytes(edge: usize) -> u64 {
        (edge as u64).saturating_mul(edge as u64).saturating_mul(24)
    }

    /// Multiplies the first factor with the second, row by row, with a store for each step.
    /// The store is an atomic one, a plain instruction that the compiler neither merges nor
    /// drops, since all threads may write a shared product at once, as schbench's do.
    pub fn multiply(&self) {
        let edge = self.edge;
        if edge == 0 {
            return;
        }
        let (left, right) = self.factors.split_at(edge * edge);
        for (row, out) in left.chunks_exact(edge).zip(self.product.chunks_exact(edge)) {
            for (j, out) in out.iter().enumerate() {
                let mut sum = 0u64;
                out.store(sum, Ordering::Relaxed);
                // The chunk's length is known, so no step has a check of bounds.
                for (a, below) in row.iter().zip(right.chunks_exact(edge)) {
                    sum = sum.wrapping_add(a.wrapping_mul(below[j]));
                    out.store(sum, Ordering::Relaxed);
                    // No instruction, but one step for each turn of the loop, as the
                    // original's compiler has it: unrolled, it is a tenth faster.
                    black_box(());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn edges_are_those_of_the_original() {
        // Printed by it with `--split 100 -F`.
        assert_eq!([0, 1, 64, 256, 1024].map(edge_of), [0, 6, 52, 104, 209]);
        assert_eq!(Matrices::bytes(104), 104 * 104 * 3 * 8);
    }

    proptest! {
        #[test]
        fn a_product_is_one(edge in 0usize..9, seed: u64) {
            let mut matrices = Matrices::new(edge).unwrap();
            let value = |i: usize| seed.wrapping_mul(i as u64 * 2 + 1).rotate_left(i as u32);
            matrices.factors.iter_mut().enumerate().for_each(|(i, cell)| *cell = value(i));
            matrices.multiply();
            let square = edge * edge;
            for at in 0..square {
                let (i, j) = (at / edge, at % edge);
                let terms = (0..edge).map(|k| {
                    u128::from(value(i * edge + k)) * u128::from(value(square + k * edge + j))
                });
                let expected = terms.fold(0u64, |sum, t| sum.wrapping_add(t as u64));
                prop_assert_eq!(matrices.product[at].load(Ordering::Relaxed), expected);
            }
        }
    }
}

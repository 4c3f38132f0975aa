//! Cache costs by distance: a line that bounces between CPUs, a small working set after a
//! migration, and the slowdown of SMT siblings.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use reveille_measure::Ns;
use rustix::process::getppid;

use super::samples::{Samples, Sketch};
use super::{Cpus, pin};
use crate::error::{HostError, Result};
use crate::sys::shared::OwnLine;
use crate::sys::{clock, usage};

/// Round trips of a line per batch.
const ROUND_TRIPS: u64 = 256;
/// The working set that the model's `cold_*_ns` refer to: 24 KiB.
const WORKING_SET: usize = 24 * 1024;
const LINE: usize = 64;
/// Value of the line that ends the exchange.
const OVER: u64 = u64::MAX;

/// One-way transfer of a modified line: two threads increment it in turn by compare-and-swap.
pub(crate) fn line((here, there): Cpus, place: &str, time: Ns) -> Result<Vec<Sketch>> {
    let line = OwnLine(AtomicU64::new(0));
    // Writes an odd value after each even one, until the end.
    let answer = || {
        let mut expected = 1;
        while line.load(Ordering::Relaxed) != OVER {
            for _ in 0..1000 {
                if swap(&line, expected, expected + 1) {
                    expected += 2;
                }
            }
        }
    };
    let mut samples = Samples::default();
    std::thread::scope(|scope| {
        scope.spawn(|| pin(there).map(|()| answer()));
        let pinned = pin(here);
        let end = clock::now() + time;
        let mut expected = 0;
        let mut warm = false;
        while pinned.is_ok() && clock::now() < end {
            let before = usage::switches();
            let start = clock::now();
            let last = expected + 2 * ROUND_TRIPS;
            let mut failures = 0u64;
            while expected < last {
                if swap(&line, expected, expected + 1) {
                    expected += 2;
                } else {
                    failures += 1;
                    // The partner may never run: its CPU may be busy or offline.
                    if failures.is_multiple_of(1 << 20) && clock::now() > end {
                        break;
                    }
                }
            }
            let stop = clock::now();
            if usage::switches() != before || expected < last {
                samples.discard();
            } else if std::mem::replace(&mut warm, true) {
                samples.push((stop - start) as f64 / (2 * ROUND_TRIPS) as f64);
            }
        }
        line.store(OVER, Ordering::Relaxed);
        pinned
    })?;
    let about = "one way of a modified line between two threads, compare-and-swap in turn";
    Ok(vec![samples.sketch(&format!("line_{place}"), about)])
}

#[inline]
fn swap(line: &AtomicU64, from: u64, to: u64) -> bool {
    line.compare_exchange(from, to, Ordering::SeqCst, Ordering::Relaxed).is_ok()
}

/// Extra time of the first pass over a small working set on a CPU that the task has just migrated
/// to.
pub(crate) fn cold((here, there): Cpus, place: &str, time: Ns) -> Result<Vec<Sketch>> {
    let mut set = vec![0u64; WORKING_SET / size_of::<u64>()];
    let mut samples = Samples::default();
    let end = clock::now() + time;
    let (mut from, mut to) = (here, there);
    while clock::now() < end {
        pin(from)?;
        (0..20).for_each(|_| touch(&mut set));
        pin(to)?;
        let before = usage::switches();
        let start = clock::now();
        touch(&mut set);
        let first = clock::now();
        touch(&mut set);
        let second = clock::now();
        if usage::switches() == before {
            samples.push((first - start) as f64 - (second - first) as f64);
        } else {
            samples.discard();
        }
        std::mem::swap(&mut from, &mut to);
    }
    let about = "first pass over 24 KiB after the task moved, less the second";
    Ok(vec![samples.sketch(&format!("cold_{place}"), about)])
}

/// Writes every line of it, in an order that prefetchers follow, as in most programs.
#[inline(never)]
fn touch(set: &mut [u64]) {
    for word in set.iter_mut().step_by(LINE / size_of::<u64>()) {
        *word = word.wrapping_add(1);
    }
    std::hint::black_box(set);
}

/// Speed of computing and of system calls while the SMT sibling does the same.
pub(crate) fn smt((here, there): Cpus, time: Ns) -> Result<Vec<Sketch>> {
    let compute: fn() = || multiply(&mut std::hint::black_box([3; 3 * SIDE * SIDE]));
    let call: fn() = || (0..50).for_each(|_| _ = std::hint::black_box(getppid()));
    let about = "a matrix product's speed beside the same on the core's other thread";
    let share = share((here, there), time / 2, compute)?;
    let kernel = self::share((here, there), time / 2, call)?;
    Ok(vec![
        share.sketch_in("ratio", "smt_share", about),
        kernel.sketch_in("ratio", "smt_kernel_share", "the same for getppid in a loop"),
    ])
}

/// Speed of `work` on `here` while `there` runs it too, relative to alone; alternates between both.
fn share((here, there): Cpus, time: Ns, work: fn()) -> Result<Samples> {
    let (busy, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let mut samples = Samples::default();
    let many = || (0..20).for_each(|_| work());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(there)?;
            while !over.load(Ordering::Relaxed) {
                if busy.load(Ordering::Relaxed) {
                    many();
                } else {
                    std::thread::sleep(std::time::Duration::from_micros(100));
                }
            }
            Ok::<(), HostError>(())
        });
        let pinned = pin(here);
        let end = clock::now() + time;
        while pinned.is_ok() && clock::now() < end {
            let before = usage::switches();
            let timed = |both| {
                busy.store(both, Ordering::SeqCst);
                // Longer than the partner's sleep and one round of its work.
                clock::spin_until(clock::now() + 400_000);
                let start = clock::now();
                many();
                (clock::now() - start) as f64
            };
            let (alone, beside) = (timed(false), timed(true));
            if usage::switches() == before {
                samples.push((alone / beside).min(1.0));
            } else {
                samples.discard();
            }
        }
        over.store(true, Ordering::Relaxed);
        pinned
    })?;
    Ok(samples)
}

/// Rows of the matrices: three of them fit the first-level cache.
const SIDE: usize = 18;

/// The third matrix becomes the product of the first two.
fn multiply(m: &mut [u64; 3 * SIDE * SIDE]) {
    let (factors, product) = m.split_at_mut(2 * SIDE * SIDE);
    let (a, b) = factors.split_at(SIDE * SIDE);
    for row in 0..SIDE {
        for column in 0..SIDE {
            let terms = (0..SIDE).map(|k| a[row * SIDE + k].wrapping_mul(b[k * SIDE + column]));
            product[row * SIDE + column] = terms.fold(0, u64::wrapping_add);
        }
    }
    std::hint::black_box(product);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_product_is_one() {
        let mut m = [0; 3 * SIDE * SIDE];
        // The first matrix is the identity, doubled.
        (0..SIDE).for_each(|i| m[i * SIDE + i] = 2);
        (0..SIDE * SIDE).for_each(|i| m[SIDE * SIDE + i] = i as u64);
        multiply(&mut m);
        assert!((0..SIDE * SIDE).all(|i| m[2 * SIDE * SIDE + i] == 2 * i as u64));
    }

    #[test]
    fn a_pass_changes_each_line_once() {
        let mut set = vec![0u64; 64];
        touch(&mut set);
        touch(&mut set);
        assert_eq!(set.iter().sum::<u64>(), 2 * 8);
    }
}

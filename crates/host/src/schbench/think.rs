//! What a worker does with a request, and the locks of CPUs that it holds meanwhile.

use std::collections::TryReserveError;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use reveille_measure::Ns;

use super::matrix::Matrices;
use super::options::{Schbench, Think};
use crate::sys::shared::OwnLine;
use crate::sys::{clock, cpu};

/// A spinlock for each CPU: a worker that is preempted in the middle of its work keeps the
/// next one on that CPU from working.
#[derive(Debug)]
pub(super) struct CpuLocks(Vec<OwnLine<AtomicBool>>);

impl CpuLocks {
    /// One for each number that a CPU of this machine can have, which can be more than
    /// there are CPUs online.
    pub fn new() -> CpuLocks {
        let possible = fs::read_to_string("/sys/devices/system/cpu/possible").ok();
        let possible = possible.and_then(|text| reveille_machine::parse_cpu_list(&text).ok());
        let highest = possible.and_then(|cpus| cpus.last().copied()).unwrap_or(0);
        CpuLocks::up_to(highest)
    }

    fn up_to(highest: u32) -> CpuLocks {
        CpuLocks((0..=highest).map(|_| OwnLine::default()).collect())
    }

    /// Takes the lock of the CPU that this thread is on, also after the wait for it.
    fn lock(&self) -> CpuLock<'_> {
        loop {
            let cpu = cpu::current();
            let lock = self.of(cpu);
            while lock.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_err()
            {
                std::hint::spin_loop();
            }
            let guard = CpuLock(lock);
            if cpu::current() == cpu {
                return guard;
            }
        }
    }

    /// Numbers beyond the list, which a kernel should not give, share its locks.
    fn of(&self, cpu: u32) -> &AtomicBool {
        &self.0[cpu as usize % self.0.len()]
    }
}

/// Held until dropped.
struct CpuLock<'a>(&'a AtomicBool);

impl Drop for CpuLock<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// A worker's means to think.
#[derive(Debug)]
pub(super) struct Thinking {
    spin_ns: Ns,
    sleep: Duration,
    calibrate: bool,
    own: Matrices,
    own_products: u64,
    common: Arc<Matrices>,
    common_products: u64,
    locks: Option<Arc<CpuLocks>>,
}

impl Thinking {
    /// With matrices that this thread allocates, so that they lie in its memory node.
    pub fn new(
        job: &Schbench,
        common: &Arc<Matrices>,
        locks: &Arc<CpuLocks>,
    ) -> Result<Thinking, TryReserveError> {
        let mut thinking = Thinking {
            spin_ns: 0,
            sleep: Duration::ZERO,
            calibrate: false,
            own: Matrices::new(job.edges().0)?,
            own_products: 0,
            common: Arc::clone(common),
            common_products: 0,
            locks: None,
        };
        match job.think {
            Think::Spin { cpu_us } => thinking.spin_ns = cpu_us.saturating_mul(1000),
            Think::Matrices { operations, split_percent, sleep_us, locking, calibrate, .. } => {
                let own = match split_percent {
                    None => operations,
                    Some(percent) => operations.saturating_mul(u64::from(percent)) / 100,
                };
                thinking.own_products = own;
                thinking.common_products = operations.saturating_sub(own);
                thinking.sleep = Duration::from_micros(sleep_us);
                thinking.calibrate = calibrate;
                thinking.locks = (locking && !calibrate).then(|| Arc::clone(locks));
            }
        }
        Ok(thinking)
    }

    /// Serves a request: a sleep that stands for the network, which also ends the time
    /// slice, and then the products. Returns when it began; with `--calibrate` that is
    /// after the sleep.
    #[inline]
    pub fn request(&self, now: Ns) -> Ns {
        if !self.sleep.is_zero() {
            sleep(self.sleep);
        }
        let begun = if self.calibrate { clock::now() } else { now };
        let lock = self.locks.as_ref().map(|locks| locks.lock());
        for _ in 0..self.common_products {
            self.common.multiply();
        }
        for _ in 0..self.own_products {
            self.own.multiply();
        }
        drop(lock);
        begun
    }

    /// Spins until the think time of the older eras has passed; preemption counts as think time.
    #[inline]
    pub fn spin(&self) {
        if self.spin_ns > 0 {
            clock::spin_until(clock::now().saturating_add(self.spin_ns));
        }
    }

    /// How long [`Thinking::spin`] takes.
    #[inline]
    pub fn spin_ns(&self) -> Ns {
        self.spin_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn every_cpu_of_this_machine_has_a_lock_of_its_own() {
        let locks = CpuLocks::new();
        for cpu in cpu::allowed().unwrap() {
            assert!((cpu as usize) < locks.0.len(), "CPU {cpu} of {}", locks.0.len());
        }
        let few = CpuLocks::up_to(3);
        assert!(std::ptr::eq(few.of(70_000), few.of(0)));
    }

    #[test]
    fn a_lock_keeps_others_of_the_same_cpu_out() {
        let cpu = cpu::allowed().unwrap()[0];
        let locks = CpuLocks::up_to(cpu);
        let count = AtomicU64::new(0);
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    cpu::pin(&[cpu]).unwrap();
                    for _ in 0..2000 {
                        let _lock = locks.lock();
                        // Lost if two were here at once.
                        let now = count.load(Ordering::Relaxed);
                        std::hint::black_box(now);
                        count.store(now + 1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(count.into_inner(), 8000);
        assert!(!locks.of(cpu).load(Ordering::Relaxed), "given back");
    }
}

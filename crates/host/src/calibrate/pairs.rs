//! Two pinned tasks: wakeup latency on one CPU and across each distance, and the cost of switching
//! between them.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use reveille_measure::Ns;
use serde::{Deserialize, Serialize};

use super::samples::{Samples, Sketch, alone};
use super::{Cpus, pin};
use crate::error::{HostError, Result};
use crate::sys::class::{self, Class};
use crate::sys::futex::{Doorbell, Scope};
use crate::sys::shared::OwnLine;
use crate::sys::{clock, cpu, process, usage};

/// Round trips per batch: short compared with a time slice.
const ROUND_TRIPS: u32 = 16;
/// Timeout for a partner that may have died.
pub(super) const PATIENCE_NS: Ns = 2_000_000_000;
/// Tasks woken in sequence on one CPU.
const SLEEPERS: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum By {
    /// Futexes, between threads.
    Futex,
    /// A byte through two pipes, between threads.
    PipeThreads,
    /// A byte through two pipes, between processes.
    PipeProcesses,
}

/// Half a round trip, in batches and one by one. Names end in `place`: `same`, `llc`.
pub(crate) fn hop(by: By, cpus: Cpus, place: &str, time: Ns) -> Result<Vec<Sketch>> {
    let (name, about) = match by {
        By::Futex => ("futex_hop", "half a round trip of two threads by futex"),
        By::PipeThreads => ("pipe_threads_hop", "half a round trip of two threads by pipe"),
        By::PipeProcesses => ("pipe_hop", "half a round trip of two processes by pipe"),
    };
    let (batches, singles) = match by {
        By::Futex => futex_hop(cpus, time)?,
        By::PipeThreads => pipe_hop(cpus, true, time).map_err(no_partner)?,
        By::PipeProcesses => pipe_hop(cpus, false, time).map_err(no_partner)?,
    };
    let place_of = match cpus.0 == cpus.1 {
        true => "on one CPU",
        false => "over two CPUs that are idle while they wait",
    };
    Ok(vec![
        batches.sketch(&format!("{name}_{place}"), &format!("{about}, {place_of}")),
        Sketch::reading(
            "ratio",
            &format!("{name}_{place}_variation"),
            "half the range around the median that holds single round trips, were they uniform",
            // A uniform distribution has 80% between p10 and p90.
            (singles.quantile(0.9) - singles.quantile(0.1)) / 1.6 / singles.quantile(0.5).max(1.0),
        ),
    ])
}

fn no_partner(error: io::Error) -> HostError {
    HostError::system("start a partner to wake", error, "free memory or processes (ulimit -u)")
}

/// Times round trips, made by `trip`, in batches and one by one. `sleeps`: how often this thread
/// blocks in one `trip`.
pub(super) fn time_trips(
    time: Ns,
    sleeps: u32,
    mut trip: impl FnMut() -> io::Result<()>,
) -> io::Result<(Samples, Samples)> {
    (0..64).try_for_each(|_| trip())?;
    let (mut batches, mut singles) = (Samples::default(), Samples::default());
    let end = clock::now() + time;
    loop {
        let before = usage::switches();
        let start = clock::now();
        (0..ROUND_TRIPS).try_for_each(|_| trip())?;
        let stop = clock::now();
        let after = usage::switches();
        // More is another task's doing.
        let switches = after.voluntary - before.voluntary + after.involuntary - before.involuntary;
        if switches > u64::from(ROUND_TRIPS * sleeps) {
            batches.discard();
        } else {
            batches.push((stop - start) as f64 / f64::from(2 * ROUND_TRIPS));
        }
        let start = clock::now();
        trip()?;
        let stop = clock::now();
        singles.push((stop - start) as f64 / 2.0);
        if stop >= end {
            return Ok((batches, singles));
        }
    }
}

#[derive(Default)]
struct Bells {
    there: OwnLine<Doorbell>,
    back: OwnLine<Doorbell>,
    over: AtomicBool,
}

impl Bells {
    fn answer(&self) {
        while !self.over.load(Ordering::Relaxed) {
            self.there.wait(Scope::Private, Some(PATIENCE_NS));
            self.back.post(Scope::Private);
        }
    }

    fn end(&self) {
        self.over.store(true, Ordering::SeqCst);
        self.there.post(Scope::Private);
    }
}

fn futex_hop((here, there): Cpus, time: Ns) -> Result<(Samples, Samples)> {
    let bells = Bells::default();
    std::thread::scope(|scope| {
        scope.spawn(|| pin(there).map(|()| bells.answer()));
        let times = pin(here).and_then(|()| {
            let trip = || {
                bells.there.post(Scope::Private);
                match bells.back.wait(Scope::Private, Some(PATIENCE_NS)) {
                    true => Ok(()),
                    false => Err(io::ErrorKind::TimedOut.into()),
                }
            };
            time_trips(time, 1, trip).map_err(no_partner)
        });
        bells.end();
        times
    })
}

fn pipe_hop((here, there): Cpus, threads: bool, time: Ns) -> io::Result<(Samples, Samples)> {
    let (there_out, there_in) = rustix::pipe::pipe()?;
    let (back_out, back_in) = rustix::pipe::pipe()?;
    let answer = |from: &OwnedFd, to: &OwnedFd| {
        let mut byte = [0];
        // EOF on the other side's pipe ends the loop.
        while rustix::io::read(from, &mut byte).is_ok_and(|n| n == 1) {
            if rustix::io::write(to, &byte).is_err() {
                break;
            }
        }
    };
    let trips = |to: &OwnedFd, from: &OwnedFd| {
        cpu::pin(&[here])?;
        let mut byte = [0];
        time_trips(time, 1, || {
            rustix::io::write(to, &byte)?;
            match rustix::io::read(from, &mut byte)? {
                0 => Err(io::ErrorKind::BrokenPipe.into()),
                _ => Ok(()),
            }
        })
    };
    if threads {
        return std::thread::scope(|scope| {
            scope.spawn(move || {
                let (from, to) = (there_out, back_in);
                cpu::pin(&[there]).map(|()| answer(&from, &to))
            });
            let times = trips(&there_in, &back_out);
            drop(there_in);
            times
        });
    }
    let child = process::spawn(|| {
        if cpu::pin(&[there]).is_ok() {
            answer(&there_out, &back_in);
        }
        0
    })?;
    // So that a child's death shows as EOF.
    drop((there_out, back_in));
    let times = trips(&there_in, &back_out);
    process::kill_and_reap(child);
    times
}

/// Two threads that yield to each other: a switch without a wakeup. `alone` is the same call
/// without a second thread.
pub(crate) fn yields(time: Ns) -> Result<Vec<Sketch>> {
    const YIELDS: u32 = 64;
    let alone = alone(time / 4, YIELDS, || (0..YIELDS).for_each(|_| rustix::thread::sched_yield()));
    let over = AtomicBool::new(false);
    let (mut pairs, mut shares) = (Samples::default(), Samples::default());
    std::thread::scope(|scope| {
        // Inherits the affinity.
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                rustix::thread::sched_yield();
            }
        });
        let end = clock::now() + time;
        while clock::now() < end {
            let before = usage::switches();
            let start = clock::now();
            (0..YIELDS).for_each(|_| rustix::thread::sched_yield());
            let stop = clock::now();
            let switches = usage::switches().involuntary - before.involuntary;
            shares.push(switches as f64 / f64::from(YIELDS));
            if switches >= u64::from(YIELDS) * 9 / 10 {
                // There and back.
                pairs.push((stop - start) as f64 / (2.0 * switches as f64));
            } else {
                pairs.discard();
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    Ok(vec![
        alone.sketch("yield_alone", "sched_yield without another task"),
        pairs.sketch("yield_switch", "sched_yield between two threads, each with its switch"),
        shares.sketch_in("ratio", "yield_share", "share of sched_yield calls that switched"),
    ])
}

/// Cost of the waker's call for threads that sleep on the waker's CPU and do not preempt it.
pub(crate) fn wake_call(time: Ns) -> Result<Vec<Sketch>> {
    let bells: Vec<OwnLine<Doorbell>> = (0..SLEEPERS).map(|_| Default::default()).collect();
    let over = AtomicBool::new(false);
    let asleep = AtomicU32::new(0);
    let mut calls = Samples::default();
    std::thread::scope(|scope| {
        for bell in &bells {
            scope.spawn(|| {
                // A batch task does not preempt on wakeup.
                let _ = class::enter(Class::Batch);
                while !over.load(Ordering::Relaxed) {
                    asleep.fetch_add(1, Ordering::SeqCst);
                    bell.wait(Scope::Private, Some(PATIENCE_NS));
                }
            });
        }
        let end = clock::now() + time;
        while clock::now() < end {
            while asleep.load(Ordering::SeqCst) < SLEEPERS as u32 {
                std::thread::sleep(std::time::Duration::from_micros(50));
            }
            // The last one has counted itself and is about to sleep.
            std::thread::sleep(std::time::Duration::from_micros(50));
            asleep.store(0, Ordering::SeqCst);
            let before = usage::switches();
            let start = clock::now();
            bells.iter().for_each(|bell| bell.post(Scope::Private));
            let stop = clock::now();
            if usage::switches() == before {
                calls.push((stop - start) as f64 / SLEEPERS as f64);
            } else {
                calls.discard();
            }
        }
        over.store(true, Ordering::SeqCst);
        bells.iter().for_each(|bell| bell.post(Scope::Private));
    });
    let about = "FUTEX_WAKE of a thread that sleeps on the same CPU and does not preempt";
    Ok(vec![calls.sketch("futex_wake_call_same", about)])
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Meanwhile {
    Idle,
    /// A SCHED_IDLE thread, which the wakee preempts: the CPU never idles.
    Spinner,
}

/// From before the waking call to the wakee's first instruction, after a sleep of `gap`; and the
/// duration of that call.
pub(crate) fn wake(
    cpus: Cpus,
    place: &str,
    gap: Ns,
    meanwhile: Meanwhile,
    time: Ns,
) -> Result<Vec<Sketch>> {
    let bells = Bells::default();
    let ran_at = OwnLine(AtomicU64::new(0));
    let turn = OwnLine(AtomicU64::new(0));
    let (mut latency, mut call) = (Samples::default(), Samples::default());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(cpus.1)?;
            while !bells.over.load(Ordering::Relaxed) {
                bells.there.wait(Scope::Private, Some(PATIENCE_NS));
                ran_at.store(clock::now(), Ordering::Relaxed);
                turn.fetch_add(1, Ordering::SeqCst);
            }
            Ok::<(), HostError>(())
        });
        if meanwhile == Meanwhile::Spinner {
            scope.spawn(|| {
                pin(cpus.1)?;
                let _ = class::enter(Class::Idle);
                while !bells.over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
                Ok::<(), HostError>(())
            });
        }
        let pinned = pin(cpus.0);
        let end = clock::now() + time;
        while pinned.is_ok() && clock::now() < end {
            clock::spin_until(clock::now() + gap);
            let (before, seen) = (usage::switches(), turn.load(Ordering::SeqCst));
            let start = clock::now();
            bells.there.post(Scope::Private);
            let posted = clock::now();
            while turn.load(Ordering::SeqCst) == seen && clock::now() < posted + PATIENCE_NS {
                std::hint::spin_loop();
            }
            if usage::switches() == before {
                latency.push(ran_at.load(Ordering::SeqCst).saturating_sub(start) as f64);
                call.push((posted - start) as f64);
            } else {
                latency.discard();
                call.discard();
            }
        }
        bells.end();
        pinned
    })?;
    let (name, state) = match meanwhile {
        Meanwhile::Idle => (format!("wake_idle_{place}_{}us", gap / 1000), "idle"),
        Meanwhile::Spinner => (format!("wake_busy_{place}"), "kept busy by a SCHED_IDLE thread"),
    };
    let us = gap / 1000;
    Ok(vec![
        latency.sketch(
            &name,
            &format!("futex wake-up to running, CPU {state}, {us} us after the task slept"),
        ),
        call.sketch(&format!("{name}_call"), &format!("the waker's part of {name}")),
    ])
}

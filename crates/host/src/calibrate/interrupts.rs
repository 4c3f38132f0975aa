//! Costs of interrupts, observed by a thread that reads the clock in a loop: the tick, and IPIs
//! from another CPU.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use reveille_measure::Ns;
use rustix::thread::{MembarrierCommand, current_timer_slack, membarrier, set_current_timer_slack};

use super::samples::{Samples, Sketch, alone};
use super::{Cpus, pin};
use crate::error::{HostError, Result};
use crate::sys::clock;
use crate::sys::futex::{Doorbell, Scope};
use crate::sys::shared::OwnLine;

/// A gap between clock readings longer than this many readings is an interrupt.
const GAP_READINGS: u64 = 5;
/// If fewer ticks than this share were seen, other tasks ran most of the time, and the gaps may be
/// theirs.
const LEAST_TICKS: f64 = 0.4;
/// A longer gap is not only the tick: another task was scheduled.
const MOST_TICK_NS: Ns = 100_000;
/// Longer than a loop that reads the clock and fetches a line from the other CPU, shorter than any
/// interrupt.
const LINE_AND_CLOCK_NS: Ns = 300;

/// An interval during which the clock's reader did not run.
#[derive(Clone, Copy, Debug)]
struct Gap {
    from: Ns,
    length: Ns,
}

/// Reads the clock until `end`; also returns the typical time between two readings.
fn gaps(end: Ns) -> (Vec<Gap>, Ns) {
    let mut steps = Vec::with_capacity(1000);
    let mut before = clock::now();
    for _ in 0..1000 {
        let now = clock::now();
        steps.push(now - before);
        before = now;
    }
    steps.sort_unstable();
    let step = steps[steps.len() / 2].max(1);
    let mut gaps = Vec::new();
    while before < end {
        let now = clock::now();
        if now - before > LINE_AND_CLOCK_NS.max(GAP_READINGS * step) {
            gaps.push(Gap { from: before, length: now - before });
        }
        before = now;
    }
    (gaps, step)
}

/// The tick: its frequency, which is that of the coarse clock, and how long it occupies a busy CPU.
pub(crate) fn tick(time: Ns) -> Result<Vec<Sketch>> {
    let period = clock::tick_period();
    let (gaps, step) = gaps(clock::now() + time);
    let ticks = on_grid(&gaps, period);
    let mut lengths = Samples::default();
    if ticks.len() as f64 >= LEAST_TICKS * (time / period) as f64 {
        for gap in ticks.iter().filter(|gap| gap.length < MOST_TICK_NS) {
            lengths.push(gap.length.saturating_sub(step) as f64);
        }
    }
    let hz = (1e9 / period as f64).round();
    Ok(vec![
        Sketch::reading("Hz", "hz", "clock_getres(CLOCK_MONOTONIC_COARSE), which is a tick", hz),
        lengths.sketch("tick", "pause of a busy loop at each tick"),
    ])
}

/// Gaps on the grid of that period, at the phase with most gaps.
fn on_grid(gaps: &[Gap], period: Ns) -> Vec<Gap> {
    const PHASES: u64 = 100;
    let phase = |gap: &Gap| (gap.from % period) * PHASES / period;
    let mut counts = [0u64; PHASES as usize];
    gaps.iter().for_each(|g| counts[phase(g) as usize] += 1);
    let around = |p: usize| counts[p] + counts[(p + 1) % counts.len()];
    let best = (0..counts.len()).max_by_key(|&p| around(p)).unwrap_or(0) as u64;
    let near = |g: &&Gap| (phase(g) + PHASES - best) % PHASES <= 1;
    // Of several gaps near one moment, the longest is the tick.
    let mut ticks: Vec<Gap> = Vec::new();
    for gap in gaps.iter().filter(near) {
        match ticks.last_mut().filter(|last| gap.from - last.from < period / 2) {
            Some(last) if last.length < gap.length => *last = *gap,
            Some(_) => {}
            None => ticks.push(*gap),
        }
    }
    ticks
}

/// The IPI sent by membarrier(2): time until its handler runs, time the handler occupies the CPU,
/// and time the caller waits for the acknowledgement.
pub(crate) fn ipi((here, there): Cpus, place: &str, time: Ns) -> Result<Vec<Sketch>> {
    let call = |command| membarrier(command).map_err(std::io::Error::from);
    if let Err(error) = call(MembarrierCommand::RegisterPrivateExpedited) {
        let help = "calibrate on a kernel with CONFIG_MEMBARRIER";
        return Err(HostError::system("register for membarrier(2)", error, help));
    }
    pin(here)?;
    let send = || call(MembarrierCommand::PrivateExpedited).is_ok();
    let empty = without_target(time / 10, &send);
    let (mut flight, mut handler, mut round) =
        (Samples::default(), Samples::default(), Samples::default());
    let over = AtomicBool::new(false);
    let gap = OwnLine(AtomicU64::new(0));
    let length = OwnLine(AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(there)?;
            let mut before = clock::now();
            while !over.load(Ordering::Relaxed) {
                let now = clock::now();
                if now - before > LINE_AND_CLOCK_NS && gap.load(Ordering::Relaxed) == 0 {
                    length.store(now - before, Ordering::Relaxed);
                    gap.store(before, Ordering::SeqCst);
                }
                before = now;
            }
            Ok::<(), HostError>(())
        });
        std::thread::sleep(Duration::from_millis(5));
        let end = clock::now() + time;
        while clock::now() < end {
            gap.store(0, Ordering::SeqCst);
            clock::spin_until(clock::now() + 20_000);
            // A tick came first, and the gap would be the tick's.
            if gap.load(Ordering::SeqCst) != 0 {
                continue;
            }
            let start = clock::now();
            if !send() {
                break;
            }
            let stop = clock::now();
            clock::spin_until(stop + 5_000);
            let (from, length) = (gap.load(Ordering::SeqCst), length.load(Ordering::Relaxed));
            if from > start && from < stop && length < stop - start {
                flight.push((from - start) as f64);
                handler.push(length as f64);
                round.push((stop - start) as f64);
            } else {
                flight.discard();
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    let name = |what: &str| format!("ipi_{what}_{place}");
    Ok(vec![
        empty.sketch(&name("none"), "membarrier with no other thread running"),
        flight.sketch(&name("flight"), "membarrier called until the other CPU stops for it"),
        handler.sketch(&name("handler"), "pause of a busy loop at that interrupt"),
        round.sketch(&name("round"), "membarrier with one busy CPU to interrupt"),
    ])
}

/// membarrier(2) while the process' other thread is not running: it looks for CPUs to interrupt and
/// finds none.
fn without_target(time: Ns, send: &dyn Fn() -> bool) -> Samples {
    const CALLS: u32 = 16;
    let bell = Doorbell::default();
    std::thread::scope(|scope| {
        scope.spawn(|| bell.wait(Scope::Private, None));
        std::thread::sleep(Duration::from_millis(1));
        let calls = alone(time, CALLS, || {
            (0..CALLS).for_each(|_| _ = std::hint::black_box(send()));
        });
        bell.post(Scope::Private);
        calls
    })
}

/// Lateness of sleeps, with the default timer slack and with the minimum.
pub(crate) fn slack(time: Ns) -> Result<Vec<Sketch>> {
    let granted = current_timer_slack()
        .map_err(|e| HostError::system("read the timer slack", e, "report it"))?;
    let oversleep = || {
        let mut late = Samples::default();
        let end = clock::now() + time / 2;
        while clock::now() < end {
            let sleep = 200_000;
            let start = clock::now();
            std::thread::sleep(Duration::from_nanos(sleep));
            late.push((clock::now() - start).saturating_sub(sleep) as f64);
        }
        late
    };
    let usual = oversleep();
    set_current_timer_slack(NonZeroU64::new(1))
        .map_err(|e| HostError::system("set the timer slack", e, "report it"))?;
    let least = oversleep();
    Ok(vec![
        Sketch::reading("ns", "timer_slack", "prctl(PR_GET_TIMERSLACK)", granted as f64),
        usual.sketch("oversleep", "how late a sleep of 200 us ends"),
        least.sketch("oversleep_exact", "the same with a timer slack of 1 ns"),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_found_among_other_pauses() {
        let period = 4_000_000;
        let at = |from: Ns, length: Ns| Gap { from, length };
        let mut gaps: Vec<Gap> = (0..50).map(|i| at(1_234_567 + i * period, 5_000 + i)).collect();
        // Something else right after each tick, and at random moments.
        gaps.extend((0..50).map(|i| at(1_240_000 + i * period, 600)));
        gaps.extend((0..40).map(|i| at(i * 4_777_777, 9_000)));
        gaps.sort_by_key(|g| g.from);
        let ticks = on_grid(&gaps, period);
        assert!((48..=52).contains(&ticks.len()), "{}", ticks.len());
        assert!(ticks.iter().filter(|g| (5_000..5_050).contains(&g.length)).count() >= 45);
        assert!(on_grid(&[], period).is_empty());
    }

    #[test]
    fn the_tick_is_one_that_kernels_have() {
        let hz = 1_000_000_000 / clock::tick_period();
        assert!([100, 250, 300, 1000].contains(&hz), "{hz}");
    }
}

//! What interrupts take, seen by a thread that does nothing but look at the clock: the
//! tick, and the interrupt that another CPU sends.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use reveille_policy::CpuId;
use rustix::thread::{MembarrierCommand, current_timer_slack, membarrier, set_current_timer_slack};

use super::samples::{Samples, Sketch, alone};
use super::{Cpus, pin};
use crate::sys::clock;
use crate::sys::futex::{Doorbell, Scope};
use crate::sys::shared::OwnLine;
use crate::{HostError, Ns};

/// A pause of the clock longer than this is an interrupt and not the loop: five readings.
const GAP_READINGS: u64 = 5;
/// So large a share of a frequency's ticks must be seen for it to be the host's: the rest
/// fell into times when others ran.
const LEAST_TICKS: f64 = 0.4;
/// A longer pause is not the tick's own: it handed the CPU to another task.
const MOST_TICK_NS: Ns = 100_000;
/// Longer than a loop takes that reads the clock and fetches a line from the other CPU,
/// shorter than any interrupt.
const LINE_AND_CLOCK_NS: Ns = 300;
/// Timer frequencies that kernels have.
const HZ: [u64; 4] = [100, 250, 300, 1000];

/// A time in which the clock's reader did not run.
#[derive(Clone, Copy, Debug)]
struct Gap {
    from: Ns,
    length: Ns,
}

/// Reads the clock until `end`; returns the usual time between two readings as well.
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

/// The tick: its frequency, and how long it keeps a busy CPU.
pub(crate) fn tick(cpu: CpuId, time: Ns) -> Result<Vec<Sketch>, HostError> {
    pin(cpu)?;
    let (gaps, step) = gaps(clock::now() + time);
    // Of two grids that share moments, the true one has more of its own filled.
    let filled = |hz: u64| {
        let ticks = on_grid(&gaps, hz, time);
        (ticks.len() as f64 / (time * hz) as f64 * 1e9, hz, ticks)
    };
    let best = HZ.into_iter().map(filled).max_by(|a, b| a.0.total_cmp(&b.0));
    let Some((_, hz, ticks)) = best.filter(|(share, ..)| *share >= LEAST_TICKS) else {
        return Ok(Vec::new());
    };
    let mut lengths = Samples::default();
    for gap in ticks.iter().filter(|gap| gap.length < MOST_TICK_NS) {
        lengths.push(gap.length.saturating_sub(step) as f64);
    }
    Ok(vec![
        lengths.sketch("tick", "pause of a busy loop at each tick"),
        Sketch::reading("Hz", "hz", "frequency of those pauses", hz as f64),
    ])
}

/// The gaps on the grid of that frequency, at the phase where most are.
fn on_grid(gaps: &[Gap], hz: u64, time: Ns) -> Vec<Gap> {
    const PHASES: u64 = 100;
    let period = 1_000_000_000 / hz;
    let phase = |gap: &Gap| (gap.from % period) * PHASES / period;
    let mut counts = [0u64; PHASES as usize];
    gaps.iter().for_each(|g| counts[phase(g) as usize] += 1);
    let around = |p: usize| counts[p] + counts[(p + 1) % counts.len()];
    let best = (0..counts.len()).max_by_key(|&p| around(p)).unwrap_or(0) as u64;
    let near = |g: &&Gap| (phase(g) + PHASES - best) % PHASES <= 1;
    // Of the pauses near one moment the longest is the tick.
    let mut ticks: Vec<Gap> = Vec::new();
    for gap in gaps.iter().filter(near) {
        match ticks.last_mut().filter(|last| gap.from - last.from < period / 2) {
            Some(last) if last.length < gap.length => *last = *gap,
            Some(_) => {}
            None => ticks.push(*gap),
        }
    }
    // Rather many gaps at random are no grid.
    if around(best as usize) > 2 * (time / period + 1) { Vec::new() } else { ticks }
}

/// The interrupt that membarrier(2) sends: until its handler runs, how long the handler
/// keeps the CPU, and how long the caller waits for the answer.
pub(crate) fn ipi((here, there): Cpus, place: &str, time: Ns) -> Result<Vec<Sketch>, HostError> {
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
            // A tick came first: the gap seen would be its own.
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

/// The same call when the process has another thread, but it does not run: the call looks for
/// CPUs to interrupt and finds none.
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

/// How late a sleep ends, with the default timer slack and with the least.
pub(crate) fn slack(cpu: CpuId, time: Ns) -> Result<Vec<Sketch>, HostError> {
    pin(cpu)?;
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

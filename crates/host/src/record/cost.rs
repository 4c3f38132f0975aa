//! Measures on this host, in less than 100 ms before a recording, what tracing costs the traced
//! tasks, and how promptly the kernel's counters follow a running thread.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

use super::tracer::Tracer;
use reveille_measure::Ns;

use crate::error::Result;
use crate::sys::{clock, cpu};

/// Exchanges of a byte per measurement.
const EXCHANGES: u32 = 100;
/// Measurements with and without tracing; the fastest of each counts.
const REPEATS: u32 = 20;

/// Cost of a tracepoint for the thread that hits it: two threads on one CPU exchange bytes, with
/// and without tracing. `None` if it cannot be measured here.
///
/// # Errors
/// [`HostError::System`] if the kernel no longer permits tracing.
pub(super) fn event_cost_ns(tracer: &mut Tracer) -> Result<Option<f64>> {
    let Some(cpu) = cpu::allowed().ok().and_then(|cpus| cpus.first().copied()) else {
        return Ok(None);
    };
    let (mut plain_ns, mut traced) = (Ns::MAX, (Ns::MAX, 1));
    for _ in 0..REPEATS {
        let Ok(ns) = exchange(cpu) else { return Ok(None) };
        plain_ns = plain_ns.min(ns);
        tracer.enable_on(cpu, true)?;
        let result = exchange(cpu);
        tracer.enable_on(cpu, false)?;
        let events = tracer.read();
        tracer.forget();
        let Ok(ns) = result else { return Ok(None) };
        traced = traced.min((ns, events.max(1)));
    }
    Ok(Some(traced.0.saturating_sub(plain_ns) as f64 / traced.1 as f64))
}

/// Duration of the exchange between two threads on this CPU.
fn exchange(cpu: u32) -> io::Result<Ns> {
    let (mut here, mut there) = UnixStream::pair()?;
    std::thread::scope(|scope| {
        let answers = scope.spawn(move || -> io::Result<()> {
            cpu::pin(&[cpu])?;
            let mut byte = [0];
            for _ in 0..=EXCHANGES {
                there.read_exact(&mut byte)?;
                there.write_all(&byte)?;
            }
            Ok(())
        });
        let asks = scope.spawn(move || -> io::Result<Ns> {
            cpu::pin(&[cpu])?;
            let mut byte = [0];
            let mut ask = || -> io::Result<()> {
                here.write_all(&byte)?;
                here.read_exact(&mut byte)
            };
            ask()?;
            let start_ns = clock::now();
            (0..EXCHANGES).try_for_each(|_| ask())?;
            Ok(clock::now() - start_ns)
        });
        let ended = || io::Error::other("a thread has ended");
        let ns = asks.join().map_err(|_| ended())?;
        answers.join().map_err(|_| ended())??;
        ns
    })
}

/// How long a thread spins to watch its counter grow.
const SPIN_NS: Ns = 50_000_000;

/// Granularity at which the kernel charges a running thread, and with it its group; usually a tick.
/// `None` if the kernel does not show a thread's CPU time.
pub(super) fn charging_step_ns() -> Option<Ns> {
    let used = || -> Option<Ns> {
        let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        text.split(' ').next()?.parse().ok()
    };
    let end_ns = clock::now() + SPIN_NS;
    let mut last = used()?;
    let mut steps = Vec::new();
    while clock::now() < end_ns {
        let now = used()?;
        if now > last {
            steps.push(now - last);
            last = now;
        }
    }
    steps.sort_unstable();
    steps.get(steps.len() / 2).copied()
}

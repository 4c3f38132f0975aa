//! `-R`: message threads send requests at a rate, whether or not workers keep up. As in the
//! originals, requests come in batches, which is the load that these programs are known
//! for: the current one sends a whole second's at once, the classic one wakes two thirds of
//! the workers at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::Duration;

use reveille_measure::Ns;

use super::histogram::add_one;
use super::think::Thinking;
use super::threads::{Control, Messenger, Request, SCOPE, Worker};
use crate::sys::clock;

const SECOND: Ns = 1_000_000_000;
/// How long a message thread waits when a worker is too far behind.
const FULL_WAIT: Duration = Duration::from_micros(100);

/// Requests that message thread `index` of `threads` sends: the shares add up to exactly `rps`.
pub(super) fn share(rps: u32, threads: u32, index: u32) -> u32 {
    rps / threads + u32::from(index < rps % threads)
}

#[inline]
fn send(messenger: &Messenger, worker: &Worker, request: Request) -> bool {
    let room = !worker.queue.is_full();
    if room {
        worker.queue.send(request);
        worker.bell().post(SCOPE);
    } else {
        add_one(&messenger.skipped);
    }
    room
}

/// Sends the current era's requests: each second's at its beginning, to the workers in
/// turn.
pub(super) fn send_each_second(
    control: &Control,
    messenger: &Messenger,
    workers: &[Arc<Worker>],
    rps: impl Fn() -> u32,
) {
    let mut turn = workers.iter().cycle();
    let mut intended_ns = clock::now();
    while !control.stopping() {
        for _ in 0..rps() {
            if control.stopping() {
                return;
            }
            let worker = turn.next().expect("there are workers");
            if !send(messenger, worker, Request { sent_ns: clock::now(), intended_ns }) {
                sleep(FULL_WAIT);
            }
        }
        intended_ns += SECOND;
        control.sleep_until(intended_ns);
    }
}

/// Sends the classic era's requests: one to each of two thirds of the workers, then a
/// sleep that is measured from there, so that batches drift against the clock as the
/// original's do.
pub(super) fn send_batches(
    control: &Control,
    messenger: &Messenger,
    workers: &[Arc<Worker>],
    rps: u32,
) {
    // With one worker there is no third to leave out.
    let batch = (workers.len() * 2 / 3).max(1);
    let batches_per_second = u64::from(rps).div_ceil(batch as u64);
    if batches_per_second == 0 {
        control.sleep_until(Ns::MAX);
        return;
    }
    let pause_ns = 1_000_000 / batches_per_second.min(1_000_000) * 1000;
    let mut turn = workers.iter().cycle();
    loop {
        let intended_ns = clock::now() + pause_ns;
        control.sleep_until(intended_ns);
        if control.stopping() {
            return;
        }
        for worker in turn.by_ref().take(batch) {
            send(messenger, worker, Request { sent_ns: clock::now(), intended_ns });
        }
    }
}

/// Waits until requests come. Returns when the worker ran again and the request that woke
/// it, if it slept and one did.
#[inline]
fn wait(control: &Control, worker: &Worker) -> Option<(Ns, Request)> {
    worker.bell().reset();
    // One that came before the bell was reset.
    if worker.queue.first().is_some() || control.stopping() {
        return None;
    }
    worker.bell().wait(SCOPE, None);
    let now = clock::now();
    worker.queue.first().map(|request| (now, request))
}

/// A worker: takes on what has come, serves it, and waits when nothing is left.
fn serve(control: &Control, worker: &Worker, woken: impl Fn(Ns, Request), each: impl Fn(Request)) {
    let mut seen = 0;
    while worker.goes_on(control, &mut seen) {
        let requests = worker.queue.take();
        if requests.is_empty() {
            if let Some((now, request)) = wait(control, worker)
                && worker.goes_on(control, &mut seen)
            {
                woken(now, request);
            }
            continue;
        }
        // Awake: those who send need not wake it.
        worker.bell().hold();
        for number in requests {
            if !worker.goes_on(control, &mut seen) {
                return;
            }
            each(worker.queue.get(number));
            worker.done();
        }
    }
}

/// A worker of the current era.
pub(super) fn serve_requests(control: &Control, worker: &Worker, thinking: &Thinking) {
    let each = |request: Request| {
        let begun = thinking.request(clock::now());
        let done = clock::now();
        worker.request.record(done - begun);
        worker.open_loop.record(done.saturating_sub(request.intended_ns));
    };
    serve(control, worker, |now, request| worker.woken(request.sent_ns, now), each);
}

/// A worker of the classic era, whose one latency is that of the request without the think
/// time.
pub(super) fn serve_spinning(control: &Control, worker: &Worker, thinking: &Thinking) {
    let each = |request: Request| {
        thinking.spin();
        let done = clock::now();
        worker.woken(request.sent_ns + thinking.spin_ns(), done);
        worker.open_loop.record(done.saturating_sub(request.intended_ns));
    };
    serve(control, worker, |_, _| {}, each);
}

/// Requests per second asked for, which `-A` changes during the run.
#[derive(Debug, Default)]
pub(super) struct Goal(AtomicU32);

impl Goal {
    pub fn set(&self, rps: u32) {
        self.0.store(rps, Ordering::Relaxed);
    }

    pub fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shares_add_up_and_differ_by_one_at_most(rps: u32, threads in 1u32..200) {
            let shares: Vec<_> = (0..threads).map(|i| share(rps, threads, i)).collect();
            prop_assert_eq!(shares.iter().map(|&s| u64::from(s)).sum::<u64>(), u64::from(rps));
            prop_assert!(shares[0] - shares[shares.len() - 1] <= 1);
        }
    }
}

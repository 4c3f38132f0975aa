//! What the threads of a run share: the order to stop or to start over, the line that a
//! worker and its message thread exchange, and the queue of requests between them.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use reveille_measure::Ns;

use super::histogram::{Recorder, add_one};
use super::options::{Era, Schbench};
use crate::sys::clock;
use crate::sys::futex::{self, Doorbell, Scope};
use crate::sys::shared::OwnLine;

/// All waits are of threads of this process.
pub(super) const SCOPE: Scope = Scope::Private;
/// Latencies above this are `Over=` (`max_us` of the first era).
const OVER_US: u32 = 50_000;

/// Read by all in every turn, written once in seconds: bit 0 stops, and any other change
/// is an order to forget what was recorded.
#[derive(Debug, Default)]
pub(super) struct Control(OwnLine<AtomicU32>);

const STOP: u32 = 1;

impl Control {
    pub fn stop(&self) {
        self.0.fetch_or(STOP, Ordering::SeqCst);
        futex::wake(&self.0, i32::MAX as u32, SCOPE);
    }

    /// Orders the workers to forget. What a worker holds counts again once it has.
    pub fn forget(&self) {
        self.0.fetch_add(2, Ordering::SeqCst);
    }

    #[inline]
    pub fn stopping(&self) -> bool {
        self.0.load(Ordering::SeqCst) & STOP != 0
    }

    /// Orders to forget so far.
    pub fn epoch(&self) -> u32 {
        self.0.load(Ordering::SeqCst) & !STOP
    }

    /// Sleeps until `end` or the stop.
    pub fn sleep_until(&self, end: Ns) {
        loop {
            let word = self.0.load(Ordering::SeqCst);
            let left = end.saturating_sub(clock::now());
            if word & STOP != 0 || left == 0 {
                return;
            }
            futex::wait(&self.0, word, SCOPE, Some(left));
        }
    }
}

/// What a message thread and its worker write by turns. One pair of cache lines.
#[derive(Debug, Default)]
struct Exchange {
    /// The worker waits on it.
    bell: Doorbell,
    /// The next worker that waits for an answer: its index plus 1, 0 at the end.
    next: AtomicU32,
    /// When the message thread began to wake this worker.
    wake_ns: AtomicU64,
}

/// A worker, as the others see it.
#[derive(Debug)]
pub(super) struct Worker {
    exchange: OwnLine<Exchange>,
    /// Requests done, how many of them an order to forget took away, and the last order that
    /// was followed. Written by the worker alone.
    loops: OwnLine<AtomicU64>,
    forgotten: AtomicU64,
    epoch: AtomicU32,
    over: AtomicU64,
    counts_over: bool,
    /// Waits for a CPU; in the classic era with `-R`, the requests.
    pub wakeup: Recorder,
    /// Requests, from a worker's start on them.
    pub request: Recorder,
    /// Requests, from when they should have been sent.
    pub open_loop: Recorder,
    /// Requests to come.
    pub queue: Queue,
    /// The data of a pipe. Worker and message thread fill it by turns; no lock is ever
    /// waited for.
    page: Mutex<Vec<u8>>,
}

impl Worker {
    /// Allocates all that a worker touches, in its own thread.
    pub fn new(job: &Schbench) -> Worker {
        Worker {
            exchange: OwnLine::default(),
            loops: OwnLine::default(),
            forgotten: AtomicU64::new(0),
            epoch: AtomicU32::new(0),
            over: AtomicU64::new(0),
            counts_over: job.era == Era::First,
            wakeup: Recorder::default(),
            request: Recorder::default(),
            open_loop: Recorder::default(),
            queue: Queue::new(match (job.rps_at_start(), job.era) {
                (None, _) => 0,
                (_, Era::Current) => QUEUE_LIMIT,
                (_, Era::Classic | Era::First) => CLASSIC_QUEUE_LIMIT,
            }),
            page: Mutex::new(vec![0; job.pipe_bytes.unwrap_or(0) as usize]),
        }
    }

    /// May the worker go on? Follows an order to forget. `seen` is the worker's own.
    #[inline]
    pub fn goes_on(&self, control: &Control, seen: &mut u32) -> bool {
        let word = control.0.load(Ordering::SeqCst);
        if word == *seen {
            return true;
        }
        if word & STOP != 0 {
            return false;
        }
        for recorder in [&self.wakeup, &self.request, &self.open_loop] {
            recorder.clear();
        }
        self.over.store(0, Ordering::Relaxed);
        self.forgotten.store(self.loops(), Ordering::Relaxed);
        self.epoch.store(word, Ordering::Release);
        *seen = word;
        true
    }

    /// Does what it holds belong to this epoch? Otherwise it has recorded nothing since.
    pub fn is_of(&self, epoch: u32) -> bool {
        self.epoch.load(Ordering::Acquire) == epoch
    }

    /// Records a wakeup that was begun at `from`.
    #[inline]
    pub fn woken(&self, from: Ns, now: Ns) {
        let us = self.wakeup.record(now.saturating_sub(from));
        if self.counts_over && us > OVER_US {
            add_one(&self.over);
        }
    }

    /// One request more is done.
    #[inline]
    pub fn done(&self) {
        add_one(&self.loops);
    }

    /// Requests done since the start.
    pub fn loops(&self) -> u64 {
        self.loops.load(Ordering::Relaxed)
    }

    /// Requests done since the last order to forget.
    pub fn loops_recorded(&self) -> u64 {
        self.loops() - self.forgotten.load(Ordering::Relaxed)
    }

    /// Latencies over 50 ms.
    pub fn over(&self) -> u64 {
        self.over.load(Ordering::Relaxed)
    }

    #[inline]
    pub fn bell(&self) -> &Doorbell {
        &self.exchange.bell
    }

    /// When its message thread began to wake it.
    #[inline]
    pub fn wake_ns(&self) -> Ns {
        self.exchange.wake_ns.load(Ordering::Relaxed)
    }

    #[inline]
    pub fn fill_page(&self, byte: u8) {
        self.page.lock().expect("no thread panics while holding it").fill(byte);
    }
}

/// A message thread, as its workers see it.
#[derive(Debug, Default)]
pub(super) struct Messenger {
    exchange: OwnLine<MessengerLine>,
    /// Its workers, known before the run begins.
    pub workers: OnceLock<Vec<Arc<Worker>>>,
    /// Requests that it did not send.
    pub skipped: AtomicU64,
}

#[derive(Debug, Default)]
struct MessengerLine {
    bell: Doorbell,
    /// The worker that came last: its index plus 1; 0 if none waits.
    waiting: AtomicU32,
}

impl Messenger {
    /// The bell that wakes it.
    #[inline]
    pub fn bell(&self) -> &Doorbell {
        &self.exchange.bell
    }

    /// Puts worker `index` on the list of those that wait for an answer.
    #[inline]
    pub fn add(&self, worker: &Worker, index: u32) {
        let head = &self.exchange.waiting;
        let mut last = head.load(Ordering::Relaxed);
        loop {
            worker.exchange.next.store(last, Ordering::Relaxed);
            let added =
                head.compare_exchange_weak(last, index + 1, Ordering::Release, Ordering::Relaxed);
            match added {
                Ok(_) => return,
                Err(newer) => last = newer,
            }
        }
    }

    /// Wakes all that wait, the last first. All are given the time at which this began, so
    /// that a latency has the time that the scheduler takes from the waker; those of a
    /// pipe each their own.
    #[inline]
    pub fn wake_all(&self, workers: &[Arc<Worker>], pipe: bool) {
        let mut next = self.exchange.waiting.swap(0, Ordering::Acquire);
        if next == 0 {
            return;
        }
        let mut now = clock::now();
        while next != 0 {
            let worker = &workers[next as usize - 1];
            next = worker.exchange.next.load(Ordering::Relaxed);
            if pipe {
                worker.fill_page(1);
                now = clock::now();
            }
            worker.exchange.wake_ns.store(now, Ordering::Relaxed);
            worker.exchange.bell.post(SCOPE);
        }
    }
}

/// A worker that is further behind gets no more requests for now (`batch` of the original).
pub(super) const QUEUE_LIMIT: u64 = 128;
/// The classic program had no limit; this is a backlog of minutes.
const CLASSIC_QUEUE_LIMIT: u64 = 4095;

/// Requests from a message thread to one worker.
#[derive(Debug)]
pub(super) struct Queue {
    /// Written by the message thread.
    sent: OwnLine<AtomicU64>,
    /// Written by the worker: up to where it took requests on.
    taken: OwnLine<AtomicU64>,
    limit: u64,
    slots: Vec<[AtomicU64; 2]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// When it was sent.
    pub sent_ns: Ns,
    /// When it should have been sent.
    pub intended_ns: Ns,
}

impl Queue {
    fn new(limit: u64) -> Queue {
        // Those that were taken on and are worked at, and those that came since.
        let slots = if limit == 0 { 0 } else { (2 * (limit + 1)).next_power_of_two() };
        let slots = (0..slots).map(|_| Default::default()).collect();
        Queue { sent: OwnLine::default(), taken: OwnLine::default(), limit, slots }
    }

    fn slot(&self, number: u64) -> &[AtomicU64; 2] {
        &self.slots[number as usize & (self.slots.len() - 1)]
    }

    /// Have more than the limit come since the worker last took on what there was? The
    /// message thread asks.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.sent.load(Ordering::Relaxed) - self.taken.load(Ordering::Acquire) > self.limit
    }

    /// Sends a request; not if [`Queue::is_full`]. The message thread alone may.
    #[inline]
    pub fn send(&self, request: Request) {
        let number = self.sent.load(Ordering::Relaxed);
        let [sent, intended] = self.slot(number);
        sent.store(request.sent_ns, Ordering::Relaxed);
        intended.store(request.intended_ns, Ordering::Relaxed);
        self.sent.store(number + 1, Ordering::SeqCst);
    }

    /// Takes on all that have come. The worker alone may; it must be done with those that
    /// it took before.
    #[inline]
    pub fn take(&self) -> std::ops::Range<u64> {
        let first = self.taken.load(Ordering::Relaxed);
        let end = self.sent.load(Ordering::SeqCst);
        self.taken.store(end, Ordering::Release);
        first..end
    }

    /// A request that was taken on.
    #[inline]
    pub fn get(&self, number: u64) -> Request {
        let [sent, intended] = self.slot(number);
        Request {
            sent_ns: sent.load(Ordering::Relaxed),
            intended_ns: intended.load(Ordering::Relaxed),
        }
    }

    /// The first request that has come and was not taken on. The worker alone may ask.
    #[inline]
    pub fn first(&self) -> Option<Request> {
        let first = self.taken.load(Ordering::Relaxed);
        (self.sent.load(Ordering::SeqCst) > first).then(|| self.get(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(number: u64) -> Request {
        Request { sent_ns: number, intended_ns: number + 7 }
    }

    #[test]
    fn requests_arrive_once_and_in_order_up_to_the_limit() {
        let queue = Queue::new(3);
        let all = 20_000;
        std::thread::scope(|s| {
            s.spawn(|| {
                for number in 0..all {
                    while queue.is_full() {
                        std::thread::yield_now();
                    }
                    queue.send(request(number));
                }
            });
            let mut expected = 0;
            while expected < all {
                let first = queue.first();
                let taken = queue.take();
                assert!(taken.end - taken.start <= 2 * (queue.limit + 1));
                for number in taken {
                    assert_eq!(queue.get(number), request(expected));
                    assert!(expected != number || first.is_none_or(|f| f.sent_ns <= number));
                    expected += 1;
                }
                std::thread::yield_now();
            }
        });
        assert_eq!(queue.first(), None);
        assert!(queue.take().is_empty());
    }

    #[test]
    fn all_that_wait_are_woken_once_with_the_same_time() {
        let job = Schbench::new(Era::Current);
        let workers: Vec<_> = (0..5).map(|_| Arc::new(Worker::new(&job))).collect();
        let messenger = Messenger::default();
        for index in [3, 0, 4] {
            messenger.add(&workers[index], index as u32);
        }
        let before = clock::now();
        messenger.wake_all(&workers, false);
        let posted = |w: &Arc<Worker>| w.bell().wait(SCOPE, Some(0));
        assert_eq!(
            workers.iter().map(posted).collect::<Vec<_>>(),
            [true, false, false, true, true]
        );
        assert!(workers[0].wake_ns() >= before);
        assert_eq!(workers[0].wake_ns(), workers[4].wake_ns());
        messenger.wake_all(&workers, false);
        assert!(!workers.iter().any(posted), "no worker waits any more");
    }

    #[test]
    fn an_order_to_forget_is_followed_once_and_a_stop_is_final() {
        let job = Schbench::new(Era::First);
        let (control, worker) = (Control::default(), Worker::new(&job));
        let mut seen = 0;
        assert!(worker.goes_on(&control, &mut seen) && worker.is_of(control.epoch()));
        worker.woken(0, 50_000_400);
        worker.woken(0, 50_001_000);
        assert_eq!(worker.over(), 1, "more than 50 ms");
        control.forget();
        assert!(!worker.is_of(control.epoch()), "not followed yet");
        assert!(worker.goes_on(&control, &mut seen) && worker.is_of(control.epoch()));
        assert_eq!(worker.over(), 0);
        control.stop();
        assert!(control.stopping() && !worker.goes_on(&control, &mut seen));
        assert!(worker.is_of(control.epoch()), "what it recorded counts");
        control.sleep_until(u64::MAX);
    }
}

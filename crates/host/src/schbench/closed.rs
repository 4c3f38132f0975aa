//! The closed loop: a worker thinks, sends a message, and waits for the answer; the message
//! thread answers all that wait. Measured is the wait of an answered worker for a CPU.

use std::sync::Arc;

use reveille_measure::{Ns, Random};

use super::options::{Era, Schbench};
use super::think::Thinking;
use super::threads::{Control, Messenger, SCOPE, Worker};
use crate::sys::clock;

/// Sends a message and waits for the answer; returns when the worker ran again, nothing if
/// the run has ended meanwhile.
#[inline]
fn ask(control: &Control, messenger: &Messenger, worker: &Worker, index: u32) -> Option<Ns> {
    worker.bell().reset();
    messenger.add(worker, index);
    messenger.bell().post(SCOPE);
    // The one who stops posts every bell after setting the order, so none is missed.
    if control.stopping() {
        return None;
    }
    worker.bell().wait(SCOPE, None);
    if control.stopping() {
        return None;
    }
    let now = clock::now();
    worker.woken(worker.wake_ns(), now);
    Some(now)
}

/// A worker of the current era: message, then sleep and matrices. Of a pipe: message only.
pub(super) fn work_after_wakeup(
    control: &Control,
    messenger: &Messenger,
    worker: &Worker,
    index: u32,
    thinking: Option<&Thinking>,
) {
    let mut seen = 0;
    while worker.goes_on(control, &mut seen) {
        let Some(thinking) = thinking else {
            worker.fill_page(2);
            if ask(control, messenger, worker, index).is_some() {
                worker.done();
            }
            continue;
        };
        if let Some(now) = ask(control, messenger, worker, index) {
            let begun = thinking.request(now);
            worker.request.record(clock::now() - begun);
            worker.done();
        }
    }
}

/// A worker of the older eras: spins, then message.
pub(super) fn spin_before_message(
    control: &Control,
    messenger: &Messenger,
    worker: &Worker,
    index: u32,
    thinking: &Thinking,
    pipe: bool,
) {
    let mut seen = 0;
    while worker.goes_on(control, &mut seen) {
        thinking.spin();
        worker.done();
        if pipe {
            worker.fill_page(2);
        }
        ask(control, messenger, worker, index);
    }
}

/// A message thread: wakes all waiting workers; in the older eras, sleeps first.
pub(super) fn answer(
    control: &Control,
    messenger: &Messenger,
    workers: &[Arc<Worker>],
    job: &Schbench,
    index: u32,
) {
    let pipe = job.pipe_bytes.is_some();
    let mut delay = Delay::new(job, index);
    // The first program did not trust its wakeups: it looks again after one delay.
    let timeout = (job.era == Era::First).then(|| delay.next()).filter(|&ns| ns > 0);
    loop {
        messenger.bell().reset();
        messenger.wake_all(workers, pipe);
        if control.stopping() {
            return;
        }
        messenger.bell().wait(SCOPE, timeout);
        let sleep_ns = delay.next();
        if sleep_ns > 0 {
            control.sleep_until(clock::now().saturating_add(sleep_ns));
        }
    }
}

/// How long a message thread sleeps before its answers: so long, and up to a quarter more
/// by chance.
struct Delay {
    fixed_us: u64,
    random: Random,
}

impl Delay {
    fn new(job: &Schbench, index: u32) -> Delay {
        let fixed_us = if job.pipe_bytes.is_some() { 0 } else { job.message_sleep_us };
        let seed = job.seed.wrapping_add(u64::from(index));
        Delay { fixed_us, random: Random::new(seed) }
    }

    fn next(&mut self) -> Ns {
        // Below 4 µs a quarter is nothing, by which the original divides.
        let more_us = self.random.below(self.fixed_us / 4);
        self.fixed_us.saturating_add(more_us).saturating_mul(1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delays(era: Era, sleep_us: u64, seed: u64) -> Vec<Ns> {
        let mut job = Schbench::new(era);
        (job.message_sleep_us, job.seed) = (sleep_us, seed);
        let mut delay = Delay::new(&job, 0);
        (0..100).map(|_| delay.next()).collect()
    }

    #[test]
    fn a_delay_is_up_to_a_quarter_longer_and_the_same_for_a_seed() {
        let of_one = delays(Era::Classic, 30_000, 1);
        assert!(of_one.iter().all(|ns| (30_000_000..37_500_000).contains(ns)), "{of_one:?}");
        assert_eq!(of_one, delays(Era::Classic, 30_000, 1));
        assert_ne!(of_one, delays(Era::Classic, 30_000, 2));
    }

    #[test]
    fn delays_without_a_quarter_and_beyond_a_second_are_delays() {
        assert_eq!(delays(Era::First, 3, 1), [3_000; 100]);
        assert_eq!(delays(Era::First, 0, 1), [0; 100]);
        let long = delays(Era::First, 1_000_000, 1);
        assert!(long.iter().all(|ns| (1_000_000_000..1_250_000_000).contains(ns)));
    }
}

//! Synchronization without channels: FIFO mutexes, lists that are woken as a whole, and request
//! rings.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::arena::{Arena, Inbox, stamp};
use crate::Ns;
use crate::sys::futex::{self, Scope};
use crate::sys::shared::shareable;

shareable! {
    /// A FIFO mutex: each task draws a number and sleeps until its number is called.
    pub(super) struct Turns {
        /// The next number to draw.
        drawn: AtomicU32,
        /// The number whose turn it is.
        called: AtomicU32,
    }
}

impl Turns {
    /// Locks; sleeps until it is the caller's turn.
    #[inline]
    pub(super) fn take(&self, scope: Scope) {
        let own = self.drawn.fetch_add(1, Ordering::SeqCst);
        loop {
            let called = self.called.load(Ordering::SeqCst);
            if called == own {
                return;
            }
            futex::wait_bits(&self.called, called, bit(own), scope);
        }
    }

    /// Unlocks and wakes the longest waiter.
    #[inline]
    pub(super) fn give(&self, scope: Scope) {
        let next = self.called.load(Ordering::Relaxed).wrapping_add(1);
        self.called.store(next, Ordering::SeqCst);
        // A task that draws after this check sees the new number and does not sleep.
        if self.drawn.load(Ordering::SeqCst) != next {
            futex::wake_bits(&self.called, bit(next), scope);
        }
    }
}

/// Waiters share one word and sleep on the bit of their number: up to 32 are woken individually.
fn bit(number: u32) -> NonZeroU32 {
    NonZeroU32::new(1 << (number % 32)).expect("one bit is set")
}

/// Pushes `task` onto a list.
#[inline]
pub(super) fn join(arena: &Arena, list: usize, task: u32) {
    let (head, own) = (&arena.lists[list], &arena.inbox[task as usize]);
    let mut first = head.load(Ordering::Relaxed);
    loop {
        own.next.store(first, Ordering::Relaxed);
        match head.compare_exchange_weak(first, task + 1, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now_first) => first = now_first,
        }
    }
}

/// Takes a whole list and posts each task on it, last in first, after recording `now` for it.
#[inline]
pub(super) fn wake_list(arena: &Arena, list: usize, now: impl FnOnce() -> Ns, scope: Scope) {
    let mut next = arena.lists[list].swap(0, Ordering::Acquire);
    if next == 0 {
        return;
    }
    let noted = now();
    while let Some(task) = next.checked_sub(1) {
        let woken = &arena.inbox[task as usize];
        // Once posted, it may join again.
        next = woken.next.load(Ordering::Relaxed);
        woken.noted.store(noted, Ordering::Relaxed);
        woken.bell.post(scope);
    }
}

/// Puts a request sent at `now` in a ring and rings the bell. Returns false if the ring is full.
#[inline]
pub(super) fn request(inbox: &Inbox, ring: &[AtomicU64], now: Ns, scope: Scope) -> bool {
    let number = inbox.requests.fetch_add(1, Ordering::Relaxed) as usize;
    if ring[number % ring.len()].swap(stamp(now), Ordering::Release) != 0 {
        return false;
    }
    inbox.request_bell.post(scope);
    true
}

/// Takes request `number` from a ring, sleeping until it is there; returns its send time.
#[inline]
pub(super) fn serve(inbox: &Inbox, ring: &[AtomicU64], number: u64, scope: Scope) -> Ns {
    let place = &ring[number as usize % ring.len()];
    loop {
        match place.swap(0, Ordering::Acquire) {
            0 => inbox.request_bell.wait(scope, None),
            sent => return sent,
        };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::sys::{clock, futex::Doorbell};

    #[test]
    fn a_mutex_excludes_and_is_handed_over_in_the_order_of_arrival() {
        let (turns, inside) = (Turns::default(), AtomicUsize::new(0));
        let (order, n) = (std::sync::Mutex::new(Vec::new()), 40);
        turns.take(Scope::Private);
        std::thread::scope(|scope| {
            for thread in 0..n {
                let (turns, inside, order) = (&turns, &inside, &order);
                scope.spawn(move || {
                    turns.take(Scope::Private);
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two at a time");
                    order.lock().unwrap().push(thread);
                    inside.fetch_sub(1, Ordering::SeqCst);
                    turns.give(Scope::Private);
                });
                // Each has drawn its number before the next one comes.
                while turns.drawn.load(Ordering::SeqCst) != thread + 2 {
                    clock::sleep(10_000);
                }
            }
            turns.give(Scope::Private);
        });
        assert_eq!(*order.lock().unwrap(), (0..n).collect::<Vec<_>>());
    }

    #[test]
    fn a_ring_keeps_order_and_says_when_it_is_full() {
        let inbox = Inbox { bell: Doorbell::default(), ..Inbox::default() };
        let ring: Vec<AtomicU64> = (0..4).map(|_| AtomicU64::new(0)).collect();
        let mut taken = 0;
        for round in 0..3 {
            for n in 0..4 {
                assert!(request(&inbox, &ring, 10 * round + n, Scope::Private));
            }
            for n in 0..4 {
                let sent = serve(&inbox, &ring, taken, Scope::Private);
                assert_eq!(sent, stamp(10 * round + n));
                taken += 1;
            }
        }
        for _ in 0..4 {
            assert!(request(&inbox, &ring, 1, Scope::Private));
        }
        assert!(!request(&inbox, &ring, 1, Scope::Private), "a fifth of four");
    }

    #[test]
    fn a_list_is_woken_whole_with_one_time_and_last_in_first() {
        let text = "name = \"t\"\nabout = \"t\"\nload = \"n\"\nlists = [\"l\"]\n\
                    [[metric]]\nname = \"n (ns)\"\nquantile = 0.5\n\
                    [[task]]\nname = \"waker\"\n\
                    program = [{ wake_list = \"l\" }, { sleep = \"1us\" }]\n\
                    [[task]]\nname = \"waiter\"\ncount = 3\n\
                    program = [{ join = \"l\" }, { wait = true }, { record = true }]\n";
        let workload = reveille_workload::Workload::parse("t.toml", text).unwrap();
        let arena = Arena::new(&workload.build(1, &Default::default()).unwrap()).unwrap();
        for task in [2, 1, 3] {
            join(&arena, 0, task);
        }
        let mut order = Vec::new();
        let mut next = arena.lists[0].load(Ordering::Relaxed);
        while let Some(task) = next.checked_sub(1) {
            order.push(task);
            next = arena.inbox[task as usize].next.load(Ordering::Relaxed);
        }
        assert_eq!(order, [3, 1, 2]);
        wake_list(&arena, 0, || 77, Scope::Private);
        for task in 1..4 {
            let inbox = &arena.inbox[task];
            assert!(inbox.bell.wait(Scope::Private, Some(1)), "task {task} was not posted");
            assert_eq!(inbox.noted.load(Ordering::Relaxed), 77);
        }
        assert_eq!(arena.lists[0].load(Ordering::Relaxed), 0);
        wake_list(&arena, 0, || unreachable!("no task to wake"), Scope::Private);
    }
}

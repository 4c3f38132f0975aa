//! Synchronization without channels or mutexes: lists that are woken as a whole, and request
//! rings.

use std::sync::atomic::{AtomicU64, Ordering};

use super::arena::{Arena, Inbox, stamp};
use reveille_measure::Ns;

use crate::sys::futex::Scope;

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
    use super::*;
    use crate::sys::futex::Doorbell;

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

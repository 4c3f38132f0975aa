//! A FIFO mutex between processes.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

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

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::sys::clock;

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
}

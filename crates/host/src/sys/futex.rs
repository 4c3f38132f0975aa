//! Raw futexes: a thread waits on one word in memory. Private ones work within a process and are
//! cheaper; shared ones work across processes.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

use reveille_measure::Ns;
use rustix::io::Errno;
use rustix::thread::futex::{self, Flags, Timespec};

/// Which threads wait on a futex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Threads of this process.
    Private,
    /// Threads of any process that maps the word.
    Shared,
}

impl Scope {
    fn flags(self) -> Flags {
        match self {
            Scope::Private => Flags::PRIVATE,
            Scope::Shared => Flags::empty(),
        }
    }
}

/// Sleeps while the word is `value`, for at most `timeout`; may wake spuriously, as on a signal.
/// Returns false on timeout.
#[inline]
pub fn wait(word: &AtomicU32, value: u32, scope: Scope, timeout: Option<Ns>) -> bool {
    let timeout = timeout.map(|ns| Timespec {
        tv_sec: (ns / 1_000_000_000) as i64,
        tv_nsec: (ns % 1_000_000_000) as i64,
    });
    futex::wait(word, scope.flags(), value, timeout.as_ref()) != Err(Errno::TIMEDOUT)
}

/// Wakes at most `count` waiters; returns the number woken.
#[inline]
pub fn wake(word: &AtomicU32, count: u32, scope: Scope) -> u32 {
    futex::wake(word, scope.flags(), count).unwrap_or(0) as u32
}

/// Sleeps while the word is `value`, until a wakeup with one of the bits `of`.
#[inline]
pub fn wait_bits(word: &AtomicU32, value: u32, of: NonZeroU32, scope: Scope) {
    let _ = futex::wait_bitset(word, scope.flags(), value, None, of);
}

/// Wakes all waiters for one of the bits `of`.
#[inline]
pub fn wake_bits(word: &AtomicU32, of: NonZeroU32, scope: Scope) {
    let _ = futex::wake_bitset(word, scope.flags(), i32::MAX as u32, of);
}

const BLOCKED: u32 = 0;
const RUNNING: u32 = 1;

/// A futex on which one thread waits and others post, as schbench's `fwait` and `fpost`: an early
/// post is not lost, and several count as one.
#[derive(Debug)]
#[repr(transparent)]
pub struct Doorbell(AtomicU32);

impl Default for Doorbell {
    fn default() -> Doorbell {
        Doorbell(AtomicU32::new(BLOCKED))
    }
}

impl Doorbell {
    #[inline]
    pub fn reset(&self) {
        self.0.store(BLOCKED, Ordering::SeqCst);
    }

    /// Marks it as posted, so that posters make no system call until the next reset or wait. Only
    /// for the waiting thread.
    #[inline]
    pub fn hold(&self) {
        self.0.store(RUNNING, Ordering::Release);
    }

    /// Waits for a post, at most `timeout`, and consumes it. Returns false on timeout.
    #[inline]
    pub fn wait(&self, scope: Scope, timeout: Option<Ns>) -> bool {
        let end = timeout.map(|t| super::clock::now().saturating_add(t));
        loop {
            if self.0.swap(BLOCKED, Ordering::SeqCst) == RUNNING {
                return true;
            }
            let left = end.map(|end| end.saturating_sub(super::clock::now()));
            if left == Some(0) || !wait(&self.0, BLOCKED, scope, left) {
                return self.0.swap(BLOCKED, Ordering::SeqCst) == RUNNING;
            }
        }
    }

    /// Posts; wakes the thread if it is waiting.
    #[inline]
    pub fn post(&self, scope: Scope) {
        if self.0.swap(RUNNING, Ordering::SeqCst) == BLOCKED {
            wake(&self.0, 1, scope);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_post_is_kept_once_until_it_is_taken() {
        let bell = Doorbell::default();
        assert!(!bell.wait(Scope::Private, Some(0)));
        bell.post(Scope::Private);
        bell.post(Scope::Private);
        assert!(bell.wait(Scope::Private, None) && !bell.wait(Scope::Private, Some(1000)));
        bell.hold();
        assert!(bell.wait(Scope::Private, None) && !bell.wait(Scope::Private, Some(0)));
        bell.hold();
        bell.reset();
        assert!(!bell.wait(Scope::Private, Some(0)));
    }
}

//! Futexes, raw: one word in memory that a thread waits on. Private ones serve the threads
//! of one process and are cheaper; shared ones serve several processes.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags, Timespec};

use crate::Ns;

/// Who waits on a futex.
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

/// Sleeps while the word is `value`, at most `timeout`; may also return for no reason, as
/// the kernel does at a signal. False if the time was over.
#[inline]
pub fn wait(word: &AtomicU32, value: u32, scope: Scope, timeout: Option<Ns>) -> bool {
    let timeout = timeout.map(|ns| Timespec {
        tv_sec: (ns / 1_000_000_000) as i64,
        tv_nsec: (ns % 1_000_000_000) as i64,
    });
    futex::wait(word, scope.flags(), value, timeout.as_ref()) != Err(Errno::TIMEDOUT)
}

/// Wakes at most `count` that wait; returns how many it woke.
#[inline]
pub fn wake(word: &AtomicU32, count: u32, scope: Scope) -> u32 {
    futex::wake(word, scope.flags(), count).unwrap_or(0) as u32
}

/// Sleeps while the word is `value`, until a wake-up of one of the bits `of`.
#[inline]
pub fn wait_bits(word: &AtomicU32, value: u32, of: NonZeroU32, scope: Scope) {
    let _ = futex::wait_bitset(word, scope.flags(), value, None, of);
}

/// Wakes all that wait for one of the bits `of`.
#[inline]
pub fn wake_bits(word: &AtomicU32, of: NonZeroU32, scope: Scope) {
    let _ = futex::wake_bitset(word, scope.flags(), i32::MAX as u32, of);
}

const BLOCKED: u32 = 0;
const RUNNING: u32 = 1;

/// A futex that one thread waits on and others post, as schbench's `fwait` and `fpost`: a
/// post that comes first is not lost, several count as one.
#[derive(Debug)]
#[repr(transparent)]
pub struct Doorbell(AtomicU32);

impl Default for Doorbell {
    fn default() -> Doorbell {
        Doorbell(AtomicU32::new(BLOCKED))
    }
}

impl Doorbell {
    /// Forgets a post that came.
    #[inline]
    pub fn reset(&self) {
        self.0.store(BLOCKED, Ordering::SeqCst);
    }

    /// Takes it that a post came: until the next reset or wait, those who post need not
    /// wake anybody. For the thread that waits on it.
    #[inline]
    pub fn hold(&self) {
        self.0.store(RUNNING, Ordering::Release);
    }

    /// Waits for a post, at most `timeout`, and takes it. False if the time was over.
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

    /// Posts; wakes the thread if it waits.
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

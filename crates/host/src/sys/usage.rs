//! What the kernel counts for the calling thread, cheaply enough to be asked around every
//! batch of a measurement.

/// Switches away from this thread since it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switches {
    /// Because it blocked.
    pub voluntary: u64,
    /// Because it was preempted, or yielded.
    pub involuntary: u64,
}

/// Those of the thread that asks.
#[inline]
pub fn switches() -> Switches {
    // SAFETY: `rusage` is plain numbers, for which all zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: writes to `usage` alone, which lives until after the call; with a valid
    // selector and address it cannot fail.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) };
    Switches { voluntary: usage.ru_nvcsw as u64, involuntary: usage.ru_nivcsw as u64 }
}

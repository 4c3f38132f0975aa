//! What the kernel counts for a thread or for ended processes, cheaply enough to be asked
//! around every batch of a measurement.

use crate::Ns;

/// Switches away from a thread since it began, or from several processes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switches {
    /// Because it blocked.
    pub voluntary: u64,
    /// Because it was preempted, or yielded.
    pub involuntary: u64,
}

/// CPU time and switches.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    pub user_ns: Ns,
    pub system_ns: Ns,
    pub switches: Switches,
}

/// Those of the thread that asks.
#[inline]
pub fn switches() -> Switches {
    ask(libc::RUSAGE_THREAD).switches
}

/// What the children that this process has reaped used, and what they had reaped themselves.
pub fn of_ended_children() -> Used {
    ask(libc::RUSAGE_CHILDREN)
}

/// CPU time of this process and of [`of_ended_children`].
pub fn own_cpu_ns() -> Ns {
    let both = [ask(libc::RUSAGE_SELF), ask(libc::RUSAGE_CHILDREN)];
    both.iter().map(|used| used.user_ns + used.system_ns).sum()
}

#[inline]
fn ask(who: i32) -> Used {
    // SAFETY: `rusage` is plain numbers, for which all zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: writes to `usage` alone, which lives until after the call; with a valid
    // selector and address it cannot fail.
    unsafe { libc::getrusage(who, &mut usage) };
    let ns = |time: libc::timeval| time.tv_sec as Ns * 1_000_000_000 + time.tv_usec as Ns * 1000;
    Used {
        user_ns: ns(usage.ru_utime),
        system_ns: ns(usage.ru_stime),
        switches: Switches {
            voluntary: usage.ru_nvcsw as u64,
            involuntary: usage.ru_nivcsw as u64,
        },
    }
}

//! The kernel's counters of a thread or of ended processes, cheap enough to read around every batch
//! of a measurement.

use reveille_measure::Ns;

/// Context switches of a thread since its start, or of several processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switches {
    /// Voluntary: it blocked.
    pub voluntary: u64,
    /// Involuntary: it was preempted, or yielded.
    pub involuntary: u64,
}

#[derive(Clone, Copy, Debug)]
pub struct Used {
    pub user_ns: Ns,
    pub system_ns: Ns,
    pub switches: Switches,
}

#[inline]
pub fn switches() -> Switches {
    ask(libc::RUSAGE_THREAD).switches
}

/// CPU time and switches of reaped children and their reaped descendants.
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

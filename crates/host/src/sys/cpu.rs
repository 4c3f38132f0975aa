//! CPUs: which one this is, which ones a thread may use.

use std::io;

use reveille_policy::CpuId;
use rustix::thread::{self, CpuSet, Pid};

/// The kernel's number of the CPU that this thread runs on now.
#[inline]
pub fn current() -> CpuId {
    // SAFETY: takes nothing and touches no memory of ours; glibc answers from the thread's
    // rseq area or the vDSO, which `rustix` (a system call) does not.
    unsafe { libc::sched_getcpu() as CpuId }
}

/// Lets this thread, and those that it starts, run on these CPUs alone.
pub fn pin(cpus: &[CpuId]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu as usize >= CpuSet::MAX_CPU {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        set.set(cpu as usize);
    }
    Ok(thread::sched_setaffinity(None::<Pid>, &set)?)
}

/// The CPUs that this thread may run on, in rising order.
pub fn allowed() -> io::Result<Vec<CpuId>> {
    let set = thread::sched_getaffinity(None::<Pid>)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&c| set.is_set(c)).map(|c| c as CpuId).collect())
}
